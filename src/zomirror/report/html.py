"""Self-contained HTML pages: styles and scripts inline, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any


def html_page(package: str, **values: object) -> str:
    """The template `page.html.j2` of a package, filled in with `values`, which are escaped.

    Its styles are `base.css` and the package's `page.css`; its script is the package's `page.js`, if there is one.
    The content security policy allows these by their hashes, images in data: URIs, and nothing else.
    """
    from markupsafe import Markup

    # Files of this package: the only text that is not escaped.
    style = Markup(_file(__package__, "base.css") + _file(package, "page.css"))  # noqa: S704
    script = Markup(_file(package, "page.js"))  # noqa: S704
    scripts = f"script-src {_hash(script)}; " if script else ""
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; {scripts}base-uri 'none'; form-action 'none'"
    )
    page: str = _template(package).render(style=style, script=script, policy=policy, **values)
    return page


@cache
def _template(package: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only needed by those who write a page

    loader = PackageLoader(package, ".")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template("page.html.j2")


def _file(package: str, name: str) -> str:
    """The text of a file of a package; empty where there is no such file."""
    file = resources.files(package).joinpath(name)
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
