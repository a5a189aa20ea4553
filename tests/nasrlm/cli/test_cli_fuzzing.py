"""``nasrlm convert`` of broken files: a text, or one line on stderr and exit status 2."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.converters.broken import broken_models
from tests.nasrlm.conftest import CommandLine


def check(nasrlm: CommandLine, path: Path, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=[*HealthCheck])
    @given(broken_models())
    def ends_well(content: bytes) -> None:
        path.write_bytes(content)
        finished = nasrlm("convert", path)
        if finished.status == 0:
            assert "network (" in finished.stdout
        else:
            assert (finished.status, finished.stdout) == (2, "")
            assert finished.stderr.startswith(f"nasrlm: {path}: ")
            assert finished.stderr.count("\n") == 1

    ends_well()


def test_broken_files_end_in_one_line(nasrlm: CommandLine, tmp_path: Path) -> None:
    check(nasrlm, tmp_path / "model.onnx", 20)


@pytest.mark.slow
def test_many_broken_files_end_in_one_line(nasrlm: CommandLine, tmp_path: Path) -> None:
    check(nasrlm, tmp_path / "model.onnx", 1000)
