"""Searches of NAS-Bench-201 come close to its true front."""

from pathlib import Path

import pandas as pd
import pytest

import spaces
from studies.config import SAMPLERS, SearchConfig
from studies.evaluators import TableEvaluator
from studies.search import search

TABLE = Path(__file__).parents[3] / "shared" / "data" / "nasbench201.parquet"
GOALS = ["max:accuracy@cifar10", "min:latency_ms@raspi4", "min:latency_ms@edgegpu"]


@pytest.mark.shared
@pytest.mark.usefixtures("without_figures")
@pytest.mark.skipif(not TABLE.exists(), reason=f"needs {TABLE}")
@pytest.mark.parametrize("engine", list(SAMPLERS))
def test_a_thousand_evaluations_reach_the_front(engine: str, tmp_path: Path) -> None:
    """One row of each cell's isomorphic twins, the simplest, gives 0.9933 of the hypervolume of all rows."""
    space = spaces.get_space("nasbench201")
    config = SearchConfig.from_dict({"space": "nasbench201", "goals": GOALS, "trials": 1000, "engine": engine})
    table = TableEvaluator(space, pd.read_parquet(TABLE), objectives=config.objectives)
    result = search(config, space, table, tmp_path, truth=table)
    assert result.truth is not None
    assert result.evaluations == 1000
    assert result.truth.hypervolume_ratio >= 0.9925
