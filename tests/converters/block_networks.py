"""Networks of chosen blocks in torch, written from the descriptions of their spaces and not from our converters.

Each takes the published notation as parsed JSON, or as text where that is what is published.
"""

import torch
from torch import nn
from torch.nn import functional as F

from tests.converters.networks import conv_bn


class ChannelShuffle(nn.Module):
    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        n, c, h, w = x.size()
        return x.view(n, self.groups, c // self.groups, h, w).permute(0, 2, 1, 3, 4).contiguous().view(n, c, h, w)


class FBNetBlock(nn.Module):
    def __init__(self, channels, out, kernel, expansion, groups, stride):
        super().__init__()
        hidden = channels * expansion
        self.residual = channels == out and stride == 1
        self.body = nn.Sequential(
            nn.Conv2d(channels, hidden, 1, groups=groups, bias=False),
            nn.BatchNorm2d(hidden),
            nn.ReLU(),
            *([ChannelShuffle(groups)] if groups > 1 else []),
            conv_bn(hidden, hidden, kernel, stride, hidden, nn.ReLU),
            nn.Conv2d(hidden, out, 1, groups=groups, bias=False),
            nn.BatchNorm2d(out),
        )

    def forward(self, x):
        return self.body(x) + x if self.residual else self.body(x)


class FBNetNetwork(nn.Module):
    """FBNet as in HW-NAS-Bench, for CIFAR-100."""

    def __init__(self, genotype):
        super().__init__()
        layers, channels, ids = [conv_bn(3, 16, 3, activation=nn.ReLU)], 16, iter(genotype["op_idx_list"])
        stages = ((1, 16, 1), (4, 24, 1), (4, 32, 2), (4, 64, 2), (4, 112, 1), (4, 184, 2), (1, 352, 1))
        for count, out, first_stride in stages:
            for index in range(count):
                stride, name = 1 if index else first_stride, next(ids)
                if name == 8:
                    same = stride == 1 and channels == out
                    layers.append(nn.Identity() if same else conv_bn(channels, out, 1, stride, activation=nn.ReLU))
                else:
                    groups = 2 if name % 4 == 1 else 1
                    layers.append(
                        FBNetBlock(channels, out, 5 if name > 3 else 3, (1, 1, 3, 6)[name % 4], groups, stride)
                    )
                channels = out
        layers.append(conv_bn(channels, 1504, 1, activation=nn.ReLU))
        self.features, self.classifier = nn.Sequential(*layers), nn.Linear(1504, 100)

    def forward(self, x):
        x = F.avg_pool2d(self.features(x), 4)
        return self.classifier(x.view(x.size(0), -1))


class HSwish(nn.Module):
    """As once-for-all writes it."""

    def forward(self, x):
        return x * F.relu6(x + 3.0) / 6.0


class OFASqueezeExcite(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        squeezed = divisible(channels // 4)
        self.fc = nn.Sequential(nn.Conv2d(channels, squeezed, 1), nn.ReLU(), nn.Conv2d(squeezed, channels, 1))

    def forward(self, x):
        y = self.fc(x.mean(3, keepdim=True).mean(2, keepdim=True))
        return x * (F.relu6(y + 3.0) / 6.0)


def divisible(value: float) -> int:
    nearest = max(8, int(value + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * value else nearest


class OFABlock(nn.Module):
    def __init__(self, channels, out, kernel, expansion, stride, activation, attention):
        super().__init__()
        hidden = divisible(round(channels * expansion))
        self.residual = stride == 1 and channels == out
        self.body = nn.Sequential(
            *([conv_bn(channels, hidden, 1, activation=activation)] if expansion > 1 else []),
            conv_bn(hidden, hidden, kernel, stride, hidden, activation),
            *([OFASqueezeExcite(hidden)] if attention else []),
            conv_bn(hidden, out, 1),
        )

    def forward(self, x):
        return self.body(x) + x if self.residual else self.body(x)


class OFAMobileNetV3Network(nn.Module):
    """Cai et al. 2020, width 1."""

    def __init__(self, genotype):
        super().__init__()
        layers, channels = [conv_bn(3, 16, 3, 2, activation=HSwish), OFABlock(16, 16, 3, 1, 1, nn.ReLU, False)], 16
        stages = ((24, 2, nn.ReLU, False), (40, 2, nn.ReLU, True), (80, 2, HSwish, False))
        stages += ((112, 1, HSwish, True), (160, 2, HSwish, True))
        for stage, (out, first_stride, activation, attention) in enumerate(stages):
            for index in range(genotype["d"][stage]):
                kernel, expansion = genotype["ks"][4 * stage + index], genotype["e"][4 * stage + index]
                stride = 1 if index else first_stride
                layers.append(OFABlock(channels, out, kernel, expansion, stride, activation, attention))
                channels = out
        layers.append(conv_bn(channels, 960, 1, activation=HSwish))
        self.features = nn.Sequential(*layers)
        self.mix = nn.Sequential(nn.Conv2d(960, 1280, 1, bias=False), HSwish())
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x):
        x = self.mix(self.features(x).mean(3, keepdim=True).mean(2, keepdim=True))
        return self.classifier(torch.squeeze(x, -1).squeeze(-1))


class IncS(nn.Sequential):
    def __init__(self, channels: int, out: int, stride: int):
        super().__init__(
            nn.Conv2d(channels, out, (1, 3), stride, (0, 1), bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU6(),
            nn.Conv2d(out, out, (3, 1), 1, (1, 0), bias=False),
            nn.BatchNorm2d(out),
            nn.ReLU6(),
        )


class HiAMLBlock(nn.Module):
    """One of the 14 blocks, layers named in the order in which its rule names them."""

    def __init__(self, name: str, channels: int, out: int, stride: int):
        super().__init__()
        self.name, self.layers = name, nn.ModuleList()

        def cbr(kernel, first=False, ends=(out, out)):
            self.layers.append(
                conv_bn(*((channels, out) if first else ends), kernel, stride if first else 1, 1, nn.ReLU6)
            )

        def cb(kernel, first=False):
            self.layers.append(conv_bn(channels if first else out, out, kernel, stride if first else 1))

        def inc(first=False):
            self.layers.append(IncS(channels if first else out, out, stride if first else 1))

        def project():
            same = stride == 1 and channels == out
            self.layers.append(nn.Identity() if same else conv_bn(channels, out, 1, stride))

        match name.removeprefix("hiaml_"):
            case "z":
                cbr(3, True), inc()
            case "a22":
                cbr(3, True), cbr(1), cb(1)
            case "l20":
                cbr(3, True), cb(1)
            case "j30":
                project(), cbr(3, True), inc()
            case "b23":
                project(), inc(True), inc()
            case "t20":
                cb(1, True), inc(True)
            case "g30":
                inc(True), project(), inc(), cb(1)
            case "r30":
                inc(True), project(), project(), cb(1), inc()
            case "t31":
                inc(True), cbr(1), project(), project(), inc()
            case "src0":
                cbr(1, True), cbr(3), cb(3)
            case "src1":
                cbr(1, True), cbr(3, ends=(channels, channels)), cb(3, True)
            case "src3":
                cb(1, True), cbr(1, ends=(channels, channels)), cbr(3, True), cb(1)
            case "src7":
                cb(1, True), inc(), inc()
            case "src8":
                cb(1, True), inc(), cb(1)

    def forward(self, x):
        n = self.layers
        match self.name.removeprefix("hiaml_"):
            case "z":
                a = n[0](x)
                y = a + n[1](a)
            case "a22" | "src0":
                a = n[0](x)
                y = a + n[2](n[1](a))
            case "l20":
                y = n[1](n[0](x))
            case "j30" | "b23":
                y = n[0](x) + n[2](n[1](x))
            case "t20":
                y = n[0](x) + n[1](x)
            case "g30":
                a = n[0](x)
                y = a + n[3](n[2](n[1](x) + a))
            case "r30":
                a = n[0](x)
                y = n[1](x) + n[3](n[2](x) + a) + n[4](a)
            case "t31":
                b = n[1](n[0](x))
                y = n[2](x) + b + n[4](n[3](x) + b)
            case "src1":
                y = n[0](x) + n[2](n[1](x))
            case "src3":
                y = n[0](x) + n[3](n[2](n[1](x)))
            case "src7" | "src8":
                a = n[0](x)
                y = a + n[2](n[1](a))
        return F.relu(y)


class HiAMLNetwork(nn.Module):
    """Mills et al. 2023."""

    def __init__(self, genotype):
        super().__init__()
        layers, channels = [conv_bn(3, 64, 3, 2, activation=nn.ReLU)], 64
        for name, out, first_stride in zip(genotype, (64, 128, 128, 256), (1, 2, 1, 2), strict=True):
            layers += [HiAMLBlock(name, channels, out, first_stride), HiAMLBlock(name, out, out, 1)]
            channels = out
        self.features, self.classifier = nn.Sequential(*layers), nn.Linear(256, 10)

    def forward(self, x):
        return self.classifier(self.features(x).mean(dim=[2, 3]))
