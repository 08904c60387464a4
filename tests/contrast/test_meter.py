"""The live line of a search: what it says in whatever room there is."""

from __future__ import annotations

import io
from typing import Any

import pytest

from zomirror.contrast.meter import Meter, meter


def test_it_says_less_and_less() -> None:
    told = Meter("explaining 3 inputs", 1_000)
    told.update(250, 1.5, 0.75)
    lines = told.lines()
    assert lines[0].startswith("explaining 3 inputs, F 1.5, best valid 0.75, 250 of 1,000 queries")
    assert lines[-1] == "25%"
    assert sorted(map(len, lines), reverse=True) == [len(line) for line in lines]
    assert Meter("nothing", 0).lines()[-1] == "0%"


@pytest.mark.parametrize("show", [None, False])
def test_without_a_terminal_nothing_is_shown(show: bool | None, capsys: pytest.CaptureFixture[str]) -> None:
    with meter("explaining", 10, show=show) as told, told.hidden():
        told.update(5, 1.0)
    assert capsys.readouterr() == ("", "")


def test_it_is_hidden_while_something_else_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with meter("explaining", 10, show=True) as told:
        assert told.live is not None
        with told.hidden():
            assert not told.live.is_started
        assert told.live.is_started


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_appears_when_the_search_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", Terminal())
    with meter("explaining", 10) as told:
        told.update(1, 1.0)
        assert told.live is None
        monkeypatch.setattr("zomirror.contrast.meter.DELAY", -1.0)
        told.update(2, 1.0)
        live: Any = told.live
        assert live.is_started
    assert not live.is_started
