"""Files that a stranger may have written: refused in bounded memory and time, with nothing executed."""

from __future__ import annotations

import dataclasses
import enum
import io
import json
import os
import pickle
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from zomirror.errors import ArgumentError, ArgumentTypeError, RunError
from zomirror.runs import npz
from zomirror.runs.document import canonical, decode, differences, encode
from zomirror.runs.folder import Folder, check_name, check_path


@contextmanager
def bounded(megabytes: float = 20.0, seconds: float = 5.0) -> Iterator[None]:
    """What happens inside takes little memory and little time."""
    tracemalloc.start()
    started = time.process_time()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < megabytes * 2**20
        assert time.process_time() - started < seconds
    finally:
        tracemalloc.stop()


class Executed:
    """A canary: unpickling it leaves a trace."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import builtins; builtins.canary_is_dead = True",)


@pytest.fixture(autouse=True)
def nothing_was_executed() -> Iterator[None]:
    import builtins

    yield
    assert not hasattr(builtins, "canary_is_dead")


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as file:
        reader = npz.Reader(file, "the file")
        return {name: reader.load(name) for name in reader.names}


def write_npz(path: Path, arrays: dict[str, Any]) -> None:
    with path.open("w+b") as file:
        npz.write(file, arrays)


PLAIN = st.sampled_from(["?", "i1", "u1", "<i2", "<u4", "<i8", "<u8", "<f2", "<f4", ">f8", "<c16"])


@settings(max_examples=60)
@given(array=PLAIN.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0))))
def test_arrays_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, array: NDArray[Any]) -> None:
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    write_npz(path, {"a": array, "t": np.asfortranarray(array), "n": 3, "x": 0.5, "b": True})
    found = read_npz(path)
    assert found["a"].shape == array.shape
    assert found["a"].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()
    assert found["t"].tobytes() == found["a"].tobytes()
    assert npz.digest(found["a"]) == npz.digest(array)
    assert [found[name].item() for name in "nxb"] == [3, 0.5, True]
    with np.load(path, allow_pickle=False) as other:  # anyone can read it
        assert other["a"].tobytes() == found["a"].tobytes()


def test_as_many_dimensions_as_numpy_has_come_back(tmp_path: Path) -> None:
    empty = np.zeros((10**18, 0, *(1,) * 62), np.uint8)
    write_npz(tmp_path / "a.npz", {"a": empty, "b": np.ones((1,) * 64)})
    found = read_npz(tmp_path / "a.npz")
    assert found["a"].shape == empty.shape
    assert found["b"].ndim == 64


def test_digest_tells_arrays_apart() -> None:
    zero = np.zeros(4)
    others = [np.zeros(5), np.zeros((2, 2)), np.zeros(4, np.float32), np.zeros(4, np.int64), np.array([0, 0, 0, -0.0])]
    assert len({npz.digest(a)["sha256"] for a in [zero, *others]}) == 6
    assert npz.digest(zero) == npz.digest(zero[::-1]) == npz.digest(np.zeros(8)[::2])


@pytest.mark.parametrize(
    "bad", [np.array([None]), np.array(["a"]), np.array([1], "M8[s]"), np.zeros(1, "f8,i4"), 1 << 80]
)
def test_only_numbers_are_written(tmp_path: Path, bad: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="array of plain numbers"):
        write_npz(tmp_path / "a.npz", {"a": bad})


def test_names_of_arrays_are_plain(tmp_path: Path) -> None:
    for name in ("", "../a", "a/b", "a\0b", ".a", "x" * 200):
        with pytest.raises(ArgumentError, match="array name"):
            write_npz(tmp_path / "a.npz", {name: np.zeros(1)})


def header(text: str, version: bytes = b"\1\0") -> bytes:
    body = text.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(body)) + body


def plain(shape: str, descr: str = "'<f8'", order: str = "False") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")


def bomb(path: Path) -> None:
    """A hundred kilobytes that would become a hundred megabytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w", force_zip64=True) as f:
        f.write(plain("(16777216,)"))
        for _ in range(128):
            f.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 18


def stored(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)


def pickled() -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([Executed()], dtype=object), allow_pickle=True)
    return file.getvalue()


HOSTILE: dict[str, dict[str, bytes]] = {
    "pickle": {"a.npy": pickled()},
    "pickle with a plain header": {"a.npy": plain("(1,)", "'|O8'") + pickle.dumps(Executed())},
    "lying shape": {"a.npy": plain("(100000000000,)") + bytes(8)},
    "shape of astronomic size": {"a.npy": plain("(999999999999999999, 999999999999999999)") + bytes(8)},
    "too short": {"a.npy": plain("(3,)") + bytes(16)},
    "too long": {"a.npy": plain("(3,)") + bytes(32)},
    "negative shape": {"a.npy": plain("(-1,)")},
    "negative shape of positive size": {"a.npy": plain("(-1, -1)") + bytes(8)},
    "nested signs": {"a.npy": header("-" * 1900 + "1")},
    "nested brackets": {"a.npy": header("[" * 1900)},
    "unfinished text": {"a.npy": header("{'descr': '''")},
    "shape that is code": {"a.npy": plain("(__import__('os').getpid(),)") + bytes(8)},
    "deep header": {"a.npy": header("(" * 50_000)},
    "endless digits": {"a.npy": plain("(" + "1" * 60_000 + ",)")},
    "many dimensions": {"a.npy": plain("(" + ", ".join(["1"] * 10_000) + ")") + bytes(8)},
    "structured dtype": {"a.npy": plain("(1,)", "[('x', '<f8')]") + bytes(8)},
    "text dtype": {"a.npy": plain("(1,)", "'<U999999999'") + bytes(8)},
    "longdouble": {"a.npy": plain("(1,)", "'<f16'") + bytes(16)},
    "other version": {"a.npy": header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", b"\2\0") + bytes(8)},
    "fortran order": {"a.npy": plain("(1,)", order="True") + bytes(8)},
    "no array": {"a.npy": b"hello"},
    "empty": {"a.npy": b""},
    "path trick": {"../../a.npy": plain("(1,)") + bytes(8)},
    "absolute path": {"/etc/a.npy": plain("(1,)") + bytes(8)},
    "not an array name": {"a.exe": plain("(1,)") + bytes(8)},
    "many members": {f"a{i}.npy": b"" for i in range(npz.MOST + 1)},
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_members_are_refused(tmp_path: Path, what: str) -> None:
    stored(tmp_path / "a.npz", HOSTILE[what])
    with bounded(), pytest.raises(RunError, match="the file"):
        read_npz(tmp_path / "a.npz")


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    bomb(tmp_path / "a.npz")
    with bounded(), pytest.raises(RunError, match="compressed or encrypted"):
        read_npz(tmp_path / "a.npz")


def test_a_table_of_contents_that_lies_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, {"a": np.zeros(4), "b": np.ones(4)})
    good = path.read_bytes()
    at = good.index(b"PK\1\2")
    overlap = bytearray(good)  # both entries point at one member that claims the whole file
    second = good.index(b"PK\1\2", at + 4)
    overlap[second + 42 : second + 46] = overlap[at + 42 : at + 46]
    larger = bytearray(good)
    larger[at + 20 : at + 28] = struct.pack("<II", 1 << 30, 1 << 30)
    encrypted = bytearray(good)
    encrypted[at + 8] |= 1
    zip64 = good[:-22] + b"PK\6\7" + bytes(16) + good[-22:]
    for changed in (overlap, larger, encrypted, zip64, good[:-1], good + b"\0", good[:50], b""):
        path.write_bytes(changed)
        with bounded(), pytest.raises(RunError, match="the file"):
            read_npz(path)


def test_any_byte_of_an_npz_flipped_is_found_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_npz(path, {"a": np.arange(6.0), "b": np.int64(3)})
    good, whole = path.read_bytes(), {k: v.tobytes() for k, v in read_npz(path).items()}
    found = 0
    with path.open("r+b") as file:
        for at in range(len(good)):
            for mask in (1 << at % 8, 0xFF):
                os.pwrite(file.fileno(), bytes([good[at] ^ mask]), at)
                try:
                    reader = npz.Reader(file, "the file")
                    seen = {name: reader.load(name).tobytes() for name in reader.names}
                except RunError:
                    found += 1
                else:
                    assert list(seen.values()) == list(whole.values())  # a date, a permission: no number
            os.pwrite(file.fileno(), good[at : at + 1], at)
    assert found > len(good)


@settings(max_examples=200)
@given(data=st.binary(max_size=300), cut=st.integers(0, 900))
def test_bytes_of_chance_are_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, cut: int) -> None:
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    write_npz(path, {"a": np.zeros(2)})
    good = path.read_bytes()
    path.write_bytes(good[:cut] + data + good[cut + len(data) :])
    try:
        found = read_npz(path)
    except RunError:
        return
    assert [part.tobytes() for part in found.values()] == [bytes(16)]  # what was hit carries no number


DEEP = 10**6


@pytest.mark.parametrize(
    "text",
    [
        b"[" * DEEP + b"]" * DEEP,
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        b"[" * DEEP,
        b'{"a": "' + b'\\"' * DEEP,
        b'{"a": ' + b"1" * DEEP + b"}",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1, "a": 2}',
        b"[1]",
        b"1",
        b"",
        b"\xff\xfe{}",
        b'{"a": "\xc3("}',
        b"{" + b" " * (5 << 20) + b"}",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_json_is_refused(text: bytes) -> None:
    with bounded(60), pytest.raises(RunError, match="the file"):
        decode(text, "the file")


def test_depth_is_counted_outside_text_only() -> None:
    text = {"a": "[" * 1000 + '\\"' + "{" * 1000, "b": [[[{"c": '"'}]]]}
    assert decode(json.dumps(text).encode(), "x") == text
    deepest: Any = 1
    for _ in range(63):
        deepest = [deepest]
    assert decode(json.dumps({"a": deepest}).encode(), "x") == {"a": deepest}
    with pytest.raises(RunError, match="nests deeper than 64 levels"):
        decode(json.dumps({"a": [deepest]}).encode(), "x")


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass(frozen=True)
class Step:
    eta: float
    colour: Colour = Colour.RED


def test_configurations_have_one_text() -> None:
    given_ = {"b": (1, np.float32(0.5), np.int8(3), None, True), "a": Step(0.1), "x": np.zeros(2), "inf": float("-inf")}
    text = encode(canonical(given_, "settings"))
    assert decode(text, "x") == {
        "a": {"type": "Step", "eta": 0.1, "colour": "red"},
        "b": [1, 0.5, 3, None, True],
        "x": npz.digest(np.zeros(2)),
        "inf": "-inf",
    }
    with pytest.raises(ArgumentTypeError, match=r"settings.f.0. is a function, which cannot be written"):
        canonical({"f": [lambda: 1]}, "settings")


@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back_bit_for_bit(number: float) -> None:
    back = decode(encode({"a": number}), "x")["a"]
    assert isinstance(back, float)
    assert struct.pack("<d", back) == struct.pack("<d", number)


def test_differences_are_named_and_types_matter() -> None:
    old = {"a": 1, "b": {"c": [1, 2], "d": 1}, "e": None, "g": "x" * 500}
    new = {"a": 1.0, "b": {"c": [1, 3], "d": 1}, "f": True, "g": "x" * 499}
    found = differences(old, new)  # type: ignore[arg-type]
    assert [name for name, _, _ in found] == ["a", "b.c", "e", "f", "g"]
    assert found[0] == ("a", "1", "1.0")
    assert found[2] == ("e", "null", "nothing")
    assert max(len(old) for _, old, _ in found) <= 80


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "/a", "a\\b", "a\0", "-a", ".hidden", "é", "a b", "a\n", "x" * 101, "~", "%2e%2e"]
)
def test_a_run_name_is_one_plain_component(name: str) -> None:
    with pytest.raises(ArgumentError, match="one path component"):
        check_name(name)


def test_names_and_paths_of_the_wrong_type() -> None:
    assert check_name("lenet-0.1_PN") == "lenet-0.1_PN"
    with pytest.raises(ArgumentTypeError, match="got int"):
        check_name(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="got bytes"):
        check_path(b"x")  # type: ignore[arg-type]
    for text in ("", "a\0b"):
        with pytest.raises(ArgumentError, match="run_dir"):
            check_path(text)


def test_links_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    folder_path = tmp_path / "run"
    folder_path.mkdir()
    (folder_path / "link").symlink_to(tmp_path / "secret")
    (folder_path / "dangling").symlink_to(tmp_path / "nothing")
    (folder_path / "directory").mkdir()
    (folder_path / "dirlink").symlink_to(tmp_path)
    os.mkfifo(folder_path / "pipe")
    folder = Folder.open(folder_path)
    for name in ("link", "dangling", "directory", "pipe"):
        with bounded(), pytest.raises(RunError, match=name):
            folder.read(name, limit=100)
    with pytest.raises(RunError, match="dirlink"):
        folder.child("dirlink")
    with pytest.raises(ArgumentError, match="one path component"):
        folder.child("..")
    folder.replace("link", lambda file: file.write(b"new"))  # a link is replaced, never written through
    assert (tmp_path / "secret").read_text() == "{}"
    assert (folder_path / "link").read_text() == "new"
    assert not (folder_path / "link").is_symlink()
    (folder_path / ".x.tmp").symlink_to(tmp_path / "secret")
    folder.replace("x", lambda file: file.write(b"new"))
    assert (tmp_path / "secret").read_text() == "{}"
    with pytest.raises(RunError, match=r"has 3 bytes, more than the 2"):
        folder.read("x", limit=2)
    folder.close()
    folder.close()


def test_a_failed_replacement_leaves_the_old_file(tmp_path: Path) -> None:
    folder = Folder.make(tmp_path / "a" / "b")
    folder.replace("x", lambda file: file.write(b"old"))

    def fill(file: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match="the disk is full: free some space"):
        folder.replace("x", fill)
    assert folder.names() == ["x"]
    assert folder.read("x", limit=10) == b"old"
    folder.close()
