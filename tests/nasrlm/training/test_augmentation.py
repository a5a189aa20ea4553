"""Texts changed by a user's function while training: seeded, checked, and only for train rows."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from nasrlm.training.augmentation import load_augmentation
from nasrlm.training.run import TrainingRun
from tests.nasrlm.runs import config
from tests.nasrlm.scenes import layer_examples

MODULE = """
def upper(text):
    return text.upper()

def shuffled(text, rng):
    lines = text.splitlines(keepends=True)
    return "".join(lines[index] for index in rng.permutation(len(lines)))

def scaled(text, share=0.5, *, times=2):
    return text * int(share * 2 * times)

def longer(text, rng):
    return text * 1000

def half(text):
    return text + "\\ud800"

def nothing(text):
    return ""

def three(a, b, c):
    return a

def absent(text):
    return {}[text]

def leaving(text):
    raise SystemExit

number = 3
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_augmentations.py").write_text(MODULE)
    (tmp_path / "lacking.py").write_text("import not_there_at_all")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_function_of_the_text_or_of_text_and_generator() -> None:
    rng = np.random.default_rng(0)
    assert load_augmentation("my_augmentations:upper")("conv", rng) == "CONV"
    changed = load_augmentation("my_augmentations:shuffled")("a\nb\nc\nd\n", rng)
    assert sorted(changed.splitlines()) == ["a", "b", "c", "d"]
    assert load_augmentation("my_augmentations:scaled")("ab", rng) == "abab"  # its defaults are its own


def test_augmented_batches_depend_on_seed_and_step_alone(tmp_path: Path) -> None:
    plain = TrainingRun(config(tmp_path), layer_examples()).batches
    runs = [
        TrainingRun(config(tmp_path, augment="my_augmentations:shuffled"), layer_examples()).batches for _ in range(2)
    ]
    for step in (5, 0, 17):
        first, second = (run[step] for run in runs)
        assert torch.equal(first.text_ids, second.text_ids)
        assert torch.equal(first.numbers, plain[step].numbers)
        assert not torch.equal(first.text_ids, plain[step].text_ids)
        assert torch.equal(first.text_ids.sort(dim=1).values, plain[step].text_ids.sort(dim=1).values)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:f", "augment nowhere:f: expected a module nowhere, got none. Is it on PYTHONPATH"),
        ("my_augmentations:f", r"expected a function f in .*my_augmentations\.py, got None"),
        ("my_augmentations:number", r"expected a function number in .*my_augmentations\.py, got 3"),
        ("my_augmentations:three", "expected a function of a text, or of a text and a generator, got 3 parameters"),
        ("my_augmentations:nothing", "expected a text that is not empty, got '' for 'conv'"),
        ("my_augmentations:half", "expected text that UTF-8 can encode, got surrogates not allowed for 'conv'"),
        ("math:sqrt", r"expected a text, got TypeError: must be real number, not str for 'conv'…$"),
        (
            "my_augmentations:absent",
            r"expected a text, got KeyError: 'conv' \(.*my_augmentations\.py:2\d\) for 'conv'…$",
        ),
        ("my_augmentations:leaving", r"expected a text, got SystemExit: \(.*my_augmentations\.py:\d+\) for 'conv'…$"),
        ("builtins:str", r"expected a function with known parameters, got <class 'str'>. Wrap it in a Python function"),
    ],
)
def test_what_is_no_augmentation_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^augment {name}: ") as raised:
        load_augmentation(name)("conv", np.random.default_rng(0))
    assert re.search(message, str(raised.value))


def test_a_text_that_it_makes_too_long_is_told_as_its_own(tmp_path: Path) -> None:
    run = TrainingRun(config(tmp_path, augment="my_augmentations:longer"), layer_examples())
    message = r"^augment my_augmentations:longer: expected 1 to 512 tokens, got \d{4,} in its result for row \d+"
    with pytest.raises(ValueError, match=message):
        run.batches[3]


def test_what_the_module_lacks_is_its_own_error() -> None:
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        load_augmentation("lacking:f")
