"""LeNet-5 for 28 x 28 digits, with rectifiers and plain logits (LeCun et al. 1998)."""

from __future__ import annotations

from torch import nn

from zomirror.paper.training.plan import Plan

PLAN = Plan(
    name="lenet",
    epochs=20,
    batch_size=128,
    peak_rate=0.05,
    weight_decay=5e-4,
    mean=(0.0,),
    std=(1.0,),
    sides=((0, 28),),
    pad=2,
)


def lenet() -> nn.Module:
    """Digits x/255 of shape (n, 1, 28, 28) to ten logits; 44,426 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
