"""Writes the files in v5/.  It was run once, with version 5 of the model's format, and is kept to say what they are.

A later version must read these files as they are: when the format changes, add v6/ and leave v5/ alone.
"""

import json
from pathlib import Path

import numpy as np

from datacollab.bundle import KeyPair
from datacollab.model import LinearMap, PartyModel
from datacollab.survival import CoxRegression, SurvivalForest
from datacollab.targets import survival_target

FOLDER = Path(__file__).with_name("v5")
TIMES = [0.0, 0.2, 0.5]


def main() -> None:
    generator = np.random.default_rng(5)
    key = KeyPair.generate()
    X = generator.normal(size=(90, 3))
    y = survival_target(generator.random(90) < 0.7, generator.exponential(np.exp(-X[:, 0])))
    g = LinearMap("north", generator.normal(size=(3, 2)), generator.normal(size=2))
    rows = generator.normal(size=(6, 3))
    strata = np.array(["north", "south", "west"])[np.arange(90) % 3]
    models = {
        "cox": CoxRegression().fit(g(X), y, strata=strata),
        "forest": SurvivalForest(3, random_state=0).fit(g(X), y),
    }
    expected = {"signer": key.public.text, "rows": rows.tolist(), "times": TIMES}
    for name, estimator in models.items():
        model = PartyModel(party="north", integration_function=g, estimator=estimator.for_party("north"))
        model.save(FOLDER / f"{name}.dcmodel", key=key)
        expected[name] = {
            "log_risk": model.predict(rows).tolist(),
            "survival": model.predict_survival(rows, TIMES).tolist(),
        }
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
