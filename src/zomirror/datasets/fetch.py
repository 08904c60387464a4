"""Load a data set: from the cache, else from the first source that works; every byte is verified before use."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from zomirror.datasets import cache
from zomirror.errors import ArgumentError, DataError, RunError
from zomirror.runs import npz

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from zomirror.datasets.sources import Progress, Source

    Decode = Callable[[Sequence[Path], str], "tuple[NDArray[np.uint8], NDArray[np.uint8]]"]


@dataclass(frozen=True)
class Dataset:
    """Images (uint8), their labels, the classes' names, and each image's position in the full set."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    names: tuple[str, ...]
    index: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Recipe:
    """One way to get a split: the files to download, and the function that reads the split from them."""

    files: tuple[Source, ...]
    decode: Decode


@dataclass(frozen=True)
class Catalogue:
    """A data set: the digest of each split's pixels and labels, and the recipes for it, in the order to try.

    All recipes of a split give the same arrays, bit for bit.
    """

    name: str
    names: tuple[str, ...]
    digests: Mapping[str, str]
    recipes: Mapping[str, tuple[Recipe, ...]]

    def load(self, split: str) -> Dataset:
        """The split, from the cache or downloaded; if no source works, DataError lists what to download by hand."""
        if split not in self.digests:
            raise ArgumentError(f"split: expected one of {sorted(self.digests)}, got {split!r}")
        stored = cache.directory() / f"{self.name}-{split}.npz"
        arrays = _read_arrays(stored)
        if arrays is None or digest(*arrays) != self.digests[split]:
            try:
                _downloads().mkdir(parents=True, exist_ok=True)
                arrays = self._make(split)
                _write_arrays(stored, *arrays)
            except OSError as error:
                raise DataError(
                    f"cache: expected to write below {cache.directory()}, got {error}: "
                    "set ZOMIRROR_CACHE to a directory with room"
                ) from error
        images, labels = arrays
        return Dataset(images, labels.astype(np.int64), self.names, np.arange(len(labels), dtype=np.int64))

    def _make(self, split: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The arrays of the first recipe that works; recipes whose files are in the cache come first."""
        recipes = sorted(self.recipes[split], key=lambda recipe: not all(map(_is_here, recipe.files)))
        failures = []
        for recipe in recipes:
            try:
                paths = [fetch(source) for source in recipe.files]
                with _bar(f"reading {self.name} {split}", None):
                    images, labels = recipe.decode(paths, split)
                found = digest(images, labels)
                if found == self.digests[split]:
                    return images, labels
                raise DataError(f"{paths[0].name}: expected content {self.digests[split]}, got {found}")
            except DataError as error:
                failures.append(f"  - {error}")
        ways = [" and ".join(f"{s.filename} ({s.hint()})" for s in recipe.files) for recipe in recipes]
        raise DataError(
            f"the {split} split of {self.name} could not be had:\n"
            + "\n".join(failures)
            + f"\nPut into {_downloads()} one of\n"
            + "\n".join(f"  - {way}" for way in ways)
            + "\nand call again."
        )


def fetch(source: Source) -> Path:
    """The path of the source's file in the cache; downloaded if it is missing or has another SHA-256."""
    path = _downloads() / source.filename
    if _is_here(source) and cache.sha256(path) == source.sha256:
        return path
    try:
        with cache.replacing(path) as file:  # it gets its name after it was verified
            with _bar(f"fetching {source.filename}", source.size) as progress:
                source.download(file, progress)
            file.flush()
            found = cache.sha256(Path(file.name))
            if found != source.sha256:
                raise DataError(f"{source.filename}: expected SHA-256 {source.sha256}, got {found}: not used")
    except DataError as error:
        if path.exists():
            raise DataError(f"{error}; and {path} is not the file with SHA-256 {source.sha256}") from error
        raise
    return path


def digest(images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> str:
    """Hex SHA-256 of the shape, the pixels and the labels."""
    found = hashlib.sha256(repr(images.shape).encode())
    found.update(np.ascontiguousarray(images).data)
    found.update(np.ascontiguousarray(labels).data)
    return found.hexdigest()


def _downloads() -> Path:
    return cache.directory() / "downloads"


def _is_here(source: Source) -> bool:
    path = _downloads() / source.filename
    return path.is_file() and path.stat().st_size == source.size


@contextmanager
def _bar(what: str, size: int | None) -> Iterator[Progress]:
    """A progress bar on a terminal; yields the function that is told the bytes done. `size` None: unknown length."""
    from rich import progress  # here, so that importing the package stays fast
    from rich.console import Console

    console = Console(stderr=True)
    amounts = (progress.DownloadColumn(), progress.TransferSpeedColumn()) if size is not None else ()
    columns = (progress.TextColumn("{task.description}"), progress.BarColumn(), *amounts, progress.TimeElapsedColumn())
    with progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=size)
        yield lambda done: bar.update(task, completed=done)


def _read_arrays(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
    """The arrays of a decoded split; None if the file is missing or damaged."""
    try:
        with path.open("rb") as file:
            reader = npz.Reader(file, str(path))
            images, labels = reader.load("images"), reader.load("labels")
    except (OSError, RunError):
        return None
    return (images, labels) if images.dtype == labels.dtype == np.uint8 else None


def _write_arrays(path: Path, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> None:
    with cache.replacing(path) as file:
        npz.write(file, {"images": images, "labels": labels})
