"""regress-lm is installed once, or it is told why not; it learns from the rows that it is given."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import peer
from benchmarks.peer import InstalledPeer, PeerError, ask_peer, install_peer
from tests.benchmarks.stand_in import STAND_IN, write_stand_in


def test_a_peer_that_fails_says_why() -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no such thing')"]
    with pytest.raises(PeerError, match=r"^expected it to run, got no such thing\.$"):
        ask_peer(failing, "benchmarks.engine_peer", {}, 1)


def test_a_package_without_the_module_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer.venv, "create", lambda folder, with_pip: (folder / "bin").mkdir(parents=True))
    ran: list[list[str]] = []

    class Finished:
        stderr = "none in it\n"

        def __init__(self, command: list[str], **_: object) -> None:
            ran.append(command)
            self.returncode = int("-c" in command)

    monkeypatch.setattr(peer.subprocess, "run", Finished)
    (tmp_path / "peer").mkdir()
    (tmp_path / "peer" / "installed").write_text("another")
    with pytest.raises(PeerError, match=r"from pip with a module regress_lm, got none in it\.$"):
        install_peer("regress-lm==0.0.1", "torch", tmp_path / "peer")
    assert len(ran) == 2
    assert (tmp_path / "peer" / "installed").read_text() == "another"


def test_what_is_installed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "installed").write_text("here torch")
    monkeypatch.setattr(peer.venv, "create", lambda *_, **__: pytest.fail("made again"))
    assert install_peer("here", "torch", tmp_path) == InstalledPeer(str(tmp_path / "bin" / "python"), "here torch")


def test_a_folder_is_what_its_source_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []
    monkeypatch.setattr(peer.venv, "create", lambda folder, with_pip: (folder.mkdir(), made.append(folder)))
    monkeypatch.setattr(peer, "_run_pip", lambda *_: None)
    module, source = tmp_path / "source" / "regress_lm.py", str(tmp_path / "source")
    module.parent.mkdir()

    def git(*words: str) -> str:
        command = ["git", "-C", source, "-c", "user.name=me", "-c", "user.email=me@here", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def installed(text: str) -> str:
        module.write_text(text)
        return install_peer(source, "torch", tmp_path / "peer").identity

    identities = [installed("1"), installed("2"), installed("2")]
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    identities += [installed("2"), installed("3"), installed("4")]
    assert len(set(identities)) == len(made) == 5
    assert identities[3] == f"{source} commit {git('rev-parse', 'HEAD')} torch"
    assert all(identity.startswith(identities[3].removesuffix(" torch")) for identity in identities[4:])


@pytest.mark.parametrize("steps", [None, 3])
def test_a_peer_learns_with_every_rate_and_the_best_answers(
    steps: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_stand_in(tmp_path, monkeypatch, STAND_IN)
    texts = [f"{'Conv ' * n}end" for n in range(12, 20)]
    part = {"texts": texts, "values": [[float(n)] for n in range(len(texts))]}
    request = {
        **dict.fromkeys(("train", "valid", "test"), part),
        **{
            "parameters": 4850,
            "layers": (1, 1),
            "vocabulary": 64,
            "context": 2048,
            "samples": 3,
            "batch": 3,
            "evaluations": 10,
        },
        **{"rates": (1e-4, 1e-3), "seconds": 0.01, "steps": steps, "seed": 0, "threads": 1},
    }
    slow, fast, answer = ask_peer([sys.executable], "benchmarks.ranking_peer", request, 3)
    assert [slow["rate"], fast["rate"]] == [1e-4, 1e-3]
    assert slow["steps"] == steps or (steps is None and slow["steps"] >= 1)
    assert fast["valid_loss"] < slow["valid_loss"]  # the stand-in's loss is what its layer says, which falls
    assert answer["medians"] == [[float(len(text))] for text in texts]
