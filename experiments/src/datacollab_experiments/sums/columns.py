"""Columns in the common map: numbers as they are, their ranks, or both; and wide tables.

Tables are those that were looked at while the map was settled (`judged.SEEN`), dealt to 200 labelled public rows and
three parties of 100 rows, or ten of 80.  Wide tables have independent columns, of which ten tell a class, dealt to 200
labelled public rows and ten parties of 100.  All ways act on the same rows with the same noise, s = .1; the common
model alone is judged, by log loss, or the root mean square error in standard deviations, and of wide tables the
area under the curve.

Run ``python -m datacollab_experiments.sums.columns --output FILE``.
"""

import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.metrics import roc_auc_score

from datacollab.party import CommonSpace
from datacollab.sums import CommonMap, RidgeFromSums, RidgeSums, recommended

from ..harness import write_table
from ..pays.tables import Array
from .judged import SEEN, JudgedTable, Loss, aims_of, deal
from .playing import noise_factor, secret

SEEDS = (0, 1, 2)
PARTIES = ((3, 100), (10, 80))
WIDTHS = (40, 60, 150, 500, 1500)
N_TELLING = 10
EFFECT = 0.6
Mapping = Callable[[Array], Array]


def ways(anchor: Array, seed: int) -> Iterator[tuple[str, Mapping]]:
    """Yield the ways, and the function that maps encoded rows in each."""
    both = CommonMap.from_anchor(anchor, secret(seed))

    def ranks(rows: Array) -> Array:
        ranked = rows.copy()
        for place, known in enumerate(both.scores):
            if known is not None:
                ranked[:, place] = np.interp(rows[:, place], *known)
        return ranked

    # No map of these turns the columns themselves: that is for wide tables.
    plain = CommonMap.from_anchor(anchor, secret(seed), as_they_are=True, n_columns=0)
    alone = CommonMap.from_anchor(ranks(anchor), secret(seed), as_they_are=True, n_columns=0)
    yield "numbers", plain.transform
    yield "ranks", lambda rows: alone.transform(ranks(rows))
    yield "both, as the library does", both.transform


def fit_total(statistic: RidgeSums, V: Array, y: Array, n_parties: int, seed: int) -> RidgeFromSums:
    """Return the model of a total with its noise; `V` are all rows in the common map."""
    excess = noise_factor(n_parties)
    normal = np.random.default_rng([seed, 73]).normal(size=statistic.n_numbers)
    # The sum of parts is the part of all rows; masks cancel.
    total = statistic.part(V, y) + excess * statistic.noise_of_each * normal
    return statistic.solve(total, noise=excess * statistic.noise)


def of_table(name: str, table: JudgedTable, n_parties: int, n_rows: int, seed: int) -> dict[str, float]:
    """Return the loss of each way in one draw."""
    X, y, public, parties, judges = deal(name, table, n_parties, n_rows, "iid", seed)
    learnt = np.concatenate([public, *parties])
    aims = aims_of(table, y[learnt])
    with warnings.catch_warnings():
        # Of categories that public rows lack.
        warnings.simplefilter("ignore")
        encoded = CommonSpace(X.iloc[public], secret(seed), unknown="allow").encode(X)
    loss = Loss(y[judges], aims.get("classes"))
    losses = {}
    for way, mapped in ways(encoded[public], seed):
        V = mapped(encoded[learnt])
        statistic = RidgeSums(V.shape[1], **aims, noise=recommended().noise)
        model = fit_total(statistic, V, y[learnt], n_parties, seed)
        losses[way] = loss(predictions(statistic, model, mapped(encoded[judges])))
    return losses


def predictions(statistic: RidgeSums, model: RidgeFromSums, v: Array) -> Array:
    """Return numbers, or probabilities of classes, as `Loss` takes them."""
    outputs = model.predict(v)
    if model.link is None:
        return np.asarray(statistic.decode(outputs))
    return np.asarray(model.link.probabilities(outputs + 1 / outputs.shape[1]))


def of_width(p: int, seed: int) -> dict[str, float]:
    """Return the area under the curve of each way, of p independent columns."""
    generator = np.random.default_rng([seed, 74])
    X = generator.normal(size=(4000, p))
    y = (generator.random(len(X)) < 1 / (1 + np.exp(-EFFECT * X[:, :N_TELLING].sum(axis=1)))).astype(int)
    n_learnt = 200 + 10 * 100
    areas = {}
    # With 1,000 columns at most the library turns them; with 0 never.
    for way, n_columns in (("principal components and a kernel", 0), ("as the library does", 1000)):
        common = CommonMap.from_anchor(X[:200], secret(seed), n_columns=n_columns)
        V = common.transform(X)
        statistic = RidgeSums(V.shape[1], classes=(0, 1), noise=recommended().noise)
        model = fit_total(statistic, V[:n_learnt], y[:n_learnt], 10, seed)
        areas[way] = float(roc_auc_score(y[n_learnt:], model.predict(V[n_learnt:]) @ (-1, 1)))
    return areas


def rows() -> Iterator[dict[str, object]]:
    """Yield the mean and its standard error over draws, of each way on each table."""
    # The tables that the map was settled on, so these figures judge nothing.
    for name, table in SEEN.items():
        for n_parties, n_rows in PARTIES:
            yield from _means(name, n_parties, [of_table(name, table, n_parties, n_rows, seed) for seed in SEEDS])
    for p in WIDTHS:
        yield from _means(f"{p} independent columns", 10, [of_width(p, seed) for seed in SEEDS])


def _means(name: str, n_parties: int, draws: list[dict[str, float]]) -> Iterator[dict[str, object]]:
    for way in draws[0]:
        values = np.array([draw[way] for draw in draws])
        error = values.std(ddof=1) / math.sqrt(len(values))
        yield {
            "table": name,
            "parties": n_parties,
            "draws": len(values),
            "columns": way,
            "mean": round(float(values.mean()), 4),
            "standard error": round(float(error), 4),
        }


if __name__ == "__main__":
    write_table(rows)
