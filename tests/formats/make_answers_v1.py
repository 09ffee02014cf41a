"""Writes the files in answers-v1/.  It was run once, with version 1 of the format, and is kept to say what they are.

A later version must read these files as they are: when the format changes, add answers-v2/ and leave answers-v1/ alone.
"""

import json
from pathlib import Path

import numpy as np

from datacollab.bundle import KeyPair
from datacollab.model import AnchorAnswers

FOLDER = Path(__file__).with_name("answers-v1")


def main() -> None:
    generator = np.random.default_rng(1)
    key = KeyPair.generate()
    probabilities = generator.dirichlet(np.ones(3), size=8)
    numbers = generator.normal(size=8)
    AnchorAnswers(party="north", values=probabilities, classes=np.array(["a", "b", "c"])).save(
        FOLDER / "classes.dcanswers", key=key
    )
    AnchorAnswers(party=3, values=numbers).save(FOLDER / "numbers.dcanswers", key=key)
    expected = {"signer": key.public.text, "probabilities": probabilities.tolist(), "numbers": numbers.tolist()}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
