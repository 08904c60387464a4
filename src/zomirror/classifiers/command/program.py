"""A program as a classifier or as a function to minimise: it reads rows and writes numbers (see framing.py)."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from zomirror.checks import choice, flag, positive, positive_integer, shown, text
from zomirror.classifiers.command.child import Child, DiedError
from zomirror.classifiers.command.framing import FRAMINGS
from zomirror.classifiers.protocol import MalformedError, ask, check_batch_rows
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Framing = Literal["npy", "lines"]
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
"""The environment variables that every program gets, if they are set."""


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
    """Return a classifier that asks a program: rows in, rows of class scores out.

    Parameters
    ----------
    args : sequence of str
        The program and its arguments; no shell is used.
    framing : {"npy", "lines"}
        The encoding of batches and answers: arrays in NumPy's .npy format, or one line of numbers per row.
    persistent : bool
        Whether the program is started once and answers batch after batch until its stdin ends; else it is started
        for every batch.
    batch_rows : int, optional
        The largest number of rows of one batch.
    timeout : float
        Seconds for a batch, including the start. Then the program is killed with all the processes of its group, on
        Linux also with those that it made daemons, and the next batch starts a new one.
    environment : sequence of str
        Names of environment variables that the program sees, besides PATH, HOME, TMPDIR, TZ, LANG, LC_ALL, LC_CTYPE.
    cwd : str, optional
        Its working directory.
    max_bytes : int
        The largest size of an answer.
    """
    program = Program(tuple_of(args), framing, persistent, timeout, names_of(environment), cwd, max_bytes)
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
    """Return a function that asks a program: rows in, one number per row out.

    Parameters
    ----------
    args, framing, persistent, timeout, environment, cwd, max_bytes
        As for `command_classifier`.
    """
    return CommandFunction(Program(tuple_of(args), framing, persistent, timeout, names_of(environment), cwd, max_bytes))


def tuple_of(args: Sequence[str]) -> tuple[str, ...]:
    """Return `args` as a tuple; refuse a single string."""
    remedy = "no shell is used, split it into arguments" if isinstance(args, (str, bytes)) else "give a list"
    found = None if isinstance(args, (str, bytes)) else strings(args)
    if found is None:
        raise ArgumentTypeError(f"expected args to be a list of strings, got {shown(args)}: {remedy}")
    return found


def strings(value: object) -> tuple[str, ...] | None:
    """The items of a list, a tuple or another sequence; None if it is none."""
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else None


def names_of(environment: Sequence[str]) -> tuple[str, ...]:
    """Return the names of environment variables as a tuple; what is refused is not shown, as it may be a value."""
    found = strings(environment)
    if found is None:
        raise ArgumentTypeError(
            f"expected environment to be a list of names of variables, got {type(environment).__name__} (not shown)"
        )
    return found


class _Slot:
    """The running program, if there is one, and the lock that gives it to one thread at a time."""

    __slots__ = ("child", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: Child | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A program and how it is asked. Unpickled in another process, it starts a program of its own."""

    args: tuple[str, ...]
    framing: Framing = "npy"
    persistent: bool = True
    timeout: float = 60.0
    environment: tuple[str, ...] = ()
    cwd: str | None = None
    max_bytes: int = 2**24
    _slot: _Slot = field(init=False, repr=False, compare=False, default_factory=_Slot)

    def __post_init__(self) -> None:
        if not hasattr(os, "killpg"):
            raise ArgumentError(
                "expected no program on this system, because it has no process groups that could be ended after a "
                "deadline: run on Linux or macOS, or give a function"
            )
        choice("framing", self.framing, tuple(FRAMINGS))
        positive("timeout", self.timeout)
        positive_integer("max_bytes", self.max_bytes)
        flag("persistent", self.persistent)
        if not self.args or not all(isinstance(one, str) and "\0" not in one for one in self.args):
            raise ArgumentError(
                f"expected args to be a list of strings, got {shown(self.args)}: give program and arguments"
            )
        if not all(isinstance(one, str) for one in self.environment):
            raise ArgumentTypeError("expected environment to hold names of environment variables (not shown)")
        if self.cwd is not None and "\0" in text("cwd", self.cwd):
            raise ArgumentError("expected cwd to be a directory, got a path with a zero byte")
        if self.cwd is None and shutil.which(self.args[0]) is None:
            raise ArgumentError(f"expected a program to run, found none at {self.args[0]!r}: check the path")

    def __reduce__(self) -> tuple[type[Program], tuple[object, ...]]:
        fields = (self.args, self.framing, self.persistent, self.timeout, self.environment, self.cwd, self.max_bytes)
        return Program, fields

    def ask(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Return the program's answer to `batch`; OracleError holds the end of its stderr."""
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
                child.end()  # after any error: an unread answer would be taken for the next one
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
        if child is not None and child.owner == os.getpid():  # a forked process must not use its parent's pipes
            return child
        allowed = {name: os.environ[name] for name in (*ENVIRONMENT, *self.environment) if name in os.environ}
        try:
            self._slot.child = child = Child(self.args, allowed, self.cwd)
        except OSError as error:
            raise OracleError(f"the program {self.args[0]!r} cannot be started: {error}") from error
        return child


@dataclass(frozen=True, slots=True)
class Command:
    """A program as a classifier, made by command_classifier; as a context manager it ends the program."""

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
    """A program as a function, made by command_function; as a context manager it ends the program."""

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
