"""Files of explanations: a .json and a picture for each, and an overview picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from zomirror.contrast import Explanation


class Saved:
    """The output directory, created with its first file; files of the same name are replaced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[Path] = []
        self._taken: set[str] = set()
        self._of: dict[int, tuple[Path, Path]] = {}

    def name(self, of: str) -> str:
        """A file name for this input, with a number if an earlier input has it."""
        stem = file_name(of)
        some = (stem, *(f"{stem}-{i}" for i in range(2, len(self._taken) + 3)))
        found = next(name for name in some if name not in self._taken)
        self._taken.add(found)
        return found

    def keep(self, stem: str, one: Explanation) -> None:
        """Write the .json, then the picture."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text, image = self.folder / f"{stem}.json", self.folder / f"{stem}.png"
        text.write_text(one.to_json(), encoding="utf-8")
        self.files.append(text)
        self._draw(image, one.plot())
        self._of[id(one)] = (text, image)

    def of(self, one: Explanation) -> tuple[Path, Path]:
        """The paths of its .json and its picture."""
        return self._of[id(one)]

    def overview(self, all_: Sequence[Explanation]) -> None:
        """Draw all explanations in one picture, if there are several inputs."""
        if len({one.input_key for one in all_}) > 1:
            from zomirror.drawing.plot import plot_grid

            self._draw(self.folder / "overview.png", plot_grid(all_))

    def _draw(self, path: Path, figure: Figure) -> None:
        figure.savefig(path)
        self.files.append(path)


def run_name(i: int, name: str) -> str:
    """The name of input i as that of its run: of ASCII letters, unique, and no file of a run directory."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return name if plain == name and re.match(r"[A-Za-z0-9]", name) and name != "lock" else f"{i}-{plain.strip('._-')}"


def file_name(name: str) -> str:
    """The input's name as a file name: letters, digits, dot and hyphen."""
    plain = re.sub(r"\.(?:png|jpe?g|npy|csv|txt)\b", "", name, flags=re.IGNORECASE)
    return re.sub(r"[^\w.-]+", "-", plain).strip("-.")[-80:] or "input"
