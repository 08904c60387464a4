"""Batches of augmented images (shifted, mirrored, scaled), a pure function of (seed, epoch)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from zomirror.datasets import Dataset
    from zomirror.paper.training.plan import Plan


class Batches:
    """The images of a data set as batches of a plan; no random state is kept between epochs."""

    def __init__(self, data: Dataset, plan: Plan) -> None:
        images = torch.from_numpy(data.images)
        self.images = images if images.ndim == 4 else images[..., None]
        self.labels = torch.from_numpy(data.labels)
        self.plan = plan
        pad = plan.pad
        rows, columns = self.images.shape[1:3]
        across = torch.arange(-pad, rows + pad).clamp(0, rows - 1)
        along = torch.arange(-pad, columns + pad).clamp(0, columns - 1)
        # The border pixels are repeated outward, so that a shift is a matter of indices.
        self.padded = self.images[:, across][:, :, along] if pad else self.images

    def __len__(self) -> int:
        """Batches per epoch, without the last, incomplete one."""
        return len(self.labels) // self.plan.batch_size

    def epoch(self, seed: int, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The shuffled, augmented batches of an epoch."""
        plan = self.plan
        random = torch.Generator().manual_seed((seed << 20) + epoch)
        order = torch.randperm(len(self.labels), generator=random)
        rows, columns = self.images.shape[1:3]
        for start in range(0, len(self) * plan.batch_size, plan.batch_size):
            chosen = order[start : start + plan.batch_size]
            down, right = torch.randint(0, 2 * plan.pad + 1, (2, plan.batch_size, 1), generator=random)
            x = torch.arange(columns).expand(plan.batch_size, columns)
            if plan.flip:
                mirrored = torch.rand(plan.batch_size, 1, generator=random) < 0.5
                x = torch.where(mirrored, columns - 1 - x, x)
            y = torch.arange(rows).expand(plan.batch_size, rows)
            images = self.padded[chosen[:, None, None], (y + down)[:, :, None], (x + right)[:, None, :]]
            yield prepare(images, plan, plan.side(epoch)), self.labels[chosen]


def prepare(images: Tensor, plan: Plan, side: int) -> Tensor:
    """uint8 (n, h, w, c) to the network's float input (n, c, side, side), channels last in memory."""
    mean, std = torch.tensor(plan.mean), torch.tensor(plan.std)
    x = ((images.float() / 255.0 - mean) / std).permute(0, 3, 1, 2)
    if x.shape[-1] != side:
        x = functional.interpolate(x, size=(side, side), mode="bilinear", antialias=True, align_corners=False)
    return x.contiguous(memory_format=torch.channels_last)
