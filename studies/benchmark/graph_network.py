"""A graph isomorphism network on the canonical graphs, for comparison; needs torch_geometric.

V nodes of a graph, E edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from converters import to_canonical_graph, to_graph
from converters.graph import Graph
from nasrlm.adaptation.label_scales import NormalScores
from nasrlm.arrays import FloatArray
from studies.benchmark.task import Task
from studies.surrogates.features import node_label

WIDTH, LAYERS, DROPOUT = 64, 4, 0.1
STEPS, BATCH, LEARNING_RATE = 1500, 32, 2e-3
UNSEEN = 0  # kind of nodes that are in no train graph


def gnn(task: Task) -> FloatArray:
    """Return the scores of the test rows by a graph network fitted to the ranks of the labels."""
    from torch_geometric.data import Batch, Data  # from an extra

    space = task.table.space
    graphs = [to_canonical_graph(to_graph(space, task.table.architectures[row])) for row in task.rows]
    count = len(task.train)
    kinds = sorted({node_label(node) for graph in graphs[:count] for node in graph.nodes})
    known = {kind: index for index, kind in enumerate(kinds, start=UNSEEN + 1)}
    rows = [Data(**_tensors(graph, known)) for graph in graphs]
    targets = torch.tensor(NormalScores.of(task.labels).forward(task.labels), dtype=torch.float32)
    torch.manual_seed(task.seed)
    model = IsomorphismNetwork(len(kinds) + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=STEPS)
    rng = np.random.default_rng(task.seed)
    for _ in range(STEPS):
        chosen = rng.choice(count, min(BATCH, count), replace=False)
        optimizer.zero_grad()
        answers = model(Batch.from_data_list([rows[index] for index in chosen]))
        loss = nn.functional.mse_loss(answers, targets[torch.from_numpy(chosen)])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        parts = [model(Batch.from_data_list(rows[at : at + 256])) for at in range(count, len(rows), 256)]
    return torch.cat(parts).double().numpy()


class IsomorphismNetwork(nn.Module):
    """GIN layers along and against the edges, then mean and logarithmic sum over nodes, and one number per graph.

    Source:
        Xu et al. 2019, "How Powerful are Graph Neural Networks?", arXiv 1810.00826.
    """

    def __init__(self, num_kinds: int) -> None:
        super().__init__()
        from torch_geometric.nn import GINConv

        def mlp() -> nn.Sequential:
            return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))

        self.kinds = nn.Embedding(num_kinds, WIDTH)
        self.sizes = nn.Linear(2, WIDTH)
        self.along = nn.ModuleList([GINConv(mlp(), train_eps=True) for _ in range(LAYERS)])
        self.against = nn.ModuleList([GINConv(mlp(), train_eps=True) for _ in range(LAYERS)])
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.dropout = nn.Dropout(DROPOUT)
        self.head = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))

    def forward(self, batch: Any) -> Tensor:
        """Return the (graphs,) scores."""
        from torch_geometric.nn import global_add_pool, global_mean_pool

        x = self.kinds(batch.kind) + self.sizes(batch.sizes)
        for along, against, norm in zip(self.along, self.against, self.norms, strict=True):
            change = along(x, batch.edge_index) + against(x, batch.edge_index.flip(0))
            x = x + self.dropout(torch.relu(norm(change)))
        total = global_add_pool(torch.relu(x), batch.batch)
        pooled = torch.cat([global_mean_pool(x, batch.batch), torch.log1p(total)], dim=1)
        scores: Tensor = self.head(pooled)[:, 0]
        return scores


def _tensors(graph: Graph, known: dict[str, int]) -> dict[str, Tensor | int]:
    """Return a graph as tensors: (V,) kinds, (V, 2) logarithms of channels and resolution, and (2, E) edges."""
    producer = {x: index for index, node in enumerate(graph.nodes) for x in node.outputs}
    edges = [(producer[x], index) for index, node in enumerate(graph.nodes) for x in node.inputs if x in producer]
    return {
        "kind": torch.tensor([known.get(node_label(node), UNSEEN) for node in graph.nodes]),
        "sizes": torch.tensor([_sizes(graph, node.outputs) for node in graph.nodes]),
        "edge_index": torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T.contiguous(),
        "num_nodes": len(graph.nodes),
    }


def _sizes(graph: Graph, outputs: Sequence[str]) -> tuple[float, float]:
    shape = graph.shapes.get(outputs[0], ())
    channels, width = (shape[1] if len(shape) > 1 else 1), (shape[-1] if len(shape) == 4 else 1)
    return float(np.log2(channels) / 8), float(np.log2(width) / 8)
