"""The callback of explain(): what it is shown, and that StopIteration ends the descent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zomirror as zm
from zomirror.contrast.candidate import Glimpse


def predict(batch: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Class 1 when the first two of eight features are high."""
    height = batch[:, 0] + batch[:, 1] - 1
    return np.stack([-height, height], axis=1)


X0 = np.full(8, 0.25)


def test_it_is_shown_what_the_history_says() -> None:
    seen: list[Glimpse] = []
    plain = zm.explain(predict, X0, budget=600, rng=1)
    watched = zm.explain(predict, X0, budget=600, rng=1, callback=seen.append)
    assert watched.to_json() == plain.to_json(), "watching changes nothing"
    assert [one.nfev for one in seen] == plain.history.nfev.tolist()
    assert [one.fun for one in seen] == plain.history.fun.tolist()
    assert [one.nnz for one in seen] == plain.history.nnz.tolist()
    assert all(one.x.shape == X0.shape for one in seen)
    best = np.array([one.best for one in seen])
    known = ~np.isnan(best)
    assert known.any()
    assert (np.diff(best[known]) <= 0).all(), "the best valid objective only falls"
    assert best[known][-1] >= plain.objective, "what is polished afterwards is no worse"


@pytest.mark.parametrize("search", [0, 3])
def test_stop_iteration_ends_the_descent(search: int) -> None:
    seen: list[Glimpse] = []

    def stop_at_third(glimpse: Glimpse) -> None:
        seen.append(glimpse)
        if len(seen) == 3:
            raise StopIteration

    stopped = zm.explain(predict, 1 - X0, kind="PP", budget=2000, rng=1, search=search, callback=stop_at_third)
    assert len(seen) == 3
    assert stopped.status is zm.Status.CALLBACK
    assert stopped.valid
    assert stopped.nfev < zm.explain(predict, 1 - X0, kind="PP", budget=2000, rng=1, search=search).nfev


def test_another_exception_reaches_the_caller() -> None:
    def fail(_: Glimpse) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        zm.explain(predict, X0, callback=fail)


def test_what_is_not_a_function_is_refused() -> None:
    with pytest.raises(zm.errors.ArgumentTypeError, match="expected callback to be a function"):
        zm.explain(predict, X0, callback=3)  # type: ignore[arg-type]


def test_it_is_told_the_best_answer_so_far_in_the_terms_of_the_features() -> None:
    seen: list[Glimpse] = []
    table = {"a": np.arange(10.0), "b": np.arange(10.0)}

    def model(rows: Any) -> Any:
        height = np.asarray(rows["a"]) - 6.5
        return np.stack([-height, height], axis=1)

    one = zm.explain(model, {"a": 2.0, "b": 3.0}, features=zm.Table(table), callback=seen.append)
    assert (seen[-1].perturbed, seen[-1].changes) == (one.perturbed, one.changes)
    assert [change.name for change in seen[-1].changes] == ["a"]
    vectors: list[Glimpse] = []
    found = zm.explain(predict, X0, budget=600, rng=1, callback=vectors.append)
    np.testing.assert_array_equal(vectors[-1].perturbed, found.perturbed)
    assert vectors[-1].changes == ()
    assert vectors[0].perturbed is None or predict(vectors[0].perturbed[None])[0].argmax() != found.label


def test_a_search_over_parts_tells_every_batch_and_stops_there() -> None:
    def texts(given: Any) -> Any:
        return np.array([[0.0, 1.0] if "bad" in text else [1.0, 0.0] for text in given])

    text, seen, asked = " ".join([*(f"w{i}" for i in range(40)), "bad"]), list[Glimpse](), list[int]()

    def counted(given: Any) -> Any:
        asked.append(len(given))
        return texts(given)

    plain = zm.explain(texts, text)
    one = zm.explain(counted, text, callback=seen.append)
    assert one.to_json() == plain.to_json(), "watching changes nothing"
    assert set(np.cumsum(asked)[2:-1]) <= {glimpse.nfev for glimpse in seen}
    assert seen[-1].perturbed == one.perturbed

    def stop_at_the_first_valid(glimpse: Glimpse) -> None:
        if not np.isnan(glimpse.best):
            raise StopIteration

    stopped = zm.explain(texts, text, callback=stop_at_the_first_valid)
    assert (stopped.status, stopped.valid, stopped.nfev < one.nfev) == (zm.Status.CALLBACK, True, True)
