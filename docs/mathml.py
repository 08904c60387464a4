"""Turn the equations of the site into MathML while it is built: nothing to fetch and no script to run."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

# pymdownx.arithmatex (generic) marks what stands between $ ... $ and $$ ... $$.
INLINE = re.compile(r'<span class="arithmatex">\\\((.+?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.+?)\\\]\s*</div>', re.DOTALL)


def mathml(latex: str, display: str) -> str:
    """The formula as a <math> element."""
    # In a display environment `&=` aligns; the converter wants its HTML undone.
    return convert(unescape(latex).strip(), display=display)


def on_page_content(html: str, **_: Any) -> str:
    """Replace every marked formula of a page."""
    html = DISPLAY.sub(lambda found: f'<div class="equation">{mathml(found[1], "block")}</div>', html)
    html = INLINE.sub(lambda found: mathml(found[1], "inline"), html)
    if "arithmatex" in html:
        raise ValueError("a formula was left unconverted")
    return html
