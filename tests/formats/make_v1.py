"""Writes the files in v1/.  It was run once, with version 1 of the formats, and is kept to say what they are.

A later version must read these files as they are: when a format changes, add v2/ and leave v1/ alone.
"""

import json
from pathlib import Path

import numpy as np
import sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from datacollab import Share
from datacollab.bundle import KeyPair
from datacollab.linalg import Kernel
from datacollab.model import KernelMap, LinearMap, PartyModel

FOLDER = Path(__file__).with_name("v1")


def main() -> None:
    generator = np.random.default_rng(1)
    key = KeyPair.generate()
    X, A = generator.normal(size=(40, 3)), generator.normal(size=(12, 3))
    names = np.where(X[:, 0] > 0, "high", np.where(X[:, 1] > 0, "middle", "low"))
    kernel = Kernel(metric="rbf", parameters={"gamma": 0.25})
    maps = {
        "linear": LinearMap("north", generator.normal(size=(3, 2))),
        "kernel": KernelMap("north", A, generator.normal(size=(12, 2)), kernel),
        "forest": KernelMap("north", np.asfortranarray(A), generator.normal(size=(12, 4)), kernel, "float64"),
    }
    estimators = {
        "linear": LogisticRegression().fit(maps["linear"](X), names),
        "kernel": Ridge(alpha=0.1).fit(maps["kernel"](X), X[:, 0]),
        "forest": RandomForestClassifier(5, max_depth=3, random_state=0).fit(maps["forest"](X), names.astype(object)),
    }
    rows = generator.normal(size=(6, 3))
    expected = {
        "signer": key.public.text,
        "sklearn": sklearn.__version__,
        "rows": rows.tolist(),
        "models": {},
        "shares": {},
    }
    for name, g in maps.items():
        model = PartyModel(party="north", integration_function=g, estimator=estimators[name])
        model.save(FOLDER / f"{name}.dcmodel", key=None if name == "kernel" else key, onnx=True)
        expected["models"][name] = {
            "transformed": model.transform(rows).tolist(),
            "predicted": model.predict(rows).tolist(),
            "probabilities": model.predict_proba(rows).tolist() if name != "kernel" else None,
        }
    shares = {
        "texts": Share(
            party="north", representation=X[:5], anchor_representation=A, target=names[:5], anchor_target=names[:12]
        ),
        "numbers": Share(party="north", representation=X[:5], anchor_representation=A, target=X[:5, 0].astype("f4")),
    }
    for name, share in shares.items():
        share.save(FOLDER / f"{name}.dcshare", key=key if name == "texts" else None)
        expected["shares"][name] = {
            "representation": share.representation.tolist(),
            "anchor_representation": share.anchor_representation.tolist(),
            "target": share.target.tolist(),
            "anchor_target": None if share.anchor_target is None else share.anchor_target.tolist(),
        }
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
