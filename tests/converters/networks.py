"""Well-known networks as users write them in torch, with random weights."""

import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    """Conv 1x1, 3x3, 1x1 with a shortcut. He et al. 2015, stride in the middle."""

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = None
        if stride > 1 or channels != 4 * width:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
            )

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet(nn.Module):
    """ResNet-50 by default."""

    def __init__(self, depths=(3, 4, 6, 3), width=64, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        blocks, channels = [], width
        for stage, depth in enumerate(depths):
            for index in range(depth):
                blocks.append(Bottleneck(channels, width << stage, 2 if stage and index == 0 else 1))
                channels = 4 * (width << stage)
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int, squeezed: int, gate=F.hardsigmoid):
        super().__init__()
        self.down, self.up, self.gate = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1), gate

    def forward(self, x):
        return x * self.gate(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


def conv_bn(channels: int, out: int, kernel: int, stride: int = 1, groups: int = 1, activation=None) -> nn.Sequential:
    """Convolution without bias, batch norm, and an activation if there is one."""
    parts = [nn.Conv2d(channels, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]
    return nn.Sequential(*parts, *([activation()] if activation else []))


class InvertedResidual(nn.Module):
    def __init__(self, channels, hidden, out, kernel, stride, activation, squeezed=0, gate=F.hardsigmoid, expand=True):
        super().__init__()
        self.residual = stride == 1 and channels == out
        self.body = nn.Sequential(
            *([conv_bn(channels, hidden, 1, activation=activation)] if expand else []),
            conv_bn(hidden, hidden, kernel, stride, hidden, activation),
            *([SqueezeExcite(hidden, squeezed, gate)] if squeezed else []),
            conv_bn(hidden, out, 1),
        )

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


# kernel, hidden, out, squeezed, activation, stride: Howard et al. 2019, table 1
MOBILENET_V3_LARGE = (
    (3, 16, 16, 0, nn.ReLU, 1),
    (3, 64, 24, 0, nn.ReLU, 2),
    (3, 72, 24, 0, nn.ReLU, 1),
    (5, 72, 40, 24, nn.ReLU, 2),
    (5, 120, 40, 32, nn.ReLU, 1),
    (5, 120, 40, 32, nn.ReLU, 1),
    (3, 240, 80, 0, nn.Hardswish, 2),
    (3, 200, 80, 0, nn.Hardswish, 1),
    (3, 184, 80, 0, nn.Hardswish, 1),
    (3, 184, 80, 0, nn.Hardswish, 1),
    (3, 480, 112, 120, nn.Hardswish, 1),
    (3, 672, 112, 168, nn.Hardswish, 1),
    (5, 672, 160, 168, nn.Hardswish, 2),
    (5, 960, 160, 240, nn.Hardswish, 1),
    (5, 960, 160, 240, nn.Hardswish, 1),
)


class MobileNetV3(nn.Module):
    """MobileNetV3-Large by default."""

    def __init__(self, rows=MOBILENET_V3_LARGE, classes=1000):
        super().__init__()
        layers, channels = [conv_bn(3, 16, 3, 2, activation=nn.Hardswish)], 16
        for kernel, hidden, out, squeezed, activation, stride in rows:
            expand = hidden != channels
            layers.append(InvertedResidual(channels, hidden, out, kernel, stride, activation, squeezed, expand=expand))
            channels = out
        layers.append(conv_bn(channels, 6 * channels, 1, activation=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(
            nn.Linear(6 * channels, 8 * channels), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(8 * channels, classes)
        )

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Attention(nn.Module):
    """Scaled dot-product attention written out."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5).softmax(-1)
        return self.out((attention @ v).transpose(1, 2).reshape(batch, length, width))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """ViT-B/16 at 224 by default. ``torch_layers``: nn.TransformerEncoderLayer, with nn.MultiheadAttention."""

    def __init__(self, size=224, patch=16, width=768, depth=12, heads=12, classes=1000, torch_layers=False):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.Sequential(
            *[
                nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
                if torch_layers
                else EncoderLayer(width, heads)
                for _ in range(depth)
            ]
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.layers(x))[:, 0])


class RecurrentClassifier(nn.Module):
    """Token ids to classes by an LSTM or GRU."""

    def __init__(self, kind=nn.LSTM, vocabulary=5000, width=256, layers=2, classes=5, bidirectional=True):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.recurrent = kind(width, width, layers, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(width * (2 if bidirectional else 1), classes)

    def forward(self, ids):
        outputs, _ = self.recurrent(self.embedding(ids))
        return self.head(outputs[:, -1])
