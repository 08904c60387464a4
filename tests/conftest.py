"""What every test stands on: the lists of pieces, no network beyond this machine, property tests that repeat."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import ip_address
from typing import Any

import hypothesis
import numpy as np
import pytest

import zomirror as zm
from zomirror.methods.directions import Directions
from zomirror.methods.estimator import Estimator
from zomirror.methods.mirror import MirrorMap
from zomirror.methods.step import StepRule
from zomirror.numerics import kernels
from zomirror.numerics.arrays import Array

# A shell that starts us in the background has Ctrl-C ignored, and every child process would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "ci", deadline=None, max_examples=50, derandomize=True, database=None, print_blob=True
)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2_000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test of a module twice: without the compiled loops and with them, if they are there."""
    before, kernels.compiled = kernels.compiled, None if request.param == "numpy" else kernels.found()
    yield
    kernels.compiled = before


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """A session of the browser, the only one of a worker: to start another takes two seconds."""
    from tests.support.chromium import chromium

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
    (zm.methods.Entropy(), phi_entropy),
    (zm.methods.Entropy(width=0.1), partial(phi_entropy, width=0.1)),
    (zm.methods.Euclidean(), phi_euclidean),
    (zm.methods.PNorm(), phi_pnorm),
]
DIRECTIONS: list[Directions] = [zm.methods.rademacher, zm.methods.gaussian, zm.methods.sphere, zm.methods.coordinate]
ESTIMATORS: list[Estimator] = [
    zm.methods.TwoPoint(5),
    zm.methods.TwoPoint(1, radius=1e-3),
    zm.methods.TwoPoint(7, zm.methods.gaussian, zm.methods.EuclideanRadius()),
    zm.methods.TwoPoint(4, zm.methods.sphere, 1e-2),
    zm.methods.TwoPoint(4, zm.methods.coordinate, 1e-2),
    zm.methods.TwoPoint(5, free_only=True),
    zm.methods.TwoPoint(5, zm.methods.gaussian, 1e-3, free_only=True, clip=True),
    zm.methods.TwoPoint(9, max_block_bytes=1),
    zm.methods.GroupMemory(3),
    zm.methods.GroupMemory(10, noise=0.0),
    zm.methods.GroupMemory(2, radius=1e-3, max_block_bytes=1),
    zm.methods.GroupMemory(3, radius=1e-2, noise=1e-3),
]
STEP_RULES: list[StepRule] = [
    zm.methods.Constant(0.5),
    zm.methods.Adaptive(),
    zm.methods.Adaptive(c=1.0, first=0.01),
    zm.methods.ScaleFree(),
    zm.methods.ScaleFree(c=0.5, floor=0.1),
]
PRESETS: list[zm.methods.MirrorDescent] = [
    zm.methods.zo_expmd(2.0, 10),
    zm.methods.zo_ada_expmd(10),
    zm.methods.zo_psgd(20.0, 10),
    zm.methods.zo_ada_psgd(10),
    zm.methods.zo_group_expmd(),
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
