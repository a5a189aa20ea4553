"""The MnasNet space of Accel-NASBench: seven blocks, each with an expansion, a kernel, a depth and an attention.

Source:
    Ahmad et al. 2024, "Accel-NASBench: Sustainable Benchmarking for Accelerator-Aware NAS"; afzalxo/Accel-NASBench
    4260357. The space is that of Tan et al. 2019, "MnasNet: Platform-Aware Neural Architecture Search for Mobile".
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from typing import Any

from spaces.notation import check_keys, check_list, choice_index, read_json, shown
from spaces.space import ArchitectureError, Genotype, SearchSpace

NUM_BLOCKS = 7
FIELDS = ("e", "k", "l", "se")  # expansion, kernel, layers, squeeze and excitation
CHOICES = (((1, 4, 6), (3, 5), (1, 2, 3), (False, True)),) * NUM_BLOCKS  # of FIELDS, for every block
CHOICES = (*CHOICES[:5], ((1, 4, 6), (3, 5), (1, 2, 3, 4), (False, True)), *CHOICES[6:])
ACTIVATIONS = ("silu", "relu")

_REMEDY = "See CHOICES in spaces/mnasnet.py."
