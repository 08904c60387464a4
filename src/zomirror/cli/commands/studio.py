"""`zomirror studio MODEL [DATA...]`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zomirror.cli.arguments import ExplainerOptions, takes_explainer_options
from zomirror.cli.show import say

MOST_SAMPLES = 1_000
"""Rows of a table that can be picked; all of them are reference rows."""


@takes_explainer_options()
def studio(
    typed: ExplainerOptions,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
) -> None:
    """Serve a page on this machine where inputs are picked, drawn and explained by hand (needs the extra `studio`)."""
    from zomirror.features.optional import need

    for name in ("uvicorn", "starlette"):
        need(name, name, "studio")
    from zomirror.cli.offer import Offer
    from zomirror.studio import run
    from zomirror.studio.material import Material
    from zomirror.studio.session import Session

    offer = Offer.of(typed)
    explainer = offer.explainer()
    samples = [(one.name, one.x) for one in offer.inputs[:MOST_SAMPLES]]
    material = Material(samples, explainer.table, explainer.shape)
    run(Session(explainer, material, Path(offer.model.name).name), port=port, tell=_tell)


def _tell(address: str) -> None:
    say(f"open {address}\nanyone with this address can ask the model; Ctrl-C ends it")
