"""What goes to a worker and what comes back: one call of one function, and its outcome.

Both are pickled only where they cross to another process, by value where a name would not be found there. The
function is opened once in each process, so that a model's session or a started program serves many units.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zomirror.errors import ArgumentTypeError, WorkerError

_lock = threading.Lock()
_life = uuid.uuid4().hex
_opened: dict[str, Callable[[Any], Any]] = {}
_seen: dict[str, None] = {}  # in the order they came
_KEPT = 4
_REMEMBERED = 10_000


def this_process() -> str:
    """A name that no other process has, neither a fork of this one nor whoever gets its number after it."""
    return f"{os.getpid()}-{_life}"


class Work:
    """The function of all units, pickled once."""

    __slots__ = ("_packed", "function")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self._packed: tuple[str, bytes] | None = None

    def packed(self) -> tuple[str, bytes]:
        """A name for the function's bytes, and the bytes."""
        if self._packed is None:
            try:
                data = _dumps(self.function)
            except Exception as error:
                raise ArgumentTypeError(
                    f"expected a function that other processes can open, got {type(error).__name__}: {error}: "
                    "define it in a module, without open files, locks and sessions in what it refers to"
                ) from error
            self._packed = (hashlib.sha256(data).hexdigest(), data)
        return self._packed


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One task; `ticket` lets it in once, and, where `process` is given, into that process only.

    Some engines run a task again by themselves when a worker is lost. What such a second run may spend is not
    theirs to decide.
    """

    work: Work
    task: Any
    ticket: str
    process: str | None = None

    def __reduce__(self) -> tuple[Callable[..., Unit], tuple[Any, ...]]:
        return _arrive, (*self.work.packed(), _dumps(self.task), self.ticket, self.process)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a unit returned or raised; or neither, when it was not let in."""

    value: Any = None
    error: Exception | None = None
    refused: bool = False

    @property
    def result(self) -> Any:
        """The value, or the exception itself."""
        return self.value if self.error is None else self.error

    def __reduce__(self) -> tuple[Callable[..., Outcome], tuple[Any, ...]]:
        said = f"{type(self.error).__name__}: {self.error}"
        try:
            data = _dumps((self.value, self.error, self.refused))
        except Exception as error:  # noqa: BLE001  a unit may return anything
            said = said if self.error else f"its result cannot be sent: {type(error).__name__}: {error}"
            data = b""
        return _return, (data, said)


def run_unit(unit: Unit) -> Outcome:
    """Call the function in the process that got the unit."""
    with _lock:
        if unit.ticket in _seen or unit.process not in (None, this_process()):
            return Outcome(refused=True)
        _seen[unit.ticket] = None
        if len(_seen) > _REMEMBERED:  # a second run comes soon after the first, if at all
            del _seen[next(iter(_seen))]
    try:
        return Outcome(unit.work.function(unit.task))
    except Exception as error:  # noqa: BLE001  whatever it is, the caller decides
        return Outcome(error=error)


def _dumps(thing: object) -> bytes:
    try:
        import cloudpickle  # it comes with loky and with Dask, and knows what was typed into a session
    except ImportError:
        return pickle.dumps(thing)
    data: bytes = cloudpickle.dumps(thing)
    return data


def _arrive(name: str, function: bytes, task: bytes, ticket: str, process: str | None) -> Unit:
    """The unit in its worker; one that cannot be opened there says so when it runs."""
    try:
        with _lock:
            if name not in _opened:
                while len(_opened) >= _KEPT:
                    del _opened[next(iter(_opened))]
                _opened[name] = pickle.loads(function)  # noqa: S301  from the process that started the worker
            known = _opened[name]
        return Unit(Work(known), pickle.loads(task), ticket, process)  # noqa: S301
    except Exception as error:  # noqa: BLE001  anything may be missing there
        return Unit(Work(_unopened), f"{type(error).__name__}: {error}", ticket, process)


def _unopened(reason: str) -> None:
    raise WorkerError(f"a worker could not open its task ({reason}): give it the same packages and modules")


def _return(data: bytes, said: str) -> Outcome:
    """The outcome where it was asked for; one that cannot be opened here is told in words."""
    if data:
        try:
            value, error, refused = pickle.loads(data)  # noqa: S301  from a worker that runs what we send
            return Outcome(value, error, refused)
        except Exception as error:  # noqa: BLE001  an exception may not know how to be made again
            said = f"{said} (its outcome could not be opened here: {type(error).__name__})"
    return Outcome(error=WorkerError(f"a worker's task ended with what cannot be brought back: {said}"))
