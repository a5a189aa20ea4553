"""Names, and users' own files."""

import copy
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spaces import SearchSpace, UnknownSpaceError, get_space, space_names
from spaces.registry import check_name, opened
from spaces.spellings import Spellings

OWN_SPACE = """
from __future__ import annotations
from dataclasses import dataclass
from spaces import SearchSpace

@dataclass(frozen=True)
class Digit:
    value: int

class Digits(SearchSpace[Digit]):
    name = "digits"
    objectives = ("accuracy@here",)
    gene_sizes = (10,)
    def encode(self, architecture): return (architecture.value,)
    def _build(self, genotype): return Digit(*genotype)
    def parse(self, notation): return Digit(int(notation))
    def format(self, architecture): return str(architecture.value)
    def architecture_key(self, architecture): return self.format(architecture)

@dataclass(frozen=True)
class Frozen(Digits):
    width: int = 8

class Unfinished(SearchSpace[Digit]):
    name = "unfinished"

class Unlabelled(Digits):
    @property
    def objectives(self): raise AttributeError
NOT_A_SPACE = 3
"""


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN_SPACE)
    return path


@pytest.mark.parametrize("name", space_names())
def test_every_name_opens_its_space(name):
    space = get_space(name)
    assert isinstance(space, SearchSpace)
    assert space.name == name


def test_options_reach_the_space():
    assert get_space("nasbench201", dataset="cifar100").num_classes == 100
    with pytest.raises(UnknownSpaceError, match=r"^space nasbench201: expected .*'datset': .* unexpected keyword"):
        get_space("nasbench201", datset="cifar100")


@pytest.mark.parametrize("name", ["", "nasbench", "NASBench201", "own.py", "os:path", ":x"])
def test_unknown_names_list_the_known(name):
    message = f"expected one of .*nasbench201.* or path/to/file.py:ClassName, got {name!r}"
    with pytest.raises(UnknownSpaceError, match=message):
        get_space(name)


@pytest.mark.parametrize("name", ["NASBench201", "nas-bench-201", "nasbench_201", "nasbench20"])
def test_the_name_that_is_most_like_is_advised(name):
    with pytest.raises(UnknownSpaceError, match=r"Did you mean nasbench201\?$"):
        get_space(name)
    with pytest.raises(UnknownSpaceError, match=r"got 'resnet'\.$"):
        get_space("resnet")


@pytest.mark.parametrize("wrong", [None, 3, ["nasbench201"], Path("space.py"), SearchSpace])
def test_what_is_no_name_is_refused(wrong):
    for function in (get_space, opened):
        with pytest.raises(UnknownSpaceError, match=r"space: expected a name, or path/to/file\.py:ClassName, got "):
            function(wrong)


def test_own_space(own_file):
    space = get_space(f"{own_file}:Digits")
    assert space.format(space.decode([7])) == "7"
    assert [digit.value for digit in space.enumerate()] == list(range(10))


def test_threads_can_open_the_same_own_space(own_file):
    own_file.write_text(f"import time\ntime.sleep(0.2)\n{OWN_SPACE.replace('from __future__ import annotations', '')}")
    with ThreadPoolExecutor(4) as threads:
        opened_by_each = list(threads.map(get_space, [f"{own_file}:Digits"] * 4))
    assert len({type(space) for space in opened_by_each}) == 1


@pytest.mark.parametrize("name", ["Digits", "Frozen"])
@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
def test_another_process_can_unpickle_an_own_space(own_file, name, protocol):
    (own_file.parent / "space.pickle").write_bytes(pickle.dumps(get_space(f"{own_file}:{name}"), protocol))
    code = "import pickle; space = pickle.load(open('space.pickle', 'rb')); print(space.decode([7]), vars(space))"
    told = subprocess.run([sys.executable, "-c", code], cwd=own_file.parent, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("Digit(value=7) {'")
    assert f"'_address': '{own_file}:{name}'" in told.stdout


def test_own_space_is_copied_with_its_attributes(own_file):
    space = get_space(f"{own_file}:Digits")
    space.width = [16]
    copied = copy.deepcopy(space)
    assert (type(copied), copied.width) == (type(space), [16])
    assert copied.width is not space.width


def test_own_space_may_be_a_frozen_dataclass(own_file):
    space = get_space(f"{own_file}:Frozen", width=16)
    assert (space.width, space.address) == (16, f"{own_file}:Frozen")


def test_own_space_opened_twice_gives_equal_architectures(own_file, monkeypatch):
    monkeypatch.chdir(own_file.parent)
    assert get_space(f"{own_file}:Digits").decode([7]) == get_space("own.py:Digits").decode([7])


def test_own_space_with_something_missing(own_file):
    def refusal(name: str) -> str:
        with pytest.raises(UnknownSpaceError, match=f"^space {re.escape(name)}: expected") as error:
            get_space(name)
        return str(error.value)

    assert "got no file at" in refusal(f"{own_file.parent}/other.py:Digits")
    assert "got no file at" in refusal("~nobody-of-this-name/own.py:Digits")
    assert "got none." in refusal(f"{own_file}:Digitz")
    assert "got none." in refusal(f"{own_file}:")
    assert "subclass of spaces.SearchSpace, got 3" in refusal(f"{own_file}:NOT_A_SPACE")
    assert "abstract method" in refusal(f"{own_file}:Unfinished")
    assert "got none named objectives" in refusal(f"{own_file}:Unlabelled")


def test_modules_beside_an_own_file_can_be_imported(own_file, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "sizes_of_digits", raising=False)  # of another test's folder
    (own_file.parent / "sizes_of_digits.py").write_text("NUM_DIGITS = 3")
    other = own_file.parent / "other.py"
    importing = "from sizes_of_digits import NUM_DIGITS\nfrom dataclasses import"
    other.write_text(OWN_SPACE.replace("from dataclasses import", importing).replace("(10,)", "(NUM_DIGITS,)"))
    assert get_space(f"{other}:Digits").size == 3
    assert get_space(f"{other}:Digits").size == 3
    assert sys.path.count(str(own_file.parent)) == 1


def test_a_module_of_the_same_name_in_another_folder_is_refused(own_file, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    importing = OWN_SPACE.replace("from dataclasses import", "import sizes_of_digits\nfrom dataclasses import")
    for folder in ("a", "b"):
        (own_file.parent / folder).mkdir()
        (own_file.parent / folder / "sizes_of_digits.py").write_text("")
        (own_file.parent / folder / "own.py").write_text(importing)
    monkeypatch.delitem(sys.modules, "sizes_of_digits", raising=False)
    get_space(f"{own_file.parent}/a/own.py:Digits")
    with pytest.raises(UnknownSpaceError, match=r"to import .*b/sizes_of_digits\.py, got sizes_of_digits of .*a/"):
        get_space(f"{own_file.parent}/b/own.py:Digits")
    monkeypatch.delitem(sys.modules, "sizes_of_digits")


def test_a_name_of_this_package_is_refused_for_another_space(own_file):
    digits = get_space(f"{own_file}:Digits")
    check_name(digits)
    impostor = type("Impostor", (type(digits),), {"name": "nasbench201"})()
    with pytest.raises(UnknownSpaceError, match="space Impostor: expected a unique name, got nasbench201"):
        check_name(impostor)
    check_name(type("Kind", (type(get_space("nasbench201")),), {})())
    check_name(Spellings(get_space("nasbench201")))
    with pytest.raises(UnknownSpaceError, match="expected a unique name, got nasbench201"):
        check_name(Spellings(impostor))


def test_own_file_that_fails_can_be_mended(own_file):
    own_file.write_text("import no_such_module")
    with pytest.raises(UnknownSpaceError, match="got ModuleNotFoundError: No module named 'no_such_module'"):
        get_space(f"{own_file}:Digits")
    own_file.write_text("raise KeyboardInterrupt")  # Ctrl-C while it is imported
    with pytest.raises(KeyboardInterrupt):
        get_space(f"{own_file}:Digits")
    own_file.write_text("import sys\nsys.exit()")
    with pytest.raises(UnknownSpaceError, match="got SystemExit"):
        get_space(f"{own_file}:Digits")
    own_file.write_text(OWN_SPACE)
    assert get_space(f"{own_file}:Digits").name == "digits"


@pytest.fixture
def installed(own_file, monkeypatch):
    """Packages that register spaces: one as it should be, others broken."""
    (own_file.parent / "broken_package.py").write_text("import no_such_module")
    for package, lines in {
        "good": "digits = own:Digits\nnasbench201 = own:Digits\ntwice = own:Digits",
        "bad": "broken = broken_package:Space\nmissing = own:Digitz\nnumber = own:NOT_A_SPACE\ntwice = own:Unlabelled",
    }.items():
        folder = own_file.parent / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[nasrlm.spaces]\n{lines}\n")
    monkeypatch.syspath_prepend(own_file.parent)
    yield
    sys.modules.pop("own", None)


@pytest.mark.usefixtures("installed")
def test_installed_packages_register_spaces():
    assert {"broken", "digits", "nasbench201"} <= set(space_names())
    assert get_space("digits").decode([7]).value == 7
    assert get_space("nasbench201").size == 15_625  # a name of ours stays ours


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "broken",
            "expected to load broken_package:Space, .* got ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("missing", "expected to load own:Digitz, .* got AttributeError"),
        ("number", "expected a subclass of spaces.SearchSpace, got 3"),
        ("twice", "expected one package that registers it, got own:Digits, own:Unlabelled"),
    ],
)
def test_a_broken_registration_is_told_when_asked_for(name, message):
    with pytest.raises(UnknownSpaceError, match=f"^space {name}: {message}"):
        get_space(name)


@pytest.mark.usefixtures("installed")
def test_unknown_names_list_the_installed():
    with pytest.raises(UnknownSpaceError, match=r"expected one of broken, .*digits"):
        get_space("nonsense")


def test_spaces_are_imported_when_asked_for():
    code = "import sys, spaces; assert 'spaces.nasbench201' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
