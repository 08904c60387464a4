"""Windows, blocks and connected pieces of sets of parts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zomirror.contrast.search.presence_search.part_sets import blocks, components, in_one_piece, windows, without
from zomirror.features.parts import edges_of

SIDE = 6
WHERE = np.stack(np.divmod(np.arange(SIDE * SIDE), SIDE), axis=1).astype(float)
EDGES = edges_of(np.arange(SIDE * SIDE).reshape(SIDE, SIDE), SIDE * SIDE)
sets = st.lists(st.booleans(), min_size=36, max_size=36).map(np.array).filter(lambda mask: mask.any())


@given(sets, st.sampled_from([0.5, 0.7, 0.85]))
def test_windows_are_different_proper_subsets(mask, ratio):
    found = windows(mask, WHERE, ratio)
    assert len({one.tobytes() for one in found}) == len(found) <= 9
    for one in found:
        assert 0 < one.sum() < mask.sum()
        assert not (one & ~mask).any()


@given(sets, st.integers(1, 40))
def test_blocks_are_a_partition(mask, count):
    found = blocks(mask, WHERE, np.ones(36), count)
    assert len(found) == min(count, mask.sum())
    assert sorted(np.concatenate(found).tolist()) == np.flatnonzero(mask).tolist()


@given(sets)
def test_components_are_those_of_a_flood(mask):
    left, pieces = set(np.flatnonzero(mask).tolist()), 0
    while left:
        pieces, reach = pieces + 1, [left.pop()]
        while reach:
            i = reach.pop()
            for j in (i - SIDE, i + SIDE, i - 1 if i % SIDE else -1, i + 1 if (i + 1) % SIDE else -1):
                if j in left:
                    left.remove(j)
                    reach.append(j)
    assert components(mask, EDGES) == pieces


def test_parts_without_neighbours_are_pieces_of_their_own():
    assert components(np.array([True, False, True]), np.empty((0, 2), np.intp)) == 2


@given(sets, st.integers(2, 12))
def test_blocks_that_go_in_order_never_part_the_set(mask, count):
    pieces = blocks(mask, WHERE, np.ones(36), count)
    order = in_one_piece(mask, pieces, EDGES)
    for n in range(len(order) + 1):
        left = without(mask, [pieces[i] for i in order[:n]])
        assert left.any()
        assert components(left, EDGES) <= components(mask, EDGES)
    last = without(mask, [pieces[i] for i in order])
    for i in set(range(len(pieces))) - set(order):  # and no other one could go
        fewer = without(last, [pieces[i]])
        assert not fewer.any() or components(fewer, EDGES) > components(mask, EDGES)
