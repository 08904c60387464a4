"""Rows of tables end to end: the models that people have, answers that exist, and what they say."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import zomirror as zm
from tests.support.loan_names import BOOSTED, PIPELINES
from zomirror.errors import ArgumentError

loan: Any = None
pd: Any = None
REFUSED = 3
"""A row that is refused by every model."""


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    global loan, pd
    import pandas as pd

    from tests.support import loan_table as loan


def refused(frame: Any) -> Any:
    return frame[loan.worth(loan.loans()) < -0.7].iloc[REFUSED]


@pytest.mark.parametrize("name", PIPELINES + BOOSTED)
def test_every_kind_of_model_gets_a_legal_answer_whose_class_was_seen(name):
    model, frame = (loan.pipeline(name), loan.loans()) if name in PIPELINES else loan.boosted(name)
    x0 = refused(frame)
    features = zm.Table(frame, fixed=["age", "purpose"], increasing=["income"], decreasing=["children"])
    named = hasattr(model, "classes_") and "granted" in list(np.asarray(model.classes_).tolist())
    e = zm.explain(model, x0, features=features, budget=500, target="granted" if named else None)
    assert e.valid, e.words()
    after = e.perturbed
    assert after["age"] == x0["age"]
    assert after["purpose"] == x0["purpose"]
    assert after["income"] >= x0["income"]
    assert after["children"] <= x0["children"]
    assert after["income"] % 100 == 0
    assert after["housing"] in set(frame["housing"])
    assert e.nfev <= 450
    row = frame.iloc[[0]].copy()
    for column in frame:
        row[column] = pd.Series([after[column]], index=row.index).astype(frame[column].dtype)
    scores = np.asarray(features.classifier(model)(np.array([features.place(row, "PN").code])))[0]
    np.testing.assert_allclose(scores, e.scores_after, rtol=1e-6)
    assert scores.argmax() == e.contrast_label != e.label
    assert [change.name for change in e.changes] == [name for name, _ in e.top()]
    assert all(x0[change.name] == change.before for change in e.changes)
    assert all(after[change.name] == change.after for change in e.changes)
    if named:
        assert e.name_of(e.label) == "refused"
        assert e.words().startswith("refused; granted if ")


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_dice_260_columns_that_may_not_vary_keep_every_bit(library):
    """Two of eight columns of long floats may vary, as in DiCE#260; the six others stay what they are, bit for bit."""
    rng = np.random.default_rng(3)
    names = ["MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude"]
    frame = pd.DataFrame(rng.lognormal(size=(400, 8)), columns=names)
    y = frame["MedInc"] + 0.5 * frame["AveRooms"] > 2.0
    if library == "xgboost":
        import xgboost

        model: Any = xgboost.XGBClassifier(n_estimators=20, n_jobs=1).fit(frame, y)
    else:
        import lightgbm

        model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(frame, y)
    vary = ["MedInc", "AveRooms"]
    rows = frame[~model.predict(frame).astype(bool)].iloc[:3]
    features = zm.Table(frame, fixed=[name for name in names if name not in vary])
    found = zm.explain_many(model, rows, features=features, budget=400)
    assert all(e.valid for e in found)
    for e, (_, x0) in zip(found, rows.iterrows(), strict=True):
        assert {change.name for change in e.changes} <= set(vary)
        assert all(e.perturbed[name] == x0[name] for name in names if name not in vary)
        up = zm.Table(frame, fixed=[n for n in names if n not in vary], increasing=vary)
        risen = zm.explain(model, x0, features=up, budget=400)
        assert all(risen.perturbed[name] >= x0[name] for name in vary)


def test_a_pp_is_a_set_of_columns_and_its_baseline_has_another_class():
    x0 = refused(loan.loans())
    e = zm.explain(loan.scores, x0, kind="PP", features=zm.Table(loan.loans()), class_names=["refused", "granted"])
    assert e.valid
    present = {change.name for change in e.changes}
    assert 0 < len(present) == e.nnz < 7
    assert all(e.perturbed[change.name] == x0[change.name] == change.after for change in e.changes)
    baseline = {**e.perturbed.to_dict(), **{change.name: change.before for change in e.changes}}
    assert loan.scores(pd.DataFrame([baseline]))[0].argmax() == 1
    assert loan.scores(pd.DataFrame([e.perturbed.to_dict()]))[0].argmax() == 0
    assert e.words().startswith("refused because of ")
    assert "enough" in e.words()


def test_a_baseline_of_the_same_class_is_said():
    frame = loan.loans()
    x0 = refused(frame)
    poor = {"income": 25_000, "housing": "rent", "children": 2, "rate": 0.3}
    e = zm.explain(loan.scores, x0, kind="PP", features=zm.Table(frame, baseline=poor))
    assert "the baseline alone has this class" in e.words()
    assert "the baseline alone has this class" in zm.Explanation.from_json(e.to_json()).words()


def test_an_answer_survives_json_and_is_drawn(tmp_path):
    from zomirror import report

    frame = loan.loans()
    x0 = refused(frame)
    made: dict[str, Any] = {"class_names": ["refused", "granted"], "features": zm.Table(frame)}
    e = zm.explain(loan.scores, x0, **made)
    pp = zm.explain(loan.scores, x0.to_dict(), kind="PP", **made)
    for given in (x0, frame.loc[[x0.name]], tuple(x0), x0.to_numpy()):
        same = zm.explain(loan.scores, given, budget=200, **made)
        back = zm.Explanation.from_json(same.to_json())
        assert (back.words(), back.changes) == (e.words(), e.changes)
        assert same.input_key == e.input_key == back.input_key
        assert back.x0 == {name: x0[name] for name in frame}
    assert back.plot() is not None
    page = report.write(tmp_path / "page.html", [e, pp, zm.Explanation.from_json(e.to_json())]).read_text()
    change = e.changes[0]
    assert f"<td>{change.name}</td>" in page or change.name in page
    assert "Refused because of" in page
    assert "; granted if" in page
    assert "svg" in e._repr_html_() or "png" in e._repr_html_()


def test_frames_out():
    frame = loan.loans()
    found = zm.explain_many(loan.pipeline(), frame.iloc[:4], features=zm.Table(frame), budget=300)
    table = zm.changes_frame(found)
    assert list(table.columns) == ["answer", "kind", "valid", "label", "contrast", "column", "before", "after"]
    assert len(table) == sum(e.nnz for e in found)
    rows = [tuple(row) for row in table[["column", "before", "after"]].itertuples(index=False)]
    assert rows == [tuple(change) for e in found for change in e.changes]
    assert [tuple(row) for row in found[0].frame.itertuples(index=False)] == [tuple(c) for c in found[0].changes]
    with pytest.raises(zm.errors.ArgumentTypeError, match="expected explanations, got int at place 0"):
        zm.changes_frame([3])  # type: ignore[list-item]


def test_a_run_with_missing_values_is_resumed_to_the_same_bits(tmp_path):
    frame = loan.loans().copy()
    frame.loc[::7, "rate"] = np.nan
    frame["housing"] = frame["housing"].where(np.arange(len(frame)) % 5 > 0, None)
    x0 = frame.iloc[35]

    def model(rows: Any) -> Any:
        return loan.scores(rows.fillna({"rate": 0.3}))

    features = zm.Table(frame, missing=["rate"])
    given: dict[str, Any] = {"features": features, "budget": 300, "run_dir": tmp_path / "run"}
    whole = zm.explain(model, x0, **given)
    again = zm.explain(model, x0, **given)
    assert type(again.x0) is type(again.perturbed) is pd.Series
    assert again.perturbed.equals(whole.perturbed)
    shutil.rmtree(tmp_path / "run")
    asked = 0

    def dying(rows):
        nonlocal asked
        asked += len(rows)
        if asked > 30:
            raise KeyboardInterrupt
        return model(rows)

    with pytest.raises(KeyboardInterrupt):
        zm.explain(dying, x0, **given)
    resumed = zm.explain(model, x0, **given)
    assert resumed.to_json() == zm.Explanation.from_json(resumed.to_json()).to_json()
    assert (resumed.changes, resumed.nfev, resumed.objective) == (whole.changes, whole.nfev, whole.objective)
    assert np.isnan(resumed.perturbed["housing"]) if x0["housing"] is np.nan else True


def test_another_table_is_another_run(tmp_path):
    frame = loan.loans()
    x0 = refused(frame)
    zm.explain(loan.scores, x0, features=zm.Table(frame), run_dir=tmp_path / "run")
    with pytest.raises(zm.errors.RunError):
        zm.explain(loan.scores, x0, features=zm.Table(frame, fixed=["income"]), run_dir=tmp_path / "run")


def test_classes_by_name():
    frame = loan.loans()
    x0 = refused(frame)
    features, model = zm.Table(frame), loan.pipeline()
    with pytest.raises(ArgumentError, match=r"target among the classes of the model \(granted, refused\), got 'given'"):
        zm.explain(model, x0, features=features, target="given")
    with pytest.raises(ArgumentError, match="label as a number, because the model does not name its classes"):
        zm.explain(loan.scores, x0, features=features, label="granted")
    e = zm.explain(loan.scores, x0, features=features, label="granted", class_names=["refused", "granted"])
    assert e.label == 1
    assert "x0 is not classified" in e.words()
    rows = frame[["income", "children", "rate"]].to_numpy()
    from sklearn.linear_model import LogisticRegression

    plain = LogisticRegression().fit(rows, loan.verdict(frame))
    e = zm.explain(plain, rows[0], bounds=np.stack([rows.min(0), rows.max(0)], 1), signed=True, budget=300)
    assert e.class_names == ("granted", "refused")


def test_a_regressor_of_rows():
    frame = loan.loans()
    e = zm.explain(zm.above(loan.pipeline("LinearRegression"), 1.0), refused(frame), features=zm.Table(frame))
    assert e.valid
    assert e.words().startswith("at most 1; above 1 if ")


def test_polars_rows_and_a_function_of_a_frame():
    import polars as pl

    frame = pl.from_pandas(loan.loans())

    def model(rows):
        assert isinstance(rows, pl.DataFrame)
        assert rows.schema == frame.schema
        return loan.scores(rows.to_pandas())

    x0 = frame.filter(pl.Series(loan.worth(loan.loans()) < -0.7))[REFUSED]
    e = zm.explain(model, x0, features=zm.Table(frame), budget=300)
    assert e.valid
    assert isinstance(e.perturbed, pl.DataFrame)
    assert e.perturbed.schema == frame.schema
    assert zm.explain_many(model, frame[:2], features=zm.Table(frame), budget=300)[1].valid
    assert zm.Explanation.from_json(e.to_json()).words() == e.words()
