"""The verb plot: draw figures of studies, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nasrlm.cli.options import JsonOption
from nasrlm.cli.output import print_json, say


def run(
    folders: Annotated[list[Path], typer.Argument(help="Folder of a study; several studies are compared.")],
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: that of the first study.")] = None,
    json: JsonOption = False,
) -> None:
    """Draw the figures of a finished or running study, or compare several studies."""
    from studies.figures.plots import plot_studies, plot_study  # here: takes a second

    target = out or folders[0]
    made = plot_study(folders[0], target) if len(folders) == 1 else plot_studies(folders, target)
    if json:
        print_json([str(path) for path in made])
    else:
        say("\n".join(map(str, made)))
