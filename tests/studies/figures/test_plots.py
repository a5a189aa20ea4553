"""Figures: written for every number of goals, and stating what they leave out."""

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

from nasrlm.prediction import Prediction
from spaces import get_space
from studies.evaluators import FunctionEvaluator, TableEvaluator
from studies.figures.calibration import calibration_figure, interactive_calibration
from studies.figures.cell_graph import cell_graphs
from studies.figures.cells import cells_figure
from studies.figures.front import front_figure
from studies.figures.interactive_front import interactive_front
from studies.figures.known_values import known_values
from studies.figures.plots import plot_studies, plot_study
from studies.figures.progress import interactive_progress, progress_figure
from studies.folder import StudyError
from studies.history import History
from studies.loaded_study import LoadedStudy, load_study
from studies.search import search
from studies.surrogates.surrogate import Surrogate
from tests.studies.guided import guided_config, run
from tests.studies.scenes import (
    OBJECTIVES,
    Row,
    ToyEvaluator,
    ToyPredictor,
    ToyResults,
    ToySpace,
    toy_config,
    toy_results,
    toy_table,
    true_values,
)

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
    html = (tmp_path / "front.html").read_text(encoding="utf-8")
    assert "plotly.js v" in html
    assert "<script src=" not in html
    assert all(row["architecture"] in html for row in result.front)


def test_axes_carry_units_and_the_front_its_interval(tmp_path: Path) -> None:
    search(toy_config(trials=20), ToySpace(), ToyEvaluator(), tmp_path)
    (axes,) = front_figure(load_study(tmp_path)).axes
    assert axes.get_xlabel() == "latency toy [ms], lower is better"
    assert axes.get_ylabel() == "accuracy toy [%], higher is better"
    assert "front, with 80% intervals" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_all_of_few_evaluations_are_shown(tmp_path: Path) -> None:
    search(toy_config(goals=["max:accuracy@toy"], trials=6, population_size=6), ToySpace(), ToyEvaluator(), tmp_path)
    study = load_study(tmp_path)
    (axes,) = front_figure(study).axes
    values = study.history.stacked()[:, 0, 0]
    assert axes.get_ylim()[0] < values.min() < values.max() < axes.get_ylim()[1]
    history = study.history
    history.values[2] = history.values[2] - 1_000  # a network that failed
    (axes,) = front_figure(LoadedStudy(study.config, history)).axes
    assert axes.get_ylim()[0] > -900


def test_the_hypervolume_of_one_evaluation_is_a_point(tmp_path: Path) -> None:
    search(toy_config(trials=1, population_size=2), ToySpace(), ToyEvaluator(), tmp_path)
    (axes,) = progress_figure(["one"], [load_study(tmp_path)]).axes
    assert [line.get_marker() for line in axes.lines] == ["o"]


def test_what_lies_outside_is_counted(tmp_path: Path) -> None:
    search(toy_config(trials=60), ToySpace(), ToyEvaluator(), tmp_path)
    study = load_study(tmp_path)
    config, history = study.config, study.history
    history.values[0] = history.values[0] + 1_000
    history.feasible[0] = False
    (axes,) = front_figure(LoadedStudy(config, history)).axes
    assert axes.get_xlim()[1] < 1_000
    assert (hidden := axes.get_legend().get_title().get_text()).endswith("lie outside")
    shown = interactive_front(LoadedStudy(config, history)).layout
    assert shown.xaxis.range == pytest.approx(axes.get_xlim())
    assert shown.yaxis.range == pytest.approx(axes.get_ylim())
    assert f"{hidden}; a double click shows all" in shown.title.text
    history.values[1:] = [history.values[1] for _ in history.values[1:]]
    (axes,) = front_figure(LoadedStudy(config, history)).axes
    assert axes.get_legend().get_title().get_text() == "1 lies outside"
    history.values[0][1] = np.nan  # a network without a latency, which is no point
    (axes,) = front_figure(LoadedStudy(config, history)).axes
    assert axes.get_legend().get_title().get_text() == ""


def test_what_lies_outside_is_counted_for_one_goal() -> None:
    config = toy_config(goals=GOALS[:1])
    history = History(config.objectives)
    for row, accuracy in enumerate([10.0, *np.linspace(90, 94, 30)]):
        values = np.full((1, 3), accuracy)
        history.append(architecture=f"{row}", key=f"{row}", genotype=(), values=values, feasible=True)
    (axes,) = front_figure(LoadedStudy(config, history)).axes
    assert axes.get_legend().get_title().get_text() == "1 lies outside"


def test_the_interactive_front_shows_bounds_and_its_steps(tmp_path: Path) -> None:
    bounds = ["latency_ms@toy<=9", "soft:accuracy@toy>=3", "energy_mj@toy<=5"]
    search(toy_config(trials=40, constraints=bounds), ToySpace(), ToyEvaluator(), tmp_path, figures=False)
    study = load_study(tmp_path)
    figure = interactive_front(study)
    assert [(line.x0, line.y0, line.line.dash) for line in figure.layout.shapes] == [(9, 0, "dash"), (0, 3, "dot")]
    front = next(trace for trace in figure.data if trace.name.startswith("front"))
    across = [study.losses[row, 1] for row in study.front_rows]
    assert (list(front.x), front.line.shape) == (across, "vh")  # the best in the first goal first: down, then left
    assert across == sorted(across, reverse=True)


def test_titles_count_evaluations_with_a_result(tmp_path: Path) -> None:
    def results(notation: str) -> dict[str, float]:
        return {name: math.nan if notation < "2" else value for name, value in toy_results(notation).items()}

    found = search(toy_config(trials=20), ToySpace(), results, tmp_path, figures=False)
    assert found.failed > 0
    assert f"on the front of {found.evaluations} evaluated" in front_figure(load_study(tmp_path)).get_suptitle()


def test_figures_tell_that_the_model_guided_a_search(tmp_path: Path) -> None:
    run(guided_config(trials=9), tmp_path, predictor=ToyPredictor(sigma=0.1))
    study = load_study(tmp_path)
    assert "(guided, optuna " in front_figure(study).get_suptitle()
    assert "(guided, optuna " in interactive_front(study).layout.title.text
    (legend,) = progress_figure(["a"], [study]).legends
    assert legend.get_texts()[0].get_text().startswith("a (guided by hypervolume, optuna ")


@pytest.mark.parametrize("num_goals", [1, 2, 3])
def test_what_breaks_a_constraint_is_told_apart(num_goals: int, tmp_path: Path) -> None:
    config = toy_config(goals=GOALS[:num_goals], trials=40, constraints=["latency_ms@toy<=9"])
    search(config, ToySpace(), ToyEvaluator(), tmp_path, figures=False)
    study = load_study(tmp_path)
    broken = study.history.feasible.count(False)
    assert broken > 0
    points = {dots.get_label(): dots for dots in front_figure(study).axes[0].collections}
    assert len(points["infeasible"].get_offsets()) == broken
    traces = {trace.name: trace for trace in interactive_front(study).data}
    assert len(traces["infeasible"].y) == broken
    assert len(traces["evaluated"].y) == len(study.history) - broken - len(study.front_rows)


def test_damaged_files_of_a_study_are_named(tmp_path: Path) -> None:
    truth = TableEvaluator(ToySpace(), toy_table(), objectives=OBJECTIVES[:2])
    surrogate = Surrogate(ToySpace(), ToyPredictor(), objectives=OBJECTIVES[:2], to_text=ToySpace().format)
    search(toy_config(trials=5), ToySpace(), surrogate, tmp_path, truth=truth)
    front, history = tmp_path / "front.csv", tmp_path / "history.parquet"
    cut = pd.read_csv(front).drop(columns="accuracy@toy low").to_csv(index=False)
    for contents in (b"", b"\xff", cut.encode()):
        front.write_bytes(contents)
        with pytest.raises(StudyError, match=rf"^{re.escape(str(front))}: expected the front of a study, got .*Remove"):
            plot_study(tmp_path)
    history.unlink()
    with pytest.raises(StudyError, match=rf"^{re.escape(str(history))}: expected .*, got no such file\. Resume the"):
        plot_study(tmp_path)


def test_notations_of_digits_are_known_by_their_front(tmp_path: Path) -> None:
    space = get_space("nasbench_macro")
    rows = [space.sample(np.random.default_rng(seed)) for seed in range(8)]
    values = {"accuracy@toy": np.arange(8.0), "latency_ms@toy": np.arange(8.0) + 1}
    table = pd.DataFrame({"architecture": list(map(space.format, rows)), **values})
    truth = TableEvaluator(space, table, objectives=OBJECTIVES[:2])
    config = toy_config(space=space.name, trials=8, warm_start=table["architecture"].tolist())  # else most are unknown
    result = search(config, space, truth, tmp_path, truth=truth)
    assert known_values(tmp_path, config)[2] == [row["architecture"] for row in result.front]


def test_three_planes_have_one_legend(tmp_path: Path) -> None:
    bounds = ["latency_ms@toy<=9", "soft:energy_mj@toy<=5"]
    search(toy_config(goals=GOALS[:3], trials=40, constraints=bounds), ToySpace(), ToyEvaluator(), tmp_path)
    study = load_study(tmp_path)
    history = study.history
    known = {history.architectures[row]: history.values[row][:, 0] + 1 for row in study.front_rows}
    (legend,) = front_figure(study, known).legends
    words = ["evaluated", "infeasible", "front, with 80% intervals", "known values", *bounds]
    assert sorted(text.get_text() for text in legend.get_texts()) == sorted(words)


def test_what_has_no_answer_is_not_drawn_as_infeasible(tmp_path: Path) -> None:
    table = TableEvaluator(ToySpace(), toy_table(share=0.2), objectives=OBJECTIVES[:2])
    search(toy_config(trials=10), ToySpace(), table, tmp_path)
    (axes,) = front_figure(load_study(tmp_path)).axes
    assert "infeasible" not in [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("num_goals", [1, 2, 3])
def test_what_lacks_the_objective_of_a_constraint_is_not_drawn(num_goals: int, tmp_path: Path) -> None:
    config = toy_config(goals=GOALS[:num_goals], trials=40, constraints=["depth@toy<=3"])

    def results(notation: str) -> dict[str, float]:
        row = ToySpace().parse(notation)
        depth = math.nan if 3 in row.genes else max(row.genes)
        return dict(zip((*OBJECTIVES, "depth@toy"), (*true_values(row), depth), strict=True))

    evaluator = FunctionEvaluator(ToySpace(), results, objectives=config.objectives)
    search(config, ToySpace(), evaluator, tmp_path, figures=False)
    study = load_study(tmp_path)
    broken = int((study.history.complete() & ~np.array(study.history.feasible)).sum())
    assert 0 < broken < study.history.feasible.count(False)
    points = {dots.get_label(): dots for dots in front_figure(study).axes[0].collections}
    assert len(points["infeasible"].get_offsets()) == broken
    traces = {trace.name: trace for trace in interactive_front(study).data}
    assert len(traces["infeasible"].y) == broken


def test_only_evaluations_count_along_the_axis_of_one_goal(tmp_path: Path) -> None:
    run(guided_config(trials=9, goals=GOALS[:1]), tmp_path, predictor=ToyPredictor(sigma=0.1))
    study = load_study(tmp_path)
    evaluated = int(study.history.complete().sum())
    assert 4 < evaluated < len(study.history)
    (axes,) = front_figure(study).axes
    traces = interactive_front(study).data
    assert max(axes.collections[0].get_offsets()[:, 0]) == evaluated
    assert max(number for trace in traces for number in trace.x) == evaluated


def test_known_values_are_drawn_beside_the_predicted_front(tmp_path: Path) -> None:
    truth = TableEvaluator(ToySpace(), toy_table(), objectives=OBJECTIVES[:2])
    surrogate = Surrogate(ToySpace(), ToyPredictor(), objectives=OBJECTIVES[:2], to_text=ToySpace().format)
    result = search(toy_config(trials=20), ToySpace(), surrogate, tmp_path, truth=truth)
    predicted, real, notations = known_values(tmp_path, toy_config())
    assert notations == [row["architecture"] for row in result.front]
    np.testing.assert_allclose(real, [true_values(ToySpace().parse(notation))[:2] for notation in notations])
    share = np.mean([row[1] <= value <= row[2] for row, value in zip(predicted[:, 0], real[:, 0], strict=True)])
    known = dict(zip(notations, real, strict=True))
    (axes,) = front_figure(load_study(tmp_path), known).axes
    assert "known values" in [text.get_text() for text in axes.get_legend().get_texts()]
    assert (tmp_path / "calibration.png").exists()
    assert f"{share:.0%} within 80% intervals" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("num_goals", "axes"), [(1, "y"), (2, "yx"), (3, "zxy")])
def test_the_interactive_front_has_intervals_and_known_values(num_goals: int, axes: str) -> None:
    config = toy_config(goals=GOALS[:num_goals])
    best, worse, values = np.arange(3.0), np.array([0.0, 5.0, 5.0]), np.array([-0.5, 1.0, 0.0])
    history = History(config.objectives, interval=0.8)
    for row, medians in enumerate((worse, best)):
        bounds = np.stack([medians, medians - 0.25, medians + 0.5], axis=1)[:num_goals]
        history.append(architecture=f"a{row}", key=f"{row}", genotype=(row,), values=bounds, feasible=True)
    if num_goals == 1:
        history.values[1] = history.values[1] + 1
        best = best + 1
    known = {"a1": (best + values)[:num_goals]}
    study = LoadedStudy(config, history)
    evaluated, front, true = interactive_front(study, known).data
    assert (evaluated.name, front.name, true.name) == ("evaluated", "front, with 80% intervals", "known values")
    for goal, axis in enumerate(axes):
        bars = front[f"error_{axis}"]
        assert (list(bars.array), list(bars.arrayminus)) == ([0.5], [0.25])
        assert list(true[axis][:2]) == [best[goal], best[goal] + values[goal]]
        assert evaluated[f"error_{axis}"].array is None
    assert f"accuracy toy [%]: {best[0] - 0.5:.5g} known" in true.text[1]
    if num_goals == 3:
        assert interactive_front(study).layout.scene.xaxis.title.text == "latency toy [ms]"
    assert len(interactive_front(study).data) == 2


@pytest.mark.filterwarnings("error")
def test_objectives_without_results_have_no_panel() -> None:
    predicted, real = np.ones((3, 2, 3)), np.array([[np.nan, 1.0], [2.0, 3.0], [4.0, np.nan]])
    figure = calibration_figure(["a_ms@x", "b_ms@x"], predicted, real, [0.8, None])
    FigureCanvasAgg(figure).draw()
    lines = [axes.lines[-1] for axes in figure.axes]
    assert [line.get_xy1()[0] for line in lines] == [2.0, 1.0]
    drawn = interactive_calibration(["a_ms@x", "b_ms@x"], predicted, real, [0.8, None], "abc")
    ends = [trace.x for trace in drawn.data[1::2]]
    assert ends == [(2.0, 4.0), (1.0, 3.0)]


def test_an_unfinished_or_fruitless_study_can_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(toy_config(constraints=["latency_ms@toy<=0"]), ToySpace(), ToyEvaluator(breaks_at=2), tmp_path)
    plot_study(tmp_path)
    plot_studies([tmp_path], tmp_path)


def test_a_study_that_was_stopped_has_its_front_where_it_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(toy_config(), ToySpace(), ToyEvaluator(breaks_at=2), tmp_path / "study")
    made = plot_study(tmp_path / "study", tmp_path / "figures")
    assert made[0] == tmp_path / "figures" / "front.csv"
    study = load_study(tmp_path / "study")
    rows = [study.history.architectures[row] for row in study.front_rows]
    assert pd.read_csv(made[0], dtype={"architecture": str})["architecture"].tolist() == rows != []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("goals", [GOALS[:4], [*GOALS[1:4], GOALS[0]]])
def test_the_best_line_of_four_goals_is_the_brightest_in_both_figures(goals: list[str], tmp_path: Path) -> None:
    search(toy_config(goals=goals, trials=20), ToySpace(), FourObjectives(), tmp_path)
    study = load_study(tmp_path)
    (axes,) = front_figure(study).axes
    brightness = [sum(to_rgb(line.get_color())) for line in axes.lines if len(line.get_xdata()) == len(goals)]
    assert np.argmax(brightness) == np.argmin(study.losses[study.front_rows, 0]) == 0
    (lines,) = interactive_front(study).data
    best = max if goals[0].startswith("max:") else min
    assert (lines.line.color[0], bool(lines.line.reversescale)) == (best(lines.line.color), best is min)


def test_titles_of_six_goals_stay_in_the_figure() -> None:
    names = ["accuracy@cifar10", "accuracy@imagenet16-120", "latency_ms@pixel3", "latency_ms@raspi4"]
    config = toy_config(goals=[f"max:{name}" for name in [*names, "latency_ms@edgegpu", "energy_mj@eyeriss"]])
    history = History(config.objectives)
    for row in range(2):
        history.append(architecture=f"{row}", key=f"{row}", genotype=(), values=np.full((6, 3), row), feasible=True)
    study = LoadedStudy(config, history)
    progress = progress_figure(["study"], [study])
    searched = get_space("nasbench201")
    notation = searched.format(searched.sample(np.random.default_rng(0)))
    cells = cells_figure([([f"{name} 12.34" for name in config.objectives], cell_graphs(searched, notation))])
    for figure, place in ((progress, "center"), (cells, "left")):
        FigureCanvasAgg(figure).draw()
        axes = figure.axes[0]
        box = {"center": axes.title, "left": axes._left_title}[place].get_window_extent()  # type: ignore[attr-defined]
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
    assert "<br>" in interactive_progress(["study"], [study]).layout.title.text


def test_panels_of_six_objectives_stand_in_two_rows_and_say_what_their_intervals_promise() -> None:
    names, predicted, real = [f"cost{i}_ms@x" for i in range(6)], np.ones((3, 6, 3)), np.ones((3, 6))
    figure = calibration_figure(names, predicted, real, [0.9] * 6)
    assert figure.get_size_inches()[0] < 14
    assert [axes.get_title() for axes in figure.axes][-1] == "cost5 x [ms]\n100% within 90% intervals"
    drawn = interactive_calibration(names, predicted, real, [0.9] * 6, "abc")
    assert len({tuple(axis.domain) for axis in drawn.select_xaxes()}) == 3
    assert len({tuple(axis.domain) for axis in drawn.select_yaxes()}) == 2


def test_a_failed_network_does_not_flatten_a_calibration() -> None:
    real = np.append(np.linspace(90, 94, 9), [10.0, np.nan])[:, None]
    predicted = np.stack([real + 0.1, real - 1, real + 1], axis=2)
    predicted[-1] = 10.0  # of a network without a result, which is no point
    (axes,) = calibration_figure(["accuracy@x"], predicted, real, [0.8]).axes
    assert axes.get_title() == "accuracy x [%]\n100% within 80% intervals, 1 not shown"
    assert axes.get_xlim() == axes.get_ylim() == pytest.approx((89.795, 94.305))
    drawn = interactive_calibration(["accuracy@x"], predicted, real, [0.8], "abcdefghijk")
    assert drawn.layout.annotations[0].text == "accuracy x [%]<br>100% within 80% intervals, 1 not shown"
    assert drawn.layout.xaxis.range == drawn.layout.yaxis.range == pytest.approx(axes.get_xlim())


def test_a_legend_names_only_what_is_drawn(tmp_path: Path) -> None:
    search(
        toy_config(trials=20, constraints=["latency_ms@toy<=0"]), ToySpace(), ToyEvaluator(), tmp_path, figures=False
    )
    (axes,) = front_figure(load_study(tmp_path)).axes
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words == ["infeasible", "latency_ms@toy<=0"]
    assert [trace.name for trace in interactive_front(load_study(tmp_path)).data] == ["infeasible"]


def test_what_is_taken_from_the_model_has_no_calibration(tmp_path: Path) -> None:
    class Measured(ToyResults):
        modelled = ("accuracy@toy",)

    config = guided_config(guide={"adapt_every": 0})
    run(config, tmp_path, evaluator=Measured(config.objectives))
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "latency toy [ms]: " in report
    assert not re.search(r"accuracy toy \[%\]: \d+% within", report)
