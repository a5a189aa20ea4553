"""A model in parts learns as a whole one does; here all parts are in one process."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from nasrlm.training.muon import Muon
from nasrlm.training.sharding import is_split, load_optimizer, part_like, split, whole


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList([nn.Linear(6, 6, bias=False), nn.Linear(6, 3, bias=False)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.encoder.layers:
            x = layer(x).tanh()
        return x.square().sum()


@pytest.fixture(autouse=True)
def group(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def small() -> Small:
    torch.manual_seed(0)
    return Small()


def learn(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[Tensor]:
    for step in range(steps):
        model.zero_grad()
        model(torch.full((4, 6), 0.5 + step)).backward()
        optimizer.step()
    return list(whole(model.state_dict(), keep=True).values())


def test_split_matrices_learn_as_whole_ones() -> None:
    plain, parts = small(), small()
    split(parts, "cpu", 1)
    assert all(map(is_split, parts.parameters()))
    expected = learn(plain, Muon(plain.parameters(), lr=0.1), 3)
    torch.testing.assert_close(learn(parts, Muon(parts.parameters(), lr=0.1), 3), expected)


@pytest.mark.parametrize("kind", [Muon, torch.optim.AdamW])
def test_a_whole_state_is_loaded_in_parts(kind: type[torch.optim.Optimizer]) -> None:
    plain, parts = small(), small()
    split(parts, "cpu", 1)
    optimizer = kind(plain.parameters(), lr=0.1)
    weights = learn(plain, optimizer, 2)
    mine = kind(parts.parameters(), lr=0.1)
    for parameter, value in zip(parts.parameters(), weights, strict=True):
        parameter.detach().copy_(part_like(value, parameter))
    load_optimizer(mine, deepcopy(optimizer.state_dict()))
    torch.testing.assert_close(whole(mine.state_dict(), keep=True)["state"], optimizer.state_dict()["state"])
    torch.testing.assert_close(learn(parts, mine, 2), learn(plain, optimizer, 2))


def test_what_is_whole_stays_as_it_is() -> None:
    tensor = torch.ones(3)
    assert whole({"a": tensor}, keep=False)["a"] is tensor
    assert part_like(tensor, torch.zeros(3)) is tensor


def test_parts_do_not_hold_on_to_the_whole() -> None:
    tensor = torch.ones(4, 2)
    part = part_like(tensor, DTensor.from_local(torch.zeros(4, 2), init_device_mesh("cpu", (1,))))
    assert is_split(part)
    assert part.to_local().untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()


def test_others_keep_nothing_of_what_was_gathered() -> None:
    assert whole([DTensor.from_local(torch.ones(2), init_device_mesh("cpu", (1,)))], keep=False) == [None]
