"""Optuna's dashboard opens on the study of a guided search, in a browser."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from studies.guided import guided_search
from studies.storage.optuna_storage import study_name
from tests.studies.scenes import ToyPredictor, ToyResults, ToySpace, toy_config

CONFIG = toy_config(trials=12, evaluator="function", guide={"batch_size": 4, "generations": 2, "samples": 4})
WAIT = 400  # seconds for the server, and for the browser; a busy machine may need minutes


@pytest.fixture
def dashboard(tmp_path: Path, without_figures: None) -> Iterator[str]:
    """URL of a dashboard on the journal of a finished search."""
    pytest.importorskip("optuna_dashboard", reason="needs the extra dashboard")
    space, journal = ToySpace(), str(tmp_path / "journal.log")
    results = ToyResults(CONFIG.objectives)
    guided_search(CONFIG, space, results, ToyPredictor(), tmp_path / "out", to_text=space.format, storage=journal)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    program = Path(sys.executable).parent / "optuna-dashboard"
    server = subprocess.Popen(
        [program, journal, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/studies", server)
        yield f"http://127.0.0.1:{port}/dashboard"
    finally:
        server.kill()
        server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WAIT
    while True:
        try:
            urllib.request.urlopen(url, timeout=WAIT).close()
            return
        except OSError:
            assert server.poll() is None, f"expected a dashboard, got exit status {server.returncode}."
            assert time.monotonic() < deadline, f"expected an answer from {url}, got none in {WAIT} s."
            time.sleep(0.2)


def browse(url: str, folder: Path, *options: str) -> str:
    """What headless Chromium prints, after the page's scripts have run."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1600,1400"]
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [browser, *flags, profile, "--virtual-time-budget=15000", *options, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.service
def test_the_dashboard_shows_the_study(dashboard: str, tmp_path: Path) -> None:
    picture = tmp_path / "dashboard.png"
    page = browse(f"{dashboard}/studies/0", tmp_path, "--dump-dom", f"--screenshot={picture}")
    assert study_name(CONFIG) in page
    assert "accuracy@toy" in page  # the objectives' names, in a figure
    pixels = imread(picture)[:, :, :3]
    assert pixels.shape == (1400, 1600, 3)
    blank = np.all(pixels == pixels[0, 0], axis=2).mean()
    assert blank < 0.98  # something is drawn on it
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
