"""Run regress-lm in a separate environment: install it once, send requests as JSON, and read JSON lines.

Peer: regress-lm, the library to compare with.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0"  # installed beside regress-lm


class PeerError(ValueError):
    """The peer could not be installed, or did not run; the message says why."""


@dataclass(frozen=True)
class InstalledPeer:
    """An installed regress-lm.

    Attributes:
        python: path of an interpreter that has it.
        identity: its version: what pip installed, and for a folder also the state of its source.
    """

    python: str
    identity: str


def install_peer(
    requirement: str, torch_requirement: str, folder: Path = ROOT / ".bench" / "regress-lm"
) -> InstalledPeer:
    """Install regress-lm, unless it is there already; if that fails, an older installation is kept.

    Raises:
        PeerError: pip finds nothing, or a package without the module.
    """
    stamp = folder / "installed"
    peer = InstalledPeer(str(folder / "bin" / "python"), f"{_identity(requirement)} {torch_requirement}")
    if stamp.is_file() and stamp.read_text() == peer.identity:
        return peer
    fresh = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    venv.create(fresh, with_pip=True)
    _run_pip(str(fresh / "bin" / "python"), requirement, torch_requirement)
    (fresh / stamp.name).write_text(peer.identity)
    shutil.rmtree(folder, ignore_errors=True)
    fresh.rename(folder)
    return peer


def _run_pip(python: str, requirement: str, torch_requirement: str) -> None:
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    find = "import importlib.util, sys; sys.exit(None if importlib.util.find_spec('regress_lm') else 'none in it')"
    steps = [*pip, "--no-deps", requirement], [python, "-c", find], [*pip, requirement, torch_requirement]
    for command in steps:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PeerError(f"expected {requirement} from pip with a module regress_lm, got {_last_line(done.stderr)}.")


def _identity(requirement: str) -> str:
    """Return a requirement; for a folder also its commit, and a hash of its Python files if they are not committed."""
    folder = Path(requirement)
    if not folder.is_dir():
        return requirement
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD") if (folder / ".git").exists() else ""
    named = f"{requirement} commit {commit}" if commit else requirement
    if commit and not _git(folder, "status", "--porcelain", "--untracked-files=no"):
        return named
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if not any(part == "build" or part.startswith(".") for part in name.parts):  # copies, environments
            digest.update(f"{name.as_posix()}\0".encode() + path.read_bytes())
    return f"{named} files {digest.hexdigest()[:16]}"


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def ask_peer(python: Sequence[str], module: str, request: dict[str, Any], num_answers: int) -> list[Any]:
    """Run one of our modules that imports regress-lm in its interpreter, and return the JSON lines that it prints.

    Raises:
        PeerError: the exit status is not 0.
    """
    with tempfile.TemporaryFile("w+") as question, tempfile.TemporaryFile("w+") as errors:
        json.dump(request, question)
        question.seek(0)
        with subprocess.Popen(
            [*python, "-m", module], cwd=ROOT, text=True, stdin=question, stdout=subprocess.PIPE, stderr=errors
        ) as process:
            bar = tqdm(process.stdout, "regress-lm", num_answers, disable=not sys.stderr.isatty())
            answers = [json.loads(line) for line in bar]
        errors.seek(0)
        if process.returncode:
            raise PeerError(f"expected it to run, got {_last_line(errors.read())}.")
    return answers


def _last_line(output: str) -> str:
    return (output.strip().rstrip(".").splitlines() or ["no word"])[-1]
