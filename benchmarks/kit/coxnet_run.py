"""Run scikit-survival's Coxnet on an .npz file with X, time, event, alphas and l1_ratio; prints the path as JSON.

Runs in the environment "survival" of peer_env. Coxnet maximises (1/n) log PL - alpha (r |b|_1 + (1 - r)/2 |b|_2^2)
with Breslow's ties, so its l1 is alpha r and its l2 is alpha (1 - r).

    python coxnet_run.py DATA.npz
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np


def main() -> None:
    from sksurv.linear_model import CoxnetSurvivalAnalysis  # type: ignore[import-not-found, unused-ignore]

    with np.load(sys.argv[1]) as stored:
        X, times, event, alphas, ratio = (stored[name] for name in ("X", "time", "event", "alphas", "l1_ratio"))
    y = np.array(list(zip(event.astype(bool), times, strict=True)), dtype=[("event", bool), ("time", float)])
    # An exact path: no early stopping, and a tolerance far below the differences compared.
    model = CoxnetSurvivalAnalysis(alphas=alphas, l1_ratio=float(ratio), tol=1e-12, max_iter=1_000_000)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.process_time() - started
    print(json.dumps({"alphas": model.alphas_.tolist(), "coef": model.coef_.T.tolist(), "seconds": seconds}))


if __name__ == "__main__":
    main()
