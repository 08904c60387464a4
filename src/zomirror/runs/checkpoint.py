"""A checkpoint: the state of the method at a known place of the journal, so that a resume reads only the rest.

It only saves time. If it cannot be read, or is of another format or run, that is reported and the whole journal is
read and replayed, with the same result bit for bit. A search without states of its own saves only the place.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.errors import ArgumentError, RunError
from zomirror.runs import npz
from zomirror.runs.document import Json, decode, encode
from zomirror.runs.record import Place, Tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from zomirror.runs.folder import Folder

NAME = "checkpoint.npz"
FORMAT = 2
_NOTE = "about"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint belongs to: the run, and the end of its journal at that time with all totals."""

    run_id: str
    place: Place

    def save(self, folder: Folder, state: Mapping[str, object]) -> None:
        """Write the checkpoint atomically; the journal must be synced up to `offset`."""
        if _NOTE in state:
            raise ArgumentError(f"expected names other than {_NOTE!r} in a checkpoint: it is reserved")
        names: list[Json] = [*sorted(state)]
        note: dict[str, Json] = {
            "format": FORMAT,
            "run": self.run_id,
            "offset": self.place.offset,
            "last": self.place.last,
            "tally": asdict(self.place.tally) | {"session": self.place.tally.session.decode("utf-8", "replace")},
            "asides": [[at, *offsets] for at, offsets in self.place.asides.items()],
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
    run_id = note.get("run")
    if not isinstance(run_id, str):
        raise RunError(f"{reader.what} does not say which run it belongs to")
    if note.get("names") != sorted(set(reader.names) - {_NOTE}):
        raise RunError(f"{reader.what} does not hold the arrays that it lists")
    try:
        return Checkpoint(run_id, _place(note))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"{reader.what} does not say which place of the journal it belongs to") from error


def _place(note: dict[str, Any]) -> Place:
    """The place in the note; KeyError, TypeError, ValueError or AttributeError if it is none."""
    stored, offset, last = dict(note["tally"]), note["offset"], note["last"]
    session, closed = stored.pop("session").encode(), stored.pop("closed")
    asides = {at: [*where] for at, *where in note["asides"]}
    numbers = [*stored.values(), offset, last, *asides, *(one for where in asides.values() for one in where)]
    if type(closed) is not bool or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError("expected integers")
    return Place(offset, last, Tally(session=session, closed=closed, **stored), asides)
