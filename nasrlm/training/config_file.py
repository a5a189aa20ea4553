"""YAML files of configs, which may inherit keys from each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

LIKE = "like"  # key of a YAML file, not of the config: a file from which missing keys are taken


def values_of(path: Path, likened: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the keys and values of a file, including those inherited from the file named by its key ``like``.

    ``likened`` are the files that inherit from this one, to find circular references.

    Raises:
        ValueError: a file cannot be read, is not YAML with words as keys, or inherits from itself.
    """
    values = _own_values(path)
    if LIKE not in values:
        return values
    name = values.pop(LIKE)
    if not isinstance(name, str):
        raise ValueError(f"{path}: {LIKE}: expected the path of a YAML file, got {name!r}.")
    like, asking = _like(path, name), (path, *likened)
    if like.resolve() in [file.resolve() for file in asking]:
        raise ValueError(f"{path}: {LIKE}: expected a file that does not inherit from this one, got {name}.")
    return {**values_of(like, asking), **values}


def _like(path: Path, name: str) -> Path:
    """Return the file that ``like: name`` in the file ``path`` means: in the same folder, else from the working one."""
    beside = path.parent / name
    return beside if beside.is_file() else Path(name)


def file_setting(path: Path, key: str) -> Path:
    """Return the file that sets a key: this one, or one from which it inherits."""
    values = _own_values(path)
    return path if key in values or LIKE not in values else file_setting(_like(path, values[LIKE]), key)


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys; the base class would silently use the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the keys and values of a node.

        Raises:
            ConstructorError: a key occurs twice.
        """
        before: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in before:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} twice", key.start_mark)
            before.add(key.value)
        return super().construct_mapping(node, deep)


def _own_values(path: Path) -> dict[str, Any]:
    """Return the keys and values of a file, without inherited ones.

    Raises:
        ValueError: the file cannot be read, or is not YAML with words as keys.
    """
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as e:
        raise ValueError(f"{path}: expected a YAML file, got {e.strerror}.") from e
    except UnicodeDecodeError as e:
        raise ValueError(f"{path}: expected UTF-8 text, got {e.reason} at byte {e.start}.") from e
    except yaml.YAMLError as e:
        raise ValueError(f"{path}: expected YAML, got {' '.join(str(e).split())}.") from e
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected keys and values, got {type(values).__name__}. See docs/training.md.")
    if odd := [key for key in values if not isinstance(key, str)]:
        raise ValueError(f"{path}: expected text as keys, got {odd[0]!r}. See docs/training.md.")
    return values
