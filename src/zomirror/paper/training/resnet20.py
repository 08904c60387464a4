"""ResNet20 for 32 x 32 photographs (He et al. 2016, section 4.2), with 1 x 1 convolutions as shortcuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from zomirror.paper.training.plan import Plan

if TYPE_CHECKING:
    from torch import Tensor

PLAN = Plan(
    name="resnet20",
    epochs=52,
    batch_size=128,
    peak_rate=0.2,
    weight_decay=5e-4,
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
    sides=((0, 16), (10, 24), (28, 32)),
    pad=4,
    flip=True,
    warmup=0.15,
)


class Residual(nn.Module):
    """relu(x' + bn(conv(relu(bn(conv(x)))))), where x' is x or, where the shape changes, a 1 x 1 convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = (
            nn.Identity()
            if stride == 1
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        )
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:  # noqa: D102
        result: Tensor = self.relu(self.main(x) + self.shortcut(x))
        return result


def resnet20() -> nn.Module:
    """Photographs (x/255 - mean)/std of shape (n, 3, 32, 32) to ten logits; 272,474 parameters."""
    widths = [(16, 16, 1)] + [(16, 16, 1)] * 2
    widths += [(16, 32, 2)] + [(32, 32, 1)] * 2
    widths += [(32, 64, 2)] + [(64, 64, 1)] * 2
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *(Residual(*width) for width in widths),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network
