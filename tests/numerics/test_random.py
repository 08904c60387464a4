"""Draws from raw words: golden values that never change, the same bits compiled and in numpy, and the distributions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zomirror.methods.coordinate_groups import drawn
from zomirror.numerics import kernels
from zomirror.numerics.normal import LAST, LAYERS, normals
from zomirror.numerics.random import (
    DRAWS,
    FAR_POINTS,
    NORMALS,
    PICKS,
    ROWS,
    Counter,
    Draws,
    Key,
    counter_of,
    fill_normals,
    fingerprint,
    halves,
    key_of,
    uniform,
    words,
)

pytestmark = pytest.mark.usefixtures("loops")

KEY = key_of(0)
FINGERPRINT = "6160c9b3dbca"


def digest(*arrays: Any) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def filled(rows: int, d: int, dtype: Any, key: Key = KEY, t: int = 0, start: int = 0) -> Any:
    out = np.empty((rows, d), dtype)
    fill_normals(out, key, t, start)
    return out


# --- what never changes -------------------------------------------------------------------------------------------


def test_keys_and_words_are_what_they_were() -> None:
    assert key_of(0) == (15793235383387715774, 12390638538380655177)
    assert key_of([3, 5]) == GOLDEN_KEY
    assert words(KEY, (1, 2, 3, 4), 5).tolist() == GOLDEN_WORDS
    assert halves(KEY, (1, 2, 3, 4), 3).tolist() == [
        GOLDEN_WORDS[0] % 2**32,
        GOLDEN_WORDS[0] >> 32,
        GOLDEN_WORDS[1] % 2**32,
    ]
    assert uniform(KEY, 7) == 0.15287214134000948


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 784, 5000])
def test_permutations_signs_and_uniform_numbers_are_what_they_were(n: int) -> None:
    draws = Draws.of(KEY, 3)
    made = draws.permutation(n).astype("<i8"), draws.signs(n), draws.uniform(n).astype("<f8")
    assert digest(*made) == GOLDEN_DRAWS[n]


@pytest.mark.parametrize("n", [1, 37, 784, 3072])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_are_what_they_were(n: int, dtype: Any) -> None:
    labels, moves = drawn(np.linspace(-1, 1, n, dtype=dtype), 5, 0.5, 0.25, KEY, 11)
    assert digest(labels.astype("<i8"), moves) == GOLDEN_GROUPS[n, np.dtype(dtype).name]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers_are_what_they_were(dtype: Any) -> None:
    block = filled(3, 20_000, dtype, t=2, start=7)
    assert (np.abs(block) > LAST).any(), "the tail is among them"
    assert digest(block) == GOLDEN_NORMALS[np.dtype(dtype).name]


def test_the_fingerprint_is_that_of_these_draws() -> None:
    assert fingerprint.__wrapped__() == fingerprint() == FINGERPRINT


def test_the_fingerprint_is_the_same_in_a_process_without_compiled_loops() -> None:
    code = "from zomirror.numerics.random import fingerprint; print(fingerprint())"
    environment = os.environ | {kernels.VARIABLE: "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == FINGERPRINT


@pytest.mark.skipif(not np.__version__.startswith("2.4."), reason="numpy does not promise the streams of its Generator")
def test_draws_are_those_of_the_generator_of_numpy_2_4() -> None:
    """This documents where they come from; another numpy may differ, and changes nothing here."""
    for t in range(5):
        for n in (1, 2, 3, 64, 65, 784, 4096, 4097):
            draws, theirs = Draws.of(KEY, t), np.random.Generator(philox(KEY, counter_of(t, DRAWS)))
            assert (draws.permutation(n) == theirs.permutation(n)).all()
            assert (draws.signs(n) == 1 - 2 * theirs.integers(2, size=n, dtype=np.int8)).all()
        assert (Draws(KEY).uniform(30) == np.random.Generator(philox(KEY, (0, 0, 0, 0))).random(30)).all()
        for dtype in (np.float32, np.float64):
            theirs = np.random.Generator(philox(KEY, counter_of(t, NORMALS, 4)))
            normal = theirs.standard_normal(10_000, dtype=dtype)
            ours = filled(1, 10_000, dtype, t=t, start=4)[0]
            # The logarithm of the tail is our own, and may differ from the system's in the last digit.
            np.testing.assert_array_max_ulp(ours, normal, 2)
            assert (ours == normal)[np.abs(normal) < LAST].all()


def philox(key: Key, counter: Counter) -> np.random.Philox:
    return np.random.Philox(key=np.array(key, np.uint64), counter=np.array(counter, np.uint64))


# --- the order of the words ---------------------------------------------------------------------------------------


@given(
    key=st.tuples(*[st.integers(0, 2**64 - 1)] * 2),
    counter=st.tuples(*[st.integers(0, 2**64 - 1)] * 4),
    count=st.integers(0, 30),
)
def test_words_are_those_of_the_philox_of_numpy(key: Key, counter: Counter, count: int) -> None:
    assert (words(key, counter, count) == philox(key, counter).random_raw(count)).all()


@given(sizes=st.lists(st.tuples(st.sampled_from(["permutation", "signs", "uniform"]), st.integers(0, 40)), max_size=8))
def test_draws_take_the_words_in_order(sizes: list[tuple[str, int]]) -> None:
    """Written out: what each kind takes, and where the next one begins."""
    draws, stream = Draws.of(KEY, 5), iter(halves(KEY, counter_of(5, DRAWS), 4000).tolist())
    taken = 0

    def take() -> int:
        nonlocal taken
        taken += 1
        return int(next(stream))

    for kind, n in sizes:
        if kind == "permutation":
            order = list(range(n))
            for i in range(n - 1, 0, -1):
                mask = 2 ** i.bit_length() - 1
                while (j := take() & mask) > i:
                    pass
                order[i], order[j] = order[j], order[i]
            assert draws.permutation(n).tolist() == order
        elif kind == "signs":
            octets = [octet for _ in range(-(-n // 4)) for octet in take().to_bytes(4, "little")]
            assert draws.signs(n).tolist() == [-1 if octet >= 128 else 1 for octet in octets[:n]]
        else:
            if taken % 2:
                take()
            whole = [take() + (take() << 32) for _ in range(n)]
            assert draws.uniform(n).tolist() == [(word >> 11) / 2**53 for word in whole]


@given(n=st.integers(0, 300), share=st.floats(0, 1), t=st.integers(0, 99))
def test_a_sample_is_the_end_of_a_permutation(n: int, share: float, t: int) -> None:
    count = round(share * n)
    assert Draws.of(KEY, t).sample(n, count).tolist() == Draws.of(KEY, t).permutation(n)[n - count :].tolist()


@given(n=st.integers(1, 60), dtype=st.sampled_from([np.float32, np.float64]), t=st.integers(0, 10**6))
def test_normal_numbers_do_not_depend_on_how_many_words_are_at_hand(n: int, dtype: Any, t: int) -> None:
    source = words if dtype is np.float64 else halves
    raw, layers = source(KEY, counter_of(t, NORMALS, 0), 400), LAYERS[np.dtype(dtype)]
    every = normals(raw, layers)
    some = normals(raw[:n], layers)
    assert some.tobytes() == every[: some.size].tobytes()
    assert n - 1 - 3 * (n // 20 + 4) <= some.size <= n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_tail_takes_pairs_of_words_until_one_fits(dtype: Any) -> None:
    """A word of layer 0 at its last place, then -log of uniform numbers, the first over LAST."""
    layers = LAYERS[np.dtype(dtype)]
    source = layers.core.dtype
    bits = 8 * source.itemsize

    def word(share: float) -> int:
        return int(share * 2**bits)

    begin = int(layers.places) << 9  # layer 0, sign +; its bit 17 is set, which makes a number of the tail negative
    raw = np.array([begin, word(0.9), word(0.1), word(0.5), word(0.5), 0], source)
    made = normals(raw, layers)
    assert made.size == 2
    assert made[0] == pytest.approx(-(LAST + np.log(2) / LAST), rel=1e-6), "(0.9, 0.1) is rejected"
    assert normals(raw[:4], layers).size == normals(raw[:3], layers).size == 0, "undecided"


# --- the distributions --------------------------------------------------------------------------------------------


def test_permutations_are_uniform() -> None:
    from scipy import stats

    seen = [tuple(Draws.of(KEY, t).permutation(4).tolist()) for t in range(4800)]
    counts = [seen.count(order) for order in set(seen)]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_signs_are_fair_and_uniform_numbers_uniform() -> None:
    from scipy import stats

    draws = Draws.of(KEY, 1)
    assert abs(int(draws.signs(40_000).sum())) < 4.5 * 200
    assert stats.kstest(draws.uniform(20_000), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers_are_normal_in_the_middle_and_in_the_tail(dtype: Any) -> None:
    from scipy import stats

    x = filled(4, 250_000, dtype).ravel().astype(np.float64)
    assert stats.kstest(x[:100_000], "norm").pvalue > 1e-3
    beyond = np.abs(x[np.abs(x) > LAST])
    chance = 2 * stats.norm.sf(LAST)
    assert abs(beyond.size - chance * x.size) < 4.5 * np.sqrt(chance * x.size)
    assert stats.kstest(stats.norm.sf(beyond) / stats.norm.sf(LAST), "uniform").pvalue > 1e-3
    assert abs(int(np.sign(x).sum())) < 4.5 * np.sqrt(x.size)


def test_picks_are_uniform_and_of_their_own() -> None:
    from scipy import stats

    picks = np.array([uniform(KEY, t) for t in range(4000)])
    assert ((picks >= 0) & (picks < 1)).all()
    assert stats.kstest(picks, "uniform").pvalue > 1e-3
    assert uniform(KEY, 5) == uniform(KEY, 5) != uniform(key_of(1), 5)
    assert len({counter_of(5, purpose) for purpose in (ROWS, NORMALS, PICKS, DRAWS, FAR_POINTS)}) == 5


# --- no state -----------------------------------------------------------------------------------------------------


def test_draws_of_many_threads_are_the_same() -> None:
    def made(t: int) -> str:
        draws = Draws.of(KEY, t)
        return digest(draws.permutation(200), draws.signs(200), draws.uniform(20), filled(2, 200, np.float64, t=t))

    alone = [made(t) for t in range(100)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(made, range(100))) == alone


@pytest.mark.parametrize("t", [-1, 1 << 64])
def test_an_iteration_that_is_no_word_is_refused(t: int) -> None:
    for draw in (lambda: Draws.of(KEY, t), lambda: uniform(KEY, t), lambda: filled(1, 3, np.float64, t=t)):
        with pytest.raises(OverflowError, match="2\\^64"):
            draw()


GOLDEN_KEY = (9791734468858838757, 7625315995053767278)
GOLDEN_WORDS = [6694203059285403584, 9457695801679507912, 655558158785796910, 3385820842759398163, 1445554727277728509]
GOLDEN_DRAWS = {
    1: "ad67b84ffad201d6",
    2: "5593cc251a6073e4",
    7: "f5fd88ca4dfb7ad6",
    8: "8b8d97fa943e3bd8",
    9: "c925faa931db45c0",
    784: "88893c2da80afeca",
    5000: "fcf1f51415e2d3ce",
}
GOLDEN_GROUPS = {
    (1, "float32"): "faa95b687020ab36",
    (1, "float64"): "7a303f479402d50c",
    (37, "float32"): "96a5a5dbb46d6d24",
    (37, "float64"): "a38a106a5e947f5c",
    (784, "float32"): "f12cf40d95d11de0",
    (784, "float64"): "2e8be81aca301dee",
    (3072, "float32"): "3042a5e927ce8bb0",
    (3072, "float64"): "d8ce0a92e689150a",
}
GOLDEN_NORMALS = {"float32": "ff1b6b1dff2eb96c", "float64": "78c2a573b733f3c4"}
