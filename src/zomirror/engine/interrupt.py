"""Ctrl-C and SIGTERM: the first signal asks for a clean stop, the second acts at once.

The engine looks at the flag between batches, so a batch in flight is answered and recorded first. A search that asks
for nothing more is not reached that way: if it goes on computing for PATIENCE seconds after the signal, Interrupted is
raised in it, wherever it is.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

PATIENCE = 5.0
"""Seconds after a signal in which a search must ask for its next batch: half of the 10 s that containers are given
between SIGTERM and SIGKILL."""
_POLL = 0.1  # seconds between two looks of the watch
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_active: Stop | None = None


class Interrupted(Exception):  # noqa: N818 - not an error
    """Raised in a search that a signal asked to stop.

    With `between` it waits for an answer, and its state is whole. Else it was computing: its state may be half changed
    and must not be saved.
    """

    def __init__(self, *, between: bool = True) -> None:
        super().__init__("a signal asked to stop")
        self.between = between


class Under:
    """How many of one kind of thing are under way: a context that counts."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *error: object) -> None:
        self.count -= 1


computing = Under()
"""Searches that compute, from an answer to their next request."""
in_flight = Under()
"""Batches from their sending to their record: only a second signal breaks them off."""


class Stop:
    """A flag that is true once a signal asked to stop; check it between batches."""

    __slots__ = ("_before", "_overdue", "_seen", "_signals", "requested")

    def __init__(self, signals: tuple[signal.Signals, ...] = SIGNALS) -> None:
        self.requested: signal.Signals | None = None
        self._signals = signals
        self._before: dict[signal.Signals, Any] = {}
        self._seen = threading.Event()
        """The flag was found true, or the handlers are restored: nothing is left to watch."""
        self._overdue = False
        """The next signal is from the watch."""

    def __bool__(self) -> bool:
        if self.requested is None:
            return False
        self._seen.set()
        if threading.current_thread() is threading.main_thread():
            self._restore()  # the next signal has its former effect
        return True

    def _install(self) -> None:
        for number in self._signals:
            before = signal.getsignal(number)
            # An ignored signal (nohup, a background job) stays ignored; None is a handler not set from Python.
            if before not in (signal.SIG_IGN, None):
                self._before[number] = before
                signal.signal(number, self._receive)

    def _restore(self) -> None:
        self._seen.set()
        for number, before in self._before.items():
            if signal.getsignal(number) == self._receive:  # a handler installed later is left alone
                signal.signal(number, before)
        self._before = {}

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.requested is None:
            self.requested = signal.Signals(number)
            threading.Thread(target=self._watch, daemon=True).start()
        elif not self._overdue:  # a second signal has its former effect
            self._restore()
            signal.raise_signal(number)
        elif self._stuck and not self._seen.is_set():
            self._restore()
            raise Interrupted(between=False)

    @property
    def _stuck(self) -> bool:
        return computing.count > 0 and in_flight.count == 0

    def _watch(self) -> None:
        """Interrupt the search if it computes for PATIENCE seconds and does not look at the flag."""
        since = time.monotonic()
        while not self._seen.wait(_POLL):
            if not self._stuck:
                since = time.monotonic()
            elif time.monotonic() - since > PATIENCE:
                self._overdue = True
                _thread.interrupt_main(self.requested or signal.SIGINT)  # calls _receive in the main thread
                self._seen.wait(_POLL)
                self._overdue = False


@contextlib.contextmanager
def stop_on_signal(signals: tuple[signal.Signals, ...] = SIGNALS) -> Iterator[Stop]:
    """A `Stop` that the first of these signals sets; the former handlers are restored at the end.

    Python delivers signals to the main thread only, so another thread gets the flag of the main thread, or one that is
    never set. Nested contexts share the outer flag, so that one signal stops all of them.
    """
    global _active
    if _active is not None or threading.current_thread() is not threading.main_thread():
        yield Stop() if _active is None else _active
        return
    stop = Stop(signals)
    stop._install()
    _active = stop
    try:
        yield stop
    finally:
        _active = None
        stop._restore()
