"""A PostgreSQL server of the tests' own, on loopback."""

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of an empty database; skips where PostgreSQL is not installed or cannot start."""
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    programs = _programs()
    if programs is None:
        pytest.skip("needs PostgreSQL's initdb and pg_ctl: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="nasrlm-postgres-"))
    data = folder / "data"
    port = _free_port()
    try:
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")
        _call(programs / "initdb", "-D", data, "-A", "trust", "-U", "nasrlm", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        _call(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        yield f"postgresql://nasrlm@127.0.0.1:{port}/postgres"
    finally:
        if (data / "postmaster.pid").exists():
            _call(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl; Debian keeps them off PATH."""
    on_path = shutil.which("pg_ctl")
    found = [Path(on_path).resolve().parent] if on_path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    complete = [folder for folder in found if (folder / "initdb").exists() and (folder / "pg_ctl").exists()]
    return complete[-1] if complete else None


def _call(*words: str | Path) -> None:
    """As this user, or as postgres for root."""
    command = [str(word) for word in words]
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    done = subprocess.run(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        pytest.skip(f"PostgreSQL does not start as {getpass.getuser()}: {done.stderr.strip()[:200]}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
