"""scikit-learn models: the scores of the model, in the model's own classes, and radii that cross their steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from zomirror.classifiers import Sklearn, Stepped, radius_hint
from zomirror.classifiers.trees import thresholds
from zomirror.errors import ArgumentError, ArgumentTypeError, OracleError

TREES = [
    "DecisionTreeClassifier",
    "RandomForestClassifier",
    "ExtraTreesClassifier",
    "GradientBoostingClassifier",
    "HistGradientBoostingClassifier",
    "AdaBoostClassifier",
    "BaggingClassifier",
    "VotingClassifier",
]
OTHERS = [
    "StandardScaler+LogisticRegression",
    "StandardScaler+SVC",
    "StandardScaler+LinearSVC",
    "StandardScaler+MLPClassifier",
    "StandardScaler+KNeighborsClassifier",
    "StandardScaler+RandomForestClassifier",
    "GridSearchCV",
    "GaussianNB",
    "CalibratedClassifierCV",
]
sk: Any = None


@pytest.fixture(autouse=True, scope="module")
def _scikit_learn() -> None:
    """Imported by the worker that runs these tests, and not by all that collect them."""
    global sk
    from tests.support import sklearn_models as sk

    assert list(sk.BY_NAME) == TREES + OTHERS


@pytest.fixture(autouse=True)
def one_thread():
    """Small batches: a second thread of scikit-learn only waits for the first."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("data", [0, 1], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", TREES + OTHERS)
def test_the_largest_score_is_the_prediction(name, data):
    model, (X, y) = sk.BY_NAME[name], sk.SETS[data]
    model.fit(X, y)
    scores = Sklearn(model)(X)
    assert scores.shape == (len(X), len(model.classes_))
    assert np.isfinite(scores).all()
    agree = model.classes_[scores.argmax(axis=1)] == model.predict(X)
    # libsvm predicts by votes of pairs, which differ from the largest score at a few points near a boundary
    assert agree.mean() >= (0.98 if "SVC" in name else 1.0)


def test_images_are_flattened():
    X, y = sk.SETS[1]
    model = sk.RidgeClassifier().fit(X[:, :12], y)
    np.testing.assert_array_equal(Sklearn(model)(X[:, :12].reshape(-1, 3, 4)), model.decision_function(X[:, :12]))


def test_a_binary_decision_becomes_two_columns():
    X, y = sk.SETS[0]
    model = sk.make_pipeline(sk.StandardScaler(), sk.LinearSVC()).fit(X, y)
    s = model.decision_function(X)
    np.testing.assert_array_equal(Sklearn(model)(X), np.column_stack([-s, s]))


def test_what_is_asked_is_the_first_that_does_not_saturate():
    X, y = sk.SETS[1]
    choices = {
        "decision_function": [sk.OTHERS[0], sk.OTHERS[1], sk.TREES[3], sk.TREES[4], sk.OTHERS[6]],
        "predict_log_proba": [sk.OTHERS[3], sk.OTHERS[7]],
        "predict_proba": [sk.TREES[0], sk.TREES[1], sk.TREES[7], sk.OTHERS[4], sk.OTHERS[5], sk.OTHERS[8]],
    }
    for method, models in choices.items():
        for model in models:
            assert Sklearn(model.fit(X, y)).method == method
    forced = Sklearn(sk.OTHERS[0], method="predict_proba")
    np.testing.assert_array_equal(forced(X), sk.OTHERS[0].predict_proba(X))
    with pytest.raises(
        ArgumentError, match=r"expected an estimator with decision_function, got RandomForestClassifier"
    ):
        Sklearn(sk.TREES[1], method="decision_function")


def test_a_probability_of_zero_has_a_finite_logarithm():
    X, y = sk.SETS[0]
    model = sk.make_pipeline(sk.StandardScaler(), sk.MLPClassifier((8,), max_iter=2000, random_state=0)).fit(X, y)
    far = X[:4] + 1e6 * np.array([[1.0], [-1.0], [2.0], [-2.0]])
    assert (model.predict_proba(far) == 0).any()
    scores = Sklearn(model)(far)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores.argmax(axis=1), model.predict(far))


def test_a_fit_on_named_columns_is_asked_without_a_warning():
    X, y = sk.SETS[1]
    model = sk.RidgeClassifier().fit(X, y)
    plain = Sklearn(model)(X)
    model.feature_names_in_ = np.array([f"f{i}" for i in range(X.shape[1])], dtype=object)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.decision_function(X)
    np.testing.assert_array_equal(Sklearn(model)(X), plain)


def test_models_that_cannot_be_asked_are_refused_at_once():
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LinearRegression

    X, y = sk.SETS[1]
    with pytest.raises(ArgumentTypeError, match="expected estimator to be a scikit-learn classifier, got int"):
        Sklearn(3)
    for unfitted in (
        sk.RandomForestClassifier(),
        sk.make_pipeline(sk.StandardScaler(), sk.SVC()),
        sk.GridSearchCV(sk.SVC(), {"C": [1.0]}),
    ):
        with pytest.raises(ArgumentError, match="expected a fitted classifier"):
            Sklearn(unfitted)
    for other in (LinearRegression().fit(X, y), KMeans(2, n_init=1).fit(X)):
        with pytest.raises(ArgumentError, match="expected a fitted classifier"):
            Sklearn(other)
    pairs = sk.make_pipeline(sk.StandardScaler(), sk.SVC(decision_function_shape="ovo")).fit(X, y)
    with pytest.raises(ArgumentError, match="set decision_function_shape='ovr'"):
        Sklearn(pairs)


def test_bad_input_is_refused():
    X, y = sk.SETS[1]
    classifier = Sklearn(sk.TREES[0].fit(X, y))
    with pytest.raises(ArgumentError, match=r"expected 13 features per input, got 12 \(batch of shape \(178, 12\)\)"):
        classifier(X[:, :12])
    with pytest.raises(OracleError, match=r"DecisionTreeClassifier.predict_proba failed on a batch of shape \(2, 13\)"):
        classifier(np.full((2, 13), np.inf))


@pytest.mark.parametrize("name", TREES)
def test_scores_change_exactly_at_the_thresholds(name):
    """Moving one feature changes the scores only across a threshold, and the thresholds are all there."""
    model = sk.BY_NAME[name]
    X, y = sk.SETS[1]
    splits = thresholds(model.fit(X, y))
    assert splits is not None
    feature, threshold = splits
    classifier = Sklearn(model)
    jumps = 0
    for row in X[::60]:
        for i in range(X.shape[1]):
            at = np.sort(np.concatenate([threshold[feature == i], [X[:, i].min() - 1, X[:, i].max() + 1]]))
            inside = at[:-1] + np.diff(at) * np.array([[0.1], [0.9]])  # two points of every cell
            points = np.repeat(row[None], inside.size, axis=0)
            points[:, i] = inside.ravel()
            scores = classifier(points).reshape(2, -1, 3)
            wide = np.diff(at) > 1e-3  # trees compare in float32
            np.testing.assert_allclose(scores[0, wide], scores[1, wide], atol=1e-9)
            jumps += int((np.abs(np.diff(scores[0], axis=0)).max(axis=1) > 1e-9).sum())
    assert jumps >= 5


@pytest.mark.parametrize("name", TREES)
def test_the_radius_crosses_half_of_the_thresholds_of_each_feature(name):
    model = sk.BY_NAME[name]
    X, y = sk.SETS[0]
    classifier = Sklearn(model.fit(X, y))
    assert isinstance(classifier, Stepped)
    splits = thresholds(model)
    assert splits is not None
    feature, threshold = splits
    for x0 in X[:3]:
        radius = radius_hint(classifier, x0.reshape(5, 6))
        assert radius is not None
        assert radius.shape == (5, 6)
        assert np.isfinite(radius).all()
        assert (radius > 0).all()
        for i in np.unique(feature):
            distance = np.abs(threshold[feature == i] - x0[i])
            share = np.mean(distance < radius.flat[i])
            assert share >= 0.5
            assert np.mean(distance < radius.flat[i] / 1.002) <= 0.5


def test_a_radius_sees_what_an_infinitesimal_one_does_not():
    X, y = sk.SETS[0]
    classifier = Sklearn(sk.RandomForestClassifier(50, random_state=0).fit(X, y))
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(50, X.shape[1]))
    for x0 in X[:5]:
        radius = radius_hint(classifier, x0)
        changed = [np.any(classifier(x0 + r * signs) != classifier(x0[None]), axis=1).mean() for r in (1e-9, radius)]
        assert changed[0] == 0.0
        assert changed[1] == 1.0


def test_nothing_is_said_of_steps_behind_a_transformer_or_in_a_mixture():
    X, y = sk.SETS[1]
    mixed = sk.VotingClassifier([("tree", sk.DecisionTreeClassifier()), ("bayes", sk.GaussianNB())], voting="soft")
    for model in (mixed, sk.OTHERS[5], sk.GaussianNB(), sk.DecisionTreeClassifier(max_depth=1)):
        model.fit(X, y)
    assert radius_hint(Sklearn(mixed), X[0]) is None
    assert radius_hint(Sklearn(sk.OTHERS[5]), X[0]) is None
    stump = sk.DecisionTreeClassifier(max_depth=1).fit(np.zeros((4, 2)), [0, 1, 0, 1])  # never split
    assert radius_hint(Sklearn(stump), np.zeros(2)) is None
    searched = sk.GridSearchCV(sk.RandomForestClassifier(3, random_state=0), {"max_depth": [2]}).fit(X, y)
    assert radius_hint(Sklearn(searched), X[0]) is not None
