"""Models of scikit-learn by their names, apart from the tests of them: to import it takes two seconds."""

from __future__ import annotations

from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

TREES = [
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(12, random_state=0),
    ExtraTreesClassifier(12, random_state=0),
    GradientBoostingClassifier(n_estimators=12, random_state=0),
    HistGradientBoostingClassifier(max_iter=12, random_state=0),
    AdaBoostClassifier(n_estimators=5, random_state=0),
    BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5, max_features=0.5, random_state=0),
    VotingClassifier(
        [("a", DecisionTreeClassifier(random_state=0)), ("b", ExtraTreesClassifier(5, random_state=0))], voting="soft"
    ),
]
OTHERS = [
    make_pipeline(StandardScaler(), LogisticRegression()),
    make_pipeline(StandardScaler(), SVC()),
    make_pipeline(StandardScaler(), LinearSVC()),
    make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=2000, random_state=0)),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    make_pipeline(StandardScaler(), RandomForestClassifier(12, random_state=0)),
    GridSearchCV(make_pipeline(StandardScaler(), RidgeClassifier()), {"ridgeclassifier__alpha": [0.1, 1.0]}),
    GaussianNB(),
    CalibratedClassifierCV(GaussianNB()),
]  # fmt: skip
SETS = [load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)]


def name(model: Any) -> str:
    """The class, or the classes of the steps."""
    return "+".join(type(step).__name__ for step in getattr(model, "named_steps", {0: model}).values())


BY_NAME = {name(model): model for model in TREES + OTHERS}
