"""Predictions of a study with the known real or true values. N architectures, M objectives, F front members."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from nasrlm.arrays import FloatArray
from studies.columns import ARCHITECTURE
from studies.config import SearchConfig
from studies.folder import FRONT_FILE, HISTORY_FILE, StudyError
from studies.history import BOUNDS
from studies.ledger import Ledger
from studies.loaded_study import LoadedStudy
from studies.report import TRUE


def known_values(folder: Path, config: SearchConfig) -> tuple[FloatArray, FloatArray, list[str]]:
    """Return predictions with known values: of a guided search's evaluated architectures, or of a front with a truth.

    Returns:
        (N, M, 3) predicted median, low and high, (N, M) real or true values in own units, and N notations; no rows if
        the study has neither.

    Raises:
        StudyError: the history or the front is damaged.
    """
    predicted, real, notations = (_of_front if config.guide is None else _of_ledger)(folder, config)
    rows = np.flatnonzero(~np.isnan(predicted).all(axis=(1, 2)) & ~np.isnan(real).all(axis=1))
    return predicted[rows], real[rows], [notations[row] for row in rows]


def _of_ledger(folder: Path, config: SearchConfig) -> tuple[FloatArray, FloatArray, list[str]]:
    ledger = Ledger.load(folder / HISTORY_FILE, config)
    shape = len(ledger.evaluated), len(config.objectives), len(BOUNDS)
    predicted = np.array([entry.predicted for entry in ledger.evaluated]).reshape(shape)
    return predicted, ledger.results, [entry.architecture for entry in ledger.evaluated]


def _of_front(folder: Path, config: SearchConfig) -> tuple[FloatArray, FloatArray, list[str]]:
    path, names = folder / FRONT_FILE, config.objectives
    bounds, true = [name + bound for name in names for bound in BOUNDS], [name + TRUE for name in names]
    try:
        frame = pd.read_csv(path, dtype={ARCHITECTURE: str}) if path.exists() else pd.DataFrame()
        if not set(true) <= set(frame.columns):  # the study has no truth
            frame = pd.DataFrame(columns=[ARCHITECTURE, *bounds, *true])
        predicted = frame[bounds].to_numpy(dtype=np.float64).reshape(len(frame), len(names), len(BOUNDS))
        return predicted, frame[true].to_numpy(dtype=np.float64), frame[ARCHITECTURE].tolist()
    except (ValueError, KeyError) as error:
        raise StudyError(
            f"{path}: expected the front of a study, got {error}. Remove it: a resumed search writes it again."
        ) from error


def known_of(study: LoadedStudy, known: Mapping[str, FloatArray]) -> FloatArray:
    """Return the (F, M) known values of the front; NaN if unknown or equal to the medians in the history.

    Args:
        study: the study with its front.
        known: (M,) real or true values by notation.
    """
    history, rows = study.history, study.front_rows
    unknown = np.full(len(history.objectives), np.nan)
    values = [known.get(history.architectures[row], unknown) for row in rows]
    true = np.array(values, dtype=np.float64).reshape(len(rows), len(history.objectives))
    same = (true == history.medians()[rows]).all(axis=1)
    true[same] = np.nan
    return true
