"""The result of a run: result.json and result.npz, valid for one state of the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zomirror.errors import RunError
from zomirror.runs import npz
from zomirror.runs.document import LARGEST, Json, canonical, decode, encode
from zomirror.runs.lock import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from zomirror.runs.configuration import Config
    from zomirror.runs.folder import Folder

NAME = "result.json"
ARRAYS = "result.npz"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored result: small values in `summary` (JSON), arrays in `arrays`."""

    summary: dict[str, Json]
    arrays: dict[str, NDArray[Any]]
    finished: str


def write(
    folder: Folder, config: Config, crc: int, summary: Mapping[str, object], arrays: Mapping[str, object]
) -> None:
    """Write a result; after a crash between its two files there is none, and the run can be finished again."""
    document: dict[str, Json] = {
        "format": FORMAT,
        "run": config.run_id,
        "crc": crc,
        "settings": config.settings,
        "finished": now(),
        "result": canonical(dict(summary), "result"),
        "arrays": {name: npz.digest(value, name) for name, value in arrays.items()},
    }
    data = encode(document)
    if arrays:
        folder.replace(ARRAYS, lambda file: npz.write(file, arrays), sync=False)
    folder.replace(NAME, lambda file: file.write(data))


def belongs(folder: Folder, config: Config, crc: int) -> dict[str, Json] | None:
    """The stored document if it belongs to this configuration and this state of the journal, else None."""
    if folder.kind(NAME) is None:
        return None
    document = decode(folder.read(NAME, limit=LARGEST), folder.where(NAME))
    same = (FORMAT, config.run_id, crc) == tuple(document.get(key) for key in ("format", "run", "crc"))
    if not same or encode(document.get("settings")) != encode(config.settings):
        return None
    return document


def read(folder: Folder, config: Config, crc: int) -> Stored | None:
    """The stored result, or None if none belongs to this state; RunError if it is damaged."""
    document = belongs(folder, config, crc)
    if document is None:
        return None
    summary, digests = document.get("result"), document.get("arrays")
    if not isinstance(summary, dict) or not isinstance(digests, dict):
        raise RunError(f"{folder.where(NAME)} lacks a part that every result has")
    arrays: dict[str, NDArray[Any]] = {}
    if digests:
        with npz.opened(folder, ARRAYS) as reader:
            arrays = reader.load_all(digests, NAME)
    return Stored(summary, arrays, str(document.get("finished")))
