"""A checkpoint: the state of the method at a known offset of the journal, so that a resume replays only the rest.

It only saves time. If it cannot be read, or is of another format or run, that is reported and the whole journal is
replayed, with the same result bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.errors import ArgumentError, RunError
from zomirror.runs import npz
from zomirror.runs.document import Json, decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from zomirror.runs.folder import Folder

NAME = "checkpoint.npz"
FORMAT = 1
_NOTE = "about"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint belongs to: the run, the rows used, and the end and CRC of the journal at that time."""

    run_id: str
    position: int
    offset: int
    crc: int

    def save(self, folder: Folder, state: Mapping[str, object]) -> None:
        """Write the checkpoint atomically; the journal must be synced up to `offset`."""
        if _NOTE in state:
            raise ArgumentError(f"expected names other than {_NOTE!r} in a checkpoint: it is reserved")
        names: list[Json] = [*sorted(state)]
        note: dict[str, Json] = {
            "format": FORMAT,
            "run": self.run_id,
            "position": self.position,
            "offset": self.offset,
            "crc": self.crc,
            "names": names,
        }
        text = np.frombuffer(encode(note), np.uint8)
        folder.replace(NAME, lambda file: npz.write(file, {_NOTE: text, **state}))

    def load(self, folder: Folder) -> dict[str, NDArray[Any]]:
        """The state (scalars as 0-d arrays); RunError if the file is damaged, or has changed since `glance`."""
        with npz.opened(folder, NAME) as reader:
            if _about(reader) != self:
                raise RunError(f"{folder.where(NAME)} has changed while it was read")
            return {name: reader.load(name) for name in reader.names if name != _NOTE}


def glance(folder: Folder) -> Checkpoint | None:
    """What the stored checkpoint belongs to, None if there is none; RunError if it cannot be read."""
    if folder.kind(NAME) is None:
        return None
    with npz.opened(folder, NAME) as reader:
        return _about(reader)


def _about(reader: npz.Reader) -> Checkpoint:
    text = reader.load(_NOTE)
    note = decode(text.tobytes(), f"{reader.what}, its note")
    if note.get("format") != FORMAT:
        raise RunError(f"{reader.what} has format {note.get('format')}, this version reads format {FORMAT}")
    run_id, position, offset, crc = (note.get(key) for key in ("run", "position", "offset", "crc"))
    if not (isinstance(run_id, str) and all(type(n) is int and n >= 0 for n in (position, offset, crc))):
        raise RunError(f"{reader.what} does not say which run it belongs to")
    if note.get("names") != sorted(set(reader.names) - {_NOTE}):
        raise RunError(f"{reader.what} does not hold the arrays that it lists")
    assert isinstance(position, int) and isinstance(offset, int) and isinstance(crc, int)  # noqa: S101, PT018
    return Checkpoint(run_id, position, offset, crc)
