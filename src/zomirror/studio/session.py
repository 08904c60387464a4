"""What one person does in the studio: the search that runs, its progress, and the answers that are compared."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zomirror.contrast import Explanation
from zomirror.contrast.candidate import Glimpse
from zomirror.drawing.marked_parts import is_text, marked
from zomirror.drawing.picture import picture_in
from zomirror.errors import ArgumentError, OracleError, ZomirrorError
from zomirror.features.tabular.value_words import shown_both
from zomirror.report.page import render
from zomirror.report.panels import panels
from zomirror.schema.explainer import Explainer
from zomirror.schema.response import response
from zomirror.studio.material import Material, png_of

COMPARED = 4
"""Answers that are kept to be compared; a further one replaces the oldest."""
NAME = 80
"""Characters of the name of an input."""
PAUSE = 0.15
"""Seconds between two pictures of the best answer so far."""


@dataclass(slots=True, eq=False)
class Session:
    """One model, what can be picked, one search at a time, and the answers."""

    explainer: Explainer
    material: Material
    title: str = "model"
    answers: dict[int, Explanation] = field(default_factory=dict)
    """The answers that are compared, oldest first."""
    progress: dict[str, Any] = field(default_factory=dict)
    """What is known of the search that runs, or ran last; `step` counts its changes."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _count: int = 0

    @property
    def running(self) -> bool:
        """Whether a search is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, request: object) -> int:
        """Begin a search, and return its number; ArgumentError if one is under way or the request is not readable."""
        if not isinstance(request, Mapping) or not isinstance(request.get("parameters", {}), Mapping):
            raise ArgumentError("expected an object with input and parameters, got something else")
        name, given = self.material.read(request.get("input"))
        if isinstance(request.get("name"), str):
            name = request["name"][:NAME]
        with self._lock:
            if self.running:
                raise ArgumentError("expected no search under way, got one: stop it first")
            self._count += 1
            self._stop.clear()
            self.progress = {"search": self._count, "step": 0, "state": "running", "nfev": 0}
            parameters = dict(request.get("parameters", {}))
            self._thread = threading.Thread(target=self._search, args=(name, given, parameters), daemon=True)
            self._thread.start()
            return self._count

    def stop(self) -> None:
        """Ask the search to end with the best answer so far."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Wait for the search to end, for instance before the server does."""
        if self._thread is not None:
            self._thread.join(seconds)

    def forget(self, number: int) -> None:
        """Compare this answer no longer."""
        with self._lock:
            self.answers.pop(number, None)

    def documents(self) -> list[dict[str, Any]]:
        """The answers that are compared, as the page shows them."""
        with self._lock:
            kept = list(self.answers.items())
        return [described(one) | {"number": number, "input": one.settings["input"]} for number, one in kept]

    def report(self) -> str:
        """The page of the answers that are compared."""
        with self._lock:
            kept = list(self.answers.values())
        return render(kept, title=f"Answers of {self.title}")

    def _search(self, name: str, given: Any, parameters: dict[str, Any]) -> None:
        start, drawn = time.perf_counter(), [0.0, math.inf]

        def watch(glimpse: Glimpse) -> None:
            known: dict[str, Any] = {"nfev": glimpse.nfev, "seconds": round(time.perf_counter() - start, 1)}
            now, best = time.perf_counter(), glimpse.best
            if best < drawn[1] and now - drawn[0] >= PAUSE:
                drawn[:] = [now, best]
                known |= {"best": best, "seen": self._seen(glimpse)}
            self._tell(**known)
            if self._stop.is_set():
                raise StopIteration

        try:
            found = self.explainer.explain(given, parameters, watch)
        except ZomirrorError as error:
            self._tell(state="failed", error=str(error), partial=self._partial(name, error))
        except Exception as error:  # noqa: BLE001 - a model may raise anything; the page must learn of it
            self._tell(state="failed", error=f"{type(error).__name__}: {error}")
        else:
            self._tell(state="done", answers=[self._kept(name, one) for one in found], nfev=found[0].nfev)

    def _partial(self, name: str, error: ZomirrorError) -> list[dict[str, Any]]:
        """What was found before the model failed."""
        found = error.result if isinstance(error, OracleError) else None
        return [self._kept(name, found)] if isinstance(found, Explanation) and found.valid else []

    def _kept(self, name: str, one: Explanation) -> dict[str, Any]:
        """Keep an answer to be compared, and describe it."""
        with self._lock:
            number = max(self.answers, default=0) + 1
            number = max(number, self.progress.get("last", 0) + 1)
            one = replace(one, others=(), settings={"input": name, "model": self.title} | one.settings)
            self.answers[number] = one
            self.progress["last"] = number
            while len(self.answers) > COMPARED:
                del self.answers[next(iter(self.answers))]
        return described(one) | {"number": number, "input": name}

    def _tell(self, **known: Any) -> None:
        self.progress = self.progress | known | {"step": self.progress["step"] + 1}

    def _seen(self, glimpse: Glimpse) -> dict[str, Any]:
        """The best answer so far: a picture, a text or the columns that change."""
        after = glimpse.perturbed
        if isinstance(after, str):
            return {"text": after}
        if isinstance(after, np.ndarray) and self.material.pictured:
            return {"picture": png_of(self.material.raw(after, self.explainer, glimpse))}
        return {"changes": [(name, *shown_both(before, new)) for name, before, new in glimpse.changes[:12]]}


def described(one: Explanation) -> dict[str, Any]:
    """An answer for a card of the page."""
    found = response(one)
    found["changes"] = [(name, *shown_both(before, after)) for name, before, after in one.changes[:40]]
    found["perturbed"] = None
    names = [one.name_of(i) for i in range(one.scores_before.size)]
    found["classes"] = names
    picture = picture_in(one)
    if picture is not None:
        drawn = panels(one, picture)
        found["panels"] = {"original": drawn.original, "overlay": drawn.overlay, "seen": drawn.seen}
    found["marked"] = marked(one) if is_text(one) else []
    return found
