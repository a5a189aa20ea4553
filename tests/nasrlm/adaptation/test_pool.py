"""What a pool expects of labels before it has seen any that tell."""

import numpy as np
import pytest

from nasrlm.adaptation.pool import Pool
from tests.nasrlm.scenes import numbered


@pytest.mark.parametrize(
    ("objective", "known", "sign"),
    [
        ("latency_ms@new", "energy_mj@old", 1),
        ("throughput_ips@new", "throughput_ips@old", 1),
        ("throughput_ips@new", "latency_ms@old", -1),
        ("latency_ms@new", "throughput_ips@old", -1),
        ("accuracy@new", "accuracy@old", 1),
        ("latency_ms@new", "accuracy@old", 0),
        ("accuracy@new", "latency_ms@old", 0),
        ("gain@new", "latency_ms@old", 0),
        ("latency_ms@new", "gain@old", 0),
    ],
)
def test_labels_are_expected_to_follow_known_objectives_in_their_direction(
    objective: str, known: str, sign: int
) -> None:
    features = np.linspace(-2, 2, 21)[:, None]
    pool = Pool(numbered(21), [known], features, np.zeros((21, 600)))
    middle = np.array([9, 10, 11, 10])
    process = pool.process_of(objective, middle, np.array([0.0, 1.0, 0.0, -1.0]))
    mean, _ = process.predict(pool.inputs, pool.followed)
    assert sign * (mean[-1] - mean[0]) > 0.1 or (sign == 0 and abs(mean[-1] - mean[0]) < 0.01)
