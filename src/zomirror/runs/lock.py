"""One process at a time: an flock on the file `lock`, which the kernel releases when its owner ends or is killed."""

from __future__ import annotations

import dataclasses
import os
import socket
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self

from zomirror.errors import BusyError, RunError
from zomirror.runs.document import decode, encode
from zomirror.runs.folder import DURABLE, refusal, write_all

if DURABLE:
    import fcntl
if TYPE_CHECKING:
    from zomirror.runs.folder import Folder

NAME = "lock"
_LARGEST = 4096


def boot_id() -> str:
    """An identifier of this boot of the machine, or '' where the system has none.

    While it is unchanged, all that a killed process wrote is in its files, synced or not; only a crash of the machine
    loses data.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """The process that holds a run, and what is needed to see whether it is alive."""

    pid: int
    host: str
    boot: str
    born: str  # start time in kernel ticks: a later process of the same number has another
    since: str

    @classmethod
    def here(cls) -> Self:
        """This process."""
        pid = os.getpid()
        return cls(pid, socket.gethostname()[:255], boot_id(), _born(pid), now())

    @classmethod
    def read(cls, data: bytes) -> Self | None:
        """The owner that a lock file or journal names, or None."""
        if not data.strip():
            return None
        try:
            found = decode(data, "the owner's note")
            pid = found["pid"]
            host, boot, born, since = (str(found[key])[:255] for key in ("host", "boot", "born", "since"))
        except (RunError, KeyError):
            return None
        return cls(pid, host, boot, born, since) if isinstance(pid, int) else None

    def write(self) -> bytes:
        """The bytes for `read`."""
        return encode({field.name: getattr(self, field.name) for field in dataclasses.fields(self)})

    def alive(self) -> bool:
        """Whether the process is known to be alive; False for one on another machine."""
        here = self.host == socket.gethostname()[:255] and self.boot == boot_id()
        return here and self.born != "" and self.born == _born(self.pid)

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host} since {self.since}"


class Lock:
    """Held from `acquire` to `release`, or to the end of the process."""

    __slots__ = ("__weakref__", "_fd", "owner")

    def __init__(self, fd: int, owner: Owner) -> None:
        self._fd = fd
        self.owner = owner
        _held.add(self)

    @classmethod
    def acquire(cls, folder: Folder) -> Self:
        """Lock a directory; BusyError at once, naming the owner, if it is locked."""
        fd = folder.open_file(NAME, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            owner = Owner.here()
            os.ftruncate(fd, 0)
            write_all(fd, owner.write(), 0)
        except BlockingIOError as error:
            holder = Owner.read(os.pread(fd, _LARGEST, 0)) or "another process"
            os.close(fd)
            raise BusyError(
                f"run directory {str(folder.path)!r} is in use by {holder}: "
                f"wait for it, stop it, or use another run_dir"
            ) from error
        except OSError as error:
            os.close(fd)
            raise refusal(folder.where(NAME), error) from error
        return cls(fd, owner)

    @property
    def held(self) -> bool:
        """Whether this process holds the lock; a forked child does not."""
        return self._fd >= 0

    def release(self) -> None:
        """Release the lock; releasing twice is allowed."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1

    def _forget(self) -> None:
        os.close(self._fd)
        self._fd = -1


def holder(folder: Folder) -> Owner | None:
    """The owner named in the lock file, alive or not; the lock is not tried."""
    if folder.kind(NAME) is None:
        return None
    return Owner.read(folder.read(NAME, limit=_LARGEST))


def process_fields(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the state on; empty if there is no such process, or no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _born(pid: int) -> str:
    fields = process_fields(pid)
    if not fields:
        return ""
    try:
        # A zombie is dead, unless other threads of it still run.
        dead = fields[0] in "ZX" and len(list(Path(f"/proc/{pid}/task").iterdir())) <= 1
    except OSError:
        return ""
    return "" if dead else fields[19]


def _forget_in_child() -> None:
    # An flock is held while any copy of its descriptor is open, so a forked worker would keep that of a killed owner.
    for lock in list(_held):
        if lock.held:
            lock._forget()


_held: weakref.WeakSet[Lock] = weakref.WeakSet()
if DURABLE:
    os.register_at_fork(after_in_child=_forget_in_child)
