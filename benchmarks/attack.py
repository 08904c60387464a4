"""Compare our attacks on the bundled networks with those of ART and foolbox: same budget, same images.

Images are the first of the test set from position 6,000 on that the network classifies correctly; none was used for
tuning. A peer is credited with the adversarial input of least l1 that it ever queried, ours with the one it returns.
`ours at theirs` is the number of queries after which ours reached the final l1 of the peer on the same image, and
`theirs` the number after which the peer reached it. A second table says what each attack had queried after 30, 100, ...
queries. Peers that are repositories (BY_HAND) were run by hand with their own code; only their rows are stored.

    python benchmarks/attack.py                          runs what results/attack.json lacks, prints the table
    python benchmarks/attack.py --model lenet --peer SimBA --images 20 --fresh
    python benchmarks/attack.py --quick                  three images, ours only, prints only
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray

import zomirror as zm
from kit import peer_env  # type: ignore[import-not-found, unused-ignore]
from kit.attack_curves import curves  # type: ignore[import-not-found, unused-ignore]
from zomirror import datasets, models

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "attack.json"
PICTURE = ROOT / "docs" / "images" / "attack.png"
PEERS = ("SquareAttack", "SimBA", "HopSkipJump", "BoundaryAttack", "ZooAttack")
OURS: dict[str, dict[str, Any]] = {
    "zomirror": {},
    "zomirror, l0": {"l0": "least"},
    "zomirror, label": {"scores": "label"},
    "zomirror, label, l0": {"scores": "label", "l0": "least"},
}
"""Our attack with its options; the peers that see only the class are to be compared with the last two."""
BY_HAND = ("Sparse-RS, k lowered",)
BUDGET = 10_000
SHORT, SHORTER = 3_000, ("zomirror, l0", "zomirror, label, l0", *BY_HAND)
"""Attacks that count pixels have 3,000 queries."""
FROM = 6_000
CHUNK = 20
"""Images per process of a peer."""
Row = dict[str, Any]


class Watched:
    """The network on raw pixels, (n, c, h, w) in 0..1; records each smaller adversarial change and its query."""

    def __init__(self, name: str) -> None:
        card = models.card(name)
        self.mean, self.std = (np.array(a, np.float32)[:, None, None] for a in (card.mean, card.std))
        self.net = zm.onnx_classifier(models.path(name), threads=1)
        self.x0: NDArray[Any] | None = None

    def begin(self, x0: NDArray[Any], label: int) -> None:
        """Start with another image."""
        self.x0, self.label, self.queries, self.trace = x0, label, 0, list[tuple[int, float]]()
        self.pixels: list[tuple[int, int]] = []

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Logits."""
        scores: NDArray[Any] = self.net((batch - self.mean) / self.std)
        if self.x0 is not None:
            l1 = np.abs(batch - self.x0).reshape(len(batch), -1).sum(axis=1)
            pixels = (batch != self.x0).any(axis=1).reshape(len(batch), -1).sum(axis=1)
            for i in np.flatnonzero(scores.argmax(axis=1) != self.label):
                if not self.pixels or pixels[i] < self.pixels[-1][1]:
                    self.pixels.append((self.queries + int(i) + 1, int(pixels[i])))
                if not self.trace or l1[i] < self.trace[-1][1]:
                    self.trace.append((self.queries + int(i) + 1, float(l1[i])))
            self.queries += len(batch)
        return scores


def images_of(name: str, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Correctly classified test images, channels first."""
    test = datasets.mnist("test") if models.card(name).data.lower().startswith("mnist") else datasets.cifar10("test")
    some = test.images[FROM : FROM + 2 * count].astype(np.float32) / np.float32(255)
    some = some[:, None] if some.ndim == 3 else np.ascontiguousarray(some.transpose(0, 3, 1, 2))
    right = np.flatnonzero(Watched(name)(some).argmax(axis=1) == test.labels[FROM : FROM + 2 * count])[:count]
    return some[right], test.labels[FROM:][right]


def ours(name: str, variant: str, images: NDArray[np.float32], labels: NDArray[np.int64], seed: int) -> list[Row]:
    """attack() with default settings, or those of the variant."""
    model, rows, budget = Watched(name), [], budget_of(variant)
    for i, (x0, label) in enumerate(zip(images, labels, strict=True), seed):
        model.begin(x0, int(label))
        started = time.process_time()
        found = zm.attack(model, x0, budget=budget, rng=i, **OURS[variant])
        seconds = time.process_time() - started
        inside = ((found.perturbed >= 0) & (found.perturbed <= 1)).all()
        if not inside or not found.nfev == model.queries <= budget:
            raise SystemExit(f"image {i}: outside the box, or {model.queries} queries for {found.nfev}")
        change, model.x0 = found.perturbed - x0, None
        eight_bits = (np.rint(found.perturbed * 255) / 255).astype(np.float32)
        rows.append(
            {
                "success": bool(found.valid and model(found.perturbed[None]).argmax() != label),
                "l1": float(np.abs(change).sum()),
                "l2": float(np.linalg.norm(change)),
                "changed": int(np.count_nonzero((change != 0).any(axis=0))),
                "queries": found.nfev,
                "first": model.trace[0][0] if model.trace else None,
                "trace": model.trace,
                "pixels": model.pixels,
                "eight_bits": bool(found.valid and model(eight_bits[None]).argmax() != label),
                "seconds": seconds,
            }
        )
    return rows


def budget_of(attack: str) -> int:
    """The queries that an attack has."""
    return SHORT if attack in SHORTER else BUDGET


def theirs(name: str, peer: str, images: NDArray[np.float32], labels: NDArray[np.int64], seed: int) -> list[Row]:
    """The peer, in its own environment."""
    card = models.card(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npz"
        np.savez(
            path, images=images, labels=labels, mean=np.array(card.mean, np.float32), std=np.array(card.std, np.float32)
        )
        script, budget = Path(__file__).parent / "kit" / "attack_run.py", ("--budget", str(BUDGET), "--seed", str(seed))
        arguments = (str(path), str(models.path(name)), peer, *budget)
        rows: list[Row] = peer_env.run(script, *arguments, environment="attackers", timeout=3_600)
    return rows


def thinned(row: Row) -> Row:
    """The row with a shorter trace: each decrease of l1 by at least 2 %, and the last one."""
    kept: list[tuple[int, float]] = []
    for point in row["trace"]:
        if not kept or point[1] < 0.98 * kept[-1][1] or point == row["trace"][-1]:
            kept.append(point)
    return row | {"trace": kept}


def when(row: Row, l1: float) -> float:
    """The queries after which this attack had found an adversarial input of at most that l1."""
    return next((queries for queries, size in row["trace"] if size <= l1 * (1 + 1e-6)), np.inf)


def table(name: str, stored: dict[str, list[Row]]) -> list[Row]:
    """Medians of each attack over the images on which it succeeded."""
    lines, own = [], stored.get("zomirror", [])
    for peer in (*OURS, *PEERS, *BY_HAND):
        rows = stored.get(peer, [])
        done = [row for row in rows if row["success"]]
        line: Row = {"model": name, "attack": peer, "images": len(rows)}
        if rows:
            line["success"] = len(done) / len(rows)
        if done:
            sizes = [key for key in ("l1", "l2", "changed", "queries") if all(key in row for row in done)]
            line |= {key: float(np.median([row[key] for row in done])) for key in sizes}
            line["first"] = float(np.median([row["first"] for row in done]))
        pairs = [(a, b) for a, b in zip(own, rows, strict=False) if b["success"]]
        if peer not in OURS and pairs:
            line["smaller_l1"] = float(np.mean([a["l1"] < b["l1"] for a, b in pairs]))
            # If ours never reached it, the whole budget counts.
            line["ours_at_theirs"] = float(np.median([min(when(a, b["l1"]), BUDGET) for a, b in pairs]))
            line["theirs"] = float(np.median([when(b, b["l1"]) for _, b in pairs]))
            line["sooner"] = float(np.mean([when(a, b["l1"]) < when(b, b["l1"]) for a, b in pairs]))
        lines.append(line)
    return lines


def summary(stored: dict[str, dict[str, list[Row]]]) -> Row:
    """Both tables of all networks."""
    return {
        "budget": BUDGET,
        "from": FROM,
        "table": [line for one, found in stored.items() for line in table(one, found)],
        "curves": [
            curves(one, attack, rows, budget_of(attack))
            for one, found in stored.items()
            for attack, rows in found.items()
            if rows
        ],
    }


COLUMNS = (
    "images",
    "success",
    "l1",
    "l2",
    "changed",
    "queries",
    "first",
    "smaller_l1",
    "ours_at_theirs",
    "theirs",
    "sooner",
)


def show(lines: list[Row]) -> None:
    print(f"{'model':<9}{'attack':<16}" + "".join(f"{name.replace('_', ' '):>15}" for name in COLUMNS))
    for line in lines:
        cells = "".join(f"{line[name]:>15.4g}" if name in line else f"{'':>15}" for name in COLUMNS)
        print(f"{line['model']:<9}{line['attack']:<16}{cells}", flush=True)


def draw(stored: dict[str, dict[str, list[Row]]], path: Path) -> None:
    """The median l1 of the best adversarial input against the queries."""
    from matplotlib.figure import Figure

    colours = ("#D55E00", "#999999", "#009E73", "#0072B2", "#CC79A7", "#E69F00", "#56B4E9")
    figure = Figure(figsize=(4.4 * max(2, len(stored)), 3.6), layout="constrained")
    grid = np.unique(np.geomspace(1, BUDGET, 200).astype(int))
    for axes, (name, attacks) in zip(np.atleast_1d(figure.subplots(1, len(stored))), stored.items(), strict=True):
        for peer, colour in zip(("zomirror", *PEERS, *BY_HAND), colours, strict=True):
            rows = attacks.get(peer, [])
            if not rows:
                continue
            sizes = np.full((len(rows), grid.size), np.inf)
            for i, row in enumerate(rows):
                for queries, l1 in row["trace"]:
                    sizes[i, grid >= queries] = l1
            axes.plot(grid, np.median(sizes, axis=0), label=peer, color=colour, lw=2.2 if peer == "zomirror" else 1.3)
        axes.set(xscale="log", yscale="log", xlabel="queries", ylabel="median l1 of the adversarial change", title=name)
        axes.legend(frameon=False, fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=models.names(), action="append")
    parser.add_argument("--peer", choices=(*OURS, "none", *PEERS), action="append")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--fresh", action="store_true", help="repeat stored runs")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.quick:
        images, labels = images_of("lenet", 3)
        show(table("lenet", {variant: ours("lenet", variant, images, labels, 0) for variant in OURS}))
        return
    document = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"attacks": {}}
    stored: dict[str, dict[str, list[Row]]] = document["attacks"]
    for name in given.model or models.names():
        attacks = stored.setdefault(name, {})
        images, labels = images_of(name, given.images)
        for peer in given.peer or (*OURS, *PEERS):
            rows = attacks[peer] = [] if given.fresh else attacks.get(peer, [])
            while peer != "none" and len(rows) < given.images:
                some = slice(len(rows), min(len(rows) + CHUNK, given.images))
                new = (images[some], labels[some])
                found = ours(name, peer, *new, len(rows)) if peer in OURS else theirs(name, peer, *new, len(rows))
                rows += [thinned(row) for row in found]
                where = {"machine": platform.processor() or platform.machine(), "python": platform.python_version()}
                document = summary(stored) | where | {"attacks": stored}
                RESULTS.write_text(json.dumps(document, allow_nan=False) + "\n")
    show([line for name, attacks in stored.items() for line in table(name, attacks)])
    draw(stored, PICTURE)


if __name__ == "__main__":
    main()
