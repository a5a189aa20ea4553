"""regress-lm in an environment of its own: installed once, asked by JSON on stdin, answering in lines of JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0"  # what it is measured with


class PeerError(ValueError):
    """It could not be installed, or did not run; the message says why."""


def install_peer(requirement: str, torch_requirement: str, folder: Path = ROOT / ".bench" / "regress-lm") -> str:
    """An interpreter with regress-lm, installed unless it is there already.

    Raises:
        PeerError: pip finds nothing, or a package without the module.
    """
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    wanted = f"{requirement} {torch_requirement}"
    if stamp.is_file() and stamp.read_text() == wanted:
        return str(python)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    find = "import importlib.util, sys; sys.exit(None if importlib.util.find_spec('regress_lm') else 'none in it')"
    steps = [*pip, "--no-deps", requirement], [str(python), "-c", find], [*pip, requirement, torch_requirement]
    for command in steps:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise PeerError(f"expected {requirement} from pip with a module regress_lm, got {_last_line(done.stderr)}.")
    stamp.write_text(wanted)
    return str(python)


def ask_peer(python: Sequence[str], module: str, request: dict[str, Any], num_answers: int) -> list[Any]:
    """What a module of ours that imports regress-lm answers, by an interpreter that has it.

    Raises:
        PeerError: it ended otherwise than with 0.
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
