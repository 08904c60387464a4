"""What every test stands on: the lists of pieces, no network beyond this machine, property tests that repeat."""

from __future__ import annotations

import importlib
import os
import pkgutil
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from coverage import Coverage

import zomirror as zm
from zomirror import kernels
from zomirror.arrays import Array
from zomirror.directions import Directions
from zomirror.estimator import Estimator
from zomirror.mirror import MirrorMap
from zomirror.step import StepRule

# A shell that starts us in the background has Ctrl-C ignored, and every child process would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# In a worker pytest-cov 7 starts to trace when it is loaded, and once more when the session starts. The first is never
# stopped and its data are never used: it would trace what is not to be traced, at a fifth of all the time.
if "PYTEST_XDIST_WORKER" in os.environ and (unused := Coverage.current()):
    unused.stop()

hypothesis.settings.register_profile(
    "ci", deadline=None, max_examples=50, derandomize=True, database=None, print_blob=True
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# Their subject lies around the core or across it: tracing the core under them, or under what is marked so in the other
# files, would cost a minute and find nothing more.
AROUND = (
    *("attack", "browser", "chaos", "classifier", "cli", "command", "contrast", "dask", "datasets", "docs"),
    *("durable_explain", "examples", "experiments", "explain", "far", "fuzz", "house", "http", "kserve"),
    *("notebooks", "parallel", "problems", "report", "runs", "site", "terminal", "theory", "training"),
)
APART = ("contrast_linear", "docs", "notebooks")
"""A worker takes one test of these files at a time, and all other files whole: what they set up and keep is dear."""
TOGETHER = (
    ("site", "browser", "experiments_report"),
    ("classifier_sklearn", "classifier_torch", "classifiers", "training", "contrast_faults"),
)
"""One worker takes all of these: they share a browser, or what it takes to import a framework."""
FIRST = (
    *("parallel", *APART, "dask", "contrast", "http", "durable", "site", "cli", "kserve", "attack", "terminal"),
    *("experiments", "command", "cox", "classifier", "runs", "training", "testing", "theory", "survey", "examples"),
    *("datasets", "fuzz", "faults"),
)
"""Begun first, so that nothing long is left for the end; who mostly waits stands among who computes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure the coverage of the core by the tests of the core, and deal the long tests out first."""
    for item in items:
        if subject(item.path).startswith(AROUND):
            item.add_marker(pytest.mark.no_cover)
    items.sort(key=lambda item: next((i for i, n in enumerate(FIRST) if subject(item.path).startswith(n)), len(FIRST)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What a worker is given at a time; the groups of xdist 3.8 itself have no effect under pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            about = subject(Path(file))
            if about.startswith(APART):
                return nodeid
            return next((" ".join(group) for group in TOGETHER if about in group), file)

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without tracing, once all of the core is imported: test files and frameworks are none of it."""
    for module in pkgutil.iter_modules(zm.__path__, "zomirror."):
        if not module.ispkg and module.name != "zomirror.__main__":
            importlib.import_module(module.name)
    tracing = Coverage.current()
    if tracing:
        tracing.stop()
    yield
    # Who only deals the tests out runs nothing of the core.
    if tracing and not session.config.pluginmanager.hasplugin("dsession"):
        tracing.start()


def subject(path: Path) -> str:
    """What a file of tests is about."""
    return path.stem.removeprefix("test_")


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test of a module twice: without the compiled loops and with them, if they are there."""
    before, kernels.compiled = kernels.compiled, None if request.param == "numpy" else kernels.found()
    yield
    kernels.compiled = before


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A session of the browser, the only one of a worker: to start another takes two seconds."""
    from tests.chromium import chromium

    with chromium() as found:
        yield found


class RemoteConnectionError(Exception):
    """A test tried to reach another machine; not an OSError, so that no retry loop swallows it."""


def is_local(host: str | bytes | None) -> bool:
    """Whether the host is this machine, without asking a name server."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost"}:
        return True
    try:
        address = ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def guard(name: str) -> None:
    """Let the method of every socket reach loopback addresses and Unix sockets only."""
    method = getattr(socket.socket, name)

    def guarded(self: socket.socket, *args: Any) -> Any:
        address = args[-1]  # connect(address), connect_ex(address), sendto(data[, flags], address)
        if self.family != socket.AF_UNIX and not is_local(address[0]):
            raise RemoteConnectionError(f"tests may talk to this machine only, not to {address[0]!r}")
        return method(self, *args)

    setattr(socket.socket, name, guarded)


def guard_resolver() -> None:
    """Refuse to look up other machines: the name server is one already."""
    resolve = socket.getaddrinfo

    def guarded(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            raise RemoteConnectionError(f"tests may not look up {host!r}")
        return resolve(host, *args, **kwargs)

    socket.getaddrinfo = guarded


for _name in ("connect", "connect_ex", "sendto"):
    guard(_name)
guard_resolver()


# --- the pieces: a new one is one line here, and every theorem is tested of it -------------------------------------


def phi_entropy(x: Array, width: float = 1.0) -> float:
    """sum_i (|x_i| + b) ln(|x_i| / b + 1) - |x_i|, b = width/d."""
    v, b = np.abs(x), width / x.size
    return float(np.sum((v + b) * np.log1p(v / b) - v))


def phi_euclidean(x: Array) -> float:
    """|x|_2^2 / 2."""
    return float(x @ x) / 2


def phi_pnorm(x: Array) -> float:
    """|x|_p^2 / (2 (p - 1)), p = 1 + 1/(2 ln d)."""
    p = 1 + 1 / (2 * np.log(x.size))
    return float(np.sum(np.abs(x) ** p) ** (2 / p) / (2 * (p - 1)))


MIRRORS: list[tuple[MirrorMap, Callable[[Array], float]]] = [
    (zm.Entropy(), phi_entropy),
    (zm.Entropy(width=0.1), partial(phi_entropy, width=0.1)),
    (zm.Euclidean(), phi_euclidean),
    (zm.PNorm(), phi_pnorm),
]
DIRECTIONS: list[Directions] = [zm.rademacher, zm.gaussian, zm.sphere, zm.coordinate]
ESTIMATORS: list[Estimator] = [
    zm.TwoPoint(5),
    zm.TwoPoint(1, radius=1e-3),
    zm.TwoPoint(7, zm.gaussian, zm.EuclideanRadius()),
    zm.TwoPoint(4, zm.sphere, 1e-2),
    zm.TwoPoint(4, zm.coordinate, 1e-2),
    zm.TwoPoint(5, free_only=True),
    zm.TwoPoint(5, zm.gaussian, 1e-3, free_only=True, clip=True),
    zm.TwoPoint(9, max_block_bytes=1),
    zm.GroupMemory(3),
    zm.GroupMemory(10, noise=0.0),
    zm.GroupMemory(2, radius=1e-3, max_block_bytes=1),
    zm.GroupMemory(3, radius=1e-2, noise=1e-3),
]
STEP_RULES: list[StepRule] = [
    zm.Constant(0.5),
    zm.Adaptive(),
    zm.Adaptive(c=1.0, first=0.01),
    zm.ScaleFree(),
    zm.ScaleFree(c=0.5, floor=0.1),
]
PRESETS: list[zm.MirrorDescent] = [
    zm.zo_expmd(2.0, 10),
    zm.zo_ada_expmd(10),
    zm.zo_psgd(20.0, 10),
    zm.zo_ada_psgd(10),
    zm.zo_group_expmd(),
]


class Counted:
    """f, with its own count of the rows it was asked for: the other side's view of the budget."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.rows = 0
        self.calls = 0

    def __call__(self, points: Any, *rest: Any) -> Any:
        self.rows += len(points) if points.ndim == 2 else 1
        self.calls += 1
        return self.f(points, *rest)


def sphere_function(points: Any) -> Any:
    """|x - 0.5|^2, the least that a test needs of a black box."""
    return np.square(points - 0.5).sum(axis=-1)
