"""How much of a server's text an error message may show.

A server that was sent a secret can repeat it in any encoding: base64, hexadecimal, one letter per line. A search for
known encodings would miss the next one. Where a secret was sent, only the words of a fixed list are shown, in lower
case, and fewer digits than reveal a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PIECE = 8
"""A text with 8 successive letters or digits of a secret reveals it."""
HIDDEN = "…"
MARKS = ",:()[]"

_LIST = """
able aborted about accept accepted access account after again all allowed already an and any api are array arrays as
at authentication authorization axis bad batch be because before below between binary body bool both broken busy but
by bytes call called can cannot capacity certificate channel channels check class classes client closed column columns
connection content could credentials data datatype datatypes deadline denied deployment did dimension dimensions
disabled do does element elements empty end endpoint engine error errors establish exceed exceeded exceeds exception
exist exists expected expired fail failed failure few field fields file first float floats for forbidden format found
from gateway get given got greater had has have header headers host id if image images in incorrect index inference
input inputs instance instances integer integers internal into invalid is it item items json key keys large length
less limit list loaded loading long lower malformed many match maximum may memory message method minimum mismatch
missing model models must name named names nan new no not null number numbers object of on one only or order
organization other out output outputs overloaded parameter parameters parse path payload permission please post
prediction predictions proxy quota range rank rate ready received refused region remote request requests required
reset resource response retry route row rows scores second seconds server service shape shapes should single size
small some soon status string support supported tensor tensors than that the this time timed timeout to token tokens
too try tunnel type types unable unauthorized unavailable unexpected unknown unsupported until upper url user value
values verify version was were while will with without wrong you your zero
"""
WORDS = frozenset(_LIST.split())
"""Words of error messages. None has a single letter, so that a text spelt letter by letter is not shown."""


def reveals(text: str, secrets: Iterable[str]) -> bool:
    """Whether `text` holds a secret or 8 successive letters or digits of one, in upper or lower case."""
    squeezed = _squeezed(text)
    for secret in secrets:
        pieces = _squeezed(secret) or secret
        if any(pieces[i : i + PIECE] in squeezed for i in range(max(1, len(pieces) - PIECE + 1))):
            return True
        if secret and secret in text:
            return True
    return False


def shown(text: str, secrets: Iterable[str]) -> str:
    """Return what of `text` may be shown: all of it without a secret, else known words; empty if nothing is left."""
    secrets = tuple(secrets)
    if not secrets:
        return "".join(c if c.isprintable() else "?" for c in text[:300])
    found: list[str] = []
    for part in re.findall(rf"[^\W_]+|[{re.escape(MARKS)}]|[^\s]", few_digits(text[:300])):
        if part.lower() in WORDS or part in MARKS or (part.isascii() and part.isdecimal()):
            found.append(part.lower())
        elif found[-1:] != [HIDDEN]:
            found.append(HIDDEN)
    if all(part in (*MARKS, HIDDEN) for part in found):
        return ""
    joined = " ".join(found)
    for before, after in ((" ,", ","), (" :", ":"), (" )", ")"), ("( ", "("), (" ]", "]"), ("[ ", "[")):
        joined = joined.replace(before, after)
    return "" if reveals(joined, secrets) else joined


def few_digits(text: str) -> str:
    """Return `text` with its first numbers, up to 7 digits in all; the others are hidden."""
    left = PIECE - 1

    def kept(number: re.Match[str]) -> str:
        nonlocal left
        left -= len(number[0])
        return number[0] if left >= 0 else HIDDEN

    return re.sub(r"\b[0-9]+\b", kept, text)


def _squeezed(text: str) -> str:
    """The letters and digits of `text` in lower case, without what separates them."""
    return "".join(c for c in text.lower() if c.isalnum())
