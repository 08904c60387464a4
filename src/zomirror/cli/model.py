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


def load_model(text: str) -> Model:
    """The model that `text` names, ready to be asked."""
    from zomirror import models  # what follows is loaded only by those who ask a model

    if text in models.names():
        card = models.card(text)
        shape = tuple(int(side) for side in card.facts["input"]["shape"][1:])
        return Model(text, models.path(text), shape, card.mean, card.std)
    if text.lower().startswith(("http://", "https://")):
        raise ArgumentError(f"expected an .onnx file or module:function, got the URL {public(text)!r}")
    if text.lower().endswith(".onnx"):
        if not Path(text).is_file():
            raise ArgumentError(f"expected MODEL to be a file that exists, got {text!r}")
        return Model(text, text)
    if ":" in text:
        return Model(text, load_object(text, "MODEL"))
    raise ArgumentError(
        f"expected MODEL as an .onnx file, module:function or one of the bundled networks "
        f"({', '.join(models.names())}), got {text!r}"
    )


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
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"
