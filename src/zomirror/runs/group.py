"""Several runs in one directory (explain_many, a grid of experiments), each in a named sub-directory.

Each run is durable by itself and has its own lock, so that other processes can work on other members through
`RunDirectory.open(group.path / name, ...)`. The group stores the settings they share, and the final result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from zomirror.errors import RunError
from zomirror.runs import configuration as configs
from zomirror.runs import stored_result as results
from zomirror.runs.directory import RunDirectory
from zomirror.runs.folder import Folder, check_name, check_path
from zomirror.runs.journal import Pace
from zomirror.runs.lock import Lock

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import ArrayLike

    from zomirror.runs.configuration import Config
    from zomirror.runs.stored_result import Stored


class RunGroup:
    """A directory of runs that this process owns, from `open` to `close`."""

    def __init__(self, folder: Folder, lock: Lock, config: Config) -> None:
        self._folder = folder
        self._lock = lock
        self._config = config
        self._pace = Pace()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        settings: Mapping[str, object],
        *,
        arrays: Mapping[str, ArrayLike] | None = None,
    ) -> Self:
        """Create a group, or reopen it if its configuration equals the stored one except for the free keys.

        The setting `members`, if given, is the number of runs of the whole group; `inspect` shows progress by it.
        """
        folder = Folder.make(check_path(path))
        lock = None
        try:
            lock = Lock.acquire(folder)
            return cls(folder, lock, configs.settle(folder, "group", settings, arrays or {}))
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
        self.close()

    def close(self) -> None:
        """Release the lock; members are not affected. Closing twice is allowed."""
        self._lock.release()
        self._folder.close()

    @property
    def path(self) -> Path:
        """The directory."""
        return self._folder.path

    def names(self) -> list[str]:
        """The names of the members, sorted."""
        return [name for name in self._folder.names() if self._folder.kind(name) == "directory"]

    def member(
        self,
        name: str,
        settings: Mapping[str, object],
        *,
        arrays: Mapping[str, ArrayLike] | None = None,
        max_sent: int | None = None,
    ) -> RunDirectory:
        """Create or resume the run of that name; members that are open at the same time share the time for syncs."""
        if not self._lock.held:
            raise RunError(f"the group {str(self.path)!r} is closed here, or owned by the process that opened it")
        if self._folder.kind(check_name(name)) not in (None, "directory"):
            raise RunError(f"{self._folder.where(name)} is not a directory: every member of a group must be one")
        path = self.path / name
        return RunDirectory.open(path, settings, arrays=arrays, max_sent=max_sent, pace=self._pace)

    def result(self) -> Stored | None:
        """The stored result of the whole group; None if there is none or a setting has changed since."""
        return results.read(self._folder, self._config, 0)

    def finish(self, summary: Mapping[str, object], arrays: Mapping[str, ArrayLike] | None = None) -> None:
        """Store the result of the whole group."""
        results.write(self._folder, self._config, 0, summary, arrays or {})
