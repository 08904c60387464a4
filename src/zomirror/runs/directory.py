"""A durable run: a directory that survives its process; opening it again resumes the run.

    with RunDirectory.open(path, settings, arrays={"x0": x0}, max_sent=40_000) as run:
        if (stored := run.result()) is not None:
            return stored                           # nothing left to do
        state = run.restore()                       # the last checkpoint, or None: start from the beginning
        while ...:
            values = run.take(rows)                 # values that an earlier process recorded
            if len(values) < rows:                  # the rest is sent, and recorded before and after
                run.begin(rows - len(values))
                run.values(fun(the rest))
            if run.checkpoint_due:
                run.checkpoint(state)
        run.finish(summary, arrays)

The values returned by `take`, then those recorded by `values`, form one stream of rows: the trajectory. Rows off the
trajectory (the final measurement of a result, which a run with a larger budget would not make there) go through
`aside`, `begin(..., aside=True)` and `values`; they are recalled only at the same position of the trajectory.

Files: config.json and arrays.npz (written once), journal.bin, checkpoint.npz, result.json and result.npz, lock.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Self

from zomirror.errors import RunError
from zomirror.runs import checkpoint as checkpoints
from zomirror.runs import configuration as configs
from zomirror.runs import stored_result as results
from zomirror.runs.checkpoint import Checkpoint
from zomirror.runs.configuration import read_journal
from zomirror.runs.folder import Folder, check_path
from zomirror.runs.journal import Journal, Pace
from zomirror.runs.lock import Lock
from zomirror.runs.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from zomirror.runs.configuration import Config
    from zomirror.runs.document import Json
    from zomirror.runs.scan import Scan
    from zomirror.runs.stored_result import Stored

_SELDOM = 1.0  # least time between two checkpoints, in seconds: about what a resume has to repeat
_SHARE = 50  # checkpoints take at most 1 / _SHARE of the time


class RunDirectory:
    """A run that this process owns, from `open` to `close`."""

    def __init__(self, folder: Folder, lock: Lock, config: Config, max_sent: int | None, pace: Pace | None) -> None:
        self._folder = folder
        self._lock = lock
        self._config = config
        self.notes: list[str] = []
        self._aside = False
        fd = folder.open_file(configs.JOURNAL, os.O_RDWR)
        try:
            what = folder.where(configs.JOURNAL)
            self._checkpoint = self._glance()
            found = read_journal(fd, folder, config, place=self._checkpoint.place if self._checkpoint else None)
            self._check_checkpoint(found)
            self._replay = Replay(fd, what, found)
            session = lock.owner.write()
            self._journal = Journal(fd, what, found, session=session, max_sent=max_sent, pace=pace)
        except BaseException:
            os.close(fd)
            raise
        if found.dropped:
            self.notes.append(f"{found.dropped:,} bytes of an unfinished write at the end of {what} were left out")
        self._checkpointed = time.monotonic()
        self._cost = 0.0

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        settings: Mapping[str, object] | None = None,
        *,
        arrays: Mapping[str, ArrayLike] | None = None,
        max_sent: int | None = None,
        pace: Pace | None = None,
    ) -> Self:
        """Create a run, or resume it if the configuration equals the stored one except for the free keys.

        Without settings the run must exist, and its own are used. Whatever prevents writing is reported here or at the
        first reservation: before the first query.
        """
        where = check_path(path)
        folder = Folder.open(where) if settings is None else Folder.make(where)
        lock = None
        try:
            lock = Lock.acquire(folder)
            if settings is None:
                stored = configs.read(folder)
                if stored is None:
                    raise RunError(f"directory {str(where)!r} holds no run: give the settings to start one")
            else:
                stored = configs.settle(folder, "run", settings, arrays or {})
            return cls(folder, lock, stored, max_sent, pace)
        except BaseException:
            if lock is not None:
                lock.release()
            folder.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except RunError as trouble:
            if error is None:
                raise
            error.add_note(f"and the run could not be closed: {trouble}")  # the first error is the one raised

    def close(self) -> None:
        """End the session and release the lock; a batch in flight is lost. Closing twice is allowed."""
        try:
            if self._lock.held:
                self._journal.close()
            else:
                self._journal.abandon()
        finally:
            self._lock.release()
            self._folder.close()

    @property
    def path(self) -> Path:
        """The directory."""
        return self._folder.path

    @property
    def settings(self) -> dict[str, Json]:
        """The configuration as stored."""
        return self._config.settings

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the configuration as stored."""
        return self._config.load_arrays(self._folder)

    @property
    def position(self) -> int:
        """Rows of the trajectory whose values the algorithm has, from `take` or `values`."""
        return self._replay.position if self.replaying else self._journal.tally.position

    @property
    def replaying(self) -> bool:
        """Whether recorded values are left for `take`."""
        return self._replay.position < self._replay.recorded

    @property
    def used(self) -> int:
        """Queries whose values are recorded, over all sessions."""
        return self._journal.tally.used

    @property
    def asides(self) -> int:
        """Queries off the trajectory that earlier sessions recorded up to this position."""
        return self._replay.beside(self.position)

    @property
    def sent(self) -> int:
        """Queries sent, over all sessions; after a crash at least the true number."""
        return self._journal.tally.sent

    @property
    def lost(self) -> int:
        """Queries that were sent and will never be answered."""
        return self._journal.tally.lost

    def take(self, rows: int, points: int | None = None) -> NDArray[np.float64]:
        """The recorded values of the next `rows` rows, or of as many as are left.

        `points` is the checksum of the points to query now: RunError if the values are those of other points.
        """
        values = self._replay.take(rows, points)
        self._journal.expect(values.shape[1] if values.ndim == 2 else 0)
        return values

    def aside(self, rows: int, points: int | None = None) -> NDArray[np.float64] | None:
        """The values recorded off the trajectory at this position; None if there are none."""
        return self._replay.aside(rows, self.position, points)

    def affords(self, rows: int) -> bool:
        """Whether `rows` more rows stay within `max_sent`."""
        return self._journal.affords(rows)

    def begin(self, rows: int, *, aside: bool = False) -> None:
        """Record that `rows` rows are sent now; BudgetError, and no record, if they would exceed `max_sent`."""
        self._check_owner()
        if self.replaying and not aside:
            left = self._replay.recorded - self._replay.position
            raise RunError(f"{left:,} recorded values are left to take: nothing is sent that is already recorded")
        self._journal.begin(rows)
        self._aside = aside

    def resend(self, rows: int) -> None:
        """Record that `rows` rows of the batch in flight are sent again."""
        self._check_owner()
        self._journal.resend(rows)

    def values(self, values: ArrayLike, points: int = 0) -> None:
        """Record the values of the next rows in flight, with the checksum of their points."""
        self._check_owner()
        self._journal.values(values, points=points, beside=self.position if self._aside else None)

    def lose(self, reason: str) -> None:
        """Give up the batch in flight; `reason` is stored in the journal, so it must not contain a secret."""
        self._check_owner()
        self._journal.lose(reason)

    @property
    def checkpoint_due(self) -> bool:
        """Whether enough time has passed for a checkpoint to be worth its cost."""
        waited = time.monotonic() - self._checkpointed
        return not self.replaying and waited > max(_SELDOM, _SHARE * self._cost)

    def checkpoint(self, state: Mapping[str, object]) -> bool:
        """Save the state of the algorithm at this position; False if that failed, which is noted and harmless."""
        self._check_owner()
        tally = self._journal.tally
        if self.replaying or tally.open:
            return False
        started = time.monotonic()
        try:
            self._journal.sync()
            Checkpoint(self._config.run_id, self._journal.place).save(self._folder, state)
            return True
        except RunError as error:
            self.notes.append(f"no checkpoint was written: {error}")
            return False
        finally:
            self._checkpointed = time.monotonic()
            self._cost = self._checkpointed - started

    def restore(
        self, into: Callable[[dict[str, NDArray[Any]]], object] | None = None
    ) -> dict[str, NDArray[Any]] | None:
        """The state of the last good checkpoint, from where `take` continues; None to start from the beginning.

        `into` is called with the state and raises RunError if it does not fit: then all values are replayed.
        """
        if self._checkpoint is None or self._replay.position:
            return None
        try:
            state = self._checkpoint.load(self._folder)
            if into is not None:
                into(state)
        except RunError as error:
            self._set_aside(str(error))
            return None
        self._replay.skip(self._checkpoint.place)
        return state

    def result(self) -> Stored | None:
        """The stored result; None if there is none, or if the journal or a setting has changed since."""
        try:
            return results.read(self._folder, self._config, self._journal.tally.crc)
        except RunError as error:
            self.notes.append(f"the stored result cannot be used: {error}")
            return None

    def finish(self, summary: Mapping[str, object], arrays: Mapping[str, ArrayLike] | None = None) -> None:
        """End the session and store the result; nothing can be sent afterwards."""
        self._check_owner()
        self._journal.close()
        results.write(self._folder, self._config, self._journal.tally.crc, summary, arrays or {})

    def _check_owner(self) -> None:
        if not self._lock.held:
            raise RunError(f"run directory {str(self.path)!r} is closed here, or owned by the process that opened it")

    def _glance(self) -> Checkpoint | None:
        try:
            found = checkpoints.glance(self._folder)
        except RunError as error:
            self._set_aside(str(error))
            return None
        if found and found.run_id != self._config.run_id:
            self._set_aside(f"{self._folder.where(checkpoints.NAME)} belongs to another run")
            return None
        return found

    def _check_checkpoint(self, found: Scan) -> None:
        known = self._checkpoint
        if known is None:
            return
        if known.place.offset > found.end:
            raise RunError(
                f"{self._folder.where(configs.JOURNAL)} ends at byte {found.end:,}, but a checkpoint was made at byte "
                f"{known.place.offset:,}: recorded queries are missing. Restore the journal from a copy, "
                f"or start in another run_dir"
            )
        if found.start != known.place.offset:
            self._set_aside(f"{self._folder.where(checkpoints.NAME)} does not fit the journal")

    def _set_aside(self, reason: str) -> None:
        self._checkpoint = None
        self.notes.append(f"the checkpoint is not used, all values are replayed: {reason}")
