"""Ctrl-C and SIGTERM: the first signal asks for a clean stop, the second acts at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_active: Stop | None = None


class Stop:
    """A flag that is true once a signal asked to stop; check it between batches."""

    __slots__ = ("_before", "requested")

    def __init__(self) -> None:
        self.requested: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.requested is not None

    def _install(self) -> None:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            # An ignored signal (nohup, a background job) stays ignored; None is a handler not set from Python.
            if before not in (signal.SIG_IGN, None):
                self._before[number] = before
                signal.signal(number, self._receive)

    def _restore(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._receive:  # a handler installed later is left alone
                signal.signal(number, before)
        self._before = {}

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.requested = signal.Signals(number)
        self._restore()  # the next signal has its former effect


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """A `Stop` that the first SIGINT or SIGTERM sets; the former handlers are restored at the end.

    Python delivers signals to the main thread only, so another thread gets the flag of the main thread, or one that is
    never set. Nested contexts share the outer flag, so that one signal stops all of them.
    """
    global _active
    if _active is not None or threading.current_thread() is not threading.main_thread():
        yield Stop() if _active is None else _active
        return
    stop = Stop()
    stop._install()
    _active = stop
    try:
        yield stop
    finally:
        _active = None
        stop._restore()
