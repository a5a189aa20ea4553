"""What a user's code prints stays off stdout."""

import subprocess
import sys

import pytest

from nasrlm.cli.users_code import prints_aside


def test_what_code_and_its_programs_print_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with prints_aside():
        print("a line")
        sys.stderr.flush()
        subprocess.run([sys.executable, "-c", "print('epoch 1')"], check=True)
    print("an answer")
    assert capfd.readouterr() == ("an answer\n", "a line\nepoch 1\n")
