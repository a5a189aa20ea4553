"""Spaces by name; the module of a space is imported only when it is needed."""

from __future__ import annotations

import ast
import copyreg
import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spaces.process_lock import lock_of_process
from spaces.promises import broken_promise
from spaces.shown import shown
from spaces.space import SearchSpace
from spaces.spellings import Spellings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

REGISTRY = {
    "darts": "spaces.darts:DARTS",
    "fbnet": "spaces.fbnet:FBNet",
    "hiaml": "spaces.hiaml:HiAML",
    "inception": "spaces.inception:Inception",
    "mnasnet": "spaces.mnasnet:MnasNet",
    "nasbench101": "spaces.nasbench101:NASBench101",
    "nasbench201": "spaces.nasbench201:NASBench201",
    "nasbench_macro": "spaces.nasbench_macro:NASBenchMacro",
    "nds_amoebanet": "spaces.nds:NDSAmoebaNet",
    "nds_darts": "spaces.nds:NDSDARTS",
    "nds_enas": "spaces.nds:NDSENAS",
    "nds_nasnet": "spaces.nds:NDSNASNet",
    "nds_pnas": "spaces.nds:NDSPNAS",
    "ofa_mobilenetv3": "spaces.ofa_mobilenetv3:OFAMobileNetV3",
    "ofa_proxylessnas": "spaces.ofa_proxylessnas:OFAProxylessNAS",
    "ofa_resnet50": "spaces.ofa_resnet50:OFAResNet50",
    "two_path": "spaces.two_path:TwoPath",
}

ENTRY_POINTS = "nasrlm.spaces"  # entry point group in which installed packages register their spaces
USER_MODULE = "user_space_"  # how names of modules begin that are files of users' spaces
REQUIRED_ATTRIBUTES = ("name", "objectives", "gene_sizes")

# A thread waits for a file that another one executes, whose classes are not all defined yet. So does a fork, in which
# the file would never be executed to its end.
_IMPORTING = lock_of_process()


class UnknownSpaceError(ValueError):
    """There is no usable search space of this name."""


def space_names() -> tuple[str, ...]:
    """Return the sorted names of this package's spaces and of those that installed packages register; imports none."""
    return tuple(sorted({*REGISTRY, *_entry_points().names}))


def space_file(name: str) -> Path | None:
    """Return the absolute path of the file in a name ``path/to/file.py:ClassName``; None for other names."""
    path, _, _ = name.rpartition(":")
    return Path(os.path.expanduser(path)).resolve() if path.endswith(".py") else None  # Path's fails on ~nobody


def full_name(name: str) -> str:
    """Return a name ``path/to/file.py:ClassName`` with the path made absolute; other names unchanged."""
    path = space_file(name)
    return name if path is None else f"{path}:{name.rpartition(':')[2]}"


def found_from(folder: Path, name: str) -> str:
    """Return a name whose path leads to a file, if necessary relative to ``folder``; other names unchanged."""
    file = space_file(name)
    if file is None or file.is_file():
        return name
    from_there = str(folder / name)
    there = space_file(from_there)
    return from_there if there is not None and there.is_file() else name


def same_spaces(names: Iterable[object], space: str) -> list[str]:
    """Return those of ``names``, which are cells of a table, that mean ``space``; paths to its file may differ."""
    wanted = full_name(space)
    return [name for name in names if isinstance(name, str) and full_name(name) == wanted]


def user_files() -> tuple[Path, ...]:
    """Return the files of users' spaces that this process has imported; another one imports them before it unpickles.

    Pickled objects of their classes name modules that no other process finds by itself.
    """
    names = [name for name in sys.modules if name.startswith(USER_MODULE)]
    return tuple(Path(file) for name in names if (file := sys.modules[name].__file__))


def opened(space: SearchSpace[Any] | str) -> SearchSpace[Any]:
    """Return a search space given as such or by name; raises what ``get_space`` does."""
    return space if isinstance(space, SearchSpace) else get_space(space)


def get_space(name: str, **options: object) -> SearchSpace[Any]:
    """Return a search space by its name, or a user's space by its file and class.

    Args:
        name: one of ``space_names()``, or ``path/to/file.py:ClassName``; the file is executed. Names of this package
            take precedence over those of other packages.
        options: keyword arguments of the space, such as ``dataset``.

    Raises:
        UnknownSpaceError: there is no such name, file or class, a package cannot be loaded, or the class is no complete
            SearchSpace or does not accept these options.

    Example:
        >>> get_space("nasbench201", dataset="cifar100").num_classes
        100
    """
    if not isinstance(name, str):
        raise UnknownSpaceError(f"space: expected a name, or path/to/file.py:ClassName, got {shown(name)}.")
    if name in REGISTRY:
        module_name, _, class_name = REGISTRY[name].partition(":")
        space_class = getattr(importlib.import_module(module_name), class_name)
    elif path := space_file(name):
        space_class = _user_class(path, name)
    else:
        space_class = _installed_class(name)
    return _constructed(space_class, name, options)


def check_name(space: SearchSpace[Any]) -> None:
    """Refuse a user's space with the name of one of this package, as models, tables and studies would confuse the two.

    Raises:
        UnknownSpaceError: the space has such a name and its class does not derive from that space's.
    """
    plain = space.space if isinstance(space, Spellings) else space
    if space.name in REGISTRY and not isinstance(plain, type(get_space(space.name))):
        raise UnknownSpaceError(
            f"space {type(space).__name__}: expected a unique name, got {space.name}, which another space has. Rename "
            "it."
        )


def _constructed(space_class: type[SearchSpace[Any]], name: str, options: dict[str, object]) -> SearchSpace[Any]:
    try:
        space = space_class(**options)
    except TypeError as error:
        raise UnknownSpaceError(
            f"space {name}: expected a class that can be created with options {options}, got {error}. See the "
            f"arguments and abstract methods of {space_class.__name__}."
        ) from error
    except OSError as error:
        raise UnknownSpaceError(
            f"space {name}: expected a class that can be created, got {type(error).__name__}: {error}."
        ) from error
    missing = [attribute for attribute in REQUIRED_ATTRIBUTES if not hasattr(space, attribute)]
    if missing:
        raise UnknownSpaceError(
            f"space {name}: expected attributes {', '.join(REQUIRED_ATTRIBUTES)}, got none named "
            f"{', '.join(missing)}. Set them in the class."
        )
    object.__setattr__(space, "_address", name)  # the class may be a frozen dataclass
    if name not in REGISTRY and (broken := broken_promise(space)):
        raise UnknownSpaceError(f"space {name}: {broken}. See spaces/space.py.")
    return space


def _user_class(path: Path, name: str) -> type[SearchSpace[Any]]:
    class_name = name.rpartition(":")[2]
    if not path.is_file():
        raise UnknownSpaceError(f"space {name}: expected a Python file, got no file at {path}. Check the path.")
    found = getattr(import_user_file(path, name), class_name, None)
    if found is None:
        raise UnknownSpaceError(
            f"space {name}: expected a class {class_name!r} in {path}, got none. Check the spelling."
        )
    space_class = _checked_class(found, name)
    if space_class.__module__.startswith(USER_MODULE):  # it is not imported from a module beside the file
        copyreg.pickle(space_class, _pickled)
    return space_class


def _pickled(space: SearchSpace[Any]) -> tuple[Any, ...]:
    """Return what ``pickle`` stores of a space of a user's file, which another process has to import first."""
    space_class = type(space)
    file = sys.modules[space_class.__module__].__file__
    return _without_attributes, (file, space_class.__qualname__), *space.__reduce_ex__(2)[2:]


def _without_attributes(file: str, class_name: str) -> SearchSpace[Any]:
    """Return a space of a class in a user's file without its attributes, which ``pickle`` adds."""
    space_class: type[SearchSpace[Any]] = attrgetter(class_name)(import_user_file(Path(file)))
    return object.__new__(space_class)


def _installed_class(name: str) -> type[SearchSpace[Any]]:
    """Return the class that an installed package registers under a name."""
    found = {entry.value: entry for entry in _entry_points().select(name=name)}
    if not found:
        raise UnknownSpaceError(
            f"space: expected one of {', '.join(space_names())} or path/to/file.py:ClassName, got {name!r}."
            + _most_like(name)
        )
    if len(found) > 1:
        raise UnknownSpaceError(
            f"space {name}: expected one package that registers it, got {', '.join(sorted(found))}. "
            "Uninstall the others."
        )
    (entry,) = found.values()
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:
        raise UnknownSpaceError(
            f"space {name}: expected to load {entry.value}, as an installed package registers it, got "
            f"{type(error).__name__}: {error}. Fix or uninstall that package."
        ) from error
    return _checked_class(loaded, name)


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # imported here: it would double the time to import spaces

    return entry_points(group=ENTRY_POINTS)


def _most_like(name: str) -> str:
    """Return a suggestion for a misspelled name, such as NAS-Bench-201 or nasbench_201."""
    by_letters = {_letters(known): known for known in space_names()}
    close = get_close_matches(_letters(name), by_letters, n=1, cutoff=0.85)
    return f" Did you mean {by_letters[close[0]]}?" if close else ""


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


def _checked_class(found: object, name: str) -> type[SearchSpace[Any]]:
    if not (isinstance(found, type) and issubclass(found, SearchSpace)):
        raise UnknownSpaceError(
            f"space {name}: expected a subclass of spaces.SearchSpace, got {found!r}. Derive the class from it."
        )
    return found


def modules_beside(path: Path) -> dict[str, Path]:
    """Return the modules in the folder of a file that it imports, by name; empty if the file is no valid Python."""
    try:
        parsed = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return {}
    names = [alias.name for node in ast.walk(parsed) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom) and not node.level]
    found = {name: path.parent / f"{name}.py" for name in dict.fromkeys(names) if name not in sys.stdlib_module_names}
    return {name: file for name, file in found.items() if file.is_file()}


def _check_modules_beside(path: Path, name: str) -> None:
    """Refuse a file if it would import a module from its folder whose name is already taken by another module."""
    for module_name, file in modules_beside(path).items():
        known = getattr(sys.modules.get(module_name), "__file__", None)
        if known is not None and Path(known).resolve() != file.resolve():
            raise UnknownSpaceError(
                f"space {name}: expected to import {file}, got {module_name} of {known}, which is imported already. "
                "Rename one."
            )


def import_user_file(path: Path, name: str = "") -> ModuleType:
    """Import a file once per process; modules in its folder can be imported from then on.

    Args:
        path: the file.
        name: the name of the space that it is imported for, for messages; the path if empty.

    Raises:
        UnknownSpaceError: the file cannot be imported.

    NOTE: loading it again would make a second class of the same name, and architectures of the two classes would never
    be equal. An edited file is therefore seen only after a restart, as with any import.
    """
    with _IMPORTING:
        return _imported(path, name or str(path))


def _imported(path: Path, name: str) -> ModuleType:
    module_name = f"{USER_MODULE}{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    _check_modules_beside(path, name)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for modules in its folder, as with a script, but searched last
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None, f"a .py file always has a spec: {path}"
    assert spec.loader is not None, f"a .py file always has a loader: {path}"
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # before it is executed, because dataclasses look up their module here
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if not isinstance(error, Exception | SystemExit):  # Ctrl-C; but a script may call sys.exit
            raise
        got = f"{type(error).__name__}: {error}".rstrip(".")
        raise UnknownSpaceError(
            f"space {name}: expected a file that can be imported, got {got}. Try python {path}."
        ) from error
    return module
