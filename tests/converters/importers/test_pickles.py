"""Pickles are read as data: what could run is refused before it does. All files here are built, none is an original."""

import bz2
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from converters.importers import BenchmarkFileError
from converters.importers.pickles import read_pickle, read_torch

PLAIN = {"list": [1, 2.5, "x", None, True], "tuple": (1, 2), "set": {3}, "ordered": OrderedDict(a={"b": b"c"})}


class Attack:
    """Unpickled by the ordinary way, it creates a file."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.victim),)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_containers_and_numbers(tmp_path: Path, protocol: int) -> None:
    numbers = {"scalar": np.float64(1.5), "integer": np.int64(3), "array": np.arange(6.0).reshape(2, 3)}
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(PLAIN | numbers, protocol))
    found = read_pickle(tmp_path / "a.pickle")
    assert {key: found[key] for key in PLAIN} == PLAIN
    assert (found["scalar"], found["integer"]) == (1.5, 3)
    np.testing.assert_array_equal(found["array"], numbers["array"])


def test_numpy_1_names(tmp_path: Path) -> None:
    old = pickle.dumps(np.float64(1.5), 2).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "a.pickle").write_bytes(old)
    assert read_pickle(tmp_path / "a.pickle") == 1.5


def test_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps(PLAIN)))
    assert read_pickle(tmp_path / "a.pickle.pbz2") == PLAIN


@pytest.mark.parametrize("zipped", [False, True])
def test_torch_files_give_their_values_without_tensors(tmp_path: Path, zipped: bool) -> None:
    contents = PLAIN | {"weights": OrderedDict(w=torch.ones(2, 3)), "parameter": torch.nn.Parameter(torch.ones(1))}
    torch.save(contents, tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    found = read_torch(tmp_path / "a.pth")
    assert found == PLAIN | {"weights": OrderedDict(w=None), "parameter": None}


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_an_attack_is_refused_and_does_not_run(tmp_path: Path, protocol: int) -> None:
    victim = tmp_path / "victim"
    (tmp_path / "a.pickle").write_bytes(pickle.dumps({"meta_archs": [Attack(victim)]}, protocol))
    with pytest.raises(BenchmarkFileError, match=r"a\.pickle: expected .* got one that needs \w+\.mkdir.*nothing"):
        read_pickle(tmp_path / "a.pickle")
    assert not victim.exists()


@pytest.mark.parametrize("zipped", [False, True])
def test_an_attack_in_a_torch_file(tmp_path: Path, zipped: bool) -> None:
    victim = tmp_path / "victim"
    torch.save([Attack(victim)], tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    with pytest.raises(BenchmarkFileError, match="got one that needs"):
        read_torch(tmp_path / "a.pth")
    assert not victim.exists()


@pytest.mark.parametrize(
    "program",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cbuiltins\ngetattr\n.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"\x80\x04\x8c\x05torch\x8c\x04load\x93.",
        b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.__init__\x93.",
        b"ccollections\nabc.os\n.",
    ],
)
def test_only_the_admitted_names_are_found(tmp_path: Path, program: bytes) -> None:
    (tmp_path / "a.pickle").write_bytes(program)
    with pytest.raises(BenchmarkFileError, match="got one that needs"):
        read_pickle(tmp_path / "a.pickle")


def test_arrays_of_objects_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(np.array([[], {}], dtype=object)))
    with pytest.raises(BenchmarkFileError, match="which are not numbers"):
        read_pickle(tmp_path / "a.pickle")


def test_another_kind_of_file_is_refused_in_plain_sentences(tmp_path: Path) -> None:
    (tmp_path / "a.pickle").write_bytes(b"\xb9")
    with pytest.raises(BenchmarkFileError, match=r"got UnpicklingError invalid load key, '\\xb9'\. Is it "):
        read_pickle(tmp_path / "a.pickle")


@pytest.mark.parametrize("size", [0, 1, 40, -1])
def test_truncated(tmp_path: Path, size: int) -> None:
    data = pickle.dumps(PLAIN)[:size]
    (tmp_path / "a.pickle").write_bytes(data)
    (tmp_path / "a.pbz2").write_bytes(bz2.compress(data)[:-4])
    for name in ("a.pickle", "a.pbz2"):
        with pytest.raises(BenchmarkFileError, match=r"expected a pickle, got .*downloaded completely"):
            read_pickle(tmp_path / name)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_truncated_torch_file(tmp_path: Path, zipped: bool) -> None:
    torch.save(PLAIN, tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    whole = (tmp_path / "a.pth").read_bytes()
    for size in (0, len(whole) // 4, len(whole) // 2):
        (tmp_path / "a.pth").write_bytes(whole[:size])
        with pytest.raises(BenchmarkFileError, match=r"a\.pth: expected"):
            read_torch(tmp_path / "a.pth")


def test_a_pickle_is_no_torch_file(tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_bytes(pickle.dumps(PLAIN))
    with pytest.raises(
        BenchmarkFileError, match=r"expected a file written by torch\.save, got a pickle of something else"
    ):
        read_torch(tmp_path / "a.pth")


@pytest.mark.parametrize("program", [b"\x80\x04]r\xff\xff\xff\x00.", b"]p16777215\n."])
def test_a_damaged_place_takes_no_memory(tmp_path: Path, program: bytes) -> None:
    (tmp_path / "a.pickle").write_bytes(program)
    with pytest.raises(BenchmarkFileError, match=r"got UnpicklingError place 16,777,215 for a value in \d+ bytes\."):
        read_pickle(tmp_path / "a.pickle")
