"""Who knows all rows but one plays a total again and again: how well one tells, beside what approvers are promised."""

import math
import re
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from datacollab.bundle import unpack
from datacollab.linalg import gaussian_sigma
from datacollab.study import (
    MAPPED,
    AdditiveHazards,
    CategoryColumn,
    Counts,
    Description,
    Effect,
    LeastSquares,
    ModelValidation,
    NumberColumn,
    StudyPlan,
    Survival,
)
from datacollab.sums import MaskKey, standard_normal
from sums_world import PARTIES, new_sums_world, rows_of

AGE = NumberColumn("age", 0, 120)
DOSE = NumberColumn("dose", -1, 3)
ARM = CategoryColumn("arm", ("old", "new"))
TIME = NumberColumn("time", 0, 10)
EPSILON = 8.0
NAMES = PARTIES[:3]
"""With three parties, one may work with the analyst."""


def played(agreed, secrets, pair, n_times):
    """Estimate the AUC and its standard error, from totals of one of two tables at the first party.

    The attacker knows both tables, the rows of the second party, and the third party, which is theirs, with its noise.
    The likelihood ratio is the best score there is.
    """
    own = np.asarray(agreed.noise) / math.sqrt(len(secrets) - agreed.n_colluding)
    weights = (pair[1] - pair[0]) / np.asarray(agreed.noise) ** 2
    scores = np.empty((2, n_times))
    for which, number in np.ndindex(2, n_times):
        draws = {name: sha256(f"{name} {which} {number}".encode()).digest() for name in secrets}
        parts = dict.fromkeys(secrets, np.zeros(len(own))) | {NAMES[0]: pair[which]}
        keys = {name: MaskKey(secret) for name, secret in secrets.items()}
        messages = [agreed.mask(name, parts[name], key, noise_key=draws[name]) for name, key in keys.items()]
        total = agreed.total(messages) - own * standard_normal(draws[NAMES[2]], len(own))
        scores[which, number] = weights @ total
    # Scores are normal, with one variance: their distance says more of the AUC than counted pairs.
    distance = (scores[1].mean() - scores[0].mean()) / math.sqrt(scores.var(axis=1, ddof=1).mean())
    error = math.sqrt(2 / n_times + distance**2 / (4 * n_times))
    at = distance / math.sqrt(2)
    return ndtr(at), norm.pdf(at) * error / math.sqrt(2)


def promised(text):
    """The AUC in words that an approver reads, which are rounded to two digits."""
    return float(re.search(r"AUC of ([0-9.]+) at most", " ".join(text.split()))[1])


def check_against(text, agreed, secrets, pair, *, least):
    """The promise holds, and a pair that moves the total by so much of the most comes as near to it as it should."""
    distance = np.linalg.norm((pair[1] - pair[0]) / np.asarray(agreed.noise))
    moved = distance * gaussian_sigma(EPSILON, 1e-5)
    assert least <= moved <= 1 + 1e-12
    found, error = played(agreed, secrets, pair, 300)
    # The promise has two digits.
    assert found < promised(text) + 0.005 + 4 * error
    assert abs(found - ndtr(distance / math.sqrt(2))) < 4 * error


@pytest.mark.parametrize(("statistic", "least"), [("ridge regression", 1 - 1e-9), ("counts", 0.6)])
@pytest.mark.slow
def test_a_project_keeps_what_it_promises_and_no_more(statistic, least, tmp_path):
    """By files: one row of a table in another's place, as far from it as rows can be."""
    world = new_sums_world(tmp_path, parties=NAMES, sharing={"epsilon": EPSILON, "statistics": (statistic,)})
    secrets = {name: unpack(tmp_path / name / "mask.dcstate").members["mask-key.bin"] for name in NAMES}
    table = rows_of(60, 5)
    ends = ({"age": 0.0, "pulse": 100.0, "ward": "day", "ill": "no"}, {"age": 100.0, "pulse": 0.0, "ward": "night"})
    prepared = []
    for row in (ends[0], ends[0] | ends[1] | {"ill": "yes"}):
        frame = pd.concat([pd.DataFrame([row]), table], ignore_index=True)
        prepared.append(world.folder(NAMES[0]).prepare(frame))
    pair, plan = [each.part for each in prepared], prepared[0].plan
    if statistic == "ridge regression":
        # No two rows of this table are mapped that far apart.
        v = np.zeros((2, prepared[0].summary.n_components))
        v[:, 0] = 1.0, -0.125
        v[1, 1] = math.sqrt(1 - 0.125**2)
        pair = [pair[0] + plan.ridge.part(row[None], [label]) for row, label in zip(v, ("no", "yes"), strict=True)]
    check_against(prepared[0].summary.to_text(), plan.agreed, secrets, pair, least=least)


# One row in the place of another among many that are like the first, and how much of the bound that reaches.
ONE = {"age": 0.0, "dose": -1.0, "arm": "old", "time": 10.0, "seen": 0, MAPPED: (0, 0, 1)}
OTHER = {"age": 120.0, "dose": 3.0, "arm": "new", "time": 0.1, "seen": 1, MAPPED: (0, 0, -1)}
PLAYED = [
    (Counts([AGE, DOSE, ARM]), 0.9),
    (Description([AGE, DOSE]), 0.85),
    (LeastSquares(DOSE, [AGE, ARM], errors="classical"), 0.9),
    # Moments of all rows and of groups have bounds of their own: rows of a block may be unlike all others.
    (LeastSquares(DOSE, [AGE, ARM]), 0.85),
    (Effect(ARM, DOSE, 3), 0.95),
    (Survival(TIME, "seen", ARM, n_intervals=3), 0.0),
    (AdditiveHazards(TIME, "seen", [AGE]), 0.0),
    # Its usual noise is more than this epsilon needs.
    (ModelValidation(CategoryColumn("seen", (0, 1)), [AGE], {"intercept": -9.0, "age": 0.15}), 0.5),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("statistic", "least"), PLAYED, ids=lambda each: getattr(each, "title", ""))
def test_a_study_keeps_what_it_promises(statistic, least, tmp_path):
    """The bounds of survival are sums of bounds of blocks, which no one row reaches together."""
    world = new_sums_world(tmp_path, parties=NAMES, sharing={"epsilon": EPSILON, "statistics": ("counts",)})
    promise = world.folder(NAMES[0]).prepare(rows_of(60, 5)).summary.to_text()
    secrets = {name: bytes([number + 1]) * 32 for number, name in enumerate(NAMES)}
    roster = {name: MaskKey(secret).public for name, secret in secrets.items()}
    agreed = StudyPlan(roster, [statistic], epsilon=EPSILON).agreed
    pair = []
    for row in (ONE, OTHER):
        table = {name: [row[name], *([ONE[name]] * 400)] for name in ONE}
        pair.append(statistic.part(table, bytes(32)))
    check_against(promise, agreed, secrets, pair, least=least)
