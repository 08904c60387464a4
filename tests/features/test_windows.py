"""Stretches of series: what is replaced, and which decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.errors import ArgumentError
from zomirror.features.windows import line

TIME = np.linspace(0, 6, 96)
SERIES = np.stack([np.sin(TIME), np.cos(TIME)])
SERIES[1, 40:48] += 5


def bump(batch: np.ndarray) -> np.ndarray:
    """Class 1 where the second channel is high around time 44."""
    height = batch[:, 1, 42:46].mean(axis=1) - 2
    return np.stack([-height, height], axis=1)


def test_the_stretch_that_decides_is_found() -> None:
    for kind in ("PP", "PN"):
        found = zm.explain(bump, SERIES, kind=kind, features=zm.Windows(length=4))
        assert found.valid
        assert {one.name for one in found.changes} <= {"channel 1, time 40..43", "channel 1, time 44..47"}
        assert found.labels is not None
        assert found.labels.shape == SERIES.shape


def test_stretches_of_all_channels() -> None:
    labels = np.arange(96) // 8
    place = zm.Windows(labels=labels, baseline=0.0).place(SERIES, "PP")
    seen = place.perturbed((np.arange(12) == 3).astype(float))
    np.testing.assert_array_equal(seen[:, 24:32], SERIES[:, 24:32])
    assert not seen[:, :24].any()
    assert place.names[3] == "stretch 3"


def test_baselines_of_a_channel() -> None:
    place = zm.Windows().place(SERIES, "PP")
    np.testing.assert_allclose(place.perturbed(place.absent)[1], SERIES[1].mean())
    np.testing.assert_allclose(line(np.array([[1.0, 9, 9, 4], [0, 1, 2, 0]])), [[1, 2, 3, 4], [0, 0, 0, 0]])


def test_names_of_channels_and_times() -> None:
    assert zm.Windows(length=5).place(np.arange(12.0), "PP").names == ("time 0..4", "time 5..9", "time 10..11")
    assert zm.Windows(length=6, names=["lead"]).place(np.arange(12.0), "PP").names[1] == "lead, time 6..11"


@pytest.mark.parametrize(
    ("x0", "given", "says"),
    [
        (np.zeros((2, 3, 4)), {}, r"\(time,\) or \(channels, time\), got \(2, 3, 4\)"),
        (SERIES, {"length": 3, "labels": [1]}, "length or labels, got both"),
        (SERIES, {"labels": np.zeros(5, int)}, r"labels of shape \(2, 96\)"),
        (SERIES, {"names": ["a"]}, "2 names, one for each channel, got 1"),
        (SERIES, {"baseline": "zero"}, "baseline to be one of 'mean', 'line'"),
        (np.ones(20), {}, "baseline that differs from x0"),
    ],
    ids=["shape", "both", "labels", "names", "baseline", "flat"],
)
def test_what_is_no_series_is_refused(x0: Any, given: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        zm.explain(lambda batch: 1 / 0, x0, features=zm.Windows(**given))
