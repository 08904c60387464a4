"""INPUT on the command line: pictures, .npy arrays, rows of a .csv, texts, bundled digits."""

from __future__ import annotations

import csv
import importlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, DataError
from zomirror.schema.picture_file import read_picture, shaped

PICTURES = (".png", ".jpg", ".jpeg")
_ROWS = re.compile(r"(?P<path>.+\.(?:npy|csv)):(?P<rows>all|[\d,-]+)", re.IGNORECASE)
MAX_CHARACTERS = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """One input in raw units; if it is a row of a table of numbers, with the range and mean of each column."""

    name: str
    x: Any
    """An array or a text; for a row of a frame, the frame of this row."""
    feature_names: tuple[str, ...] | None = None
    bounds: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    mean: NDArray[np.float64] | None = None
    frame: Any = None
    """All rows of the file as a DataFrame, if it is searched as a table."""
    picture: bool = False
    """Whether it was read from a picture."""


def is_digits(text: str) -> bool:
    """Whether the input is one of the bundled digits."""
    return text.startswith("digits:")


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a .csv is read: columns that are left out, columns that are categories, and whether it is a frame anyway."""

    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    framed: bool = False


def read_inputs(texts: list[str], *, shape: tuple[int, ...] | None, table: TableOptions) -> list[Input]:
    """Read the inputs in order; `shape` is the shape of one input, None if it is not known."""
    found: list[Input] = []
    for text in texts:
        found += _read(text, shape, table)
    return found


def _read(text: str, shape: tuple[int, ...] | None, table: TableOptions) -> list[Input]:
    if is_digits(text):
        return _digits(text, shape)
    match = _ROWS.fullmatch(text)
    path, rows = (Path(match["path"]), match["rows"]) if match else (Path(text), None)
    suffix = path.suffix.lower()
    if text == "-":
        return [Input("-", _decoded(sys.stdin.buffer.read(MAX_CHARACTERS + 1), "standard input"))]
    if suffix not in (*PICTURES, ".npy", ".csv", ".txt"):
        raise ArgumentError(
            f"expected INPUT as digits:N, a .png, .jpg, .npy, .csv (with :ROWS for some rows of a table) or .txt file, "
            f"or - for a text on standard input, got {text!r}"
        )
    if not path.is_file():
        raise ArgumentError(f"expected INPUT to be a file that exists, got {str(path)!r}")
    if suffix == ".txt":
        return [Input(text, _decoded(path.read_bytes(), str(path)))]
    if suffix == ".npy":
        return _array(path, rows, shape)
    if suffix == ".csv":
        return _table(path, rows or "all", shape, table)
    return [Input(text, read_picture(path, shape, str(path)), picture=True)]


def _decoded(content: bytes, name: str) -> str:
    """A text in UTF-8."""
    if len(content) > MAX_CHARACTERS:
        raise DataError(f"expected a text of at most {MAX_CHARACTERS:,} bytes, got more in {name}")
    try:
        return content.decode("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"expected a text in UTF-8, got {name}, which is not: {error}") from error


def _digits(text: str, shape: tuple[int, ...] | None) -> list[Input]:
    """`digits:7` is the first of the two sevens, `digits:7b` the second; `digits:1,7` and `digits:all` are several."""
    from zomirror import datasets

    data = datasets.digits()
    wanted = text.removeprefix("digits:")
    names = [f"{n}{s}" for n in range(10) for s in ("", "b")] if wanted == "all" else wanted.split(",")
    found = []
    for name in names:
        if not re.fullmatch(r"\d[ab]?", name):
            raise ArgumentError(
                f"expected digits:N with N in 0..9 (7b is the second seven) or digits:all, got {text!r}"
            )
        place = np.flatnonzero(data.labels == int(name[0]))[int(name.endswith("b"))]
        image = data.images[place].astype(np.float32)[None] / np.float32(255)
        found.append(Input(f"digits:{name}", shaped(image, shape, f"digits:{name}")))
    return found


def _array(path: Path, rows: str | None, shape: tuple[int, ...] | None) -> list[Input]:
    """One input, or one for each of the given rows."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"expected an array, got {str(path)!r}, which cannot be read: {error}") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"expected one array as numpy.save writes it, got {str(path)!r} with several")
    if rows is None:
        return [Input(str(path), shaped(np.array(array), shape, str(path)))]
    if array.ndim < 2:
        raise ArgumentError(
            f"expected an array of inputs for {path}:{rows}, got shape {array.shape}: leave out :{rows}"
        )
    return [
        Input(f"{path}:{i}", shaped(np.array(array[i]), shape, f"{path}:{i}")) for i in _chosen(rows, len(array), path)
    ]


def _table(path: Path, rows: str, shape: tuple[int, ...] | None, table: TableOptions) -> list[Input]:
    """Rows of numbers; rows of a frame if there are texts, or if the options ask for one."""
    head, lines = _lines(path)
    unknown = [name for name in (*table.drop, *table.categorical) if name not in (head or [])]
    if unknown:
        known = ", ".join(head or []) or "the columns have no names"
        option = "--drop" if unknown[0] in table.drop else "--categorical"
        raise ArgumentError(f"expected {option} to name columns of {path} ({known}), got {unknown[0]!r}")
    kept = [i for i in range(len(head or lines[0])) if head is None or head[i] not in table.drop]
    if head is not None and (table.framed or any(_is_text(head[i], i, lines, table.categorical) for i in kept)):
        return _frame(path, rows, [head[i] for i in kept], len(lines))
    if table.framed:
        raise ArgumentError(f"expected column names in the first line of {path} for --fixed and the like, got numbers")
    names, values = tuple(head[i] for i in kept) if head else None, _numbers(path, head, lines, kept)
    low, high, mean = values.min(axis=0), values.max(axis=0), values.mean(axis=0)
    return [
        Input(f"{path}:{i}", shaped(values[i], shape, f"{path}:{i}"), names, (low, high), mean)
        for i in _chosen(rows, len(values), path)
    ]


def _is_text(name: str, i: int, lines: list[list[str]], categorical: tuple[str, ...]) -> bool:
    """Whether a column holds texts: none of its entries is a number, or it was said to be a category."""
    entries = [line[i] for line in lines if i < len(line) and line[i]]
    return name in categorical or (bool(entries) and not any(map(_is_number, entries)))


def _frame(path: Path, rows: str, names: list[str], count: int) -> list[Input]:
    """Rows of a frame, as pandas reads the file; only an empty entry is missing."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise ArgumentError(f"expected pandas to read the texts of {path}: pip install 'zomirror[tables]'") from None
    frame = pandas.read_csv(path, usecols=names, keep_default_na=False, na_values=[""], encoding="utf-8-sig")[names]
    return [Input(f"{path}:{i}", frame.iloc[[i]], tuple(names), frame=frame) for i in _chosen(rows, count, path)]


def _lines(path: Path) -> tuple[list[str] | None, list[list[str]]]:
    """The column names, if the first line has them, and the other lines."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"expected a table, got {str(path)!r}, which cannot be read: {error}") from error
    if not lines:
        raise DataError(f"expected rows of numbers, got the empty file {str(path)!r}")
    head = None if all(map(_is_number, lines[0])) else lines.pop(0)
    if not lines:
        raise DataError(f"expected rows of numbers, got only column names in {str(path)!r}")
    return head, lines


def _numbers(path: Path, head: list[str] | None, lines: list[list[str]], kept: list[int]) -> NDArray[np.float64]:
    """The numbers of the columns that are kept."""
    rows = []
    for number, line in enumerate(lines, 1 if head is None else 2):
        if len(line) != len(head or lines[0]):
            raise DataError(f"{path}, line {number}: expected {len(head or lines[0])} columns, got {len(line)}")
        bad = [i for i in kept if not _is_number(line[i])]
        if bad:
            column = head[bad[0]] if head else bad[0] + 1
            raise DataError(
                f"{path}, line {number}: expected a number in column {column}, got {line[bad[0]]!r}: use --drop"
                f"{'' if head is None else ' or --categorical'}"
            )
        rows.append([float(line[i]) for i in kept])
    return np.array(rows)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _chosen(rows: str, count: int, path: Path) -> list[int]:
    """Read `all`, `3`, `0-4` or `1,5,7-9`; rows count from 0."""
    if rows == "all":
        return list(range(count))
    found: list[int] = []
    for part in rows.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ArgumentError(f"expected rows such as 3, 0-4 or 1,5, got {rows!r} for {path}")
        found += range(int(first), int(last or first) + 1)
    outside = [i for i in found if i >= count]
    if outside or not found:
        raise ArgumentError(f"expected rows in 0..{count - 1} of {path}, got {rows!r}")
    return found


def model_and_inputs(what: list[str]) -> tuple[str, list[str]]:
    """Split the arguments into MODEL and inputs; the default model for digits is lenet."""
    if is_digits(what[0]):
        return "lenet", what
    if len(what) < 2:
        raise ArgumentError(f"expected MODEL and at least one INPUT, got only {what[0]!r}")
    return what[0], what[1:]
