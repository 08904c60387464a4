"""Ctrl-C and SIGTERM: the first asks for a clean stop, the second acts at once."""

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
    """Whether a stop was asked for; look at it between batches."""

    __slots__ = ("_before", "requested")

    def __init__(self) -> None:
        self.requested: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __bool__(self) -> bool:
        return self.requested is not None

    def _install(self) -> None:
        for number in _SIGNALS:
            before = signal.getsignal(number)
            # ignored (nohup, a background job) stays ignored; None is a handler that Python does not know
            if before not in (signal.SIG_IGN, None):
                self._before[number] = before
                signal.signal(number, self._receive)

    def _restore(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._receive:  # someone else's later handler is left alone
                signal.signal(number, before)
        self._before = {}

    def _receive(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.requested = signal.Signals(number)
        self._restore()  # the next one does what it would have done without us


@contextlib.contextmanager
def stop_on_signal() -> Iterator[Stop]:
    """Give a `Stop` that the first SIGINT or SIGTERM sets; the handlers are put back at the end.

    Signals reach the main thread only: another thread is given the flag of the main thread, or one that is never set.
    Inside another such context the outer flag is given, so that one signal stops all of them.
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
