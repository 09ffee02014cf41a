"""Writes the files in fixtures/ (but for project.toml): run it where the format of a file changes.

The keys are no secret, so that what is read can be signed again, to the same bytes.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from datacollab import PartyModel, Share
from datacollab.bundle import KeyPair
from datacollab.linalg import Kernel
from datacollab.model import (
    AnchorPredictions,
    AveragedClassifier,
    CalibratedForestClassifier,
    KernelMap,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    LinearMap,
)
from datacollab.survival import CoxRegression, SurvivalForest
from datacollab.targets import survival_target

FOLDER = Path(__file__).with_name("fixtures")
KEY = KeyPair(b"\1" * 32, b"\2" * 32)
TIMES = [0.0, 0.2, 0.5]

generator = np.random.default_rng(1)
X, A = generator.normal(size=(60, 3)), generator.normal(size=(10, 3))
ROWS = generator.normal(size=(6, 3))
TWO = np.where(X[:, 0] > 0, "high", "low")
THREE = np.where(X[:, 0] > 0.3, 2, np.where(X[:, 1] > 0, 1, 0))
KERNEL = Kernel(metric="rbf", parameters={"gamma": 0.25})
LINEAR = LinearMap("north", generator.normal(size=(3, 2)))
AFFINE = LinearMap("north", generator.normal(size=(3, 2)), generator.normal(size=2))
EXPANSION = KernelMap("north", A, generator.normal(size=(10, 2)), KERNEL)
BY_COLUMNS = KernelMap("north", np.asfortranarray(A), np.asfortranarray(EXPANSION.coefficients), KERNEL, "float64")


def models():
    """Each map, form and kind of step."""
    survival = survival_target(generator.random(60) < 0.7, generator.exponential(np.exp(-X[:, 0])))
    strata = np.array(["north", "south", "west"])[np.arange(60) % 3]
    settings = {"n_estimators": 3, "random_state": 0}
    narrow, wide = (LandmarkRidgeClassifier(LINEAR(A), gamma=gamma) for gamma in (0.5, 2.0))
    vote = [("a", GaussianNB()), ("b", LandmarkRidgeClassifier(LINEAR(A), gamma=0.5))]
    scaled = make_pipeline(StandardScaler(), MinMaxScaler(clip=True), PCA(2), LogisticRegression())
    fitted = {
        "boosting": (LINEAR, GradientBoostingClassifier(**settings), THREE),
        "calibrated": (LINEAR, CalibratedClassifierCV(GaussianNB(), cv=2, method="isotonic"), THREE),
        "calibrated-forest": (LINEAR, CalibratedForestClassifier(3, random_state=0), TWO),
        "forest": (BY_COLUMNS, RandomForestClassifier(max_depth=4, **settings), TWO.astype(object)),
        "histograms": (LINEAR, HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=4), X[:, 0]),
        "logarithm": (AFFINE, TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp), np.exp(X[:, 0])),
        "network": (LINEAR, MLPClassifier((4,), activation="tanh", max_iter=20, random_state=0), TWO),
        "numbers": (EXPANSION, LandmarkRidgeRegressor(kernel="linear"), X[:, 0]),
        "pipeline": (LINEAR, scaled, TWO),
        "vote": (LINEAR, VotingClassifier(vote, voting="soft", weights=[1, 3]), THREE),
        "survival-forest": (AFFINE, SurvivalForest(3, random_state=0), survival),
    }
    made = {
        name: PartyModel(party="north", integration_function=g, estimator=estimator.fit(g(X), y))
        for name, (g, estimator, y) in fitted.items()
    }
    average = AveragedClassifier([each.fit(LINEAR(X), TWO) for each in (narrow, wide)], [1, 3])
    made["average"] = PartyModel(party="north", integration_function=LINEAR, estimator=average)
    cox = CoxRegression().fit(AFFINE(X), survival, strata=strata).for_party("north")
    made["cox"] = PartyModel(party="north", integration_function=AFFINE, estimator=cox)
    ridge = LandmarkRidgeClassifier(LINEAR(A), gamma=0.5).fit(LINEAR(X), TWO)
    without = LandmarkRidgeClassifier(kernel="linear").fit(LINEAR(X[20:]), TWO[20:])
    made["left-out"] = PartyModel(
        party=3, integration_function=LINEAR, estimator=ridge, left_out=ridge.predict_proba(LINEAR(X[:5]))
    )
    made["without"] = PartyModel(party="north", integration_function=LINEAR, estimator=ridge, without_party=without)
    return made


def said_by(model):
    """What is known of a model: each answer that it gives."""
    said = {"predicted": model.predict(ROWS).tolist()}
    if hasattr(model.estimator, "predict_proba"):
        said["probabilities"] = model.predict_proba(ROWS).tolist()
    if hasattr(model.estimator, "predict_survival"):
        said["survival"] = model.predict_survival(ROWS, TIMES).tolist()
    if model.left_out is not None:
        said["left_out"] = model.left_out.tolist()
    if model.without_party is not None:
        said["without_party"] = model.without_party.predict(model.transform(ROWS)).tolist()
    return said


def shares():
    """Of each kind of target."""
    five = {"party": "north", "representation": X[:5], "anchor_representation": A}
    events = survival_target([True, False, True, True, False], [1.0, 2.0, 3.0, 4.0, 5.0])
    return {
        "texts": Share(**five, target=TWO[:5], anchor_target=TWO[:10]),
        "single": Share(**five, target=X[:5, 0].astype("f4")),
        "events": Share(**five, target=events),
    }


def main() -> None:
    """Write all files, and what they say."""
    expected = {"rows": ROWS.tolist(), "times": TIMES, "models": {}}
    for name, model in models().items():
        model.save(FOLDER / f"{name}.dcmodel", key=KEY)
        expected["models"][name] = said_by(model)
    for name, share in shares().items():
        share.save(FOLDER / f"{name}.dcshare", key=KEY)
    classes = AnchorPredictions(party="north", values=generator.dirichlet(np.ones(3), size=8), classes=["a", "b", "c"])
    classes.save(FOLDER / "classes.dcanswers", key=KEY)
    AnchorPredictions(party=3, values=X[:8, 0]).save(FOLDER / "numbers.dcanswers", key=KEY)
    expected["answers"] = classes.values.tolist()
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
