"""Networks of repeated cells in torch, written from the descriptions of their spaces and not from our converters.

Each takes the published notation as parsed JSON, or as text where that is what is published.
"""

import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.networks import conv_bn


class ReLUConvBN(nn.Sequential):
    def __init__(self, channels: int, out: int, kernel: int, stride: int = 1):
        super().__init__(
            nn.ReLU(), nn.Conv2d(channels, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out)
        )


class Zero(nn.Module):
    def forward(self, x):
        return x.mul(0.0)


NASBENCH201_OPERATIONS = {
    "none": lambda channels: Zero(),
    "skip_connect": lambda channels: nn.Identity(),
    "nor_conv_1x1": lambda channels: ReLUConvBN(channels, channels, 1),
    "nor_conv_3x3": lambda channels: ReLUConvBN(channels, channels, 3),
    "avg_pool_3x3": lambda channels: nn.AvgPool2d(3, 1, 1, count_include_pad=False),
}


class NASBench201Cell(nn.Module):
    """``text``: the published notation, ``|op~0|+|op~0|op~1|+|op~0|op~1|op~2|``."""

    def __init__(self, text: str, channels: int):
        super().__init__()
        self.sources, self.edges = [], nn.ModuleList()
        for group in text.split("+"):
            edges = [edge.split("~") for edge in group.strip("|").split("|")]
            self.sources.append([int(source) for _, source in edges])
            self.edges.append(nn.ModuleList(NASBENCH201_OPERATIONS[name](channels) for name, _ in edges))

    def forward(self, x):
        states = [x]
        for sources, edges in zip(self.sources, self.edges, strict=True):
            states.append(sum(edge(states[source]) for source, edge in zip(sources, edges, strict=True)))
        return states[-1]


class NASBench201Reduction(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.main = nn.Sequential(ReLUConvBN(channels, 2 * channels, 3, 2), ReLUConvBN(2 * channels, 2 * channels, 3))
        self.shortcut = nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(channels, 2 * channels, 1, bias=False))

    def forward(self, x):
        return self.shortcut(x) + self.main(x)


class NASBench201Network(nn.Module):
    """Dong & Yang 2020, from their description."""

    def __init__(self, text: str, classes: int = 10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16))
        cells = []
        for stage, channels in enumerate((16, 32, 64)):
            cells += [NASBench201Reduction(channels // 2)] if stage else []
            cells += [NASBench201Cell(text, channels) for _ in range(5)]
        self.cells = nn.Sequential(*cells)
        self.last = nn.Sequential(nn.BatchNorm2d(64), nn.ReLU())
        self.pool, self.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(64, classes)

    def forward(self, x):
        x = self.pool(self.last(self.cells(self.stem(x))))
        return self.classifier(x.view(x.size(0), -1))


class NASBench101Module(nn.Module):
    def __init__(self, adjacency, operations, channels: int, out: int):
        super().__init__()
        self.adjacency, last = adjacency, len(operations) - 1
        self.leaves = [vertex for vertex in range(1, last) if adjacency[vertex][last]]
        self.widths = [0] * last
        for vertex in range(last - 1, 0, -1):
            if vertex in self.leaves:
                extra = self.leaves.index(vertex) < out % len(self.leaves)
                self.widths[vertex] = out // len(self.leaves) + int(extra)
            else:
                self.widths[vertex] = max(self.widths[t] for t in range(1, last) if adjacency[vertex][t])
        self.projections, self.operations = nn.ModuleDict(), nn.ModuleDict()
        for vertex in range(1, last):
            width = self.widths[vertex]
            if adjacency[0][vertex]:
                self.projections[str(vertex)] = conv_bn(channels, width, 1, activation=nn.ReLU)
            self.operations[str(vertex)] = {
                "conv1x1-bn-relu": lambda width=width: conv_bn(width, width, 1, activation=nn.ReLU),
                "conv3x3-bn-relu": lambda width=width: conv_bn(width, width, 3, activation=nn.ReLU),
                "maxpool3x3": lambda: nn.MaxPool2d(3, 1, 1),
            }[operations[vertex]]()
        if adjacency[0][last]:
            self.projections["output"] = conv_bn(channels, out, 1, activation=nn.ReLU)

    def forward(self, x):
        states = [x]
        for vertex in range(1, len(self.widths)):
            width = self.widths[vertex]
            total = self.projections[str(vertex)](x) if str(vertex) in self.projections else 0
            for source in range(1, vertex):
                if self.adjacency[source][vertex]:
                    total = total + states[source][:, :width]
            states.append(self.operations[str(vertex)](total))
        if not self.leaves:
            return self.projections["output"](x)
        joined = torch.cat([states[vertex] for vertex in self.leaves], 1)
        return joined + self.projections["output"](x) if "output" in self.projections else joined


class NASBench101Network(nn.Module):
    """Ying et al. 2019. Expects a pruned module."""

    def __init__(self, genotype):
        super().__init__()
        layers, channels = [conv_bn(3, 128, 3, activation=nn.ReLU)], 128
        for stage in range(3):
            layers += [nn.MaxPool2d(2, 2)] if stage else []
            for _ in range(3):
                out = 128 << stage
                layers.append(NASBench101Module(genotype["adjacency"], genotype["operations"], channels, out))
                channels = out
        self.features, self.classifier = nn.Sequential(*layers), nn.Linear(channels, 10)

    def forward(self, x):
        return self.classifier(torch.mean(self.features(x), (2, 3)))


class FactorizedReduce(nn.Module):
    def __init__(self, channels: int, out: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out // 2, 1, 2, bias=False)
        self.conv2, self.bn = nn.Conv2d(channels, out // 2, 1, 2, bias=False), nn.BatchNorm2d(out)

    def forward(self, x):
        x = F.relu(x)
        return self.bn(torch.cat([self.conv1(x), self.conv2(x[:, :, 1:, 1:])], 1))


def separable(channels: int, kernel: int, stride: int, dilation: int = 1) -> list[nn.Module]:
    padding = dilation * (kernel // 2)
    return [
        nn.ReLU(),
        nn.Conv2d(channels, channels, kernel, stride, padding, dilation, channels, bias=False),
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.BatchNorm2d(channels),
    ]


def darts_operation(name: str, channels: int, stride: int) -> nn.Module:
    kernel = int(name[-1]) if name[-1].isdigit() else 0
    if name == "skip_connect":
        return nn.Identity() if stride == 1 else FactorizedReduce(channels, channels)
    if name.startswith("sep_conv"):
        return nn.Sequential(*separable(channels, kernel, stride), *separable(channels, kernel, 1))
    if name.startswith("dil_conv"):
        return nn.Sequential(*separable(channels, kernel, stride, 2))
    pool = nn.AvgPool2d if name.startswith("avg") else nn.MaxPool2d
    given = {"count_include_pad": False} if pool is nn.AvgPool2d else {}
    return pool(kernel, stride, kernel // 2, **given)


class DARTSCell(nn.Module):
    def __init__(self, pairs, older: int, newer: int, channels: int, reduction: bool, reduced_before: bool):
        super().__init__()
        self.before0 = FactorizedReduce(older, channels) if reduced_before else ReLUConvBN(older, channels, 1)
        self.before1 = ReLUConvBN(newer, channels, 1)
        self.sources = [source for _, source in pairs]
        self.operations = nn.ModuleList(
            darts_operation(name, channels, 2 if reduction and source < 2 else 1) for name, source in pairs
        )

    def forward(self, older, newer):
        states = [self.before0(older), self.before1(newer)]
        for node in range(0, len(self.sources), 2):
            states.append(sum(self.operations[i](states[self.sources[i]]) for i in (node, node + 1)))
        return torch.cat(states[2:], 1)


class DARTSNetwork(nn.Module):
    """Liu et al. 2019, 32 channels and 8 cells, without the auxiliary head."""

    def __init__(self, genotype):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 96, 3, padding=1, bias=False), nn.BatchNorm2d(96))
        self.cells, older, newer, channels, reduced_before = nn.ModuleList(), 96, 96, 32, False
        for index in range(8):
            reduction = index in (2, 5)
            channels *= 2 if reduction else 1
            pairs = genotype["reduce" if reduction else "normal"]
            self.cells.append(DARTSCell(pairs, older, newer, channels, reduction, reduced_before))
            older, newer, reduced_before = newer, 4 * channels, reduction
        self.classifier = nn.Linear(newer, 10)

    def forward(self, x):
        older = newer = self.stem(x)
        for cell in self.cells:
            older, newer = newer, cell(older, newer)
        return self.classifier(F.adaptive_avg_pool2d(newer, 1).flatten(1))
