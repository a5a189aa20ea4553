"""FBNet: notations of both data sets, identities that do not count, and the published table's rows."""

import json

import numpy as np
import pytest

from spaces import ArchitectureError
from spaces.fbnet import DATASETS, NUM_LAYERS, OPERATIONS, FBNet, Layers
from tests.spaces.contract import SpaceContract, read_goldens

SPACE = FBNet()
FBNET_C = [0, 3, 8, 0, 0, 7, 6, 7, 3, 7, 6, 7, 7, 7, 7, 7, 6, 7, 7, 7, 7, 3]


def layers(*, dataset: str = "cifar100", default: str = "k3_e1", **others: str) -> Layers:
    """All layers ``default`` but those named like ``at5="skip"``."""
    return Layers(dataset, tuple(others.get(f"at{position}", default) for position in range(NUM_LAYERS)))


class TestContract(SpaceContract):
    space_name = "fbnet"
    malformed = (*SpaceContract.malformed, '"skip"', "null", "[[[", '{"op_idx_list": []}', "[" * 100_000)


class TestNotation:
    def test_names_mean_cifar100(self):
        names = [OPERATIONS[index] for index in FBNET_C]
        architecture = SPACE.parse(json.dumps(names))
        assert architecture == Layers("cifar100", tuple(names))
        assert SPACE.encode(architecture) == (0, *FBNET_C)
        assert SPACE.format(architecture) == json.dumps(names)

    def test_indices_and_data_set(self):
        notation = json.dumps({"dataset": "ImageNet", "op_idx_list": FBNET_C})
        architecture = SPACE.parse(notation)
        assert architecture == Layers("ImageNet", tuple(OPERATIONS[index] for index in FBNET_C))
        assert SPACE.encode(architecture) == (1, *FBNET_C)
        assert SPACE.format(architecture) == notation

    def test_goldens_name_the_same_blocks_twice(self):
        for row in read_goldens("fbnet"):
            architecture = SPACE.parse(json.dumps(row["genotype"]))
            assert list(architecture.operations) == row["genotype"]["arch_str"]
            assert architecture.dataset == row["genotype"]["dataset"]

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (["skip"] * 21, "expected a list of 22 in the notation, got 21 of them"),
            (["skip"] * 5 + ["conv"] + ["skip"] * 16, "operation at position 5 to be one of k3_e1, .*, got 'conv'"),
            ([8] * 22, "operation at position 0 to be one of k3_e1, .*, got 8"),
            ({"dataset": "ImageNet"}, "with dataset, op_idx_list, got no op_idx_list"),
            (
                {"dataset": "cifar10", "op_idx_list": [0] * 22},
                "data set to be one of cifar100, ImageNet, got 'cifar10'",
            ),
            ({"dataset": "ImageNet", "op_idx_list": [0] * 21 + [9]}, "op_idx_list at position 21 .*, got 9"),
            ({"dataset": "ImageNet", "op_idx_list": [True] * 22}, "op_idx_list at position 0 .*, got True"),
            ({"dataset": "ImageNet", "op_idx_list": [0] * 22, "width": 2}, "got also 'width'"),
            ({"dataset": "ImageNet", "op_idx_list": [0] * 22, "arch_str": ["skip"] * 22}, "expected arch_str to name"),
            ({"dataset": ["ImageNet"], "op_idx_list": [0] * 22}, r"data set to be one of .*, got \['ImageNet'\]"),
        ],
    )
    def test_errors_name_the_position(self, value, message):
        with pytest.raises(ArchitectureError, match=message):
            SPACE.parse(json.dumps(value))

    def test_layers_made_by_hand_are_checked(self):
        with pytest.raises(ArchitectureError, match="expected 22 operations, got 2 of them"):
            Layers("cifar100", ("skip", "skip"))
        with pytest.raises(ArchitectureError, match="position 3 to be one of"):
            layers(at3="none")


class TestDataset:
    @pytest.mark.parametrize("dataset", DATASETS)
    def test_a_space_of_one(self, dataset):
        space = FBNet(dataset=dataset)
        assert space.size == 9**22 == SPACE.size
        assert {space.sample(np.random.default_rng(seed)).dataset for seed in range(20)} == {dataset}
        other = layers(dataset=next(name for name in DATASETS if name != dataset))
        with pytest.raises(ArchitectureError, match=f"data set of this space to be one of {dataset}, got"):
            space.encode(other)

    def test_labelled_networks_are_drawn_where_none_is_named(self):
        rng = np.random.default_rng(0)
        other = layers(dataset=DATASETS[1])
        parents = SPACE.sample(rng), SPACE.sample(rng)
        drawn = [*parents, SPACE.mutate(parents[0], rng), SPACE.crossover(*parents, rng)]
        assert {architecture.dataset for architecture in drawn} == {DATASETS[0]}
        assert SPACE.decode(SPACE.encode(other)) == other
        assert not SPACE.is_drawn(other)

    def test_unknown(self):
        with pytest.raises(ValueError, match="expected one of cifar100, ImageNet, got 'mnist'"):
            FBNet(dataset="mnist")


class TestKey:
    def test_is_readable(self):
        architecture = layers(default="skip", at1="k3_e1", at3="k5_e6", at4="k3_e3", at21="k3_e1_g2")
        assert SPACE.architecture_key(architecture) == (
            "cifar100: ; k3_e1 k5_e6 k3_e3; skip; skip; skip; skip; k3_e1_g2"
        )

    def test_identities_stand_anywhere_in_their_stage(self):
        keys = {SPACE.architecture_key(layers(**{f"at{position}": "skip"})) for position in (2, 3, 4)}
        assert len(keys) == 1

    @pytest.mark.parametrize("position", [0, 1, 5, 21])
    def test_skips_elsewhere_differ(self, position):
        """Layers 1, 5 and 21 open a stage; layer 0 is a stage of its own."""
        keys = {SPACE.architecture_key(layers(**{f"at{other}": "skip"})) for other in (position, 2)}
        assert len(keys) == 2

    def test_data_sets_differ(self):
        assert len({SPACE.architecture_key(layers(dataset=dataset)) for dataset in DATASETS}) == 2
