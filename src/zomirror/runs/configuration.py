"""The configuration of a run: config.json and arrays.npz, written once and compared at every resume."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from zomirror.errors import RunError
from zomirror.runs import npz
from zomirror.runs.document import LARGEST, Json, canonical, decode, differences, encode
from zomirror.runs.lock import now
from zomirror.runs.record import UNIT, file_header
from zomirror.runs.scan import Scan, scan
from zomirror.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from zomirror.runs.folder import Folder
    from zomirror.runs.record import Place

NAME = "config.json"
ARRAYS = "arrays.npz"
JOURNAL = "journal.bin"
FORMAT = 2
FREE = frozenset(("budget", "max_sent", "max_time", "maxiter", "workers", "callback"))
COMMAND = "command.json"
"""What began the run, where that was a command of the command line."""
_LEFTOVERS = frozenset(("lock", ARRAYS, JOURNAL, f".{NAME}.tmp", COMMAND))  # of a creation that was killed


@dataclass(frozen=True, slots=True)
class Config:
    """The stored configuration of a run or of a group of runs."""

    kind: str
    run_id: str
    created: str
    version: str
    settings: dict[str, Json]
    arrays: dict[str, Json]  # name -> dtype, shape, SHA-256

    def write(self, folder: Folder) -> None:
        """Write config.json atomically."""
        document: dict[str, Json] = {
            "format": FORMAT,
            "kind": self.kind,
            "run": self.run_id,
            "created": self.created,
            "zomirror": self.version,
            "settings": self.settings,
            "arrays": self.arrays,
        }
        data = encode(document)
        folder.replace(NAME, lambda file: file.write(data))

    def load_arrays(self, folder: Folder) -> dict[str, NDArray[Any]]:
        """The arrays of the configuration, checked against their digests."""
        if not self.arrays:
            return {}
        with npz.opened(folder, ARRAYS) as reader:
            return reader.load_all(self.arrays, NAME)


def read(folder: Folder) -> Config | None:
    """The stored configuration, None if there is none; RunError if it cannot be read."""
    if folder.kind(NAME) is None:
        return None
    what = folder.where(NAME)
    document = decode(folder.read(NAME, limit=LARGEST), what)
    if document.get("format") != FORMAT:
        raise RunError(
            f"{what} has format {str(document.get('format'))[:20]}, this version reads format {FORMAT}: "
            f"use the version that wrote it"
        )
    texts = [document.get(key) for key in ("kind", "run", "created", "zomirror")]
    settings, arrays = document.get("settings"), document.get("arrays")
    kind, run_id, created, version = (text if isinstance(text, str) else "" for text in texts)
    hexadecimal = len(run_id) == 32 and not set(run_id) - set("0123456789abcdef")
    if (
        kind not in ("run", "group")
        or not hexadecimal
        or not isinstance(settings, dict)
        or not isinstance(arrays, dict)
    ):
        raise RunError(f"{what} lacks a part that every run has: restore it from a copy")
    return Config(kind, run_id, created, version, settings, arrays)


def read_journal(fd: int, folder: Folder, config: Config, *, place: Place | None = None, moving: bool = False) -> Scan:
    """Scan the journal of a run; RunError if it has another run identifier than the configuration."""
    what = folder.where(JOURNAL)
    found = scan(fd, what, place=place, moving=moving)
    if found.run_id.hex() != config.run_id:
        raise RunError(f"{what} belongs to another run than {NAME}: restore the right one from a copy")
    return found


def settle(folder: Folder, kind: str, settings: Mapping[str, object], arrays: Mapping[str, object]) -> Config:
    """Store the configuration in a new directory, or compare it with the stored one and refuse differences.

    Only the settings in FREE may differ; their new values are stored.
    """
    given = {key: _setting(key, value) for key, value in settings.items()}
    digests: dict[str, Json] = {name: npz.digest(value, name) for name, value in arrays.items()}
    stored = read(folder)
    if stored is None:
        return _create(folder, Config(kind, secrets.token_hex(16), now(), __version__, given, digests), arrays)
    what = f"run directory {str(folder.path)!r}"
    if stored.kind != kind:
        raise RunError(f"{what} holds a {stored.kind}, this call makes a {kind}: use another run_dir")
    fixed = [{k: v for k, v in one.items() if k not in FREE} for one in (stored.settings, given)]
    found = differences(fixed[0], fixed[1]) + differences(stored.arrays, digests)
    if found:
        listed = "; ".join(f"{name} was {old} and is now {new}" for name, old, new in found[:5])
        more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
        raise RunError(
            f"{what} was made with another configuration: {listed}{more}. Use the stored values, or another run_dir"
        )
    if encode(stored.settings) != encode(given):
        stored = Config(kind, stored.run_id, stored.created, stored.version, given, stored.arrays)
        stored.write(folder)
    return stored


def _setting(key: str, value: object) -> Json:
    # Workers may be an executor and callback a function: not compared, and stored as the name of their type.
    if key in FREE and not isinstance(value, (bool, int, float, str, np.generic, type(None))):
        return type(value).__name__
    return canonical(value, key)


def _create(folder: Folder, config: Config, arrays: Mapping[str, object]) -> Config:
    """Write a new run, config.json last: without it there is no run, and a killed creation is repeated."""
    foreign = [name for name in folder.names() if name not in _LEFTOVERS]
    if foreign:
        listed = ", ".join(foreign[:3])
        raise RunError(f"directory {str(folder.path)!r} holds other files ({listed}) and no run: use an empty run_dir")
    if folder.size(JOURNAL) > UNIT:  # it has records: queries that were paid for
        raise RunError(f"{folder.where(NAME)} is missing beside a journal with records: restore it from a copy")
    if arrays:
        folder.write(ARRAYS, lambda file: npz.write(file, arrays))
    if config.kind == "run":
        header = file_header(bytes.fromhex(config.run_id))
        folder.write(JOURNAL, lambda file: file.write(header))
    config.write(folder)
    return config
