"""The house itself: packaging, locks, what an import costs, what the tracked files may not contain."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import zomirror
from tests.conftest import RemoteConnectionError

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = {path.name: path.read_text() for path in sorted((ROOT / "requirements").glob("*.txt"))}
EXTRAS = PYPROJECT["project"]["optional-dependencies"]

# Written in two halves, so that this list does not find itself.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.$}])/(?:ro" + r"ot|wo" + r"rk|home/\w+|Users/\w+|opt/\w+)/"),
    "a temporary path of one machine": re.compile(r"(?<![\w.])/t" + r"mp/"),
    "a package index": re.compile(r"pypi\.(?:o" + r"rg|python)|pythonhosted\.o" + r"rg|download\.pytorch"),
    "a package registry": re.compile(r"registry\.(?:n" + r"pmjs|yarnpkg)|conda\.ana" + r"conda"),
}


def tracked() -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(n): v for n, v in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)}


def test_tests_run_on_this_tree() -> None:
    assert Path(zomirror.__file__).is_relative_to(ROOT / "src"), "another copy of zomirror is installed"


def test_version_is_written_once() -> None:
    assert metadata.version("zomirror") == zomirror.__version__
    assert PYPROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in PYPROJECT["project"]


def test_changelog_and_citation_name_the_version() -> None:
    assert re.search(rf"^## \[{re.escape(zomirror.__version__)}\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert f'version: "{zomirror.__version__}"' in (ROOT / "CITATION.cff").read_text()


def test_the_wheel_is_built_from_the_sdist_also_without_a_compiler(tmp_path: Path) -> None:
    """`python -m build`: the sdist, and from it the wheel, which then works in numpy alone."""
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, env={**os.environ, "CC": "false"})
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "zomirror/py.typed" in names
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not [name for name in names if name.endswith(".so")]
    assert not [name for name in names if not name.startswith(("zomirror/", "zomirror-"))]


def test_the_recipe_of_conda_has_the_version_and_the_dependencies() -> None:
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert f'version: "{zomirror.__version__}"' in recipe
    for wanted in (*PYPROJECT["project"]["dependencies"], *PYPROJECT["build-system"]["requires"]):
        name, sign, version = wanted.partition(">=")
        other = "matplotlib-base" if name == "matplotlib" else name
        assert f"- {other} {sign}{version}\n" in recipe


def test_import_is_light() -> None:
    heavy = (
        "dask",
        "distributed",
        "jinja2",
        "loky",
        "matplotlib",
        "onnx",
        "onnxruntime",
        "rich",
        "sklearn",
        "starlette",
        "torch",
        "uvicorn",
    )
    every = "[getattr(zomirror, name) for name in zomirror.__all__]"  # a name is imported when it is used
    code = f"import sys, zomirror; {every}; print(*sorted(set({(*heavy, 'typer', 'urllib3')!r}) & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert out.split() == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_contains(what: str) -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or a model
        lines = text.splitlines()
        found += [f"{path.relative_to(ROOT)}:{i}" for i, s in enumerate(lines, 1) if FORBIDDEN[what].search(s)]
    assert found == []


def test_forbidden_patterns_can_fail() -> None:
    slash = "/"
    for what, text in {
        "a path of one machine": f"see {slash}home/ada/x or {slash}opt/x/y",
        "a temporary path of one machine": f"x={slash}tmp/y",
        "a package index": "https:" + "//py" + "pi.org/simple",
        "a package registry": "https:" + "//registry.n" + "pmjs.org",
    }.items():
        assert FORBIDDEN[what].search(text)


@pytest.mark.parametrize("name", LOCKS)
def test_lock_has_hashes_and_no_address(name: str) -> None:
    lock = LOCKS[name]
    assert "://" not in lock
    assert not re.search(r"^\s*(--?(?:index-url|extra-index-url|find-links|trusted-host)|-i |-f )", lock, re.MULTILINE)
    blocks = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(pins(lock)) > 20
    bare = [block.split()[0] for block in blocks if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)]
    assert bare == []


def test_lock_serves_other_machines() -> None:
    """A package with compiled wheels has one hash per platform and Python: many."""
    for name in ("numpy", "scipy", "onnxruntime"):
        [block] = re.findall(rf"^{name}==(?:.*\n)(?:    .*\n)+", LOCKS["base.txt"], re.MULTILINE)
        assert block.count("--hash") > 10


def test_locks_agree_with_each_other() -> None:
    base, full = pins(LOCKS["base.txt"]), pins(LOCKS["test.txt"])
    differing = {n: (v, full.get(n)) for n, v in base.items() if full.get(n, v) != v}
    assert differing == {}


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("base.txt", [*PYPROJECT["project"]["dependencies"], *PYPROJECT["build-system"]["requires"]]),
        (
            "test.txt",
            [
                *PYPROJECT["project"]["dependencies"],
                *PYPROJECT["build-system"]["requires"],
                *[r for extra in ("dev", "docs", "sklearn", "dask", "studio", "torch") for r in EXTRAS[extra]],
            ],
        ),
        ("kserve.txt", EXTRAS["serve"]),
    ],
)
def test_lock_satisfies_pyproject(lock: str, wanted: list[str]) -> None:
    locked = pins(LOCKS[lock])
    for requirement in map(Requirement, wanted):
        if requirement.name == "torch":
            continue  # by exact version only: requirements/torch.in
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not locked: make lock"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement} but {version}: make lock"


def test_what_is_published_pins_nothing_exactly() -> None:
    published = [*PYPROJECT["project"]["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]
    assert [r for r in published if "==" in r] == []


def test_torch_is_pinned_for_the_tests_and_not_locked() -> None:
    [published] = [Requirement(r) for r in EXTRAS["torch"] if r.startswith("torch")]
    lines = (ROOT / "requirements" / "torch.in").read_text().splitlines()
    [pinned] = [line for line in lines if not line.startswith("#")]
    name, _, version = pinned.partition("==")
    assert name == "torch"
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert published.specifier.contains(version)
    assert metadata.version("torch").partition("+")[0] == version
    assert not [name for lock in LOCKS.values() for name in pins(lock) if name == "torch" or "nvidia" in name]


def test_what_torch_needs_is_locked() -> None:
    needs = [Requirement(r) for r in metadata.requires("torch") or []]
    locked = pins(LOCKS["test.txt"])
    for need in needs:
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        if need.name.startswith(("nvidia", "cuda", "triton")):
            continue  # the index's build brings its own libraries
        assert need.specifier.contains(locked[canonicalize_name(need.name)])


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80), ("example.invalid", 80)])
def test_socket_guard_refuses_other_machines(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family) as s, pytest.raises(RemoteConnectionError):
        s.connect(address)
    with socket.socket(family, socket.SOCK_DGRAM) as s, pytest.raises(RemoteConnectionError):
        s.sendto(b"x", address)
    with pytest.raises(RemoteConnectionError):
        socket.create_connection(address, timeout=1)


def test_socket_guard_lets_this_machine_through(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        client.sendall(b"x")
        peer, _ = server.accept()
        with peer:
            assert peer.recv(1) == b"x"
    a, b = socket.socketpair()
    with a, b:
        a.sendall(b"y")
        assert b.recv(1) == b"y"
    with socket.socket(socket.AF_UNIX) as s, pytest.raises(FileNotFoundError):
        s.connect(str(tmp_path / "nobody"))
