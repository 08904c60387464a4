"""Run the black-box attacks of other libraries on an ONNX file; every query is counted and measured.

Runs in the environment "attackers" of peer_env, so it may import numpy, onnxruntime and the peers, and nothing of
zomirror. Each attack has its package's settings, with enough iterations that the budget ends it (and three steps of
binary search for ZooAttack). It is credited with the adversarial input of least l1 that it ever queried, returned or
not.

    python attack_run.py INPUTS.npz MODEL.onnx SimBA --budget 10000 --seed 0
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-not-found, unused-ignore]


class Spent(BaseException):
    """The budget is used up; not a subclass of Exception, because attacks catch those."""


class Recorder:
    """Logits of a batch; records the best adversarial input of one image."""

    def __init__(self, path: str, mean: Any, std: Any) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.name = self.session.get_inputs()[0].name
        self.mean, self.std = mean[:, None, None], std[:, None, None]

    def begin(self, x0: Any, label: int, budget: int) -> None:
        """Start with another image."""
        self.x0, self.label, self.budget = x0, label, budget
        self.queries, self.first = 0, 0
        self.best: Any = None
        self.trace: list[tuple[int, float]] = []

    def __call__(self, batch: Any) -> Any:
        """The logits of as many rows as the budget allows."""
        batch = np.asarray(batch, np.float32).reshape(-1, *self.x0.shape)
        batch = batch[: self.budget - self.queries]
        if not len(batch):
            raise Spent
        # Points outside the box are clipped to it.
        inside = np.clip(batch, 0, 1)
        logits = self.session.run(None, {self.name: ((inside - self.mean) / self.std).astype(np.float32)})[0]
        l1 = np.abs(inside - self.x0).reshape(len(batch), -1).sum(axis=1)
        for i in np.flatnonzero(logits.argmax(axis=1) != self.label):
            self.first = self.first or self.queries + int(i) + 1
            if not self.trace or l1[i] < self.trace[-1][1]:
                self.trace.append((self.queries + int(i) + 1, float(l1[i])))
                self.best = inside[i]
        self.queries += len(batch)
        if len(batch) < 1 or self.queries > self.budget:
            raise Spent
        return logits


def _art(recorder: Recorder, *, probabilities: bool = False) -> Any:
    from art.estimators.classification import BlackBoxClassifierNeuralNetwork  # type: ignore[import-not-found, unused-ignore]

    def predict(batch: Any) -> Any:
        logits = recorder(batch)
        if len(logits) < len(batch):
            raise Spent
        if not probabilities:
            return logits
        grown = np.exp(logits - logits.max(axis=1, keepdims=True))
        return grown / grown.sum(axis=1, keepdims=True)

    return BlackBoxClassifierNeuralNetwork(predict, recorder.x0.shape, 10, channels_first=True, clip_values=(0.0, 1.0))


def zoo(recorder: Recorder, x: Any, label: int) -> None:
    """ART's ZooAttack: coordinate-wise finite differences with Adam."""
    from art.attacks.evasion import ZooAttack  # type: ignore[import-not-found, unused-ignore]

    attack = ZooAttack(_art(recorder), max_iter=1_000, binary_search_steps=3, batch_size=1, verbose=False)
    attack.generate(x, y=np.eye(10)[[label]])


def square(recorder: Recorder, x: Any, label: int) -> None:
    """ART's SquareAttack: random squares on the surface of a maximum-norm ball."""
    from art.attacks.evasion import SquareAttack

    # The default radius is for digits; colour pictures have the usual one.
    radius = 0.3 if x.shape[1] == 1 else 8 / 255
    attack = SquareAttack(_art(recorder), norm=np.inf, max_iter=10_000, eps=radius, batch_size=1, verbose=False)
    attack.generate(x, y=np.array([label]))


def simba(recorder: Recorder, x: Any, label: int) -> None:
    """ART's SimBA: single pixels up or down, kept if the probability falls."""
    from art.attacks.evasion import SimBA

    attack = SimBA(_art(recorder, probabilities=True), attack="px", max_iter=10_000, order="random", verbose=False)
    attack.generate(x, y=np.eye(10)[[label]])


def hop_skip_jump(recorder: Recorder, x: Any, label: int) -> None:
    """ART's HopSkipJump: decision-based, along the boundary in the Euclidean norm."""
    from art.attacks.evasion import HopSkipJump

    attack = HopSkipJump(_art(recorder), norm=2, max_iter=1_000, batch_size=64, verbose=False)
    attack.generate(x, y=np.array([label]))


def boundary(recorder: Recorder, x: Any, label: int) -> None:
    """foolbox's BoundaryAttack: decision-based, a random walk along the boundary."""
    import foolbox  # type: ignore[import-not-found, unused-ignore]

    def predict(batch: Any) -> Any:
        logits = recorder(batch)
        if len(logits) < len(batch):
            raise Spent
        return logits

    model = foolbox.models.NumPyModel(predict, bounds=(0, 1))
    import eagerpy  # type: ignore[import-not-found, unused-ignore]

    foolbox.attacks.BoundaryAttack(steps=25_000).run(
        model, eagerpy.astensor(x), foolbox.criteria.Misclassification(eagerpy.astensor(np.array([label])))
    )


PEERS: dict[str, Callable[[Recorder, Any, int], None]] = {
    "ZooAttack": zoo,
    "SquareAttack": square,
    "SimBA": simba,
    "HopSkipJump": hop_skip_jump,
    "BoundaryAttack": boundary,
}


def attacked(name: str, recorder: Recorder, x0: Any, label: int, budget: int, seed: int) -> dict[str, Any]:
    """One image."""
    recorder.begin(x0, label, budget)
    np.random.seed(seed)  # noqa: NPY002  the peers draw from the global generator
    started = time.process_time()
    # Hide progress bars and warnings of the packages.
    with contextlib.suppress(Spent), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PEERS[name](recorder, x0[None].copy(), label)
    change = np.zeros(1) if recorder.best is None else recorder.best - x0
    return {
        "success": recorder.best is not None,
        "l1": float(np.abs(change).sum()),
        "l2": float(np.linalg.norm(change)),
        "changed": int(np.count_nonzero((change != 0).any(axis=0) if change.ndim == 3 else change)),
        "queries": recorder.queries,
        "first": recorder.first or None,
        "trace": recorder.trace,
        "seconds": time.process_time() - started,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs")
    parser.add_argument("model")
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--budget", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with np.load(given.inputs) as stored:
        images, labels, mean, std = (stored[name] for name in ("images", "labels", "mean", "std"))
    recorder, rows = Recorder(given.model, mean, std), []
    for i, (x0, label) in enumerate(zip(images, labels, strict=True)):
        rows.append(attacked(given.peer, recorder, x0, int(label), given.budget, given.seed + i))
        print(f"{given.peer} {i}: l1 {rows[-1]['l1']:.2f}, {rows[-1]['queries']} queries", file=sys.stderr, flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
