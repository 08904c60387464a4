"""Requests for explanations: read, queued, searched on a few threads, stopped at their deadlines, answered as JSON."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from zomirror.checks import positive, positive_integer, shown
from zomirror.contrast import Explanation
from zomirror.contrast.candidate import Glimpse
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError
from zomirror.schema.explainer import Explainer
from zomirror.schema.response import response

KEYS = ("instances", "parameters")
"""What a request may hold."""
INSTANCES = 16
"""More inputs in one request are refused."""


class RefusalError(Exception):
    """A request that gets a status, a sentence, and what was found before it failed."""

    def __init__(self, status: int, sentence: str, found: list[dict[str, Any]] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.found = status, sentence, found

    @property
    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        partial = {} if self.found is None else {"explanations": self.found}
        return {"error": self.sentence} | partial


@dataclass(slots=True, eq=False)
class Service:
    """Explains what requests ask for.

    At most `searches` run at a time and `waiting` requests wait; what arrives beyond is refused at once, so that memory
    stays bounded.
    """

    explainer: Explainer
    deadline: float = 60.0
    """The most seconds that a request may take, from its arrival."""
    searches: int = 4
    waiting: int = 128
    told: Callable[[Explanation], object] | None = None
    """Called with each explanation, for instance to count its queries."""
    under_way: int = 0
    """Requests that are waiting or searched."""
    _pool: ThreadPoolExecutor = field(init=False, repr=False)
    _closing: threading.Event = field(default_factory=threading.Event, repr=False)

    def __post_init__(self) -> None:
        positive("deadline", self.deadline)
        positive_integer("waiting", self.waiting)
        self._pool = ThreadPoolExecutor(positive_integer("searches", self.searches), "zomirror-search")

    async def answer(self, document: object) -> dict[str, Any]:
        """The answer to a request, {"explanations": [one for each instance]}; RefusalError for anything else."""
        instances, parameters, seconds = self._read(document)
        if self.under_way >= self.searches + self.waiting:
            raise RefusalError(429, f"expected fewer requests at once, {self.under_way} are waiting: try again later")
        until = time.monotonic() + seconds
        self.under_way += 1
        try:
            search = self._pool.submit(self._explain, instances, parameters, until)
            return await asyncio.wrap_future(search)
        finally:
            self.under_way -= 1

    def close(self) -> None:
        """Take no further searches, and end those under way after their next batch."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, document: object) -> tuple[list[Any], dict[str, Any], float]:
        """The inputs, the parameters of explain(), and the seconds that the answer may take."""
        if not isinstance(document, Mapping) or "instances" not in document:
            raise RefusalError(400, 'expected an object {"instances": [...], "parameters": {...}}, got something else')
        if unknown := [str(key) for key in document if key not in KEYS]:
            raise RefusalError(400, f"expected only {' and '.join(KEYS)}, got {shown(unknown[0], 60)}: leave it out")
        instances, parameters = document["instances"], document.get("parameters", {})
        if not isinstance(instances, list) or not 1 <= len(instances) <= INSTANCES:
            raise RefusalError(400, f"expected instances as a list of 1 to {INSTANCES} inputs")
        if not isinstance(parameters, Mapping):
            raise RefusalError(400, f"expected parameters as an object, got {type(parameters).__name__}")
        rest = dict(parameters)
        try:
            seconds = positive("deadline", rest.pop("deadline", self.deadline))
        except (ArgumentError, ArgumentTypeError) as error:
            raise RefusalError(400, str(error)) from None
        if seconds > self.deadline:
            raise RefusalError(400, f"expected deadline <= {self.deadline:g} seconds, which is the most here")
        return instances, rest, seconds

    def _explain(self, instances: list[Any], parameters: dict[str, Any], until: float) -> dict[str, Any]:
        """Explain one instance after the other; what was found before a failure is kept."""
        found: list[dict[str, Any]] = []

        def watch(_: Glimpse) -> None:
            if time.monotonic() > until or self._closing.is_set():
                raise StopIteration

        for given in instances:
            if time.monotonic() > until:
                raise RefusalError(503, "the deadline has passed before a search could begin: try again later", found)
            try:
                answers = self.explainer.explain(given, parameters, watch)
            except (ArgumentError, ArgumentTypeError) as error:
                raise RefusalError(400, str(error), found or None) from None
            except OracleError as error:
                raise RefusalError(503, f"the model failed: {error}", found + self._partial(error)) from None
            self._count(answers)
            found.append(_document(answers))
        return {"explanations": found}

    def _count(self, answers: list[Explanation]) -> None:
        if self.told is not None:
            self.told(answers[0])  # the others are of the same search

    def _partial(self, error: OracleError) -> list[dict[str, Any]]:
        """What was known when the model failed."""
        if not isinstance(error.result, Explanation):
            return []
        self._count([error.result])
        return [_document([error.result])]


def _document(answers: list[Explanation]) -> dict[str, Any]:
    """The best answer, and the others in it."""
    first, *others = [response(one) for one in answers]
    return first | ({"others": others} if others else {})
