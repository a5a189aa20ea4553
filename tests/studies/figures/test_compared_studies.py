"""Figures that compare studies: curves of hypervolume, and what is not to be compared."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from nasrlm.cli import main
from studies.evaluators import FunctionEvaluator
from studies.figures.plots import plot_studies, plot_study
from studies.figures.progress import interactive_progress, progress_figure, progress_of
from studies.folder import StudyError
from studies.loaded_study import load_study
from studies.search import search
from tests.studies.scenes import (
    OBJECTIVES,
    ToyEvaluator,
    ToySpace,
    toy_config,
)


def test_progress_compares_studies(tmp_path: Path) -> None:
    folders = [tmp_path / "genetic", tmp_path / "random"]
    for folder, sampler in zip(folders, ("nsga2", "random"), strict=True):
        search(toy_config(trials=50, sampler=sampler), ToySpace(), ToyEvaluator(), folder)
    (axes,) = progress_figure(["genetic", "random"], [load_study(folder) for folder in folders]).axes
    assert [line.get_label() for line in axes.get_lines()] == ["genetic (optuna nsga2)", "random (optuna random)"]
    for line in axes.get_lines():
        heights = np.asarray(line.get_ydata(), dtype=float)
        assert (np.diff(heights) >= 0).all()
        assert heights[-1] <= 1
    assert max(float(np.max(line.get_ydata())) for line in axes.get_lines()) > 0.9
    both, one = tmp_path / "both", tmp_path / "one"
    assert plot_studies(folders, both) == (both / "comparison.png", both / "comparison.html")
    names = ("front.png", "hypervolume.png", "front.html", "report.html")
    assert plot_study(folders[0], one) == tuple(one / name for name in names)
    assert all((one / name).exists() for name in names)


def test_studies_without_results_are_named(tmp_path: Path) -> None:
    nothing = FunctionEvaluator(
        ToySpace(), lambda notation: dict.fromkeys(OBJECTIVES, np.nan), objectives=OBJECTIVES[:2]
    )
    search(toy_config(trials=5), ToySpace(), nothing, tmp_path / "empty")
    with pytest.raises(StudyError, match=r"plot: expected evaluated architectures, got none in .*empty"):
        plot_studies([tmp_path / "empty"], tmp_path)


def test_a_study_is_compared_once(tmp_path: Path) -> None:
    search(toy_config(trials=10), ToySpace(), ToyEvaluator(), tmp_path / "a", figures=False)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for other in (tmp_path / "a", tmp_path / "link", tmp_path / "b" / ".." / "a"):
        with pytest.raises(StudyError, match=r"^plot: expected each study once, got .*a twice\. Leave it out\.$"):
            plot_studies([tmp_path / "a", other], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_workers_of_one_study_are_no_seeds(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("worker1", "worker2", "another")]
    for folder, storage, seed in zip(folders, ("first.log", "a link to it.log", None), (3, 3, 4), strict=True):
        study = toy_config(trials=10, seed=seed, storage=storage and str(tmp_path / storage))
        search(study, ToySpace(), ToyEvaluator(), folder, figures=False)
    with pytest.raises(StudyError, match=r"studies that differ .*, got \S.*worker1, \S.*worker2 with the same config"):
        plot_studies(folders, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    plot_studies(folders[1:], tmp_path / "out")
    assert "2 seeds" in (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")


def test_seeds_of_one_search_are_a_band(tmp_path: Path) -> None:
    studies = []
    for seed in range(3):
        search(toy_config(trials=30, seed=seed), ToySpace(), ToyEvaluator(), tmp_path / f"seed{seed}")
        studies.append(load_study(tmp_path / f"seed{seed}"))
    search(toy_config(trials=30, sampler="random"), ToySpace(), ToyEvaluator(), tmp_path / "other")
    band, alone = progress_of(["0", "1", "2", "other"], [*studies, load_study(tmp_path / "other")])
    assert (band.name, alone.name) == ("0 to 2 (optuna nsga2, 3 seeds)", "other (optuna random)")
    assert band.shares.shape[0] == 3
    assert (band.band[0] <= band.median).all()
    assert (band.median <= band.band[1]).all()
    (axes,) = progress_figure(["0", "1", "2"], studies).axes
    assert len(axes.collections) == len(axes.get_lines()) == 1


def test_compared_studies_have_names_of_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / place / "study" for place in ("few", "many", "few again", "many again")]
    for number, folder in enumerate(folders):
        config = toy_config(trials=20, population_size=4 + number % 2 * 6, seed=number // 2)
        search(config, ToySpace(), ToyEvaluator(), folder, figures=False)
    plot_studies(folders[:2], tmp_path / "two")
    plot_studies(folders, tmp_path / "four")
    two, four = ((tmp_path / name / "comparison.html").read_text(encoding="utf-8") for name in ("two", "four"))
    assert all(f'"name":"{name}\\u002fstudy (optuna nsga2)"' in two for name in ("few", "many"))
    ends = ("few\\u002fstudy to few again\\u002fstudy", "many\\u002fstudy to many again\\u002fstudy")
    assert all(f'"name":"{name} (optuna nsga2, 2 seeds)"' in four for name in ends)


def test_constraints_are_told_where_studies_differ_in_them(tmp_path: Path) -> None:
    bounds = ([], ["latency_ms@toy<=9"])
    for number, constraints in enumerate(bounds):
        search(toy_config(trials=20, constraints=constraints), ToySpace(), ToyEvaluator(), tmp_path / str(number))
    names = [x.name for x in progress_of(["a", "b"], [load_study(tmp_path / str(number)) for number in (0, 1)])]
    assert [name.partition(", ")[2] for name in names] == ["no constraint", "latency_ms@toy<=9"]


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"space": "tin"}, "in tin, predicted; max:accuracy@toy min:latency_ms@toy in toy, predicted"),
        ({"evaluator": "my:function"}, "in toy, predicted; max:accuracy@toy min:latency_ms@toy in toy, real"),
    ],
    ids=["spaces", "predictions"],
)
def test_studies_of_other_spaces_or_of_real_results_are_not_compared(
    changes: dict[str, str],
    kinds: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for seed, (name, changed) in enumerate((("a", {}), ("b", changes), ("c", changes))):
        config, space = toy_config(trials=10, seed=seed, **changed), ToySpace()
        space.name = config.space
        search(config, space, ToyEvaluator(), tmp_path / name, figures=False)
    told = f"plot: expected studies of one kind, got max:accuracy@toy min:latency_ms@toy {kinds}. Plot them separately."
    with pytest.raises(StudyError, match=rf"^{re.escape(told)}$"):
        plot_studies([tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["nasrlm", "plot", *(str(tmp_path / name) for name in "bac")])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert (exit_.value.code, capsys.readouterr().err) == (2, f"nasrlm: {told}\n")
    assert not (tmp_path / "out").exists()
    assert len(plot_studies([tmp_path / "b", tmp_path / "c"], tmp_path / "out")) == 2


def test_studies_of_different_goals_are_not_compared(tmp_path: Path) -> None:
    for name in ("latency_ms", "energy_mj"):
        goals = ["max:accuracy@toy", f"min:{name}@toy"]
        search(toy_config(goals=goals, trials=10), ToySpace(), ToyEvaluator(), tmp_path / name)
    with pytest.raises(StudyError, match="plot: expected studies of one kind, got"):
        plot_studies([tmp_path / "latency_ms", tmp_path / "energy_mj"], tmp_path)
    with pytest.raises(StudyError, match=r"expected the folder of a study, got no study\.json"):
        plot_study(tmp_path)


def test_many_curves_look_apart_and_a_legend_covers_none(tmp_path: Path) -> None:
    for size in range(4, 16):
        folder = tmp_path / str(size)
        search(toy_config(trials=10, population_size=size), ToySpace(), ToyEvaluator(), folder, figures=False)
    studies = [load_study(tmp_path / str(size)) for size in range(4, 16)]
    names = [f"a folder with a long name, {'in folders, ' * 8}{size}" for size in range(4, 16)]
    figure = progress_figure(names, studies)
    FigureCanvasAgg(figure).draw()
    (axes,), (legend,) = figure.axes, figure.legends
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}) == 12
    place, plane = legend.get_window_extent(), axes.get_window_extent()
    assert place.y1 < plane.y0
    assert (place.x0 >= 0, place.x1 <= figure.bbox.width, place.y0 >= 0) == (True,) * 3
    assert plane.height > 3.5 * figure.dpi
    drawn = interactive_progress(names, studies).data
    assert len({(trace.line.color, trace.line.dash) for trace in drawn}) == 12


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["_tried", "cost$5_{x$"])
def test_a_folder_of_any_name_is_in_the_legend(name: str, tmp_path: Path) -> None:
    search(toy_config(trials=10), ToySpace(), ToyEvaluator(), tmp_path / name)
    (legend,) = progress_figure([name], [load_study(tmp_path / name)]).legends
    assert [text.get_text() for text in legend.get_texts()] == [f"{name} (optuna nsga2)"]


def test_a_curve_of_nothing_found_is_seen(tmp_path: Path) -> None:
    search(toy_config(trials=10, constraints=["latency_ms@toy<=0"]), ToySpace(), ToyEvaluator(), tmp_path)
    (axes,) = progress_figure(["nothing"], [load_study(tmp_path)]).axes
    assert np.asarray(axes.get_lines()[0].get_ydata()).max() == 0
    assert axes.get_ylim()[0] < 0
