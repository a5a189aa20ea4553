"""Write the figures of a study, or of several studies to compare."""

import io
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from nasrlm.files import write_atomically
from nasrlm.objective import Objective
from spaces import get_space, space_names
from studies.config import SearchConfig
from studies.figures.calibration import calibration_figure, interactive_calibration
from studies.figures.cell_graph import CellGraph, cell_graphs
from studies.figures.cells import cells_figure, interactive_cells
from studies.figures.front import front_figure
from studies.figures.interactive_front import interactive_front
from studies.figures.known_values import known_values
from studies.figures.progress import interactive_progress, progress_figure, spelled
from studies.folder import FINISHED, StudyError, read_study
from studies.guide import levels_of
from studies.loaded_study import LoadedStudy, load_study
from studies.report import write_front

CELLS = 5  # front members whose cells are drawn
DPI = 150  # of files


def plot_study(folder: Path | str, out: Path | str | None = None) -> tuple[Path, ...]:
    """Write the figures of a finished or running study, and front.csv of one that has not finished.

    The figures are front.png and front.html; hypervolume.png; calibration.png if real or true values are known;
    cells.png, the cells of some front members, for registered spaces; and report.html with all of them.

    Args:
        folder: the study's folder.
        out: folder for the figures; ``folder`` if None.

    Returns:
        The paths of the files.

    Raises:
        StudyError: there is no study, or it is damaged.
        OSError: ``out`` cannot be written.
    """
    folder = Path(folder)
    study = load_study(folder)
    config = study.config
    target = _made(out or folder)
    predicted, real, notations = known_values(folder, config)
    known = dict(zip(notations, real, strict=True))
    pngs = {"front": front_figure(study, known)}
    parts = [interactive_front(study, known)]
    if study.history.complete().any():
        pngs["hypervolume"] = progress_figure([folder.resolve().name], [study])
        parts.append(interactive_progress([folder.resolve().name], [study]))
    told = ~np.isnan(predicted).any(axis=2) & ~np.isnan(real)
    if config.guide is not None:  # leave out objectives taken from the model, whose interval is a point
        told &= predicted[:, :, 1] < predicted[:, :, 2]
    if turned_out := np.flatnonzero(told.any(axis=0)).tolist():
        names = [config.objectives[column] for column in turned_out]
        predicted, real = predicted[:, turned_out], real[:, turned_out]
        intervals = _intervals(study, turned_out)
        pngs["calibration"] = calibration_figure(names, predicted, real, intervals)
        parts.append(interactive_calibration(names, predicted, real, intervals, notations))
    if study.front_rows and config.space in space_names():
        shown = _cells(study)
        pngs["cells"] = cells_figure(shown)
        parts.append(interactive_cells(shown))
    for name, figure in pngs.items():
        _write(figure, target / f"{name}.png")
    _write_html([parts[0]], target / "front.html")
    _write_html(parts, target / "report.html")
    unfinished = read_study(folder).get("status") != FINISHED
    fronts = [write_front(target, study)] if unfinished else []
    return (*fronts, *(target / f"{name}.png" for name in pngs), target / "front.html", target / "report.html")


def plot_studies(folders: Sequence[Path | str], out: Path | str) -> tuple[Path, ...]:
    """Write comparison.png and comparison.html: hypervolume against evaluations of studies with the same goals.

    Studies that differ only in their seeds form one curve with a band.

    Raises:
        StudyError: there are no folders, or a folder is given twice, has no study or has no results; two studies have
            the same config and seed; or studies differ in space, in goals, or in whether results are real.
        OSError: ``out`` cannot be written.
    """
    if isinstance(folders, str | Path):
        raise StudyError(f"plot: expected a list of folders, got {str(folders)!r}. Put it in a list.")
    paths = [Path(folder) for folder in folders]
    if twice := [str(path) for path, count in Counter(map(Path.resolve, paths)).items() if count > 1]:
        raise StudyError(f"plot: expected each study once, got {', '.join(twice)} twice. Leave it out.")
    studies = [load_study(path) for path in paths]
    kinds = sorted({_kind(study.config) for study in studies})
    if len(kinds) != 1:
        raise StudyError(f"plot: expected studies of one kind, got {'; '.join(kinds)}. Plot them separately.")
    by_config: dict[str, list[str]] = {}
    for path, study in zip(paths, studies, strict=True):
        by_config.setdefault(spelled(study.config), []).append(str(path))
    if alike := next((names for names in by_config.values() if len(names) > 1), None):
        raise StudyError(
            f"plot: expected studies that differ at least in their seeds, got {', '.join(alike)} with the same "
            "config, like workers of one study. Give only one of them."
        )
    if empty := [str(path) for path, study in zip(paths, studies, strict=True) if not study.history.complete().any()]:
        raise StudyError(f"plot: expected evaluated architectures, got none in {', '.join(empty)}.")
    target, names = _made(out), _distinct_names(paths)
    _write(progress_figure(names, studies), target / "comparison.png")
    _write_html([interactive_progress(names, studies)], target / "comparison.html")
    return target / "comparison.png", target / "comparison.html"


def _intervals(study: LoadedStudy, columns: Sequence[int]) -> list[float | None]:
    """Return the probability between low and high for the predictions of each objective in ``columns``."""
    if study.config.guide is None:
        return [study.history.interval] * len(columns)
    levels = levels_of(study.config.guide.risk, study.config.objectives)
    return [levels[column][-1] - levels[column][0] for column in columns]


def _distinct_names(folders: Sequence[Path]) -> list[str]:
    """Name studies by their paths relative to the common folder, since folders may have the same name."""
    paths = [folder.resolve() for folder in folders]
    shared = os.path.commonpath([path.parent for path in paths])
    return [str(path.relative_to(shared)) for path in paths]


def _kind(config: SearchConfig) -> str:
    values = "predicted" if config.evaluator == "surrogate" else "real"
    return f"{' '.join(map(str, config.goals))} in {config.space}, {values}"


def _cells(study: LoadedStudy) -> list[tuple[list[str], list[CellGraph]]]:
    """Return, for members spread evenly over the front, their objectives in words and their cells."""
    space, history, rows = get_space(study.config.space), study.history, study.front_rows
    places = np.unique(np.linspace(0, len(rows) - 1, CELLS).round().astype(int)).tolist()
    shown = []
    for row in (rows[place] for place in places):
        values = zip(history.objectives, history.values[row][:, 0].tolist(), strict=True)
        words = [f"{Objective.parse(name).label}: {value:.4g}" for name, value in values]
        shown.append((words, cell_graphs(space, history.architectures[row])))
    return shown


def _made(folder: Path | str) -> Path:
    made = Path(folder)
    made.mkdir(parents=True, exist_ok=True)
    return made


def _write(figure: Figure, path: Path) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    write_atomically(path, buffer.getvalue())


def _write_html(figures: Sequence[Any], path: Path) -> None:
    """Write plotly figures one below the other, to work offline: 5 MB, nearly all of it plotly.js."""
    parts = [
        figure.to_html(include_plotlyjs=index == 0, full_html=False, default_height=700, div_id=f"figure-{index}")
        for index, figure in enumerate(figures)
    ]
    page = '<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>nasrlm</title></head><body>\n{}\n</body></html>\n'
    write_atomically(path, page.format("\n".join(parts)).encode())
