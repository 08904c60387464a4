"""What the experiments show: curves, claims, figures, the page, the comparison with the authors, the command."""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support import chromium
from tests.support.command import call
from tests.support.experiments import GOOD, falling, made, study
from zomirror.errors import ArgumentError, DataError
from zomirror.paper import curve_panels as figures
from zomirror.paper import dimension, studies
from zomirror.paper import images as pictures
from zomirror.paper import reference as check
from zomirror.paper.claims import Verdict, claims, ratio
from zomirror.paper.grid import Task
from zomirror.paper.outcome import RunOutcome, steps
from zomirror.paper.settings import ADAPTIVE, Algorithm
from zomirror.paper.store import write_study
from zomirror.paper.summary import PUBLISHED, Panel, group, panels
from zomirror.paper.tables import final_rows

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "benchmarks" / "results" / "paper"
PLACES = [(data, kind) for data in ("mnist", "cifar") for kind in ("PN", "PP")]
BETTER_ON_CIFAR = GOOD | {"psgd-10": falling(0.4, 300)}


def everything(settings: str = "printed", images: range = range(4)) -> list[RunOutcome]:
    """Both data sets and kinds, such that every claim of the paper is true."""
    runs = []
    for data, kind in PLACES:
        shapes = GOOD if data == "mnist" else BETTER_ON_CIFAR
        runs += study(shapes, images, data=data, kind=kind, settings=settings)
    return runs


# --- curves --------------------------------------------------------------------------------------------------------


def test_a_curve_is_the_mean_of_normalised_losses_with_the_middle_half_as_its_band() -> None:
    runs = [made("adaexpmd", falling(to), image=i, start=10.0**i) for i, to in enumerate((0.1, 0.2, 0.3, 0.4, 0.9))]
    [found] = group(runs)
    [curve] = found.curves([ADAPTIVE])
    assert curve.mean[0] == 1
    assert curve.mean[-1] == pytest.approx(np.mean([falling(to)(200) for to in (0.1, 0.2, 0.3, 0.4, 0.9)]))
    low, high = curve.band
    assert (low[-1], high[-1]) == (pytest.approx(0.2, abs=1e-6), pytest.approx(0.4, abs=1e-6))
    assert (found.queries == 201 * np.array(found.steps)).all()


def test_curves_are_compared_on_the_same_images_only() -> None:
    runs = [made("adaexpmd", falling(0.1), image=i) for i in range(5)]
    runs += [made("expmd-1", falling(0.1), image=i) for i in (3, 4, 7)]
    [found] = group(runs)
    assert found.images(["adaexpmd", "expmd-1"]) == [3, 4]
    assert [curve.images for curve in found.curves([ADAPTIVE, Algorithm("expmd", 1.0)])] == [2, 2]
    assert [curve.images for curve in found.curves([ADAPTIVE])] == [5]
    assert found.curves([Algorithm("psgd", 1.0)]) == []


def test_repeats_with_other_seeds_are_not_other_images() -> None:
    runs = [made("adaexpmd", falling(0.1), image=1), made("adaexpmd", falling(0.9), image=1, repeat=1)]
    [curve] = group(runs)[0].curves([ADAPTIVE])
    assert curve.mean[-1] == pytest.approx(0.1, abs=1e-6)


def test_the_best_step_size_has_the_lowest_mean() -> None:
    shapes = {"expmd-1": falling(0.3, 10), "expmd-10": falling(0.1, 200)}
    [found] = group(study(shapes))
    best, early = found.best("expmd"), found.best("expmd", 10)
    assert best is not None
    assert early is not None
    assert (best.eta, early.eta) == (10, 1)
    with pytest.raises(DataError, match="expected a step"):
        found.at(77)


def test_there_are_twelve_panels_and_published_values_only_where_they_belong() -> None:
    shown = panels(group(everything() + everything("authors")))
    assert len(shown) == 24
    assert len({panel.name for panel in shown}) == 24
    for panel in shown:
        assert len(panel.curves) == (4 if panel.topic == "convergence" else 6)
        if panel.group.settings == "printed":
            assert panel.marks == []
        elif panel.topic == "convergence":
            named = {mark.algorithm.family: mark.value for mark in panel.marks}
            published = PUBLISHED[panel.group.data, panel.group.kind]
            assert named["adaexpmd"] == published["adaexpmd"]
            assert named["psgd"] in published.values()


# --- claims --------------------------------------------------------------------------------------------------------


def test_a_ratio_knows_how_sure_it_is() -> None:
    rng = np.random.default_rng(0)
    below = rng.lognormal(size=50)
    same = ratio(below, below)
    assert (same.value, same.low, same.high) == (1, 1, 1)
    twice = ratio(2 * below * rng.lognormal(sigma=0.1, size=50), below)
    assert twice.low < twice.value < twice.high
    assert 1.8 < twice.low < twice.high < 2.2


def test_every_claim_is_recognised_where_it_is_true() -> None:
    found = claims(group(everything()))
    assert [claim.number for claim in found] == [1, 2, 3, 4, 5, 6]
    assert {claim.verdict for claim in found} == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("number", "shapes", "verdict"),
    [
        (1, {"adaexpmd": falling(0.3)}, Verdict.FAILS),
        (2, {"psgd-10": falling(0.01, 2)}, Verdict.FAILS),
        (2, {"psgd-1": falling(0.06, 2)}, Verdict.PARTLY),
        (3, {"psgd-100": falling(0.01, 150)}, Verdict.FAILS),
        (3, {"expmd-1": falling(0.07, 45)}, Verdict.PARTLY),
        (4, {"psgd-10": falling(0.04, 120)}, Verdict.PARTLY),
        (4, {"psgd-10": falling(0.5)}, Verdict.PARTLY),
        (6, {name: falling(0.5) for name in GOOD}, Verdict.FAILS),
    ],
)
def test_a_claim_that_is_not_true_is_said_to_be_so(number: int, shapes: dict[str, Any], verdict: Verdict) -> None:
    runs = [run for data, kind in PLACES for run in study(GOOD | shapes, range(4), data=data, kind=kind)]
    assert claims(group(runs))[number - 1].verdict is verdict


def test_the_advantage_is_compared_across_data_sets() -> None:
    runs = []
    for data, kind in PLACES:
        runs += study(BETTER_ON_CIFAR if data == "mnist" else GOOD, range(4), data=data, kind=kind)
    assert claims(group(runs))[4].verdict is Verdict.FAILS


def test_what_was_not_run_is_not_claimed() -> None:
    found = claims(group(study(GOOD)))
    assert [claim.verdict for claim in found][3:5] == [Verdict.UNKNOWN, Verdict.UNKNOWN]
    assert {claim.verdict for claim in claims(group([made("adaexpmd", falling(0.1))]))} == {Verdict.UNKNOWN}


# --- the dimension -------------------------------------------------------------------------------------------------


def test_growth_is_the_median_of_queries_to_the_target() -> None:
    runs = []
    for scale in (1, 2, 4):
        for image in range(3):
            other = {"image": image, "upscale": scale, "shared": scale > 1}
            runs.append(made("adaexpmd", falling(0.01, 20 * scale * (1 + image)), **other))
            for eta in (1, 10, 100):
                shape = falling(0.01, 400.0) if eta == 10 and scale < 4 else falling(0.5)
                runs.append(made(f"psgd-{eta / (scale**2 if scale > 1 else 1):g}", shape, **other))
    adaptive, psgd = dimension.growths(runs)
    assert adaptive.dimensions == (784, 3_136, 12_544)
    assert (adaptive.family, psgd.family, adaptive.shared) == ("adaexpmd", "psgd", True)
    expected = [dimension.queries_to(run, 0.1) for run in runs if run.algorithm == "adaexpmd" and run.image == 1]
    assert list(adaptive.queries) == expected
    assert psgd.queries[2] is None
    assert psgd.reached == (3, 3, 0)
    assert psgd.chosen[:2] == (10, 2.5)
    assert "not reached" in psgd.words
    assert dimension.growths(runs[:3]) == []


def test_queries_to_a_target_are_those_of_the_first_step_below_it() -> None:
    run = made("adaexpmd", lambda t: 1 - t / 201)
    t = next(t for t in steps(200) if 1 - t / 201 <= 0.5)
    assert dimension.queries_to(run, 0.5) == 201 * t
    assert dimension.queries_to(run, 1e-9) == np.inf


# --- figures and the page ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def convergence() -> Panel:
    return panels(group(study(GOOD, settings="authors")))[0]


@pytest.mark.parametrize("axis", figures.AXES)
def test_a_figure_shows_the_curves_their_bands_and_the_published_values(convergence: Panel, axis: str) -> None:
    [axes] = figures.draw(convergence, axis).axes
    lines = {line.get_label(): line for line in axes.lines}
    across = convergence.group.queries if axis == "queries" else convergence.group.steps
    for curve in convergence.curves:
        line = lines[curve.algorithm.title]
        np.testing.assert_array_equal(line.get_ydata(), curve.mean)
        np.testing.assert_array_equal(line.get_xdata(), across)
    assert len(axes.collections) == len(convergence.curves), "one band each"
    stars = [line for line in axes.lines if line.get_marker() == "*"]
    assert sorted(float(np.asarray(star.get_ydata())[0]) for star in stars) == [0.053, 0.053, 0.055]
    assert axes.get_yscale() == "log"


def test_figures_are_files_that_do_not_change_by_being_drawn_again(convergence: Panel, tmp_path: Path) -> None:
    first, second = (figures.save(convergence, "iterations", tmp_path / name) for name in ("a", "b"))
    with Image.open(first.png) as picture:
        assert picture.size == (624, 468)
    assert first.png.read_bytes() == second.png.read_bytes()
    assert first.svg.read_bytes() == second.svg.read_bytes()
    assert f"ZO-AdaExpMD ends at {convergence.curves[0].mean[-1]:.3g}" in first.words


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small studies with figures and page."""
    out = tmp_path_factory.mktemp("reproduction")
    write_study(out / "mnist-printed.json", study(GOOD, range(3)))
    growing = [
        made(name, falling(0.01, 20.0 * scale), upscale=scale, shared=scale > 1)
        for scale in (1, 2, 4)
        for name in ("adaexpmd", "recommended")
    ]
    write_study(out / "mnist-printed-dimension.json", growing)
    studies.report(out)
    return out


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_report_holds_every_figure_and_every_number(folder: Path) -> None:
    for topic in ("convergence", "expmd", "psgd"):
        for suffix in ("", "-queries"):
            for kind in ("png", "svg"):
                assert (folder / "figures" / f"mnist-pn-{topic}-printed{suffix}.{kind}").stat().st_size > 5_000
    rows = table(folder / "curves.csv")
    assert len(rows) == 14 * len(steps(200))
    finals = {row["algorithm"]: row for row in table(folder / "finals.csv")}
    assert float(finals["adaexpmd"]["t200"]) == pytest.approx(0.049, abs=0.002)
    told = json.loads((folder / "claims.json").read_text())
    assert [claim["claim"] for claim in told["printed"]] == [1, 2, 3, 4, 5, 6]


def test_the_page_is_whole_in_itself(folder: Path) -> None:
    page = html.unescape((folder / "reproduction.html").read_text())
    assert page.count('src="data:image/svg+xml;base64,') == page.count("<img ") == 7
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert "default-src 'none'" in page
    for claim in claims(group(study(GOOD, range(3)))):
        assert claim.text in page
        assert claim.verdict.value in page


@pytest.mark.skipif(bool(chromium.missing()), reason=chromium.missing())
@pytest.mark.parametrize(("width", "height", "theme"), [(1280, 900, "light"), (390, 844, "dark")])
def test_the_page_opens_cleanly(session: chromium.Browser, folder: Path, width: int, height: int, theme: str) -> None:
    session.look(width, height, theme)
    session.console(), session.requests()
    session.open((folder / "reproduction.html").as_uri())
    wide, window = session.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window, "the page must not scroll sideways"
    drawn = session.run("""return Promise.all([...document.images].map((image) => {
        image.loading = "eager"; return image.decode().then(() => image.naturalWidth); }))""")
    assert len(drawn) == 7
    assert min(drawn) > 300
    assert session.console() == []
    assert [url for url in session.requests() if not url.startswith(("file:", "data:", "about:"))] == []


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="found none"):
        studies.report(tmp_path)


# --- the comparison with the authors' models -----------------------------------------------------------------------


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Networks under the names of the authors': what is in them does not matter to finished runs."""
    for name in check.FILES.values():
        (tmp_path / name).write_bytes(pictures.network("mnist").path.read_bytes())
    return tmp_path


def between(times: tuple[int, ...], values: tuple[float, ...], t: int) -> float:
    return float(np.exp(np.interp(t, times, values)))


def finished(models: Path, out: Path, *, off: float = 1.0) -> None:
    """Outcomes that agree with every reference, up to a factor."""
    found: dict[str, list[RunOutcome]] = {}
    for reference in check.REFERENCES:
        times, values = (0, *check.TIMES), (0.0, *np.log(np.array(reference.values) * off))
        for task in check.tasks(models, [reference]):
            run = made(task.algorithm, partial(between, times, values), image=task.image)
            place = {name: getattr(task, name) for name in ("key", "data", "settings", "kind", "network", "repeat")}
            found.setdefault(task.study, []).append(replace(run, **place))
    for name, runs in found.items():
        write_study(out / f"{name}.json", runs)


def test_the_comparison_has_every_row_of_both_tables(models: Path, tmp_path: Path) -> None:
    finished(models, tmp_path / "out", off=1.05)
    rows = studies.checked(models, tmp_path / "out")
    assert [row.reference for row in rows] == list(check.REFERENCES)
    assert len(rows) == 9 + 9
    for row in rows:
        assert row.deviation == pytest.approx(0.05, abs=1e-6)
        assert row.agrees
        assert row.seeds == row.reference.seeds
        assert row.strayed is None, "runs that do not depend on their seeds explain nothing"
    tasks = check.tasks(models)
    assert len(tasks) == 7 * 10 + 5 * 10 + 12 * 2 * 7 + 3 * 2 * 3 + 2 * 3
    assert len({task.key for task in tasks}) == len(tasks)
    assert len({task.seed for task in tasks if task.image == 482}) == 12
    again = {(task.settings, task.algorithm) for task in tasks if task.replayed}
    assert again == {("printed", "adaexpmd"), ("printed", "expmd-1")}, "signs of the second implementation"


def test_the_spread_of_the_seeds_stands_beside_a_deviation(models: Path) -> None:
    """Photographs at 0.9, 1 and 1.1 of the reference by their seeds: it is off by nothing, and strays by 0.1."""
    [reference] = [one for one in check.REFERENCES if one.images == check.PHOTOGRAPHS and one.kind == "PN"]
    found = {}
    for task in check.tasks(models, [reference]):
        if task.repeat > 2:
            continue
        times, values = (0, *check.TIMES), (0.0, *np.log(np.array(reference.values) * (0.9 + 0.1 * task.repeat)))
        found[task.key] = made(task.algorithm, partial(between, times, values), image=task.image)
    [row] = check.compare(found, models, [reference])
    assert row.spread == pytest.approx([0.1 * value for value in reference.values], rel=1e-6)
    assert row.strayed == pytest.approx(0, abs=1e-6)
    off = replace(row, measured=tuple(1.2 * value for value in reference.values))
    assert off.strayed == pytest.approx(2 / np.sqrt(4 / 3), rel=1e-6)
    assert row.agrees
    assert not off.agrees, "what the seeds explain is told beside it, and excuses nothing"


def test_the_command_of_the_comparison_tells_and_fails_when_a_row_is_off(models: Path, tmp_path: Path) -> None:
    finished(models, tmp_path / "good")
    told = call("reproduce", "check", models, "--out", tmp_path / "good").stdout
    assert "0 runs computed, 312 already finished" in told
    assert "18 of 18 rows agree within 10 %" in told
    finished(models, tmp_path / "bad", off=1.2)
    rows = json.loads(call("reproduce", "check", models, "--out", tmp_path / "bad", "--json", code=1).stdout)
    assert {row["agrees"] for row in rows} == {False}


def test_a_comparison_without_its_models_says_what_is_missing(tmp_path: Path) -> None:
    assert "lenet_authors.onnx" in call("reproduce", "check", tmp_path, code=2).stderr
    assert "PATH" in call("reproduce", "check", code=2).stderr


# --- the command ---------------------------------------------------------------------------------------------------


def test_the_command_lists_its_studies() -> None:
    told = call("reproduce", "--list").stdout
    for name in studies.STUDIES:
        assert f"\n{name} " in f"\n{told}"
    assert "5,600 runs" in told
    assert json.loads(call("reproduce", "--list", "--json", "--images-per-class", 1).stdout)["runs_per_data_set"] == 280


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "expected a study"),
        (("moon",), "expected one of mnist"),
        (("mnist", "somewhere"), "expected a path with check only"),
        (("all", "--model", "x.onnx"), "one by one"),
        (("mnist", "--model", "x.onnx"), "does not exist"),
        (("mnist", "--algorithms", "adam"), "expected an algorithm"),
    ],
)
def test_wrong_words_are_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in call("reproduce", *words, "--out", tmp_path, code=2).stderr


def test_the_command_runs_draws_and_finds_everything_done_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "AXES", ("iterations",))  # every figure is drawn for the report above
    words = ("reproduce", "mnist", "--images-per-class", 1, "--iterations", 2, "--algorithms", "adaexpmd")
    told = call(*words, "--out", tmp_path).stdout
    assert "20 runs computed, 0 already finished" in told
    assert (tmp_path / "reproduction.html").is_file()
    again = json.loads(call(*words, "--out", tmp_path, "--json").stdout)
    assert (again["computed"], again["found"]) == (0, 20)


# --- the committed results -----------------------------------------------------------------------------------------


def committed() -> list[RunOutcome]:
    from zomirror.paper.store import read_study

    names = sorted(COMMITTED.glob("*-*.json"))
    return [run for path in names for run in read_study(path)]


def test_the_committed_results_are_those_of_the_bundled_networks() -> None:
    """Keys are digests of configurations: whoever changes one of these must run the experiments again."""
    runs = [run for run in committed() if not run.network and run.upscale == 1]
    mnist = [run for run in runs if run.data == "mnist"]
    # The recommended method has changed since; docs/reproduction.md says so beside its curves.
    published = [run for run in mnist if run.algorithm != "recommended"]
    lenet = pictures.network("mnist")
    for run in published[:: 1 + len(published) // 50]:
        task = Task(
            run.data, run.settings, run.kind, run.algorithm, run.image, lenet.path, lenet.digest, "", run.iterations
        )
        assert task.key == run.key
    for found in group(mnist):
        if found.settings == "printed":
            assert min(curve.images for curve in found.curves([Algorithm.named(name) for name in found.runs])) >= 10


def test_the_committed_numbers_follow_from_the_committed_runs() -> None:
    stored = {tuple(row.values()) for row in table(COMMITTED / "finals.csv")}
    made_now = {tuple(map(str, row)) for row in final_rows(group(committed()))}
    assert made_now <= stored
