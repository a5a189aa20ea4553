"""The verb train: train a model by a config, or resume a run that was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import studies
from nasrlm.cli.options import JsonOption

RECIPES = Path(studies.__file__).parent / "recipes"  # shipped with the package


def run(
    config: Annotated[Path, typer.Option("--config", help="YAML file (see docs/training.md) or name of a recipe.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the run; default: that of the config.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="Torch device; default: that of the config.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed; default: that of the config.")] = None,
    json: JsonOption = False,
) -> None:
    """Train a model; the same command resumes a stopped run. Works with torchrun and accelerate launch."""
    given = {"out": out, "device": device, "seed": seed}
    overrides = {key: value for key, value in given.items() if value is not None}

    from nasrlm.cli.training import train_by_config  # here: takes seconds

    train_by_config(_config_file(config), overrides, str(config), json=json)


def _config_file(given: Path) -> Path:
    """Return the file of a config: the given path, or that of the recipe of this name."""
    if given.suffix or given.is_file():  # a folder may have a recipe's name
        return given
    recipes = {path.stem: path for path in sorted(RECIPES.glob("*.yaml"))}
    if str(given) not in recipes:
        raise ValueError(f"--config: expected a YAML file or a recipe, {', '.join(recipes)}, got {given}.")
    return recipes[str(given)]
