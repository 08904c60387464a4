"""MODEL on the command line: the name of a bundled network, an .onnx file, module:function or a URL."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from zomirror.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be asked, and what is known about its inputs."""

    name: str
    """As given, without anything secret: it is written down beside the answers."""
    ask: Any
    shape: tuple[int, ...] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    class_names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """How a model is reached: what a URL needs beside itself, and how many rows go into one call."""

    remote_model: str | None = None
    token_env: str | None = None
    batch_rows: int | None = None


def load_model(text: str, access: Access | None = None) -> Model:
    """The model that `text` names, ready to be asked."""
    from zomirror import models  # loaded only by those who ask a model
    from zomirror.classifiers import as_classifier, onnx_classifier

    access = access or Access()
    if text.lower().startswith(("http://", "https://")):
        return _remote(text, access)
    if access.remote_model or access.token_env:
        raise ArgumentError(f"expected a URL with --remote-model and --token-env, got MODEL {text!r}")
    if text in models.names():
        card = models.card(text)
        found = onnx_classifier(models.path(text), batch_rows=access.batch_rows)
        return Model(text, found, _known(found.input_shape), card.mean, card.std)
    if text.lower().endswith(".onnx"):
        if not Path(text).is_file():
            raise ArgumentError(f"expected MODEL to be a file that exists, got {text!r}")
        found = onnx_classifier(text, batch_rows=access.batch_rows)
        return Model(text, found, _known(found.input_shape))
    if ":" in text:
        return Model(text, as_classifier(load_object(text, "MODEL"), batch_rows=access.batch_rows))
    raise ArgumentError(
        f"expected MODEL as an .onnx file, module:function, a URL or one of the bundled networks "
        f"({', '.join(models.names())}), got {text!r}"
    )


def _remote(url: str, access: Access) -> Model:
    from zomirror.classifiers.http.server_model import http_classifier

    found = http_classifier(url, model=access.remote_model, token_env=access.token_env, batch_rows=access.batch_rows)
    return Model(public(url), found, _known(found.shape[1:] if found.shape else None))


def _known(sides: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """The shape of one input, when every side of it is known."""
    return None if sides is None or None in sides else tuple(side for side in sides if side is not None)


def load_object(text: str, what: str) -> Any:
    """The object that `module:name` names, modules of the working directory included."""
    module_name, _, path = text.partition(":")
    if not module_name or not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise ArgumentError(f"expected {what} as module:function, got {text!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise ArgumentError(
                f"{what}: module {module_name!r} needs {error.name!r}, which is not installed"
            ) from error
        raise ArgumentError(f"expected {what} in a module that can be imported, got {module_name!r}") from error
    except Exception as error:
        raise ArgumentError(f"{what}: module {module_name!r} raised {type(error).__name__}: {error}") from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise ArgumentError(f"expected {what} to exist, got {text!r}: {module_name} has no {path}")
        found = getattr(found, part)
    return found


def public(url: str) -> str:
    """The URL without what may be secret: a name, a password, a query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
