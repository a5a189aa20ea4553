"""Figures: written for every number of goals, and stating what they leave out."""

from pathlib import Path

import numpy as np
import pytest

from nasrlm.prediction import Prediction
from studies.folder import StudyError
from studies.plots import front_figure, plot_studies, plot_study, progress_figure
from studies.report import load_study
from studies.search import search
from tests.studies.scenes import OBJECTIVES, Row, ToyEvaluator, ToySpace, toy_config

GOALS = ["max:accuracy@toy", "min:latency_ms@toy", "min:energy_mj@toy", "max:depth@toy"]


class FourObjectives(ToyEvaluator):
    """The toy's three and the largest gene."""

    def evaluate(self, architectures: list[Row]) -> Prediction:  # type: ignore[override]
        answer = super().evaluate(architectures)
        depth = np.array([[[float(max(a.genes))] * 3] for a in architectures])
        return Prediction((*OBJECTIVES, "depth@toy"), answer.quantiles, np.concatenate([answer.values, depth], axis=1))


@pytest.mark.parametrize("num_goals", [1, 2, 3, 4])
def test_a_search_writes_its_figures(num_goals: int, tmp_path: Path) -> None:
    config = toy_config(goals=GOALS[:num_goals], trials=20, constraints=["latency_ms@toy<=12"])
    result = search(config, ToySpace(), FourObjectives(), tmp_path)
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    html = (tmp_path / "front.html").read_text()
    assert "plotly.js v" in html
    assert "<script src=" not in html
    assert all(row["architecture"] in html for row in result.front)


def test_axes_carry_units_and_the_front_its_interval(tmp_path: Path) -> None:
    search(toy_config(trials=20), ToySpace(), ToyEvaluator(), tmp_path)
    (axes,) = front_figure(*load_study(tmp_path)).axes
    assert axes.get_xlabel() == "latency toy [ms], lower is better"
    assert axes.get_ylabel() == "accuracy toy [%], higher is better"
    assert "front, with 80% intervals" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_what_lies_outside_is_counted(tmp_path: Path) -> None:
    search(toy_config(trials=60), ToySpace(), ToyEvaluator(), tmp_path)
    config, history = load_study(tmp_path)
    history.values[0] = history.values[0] + 1_000
    history.feasible[0] = False
    (axes,) = front_figure(config, history).axes
    assert axes.get_xlim()[1] < 1_000
    assert "lie outside" in axes.get_legend().get_title().get_text()


def test_progress_compares_studies(tmp_path: Path) -> None:
    folders = [tmp_path / "genetic", tmp_path / "random"]
    for folder, sampler in zip(folders, ("nsga2", "random"), strict=True):
        search(toy_config(trials=50, sampler=sampler), ToySpace(), ToyEvaluator(), folder)
    (axes,) = progress_figure(["genetic", "random"], [load_study(folder) for folder in folders]).axes
    for line in axes.get_lines():
        heights = np.asarray(line.get_ydata(), dtype=float)
        assert (np.diff(heights) >= 0).all()
        assert heights[-1] <= 1
    assert max(float(np.max(line.get_ydata())) for line in axes.get_lines()) > 0.9
    assert plot_studies(folders, tmp_path / "both") == (tmp_path / "both/hypervolume.png",)
    assert plot_study(folders[0], tmp_path / "one") == (tmp_path / "one/front.png", tmp_path / "one/front.html")


def test_an_unfinished_or_fruitless_study_can_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(toy_config(constraints=["latency_ms@toy<=0"]), ToySpace(), ToyEvaluator(breaks_at=2), tmp_path)
    plot_study(tmp_path)
    plot_studies([tmp_path], tmp_path)


def test_studies_of_different_goals_are_not_compared(tmp_path: Path) -> None:
    for name in ("max", "min"):
        goals = [f"{name}:accuracy@toy", "min:latency_ms@toy"]
        search(toy_config(goals=goals, trials=10), ToySpace(), ToyEvaluator(), tmp_path / name)
    with pytest.raises(StudyError, match="plot: expected studies of the same goals, got"):
        plot_studies([tmp_path / "max", tmp_path / "min"], tmp_path)
    with pytest.raises(StudyError, match=r"expected a study's folder, got no study\.json"):
        plot_study(tmp_path)
