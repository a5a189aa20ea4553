"""Denormals count as zero inside, and as before outside."""

import pytest
import torch

from nasrlm.training.denormals import DENORMAL, denormals_as_zero

pytestmark = pytest.mark.skipif(not torch.set_flush_denormal(False), reason="this processor always keeps denormals")


def kept() -> bool:
    return float(torch.tensor(DENORMAL) * 1) > 0


def test_they_are_zero_within_alone() -> None:
    assert kept()
    with denormals_as_zero():
        assert not kept()
        with denormals_as_zero():
            assert not kept()
        assert not kept()
    assert kept()


def test_they_are_kept_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), denormals_as_zero():
        raise ZeroDivisionError
    assert kept()
