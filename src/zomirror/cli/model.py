"""MODEL on the command line: the name of a bundled network, an .onnx file, module:function or a URL."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from zomirror.errors import ArgumentError

if TYPE_CHECKING:
    from zomirror.cli.arguments import ExplainerOptions, SearchOptions


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A classifier, and what is known about its inputs."""

    name: str
    """As typed, without anything secret: it is stored with the answers."""
    classifier: Any
    shape: tuple[int, ...] | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None


def load_model(typed: SearchOptions | ExplainerOptions, name: str) -> LoadedModel:
    """Load the model of this name with the options --batch-rows, --remote-model and --token-env."""
    rows, file = typed.batch_rows, name.lower().endswith(".onnx")
    if file and not Path(name).is_file():
        raise ArgumentError(f"expected MODEL to be a file that exists, got {name!r}")
    from zomirror import models  # imported late: --help and a wrong argument need none of it
    from zomirror.classifiers import as_classifier, http_classifier, onnx_classifier

    if name.lower().startswith(("http://", "https://")):
        remote = http_classifier(name, model=typed.remote_model, token_env=typed.token_env, batch_rows=rows)
        return LoadedModel(public(name), remote, _known(remote.shape[1:] if remote.shape else None))
    if typed.remote_model or typed.token_env:
        raise ArgumentError(f"expected a URL with --remote-model and --token-env, got MODEL {name!r}")
    if name in models.names():
        card, found = models.card(name), onnx_classifier(models.path(name), batch_rows=rows)
        return LoadedModel(name, found, _known(found.input_shape), card.mean, card.std)
    if file:
        found = onnx_classifier(name, batch_rows=rows)
        return LoadedModel(name, found, _known(found.input_shape))
    if ":" in name:
        return LoadedModel(name, as_classifier(load_object(name, "MODEL"), batch_rows=rows))
    raise ArgumentError(
        f"expected MODEL as an .onnx file, module:function, a URL or one of the bundled networks "
        f"({', '.join(models.names())}), got {name!r}"
    )


def _known(sides: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """The shape of one input; None if a side is not known."""
    return None if sides is None or None in sides else tuple(side for side in sides if side is not None)


def load_object(text: str, what: str) -> Any:
    """Import the object `module:name`; the working directory is searched, too."""
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
    """The URL without user name, password and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
