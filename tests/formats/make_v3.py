"""Writes the files in v3/.  It was run once, with version 3 of the model's format, and is kept to say what they are.

A later version must read these files as they are: when the format changes, add v4/ and leave v3/ alone.
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

from datacollab.bundle import KeyPair
from datacollab.model import CalibratedForestClassifier, LandmarkRidgeClassifier, LinearMap, PartyModel

FOLDER = Path(__file__).with_name("v3")


def main() -> None:
    generator = np.random.default_rng(3)
    key = KeyPair.generate()
    X, A = generator.normal(size=(60, 3)), generator.normal(size=(8, 3))
    two = np.where(X[:, 0] > 0, "high", "low")
    three = np.where(X[:, 0] > 0.3, 2, np.where(X[:, 1] > 0, 1, 0))
    g = LinearMap("north", generator.normal(size=(3, 2)))
    settings = {"n_estimators": 3, "random_state": 0}
    models = {
        "boosting": (GradientBoostingClassifier(**settings), three),
        "calibrated": (CalibratedClassifierCV(GaussianNB(), cv=2, method="isotonic"), three),
        "calibrated-forest": (CalibratedForestClassifier(3, random_state=0), two),
        "forest": (RandomForestClassifier(**settings), three),
        "histograms": (HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=4), X[:, 0]),
        "logarithm": (TransformedTargetRegressor(Ridge(), func=np.log, inverse_func=np.exp), np.exp(X[:, 0])),
        "network": (MLPClassifier((4,), activation="tanh", max_iter=20, random_state=0), two),
        "pipeline": (make_pipeline(StandardScaler(), MinMaxScaler(clip=True), PCA(2), LogisticRegression()), two),
        "vote": (
            VotingClassifier(
                [("a", GaussianNB()), ("b", LandmarkRidgeClassifier(g(A), gamma=0.5))], voting="soft", weights=[1, 3]
            ),
            three,
        ),
    }
    rows = generator.normal(size=(6, 3))
    expected = {"signer": key.public.text, "rows": rows.tolist(), "models": {}}
    for name, (estimator, target) in models.items():
        model = PartyModel(party="north", integration_function=g, estimator=estimator.fit(g(X), target))
        model.save(FOLDER / f"{name}.dcmodel", key=key)
        is_classifier = hasattr(estimator, "predict_proba")
        expected["models"][name] = {
            "predicted": model.predict(rows).tolist(),
            "probabilities": model.predict_proba(rows).tolist() if is_classifier else None,
        }
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
