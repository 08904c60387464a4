"""One call of a function on a worker, and its outcome.

Both are pickled only to cross to another process, by value where the name would not be found there. A process
unpickles the function once, so that a model's session or a started program serves many units.
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
_opened: dict[
    str, Callable[[Any], Any]
] = {}  # the last _KEPT functions of this process, by the SHA-256 of their pickle
_seen: dict[str, None] = {}  # the last _REMEMBERED tickets, in order of arrival
_KEPT = 4
_REMEMBERED = 10_000


def this_process() -> str:
    """A name that no other process has, not even a fork of this one or a later process of the same number."""
    return f"{os.getpid()}-{_life}"


class Work:
    """The function of all units, pickled once."""

    __slots__ = ("_packed", "function")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self._packed: tuple[str, bytes] | None = None

    def packed(self) -> tuple[str, bytes]:
        """The SHA-256 of the pickled function, and its bytes."""
        if self._packed is None:
            try:
                data = _dumps(self.function)
            except Exception as error:
                raise ArgumentTypeError(
                    f"expected a function that can be pickled, got {type(error).__name__}: {error}: "
                    "define it in a module, without open files, locks and sessions in what it refers to"
                ) from error
            self._packed = (hashlib.sha256(data).hexdigest(), data)
        return self._packed


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One task, to be run once by its `ticket`, and by `process` only if that is given.

    Dask runs a task again by itself when a worker is lost; the ticket and the process refuse that second run, which
    would spend queries twice.
    """

    work: Work
    task: Any
    ticket: str
    process: str | None = None

    def __reduce__(self) -> tuple[Callable[..., Unit], tuple[Any, ...]]:
        return _arrive, (*self.work.packed(), _dumps(self.task), self.ticket, self.process)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a unit returned or raised, or that it was refused."""

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
    """Call the function in this process, unless the unit has run before or belongs to another process."""
    with _lock:
        if unit.ticket in _seen or unit.process not in (None, this_process()):
            return Outcome(refused=True)
        _seen[unit.ticket] = None
        if len(_seen) > _REMEMBERED:  # a second run comes soon after the first
            del _seen[next(iter(_seen))]
    try:
        return Outcome(unit.work.function(unit.task))
    except Exception as error:  # noqa: BLE001  whatever it is, the caller decides
        return Outcome(error=error)


def _dumps(thing: object) -> bytes:
    try:
        import cloudpickle  # a dependency of loky and Dask; it pickles functions of an interactive session
    except ImportError:
        return pickle.dumps(thing)
    data: bytes = cloudpickle.dumps(thing)
    return data


def _arrive(name: str, function: bytes, task: bytes, ticket: str, process: str | None) -> Unit:
    """Unpickle a unit in its worker; if that fails, the unit raises the reason when it runs."""
    try:
        with _lock:
            if name not in _opened:
                while len(_opened) >= _KEPT:
                    del _opened[next(iter(_opened))]
                _opened[name] = pickle.loads(function)  # noqa: S301  from the process that started the worker
            known = _opened[name]
        return Unit(Work(known), pickle.loads(task), ticket, process)  # noqa: S301
    except Exception as error:  # noqa: BLE001  any module may be missing there
        return Unit(Work(_unopened), f"{type(error).__name__}: {error}", ticket, process)


def _unopened(reason: str) -> None:
    raise WorkerError(f"a worker could not unpickle its task ({reason}): install the same packages and modules there")


def _return(data: bytes, said: str) -> Outcome:
    """Unpickle an outcome in the calling process; if that fails, a WorkerError describes it."""
    if data:
        try:
            value, error, refused = pickle.loads(data)  # noqa: S301  from a worker that runs what we send
            return Outcome(value, error, refused)
        except Exception as error:  # noqa: BLE001  not every exception can be unpickled
            said = f"{said} (its outcome could not be unpickled here: {type(error).__name__})"
    return Outcome(error=WorkerError(f"the outcome of a worker's task cannot be sent back: {said}"))
