"""Turn the equations of the site into MathML while it is built, and give it the part of a font that they need.

Nothing is fetched by the reader and no script runs: browsers set MathML themselves, given a font with
mathematical tables. That font (STIX Two Math, in the package ziamath) is cut down to the characters in use.
"""

from __future__ import annotations

import re
from html import unescape
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from fontTools import subset
from latex2mathml.converter import convert

# pymdownx.arithmatex (generic) marks what stands between $ ... $ and $$ ... $$.
INLINE = re.compile(r'<span class="arithmatex">\\\((.+?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.+?)\\\]\s*</div>', re.DOTALL)

# What the converter leaves out: the bars of a norm do not grow with it, and a function stands apart from its argument.
BAR = re.compile(r"<mo>(&#x02016;|&#x0007C;)</mo>")
FUNCTION = re.compile(r"<mi>(?:ln|log|exp)</mi>(?=<m[in]>)")

# Not in the text, and yet drawn: the root, and the italic letters that browsers use for single ones.
IMPLIED = {0x221A, *range(0x1D434, 0x1D468), 0x210E, *range(0x1D6E2, 0x1D71C)}

_used: set[int] = set()


def mathml(latex: str, display: str) -> str:
    """The formula as a <math> element."""
    element = convert(unescape(latex).strip(), display=display)
    if unknown := re.search(r">(\\\w+)<", element):
        raise ValueError(f"expected LaTeX that MathML can say, got {unknown[1]} in {latex.strip()}: say it otherwise")
    element = BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', element)
    element = FUNCTION.sub(r'\g<0><mspace width="0.167em" />', element)
    _used.update(map(ord, unescape(element)))
    return element


def on_page_content(html: str, **_: Any) -> str:
    """Replace every marked formula of a page."""
    html = DISPLAY.sub(lambda found: f'<div class="equation">{mathml(found[1], "block")}</div>', html)
    html = INLINE.sub(lambda found: mathml(found[1], "inline"), html)
    if "arithmatex" in html:
        raise ValueError("a formula was left unconverted")
    return html


def on_post_build(config: Any, **_: Any) -> None:
    """Write the characters that were used, with the tables that set them, beside the style sheet."""
    options = subset.Options(flavor="woff", layout_features=["*"], notdef_outline=True)
    with as_file(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf") as path:
        font = subset.load_font(str(path), options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=_used | IMPLIED)
    cutter.subset(font)
    subset.save_font(font, str(Path(config["site_dir"]) / "math.woff"), options)
