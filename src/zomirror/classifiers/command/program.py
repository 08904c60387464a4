"""A program as a classifier, or as a function to minimise: it reads rows and writes numbers (see framing)."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from zomirror.checks import choice, positive, positive_integer
from zomirror.classifiers.command.child import Child, DiedError
from zomirror.classifiers.command.framing import FRAMINGS
from zomirror.classifiers.protocol import MalformedError, ask, check_batch_rows
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Framing = Literal["npy", "lines"]
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
"""The variables that every program gets, where they are set."""


def command_classifier(
    args: Sequence[str],
    *,
    framing: Framing = "npy",
    persistent: bool = True,
    batch_rows: int | None = None,
    timeout: float = 60.0,
    environment: Sequence[str] = (),
    cwd: str | None = None,
    max_bytes: int = 2**24,
) -> Command:
    """Return the classifier that the program `args` is: rows in, rows of class scores out.

    `args` is a list, given to the system as it is: there is no shell. A `persistent` program is started once,
    and asked batch by batch until its input ends; any other is started for every batch. After `timeout`
    seconds for a batch (the start included) it is killed with its process group, and the next batch starts a
    new one. It sees the variables of ENVIRONMENT and those named in `environment`.
    """
    program = Program(tuple_of(args), framing, persistent, timeout, tuple(environment), cwd, max_bytes)
    return Command(program, batch_rows)


def command_function(
    args: Sequence[str],
    *,
    framing: Framing = "npy",
    persistent: bool = True,
    timeout: float = 60.0,
    environment: Sequence[str] = (),
    cwd: str | None = None,
    max_bytes: int = 2**24,
) -> CommandFunction:
    """Return the function that the program `args` is: rows in, one number per row out; see command_classifier."""
    return CommandFunction(Program(tuple_of(args), framing, persistent, timeout, tuple(environment), cwd, max_bytes))


def tuple_of(args: Sequence[str]) -> tuple[str, ...]:
    """Return `args` as a tuple, unless it is a line for a shell."""
    if isinstance(args, (str, bytes)):
        raise ArgumentTypeError(f"expected args a list of arguments, got {args!r}: there is no shell, split it")
    return tuple(args)


class _Slot:
    """The running program, if there is one, and the lock of whoever is asking it."""

    __slots__ = ("child", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: Child | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program and how it is asked; a pickle holds this, and the program is started anew where it is opened."""

    args: tuple[str, ...]
    framing: Framing = "npy"
    persistent: bool = True
    timeout: float = 60.0
    environment: tuple[str, ...] = ()
    cwd: str | None = None
    max_bytes: int = 2**24
    _slot: _Slot = field(init=False, repr=False, compare=False, default_factory=_Slot)

    def __post_init__(self) -> None:
        choice("framing", self.framing, tuple(FRAMINGS))
        positive("timeout", self.timeout)
        positive_integer("max_bytes", self.max_bytes)
        if not self.args or not all(isinstance(one, str) and "\0" not in one for one in self.args):
            raise ArgumentError(f"expected args a list of strings, got {self.args!r}: give program and arguments")
        if self.cwd is None and shutil.which(self.args[0]) is None:
            raise ArgumentError(f"expected a program to run, found none at {self.args[0]!r}: check the path")

    def __reduce__(self) -> tuple[type[Program], tuple[object, ...]]:
        fields = (self.args, self.framing, self.persistent, self.timeout, self.environment, self.cwd, self.max_bytes)
        return Program, fields

    def ask(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Return the array that the program answers to `batch`, or raise OracleError with its last words."""
        encode, begin = FRAMINGS[self.framing]
        message, answer = encode(batch), begin(len(batch), self.max_bytes)
        name = os.path.basename(self.args[0])  # noqa: PTH119
        with self._slot.lock:
            child = self._start()
            try:
                child.exchange(message, answer, time.monotonic() + self.timeout, last=not self.persistent)
                values = answer.values()
            except BaseException as error:
                if isinstance(error, DiedError):
                    child.hear_out()
                child.end()  # whatever it was: who was not heard to the end cannot be asked the next thing
                self._slot.child = None
                if isinstance(error, TimeoutError):
                    fault = f"no answer in {self.timeout:g} s, so it was ended"
                elif isinstance(error, (DiedError, MalformedError)):
                    fault = str(error)
                else:
                    raise
            else:
                if not self.persistent:
                    self._slot.child = None
                return values
        raise OracleError(f"the program {name!r} failed on {len(batch)} rows: {fault} ({child.last_words()})")

    def close(self) -> None:
        """End the program if it runs; the next batch starts it again."""
        with self._slot.lock:
            child, self._slot.child = self._slot.child, None
            if child is not None and child.owner == os.getpid():
                child.close()

    def _start(self) -> Child:
        child = self._slot.child
        if child is not None and child.owner == os.getpid():  # a fork must not talk over its parent's pipes
            return child
        allowed = {name: os.environ[name] for name in (*ENVIRONMENT, *self.environment) if name in os.environ}
        try:
            self._slot.child = child = Child(self.args, allowed, self.cwd)
        except OSError as error:
            raise OracleError(f"the program {self.args[0]!r} cannot be started: {error}") from error
        return child


@dataclass(frozen=True, slots=True)
class Command:
    """Asks a program for class scores; made by command_classifier, and a context manager that ends it."""

    program: Program
    batch_rows: int | None = None

    def __post_init__(self) -> None:
        check_batch_rows(self.batch_rows)

    def __call__(self, batch: NDArray[Any], /) -> NDArray[np.floating[Any]]:
        """Return the scores of `batch`."""
        return ask(self.program.ask, batch, self.batch_rows)

    def close(self) -> None:
        """End the program if it runs; the next batch starts it again."""
        self.program.close()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class CommandFunction:
    """Asks a program for one number per row; made by command_function, and a context manager that ends it."""

    program: Program

    def __call__(self, batch: NDArray[Any], /) -> NDArray[Any]:
        """Return the values of the rows of `batch`."""
        values = self.program.ask(batch)
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values

    def close(self) -> None:
        """End the program if it runs; the next batch starts it again."""
        self.program.close()

    def __enter__(self) -> CommandFunction:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
