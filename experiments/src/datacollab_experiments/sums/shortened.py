"""The cost for models of shortening rows that stand alone: the common model with and without.

The tables, public rows and parties are those of `judged`, dealt at random, and three parties of 500 rows besides.
Both totals have the same noise; the common model alone is judged, by log loss, or by the root mean square
error in standard deviations.

Run ``python -m datacollab_experiments.sums.shortened --output FILE``; it takes ten minutes on one core.
"""

import warnings
from collections.abc import Iterator

import numpy as np

from datacollab.party import CommonSpace
from datacollab.sums import IsolatedRows, RidgeSums

from ..harness import write_table
from .columns import predictions
from .judged import PARTIES, SEEN, UNSEEN, WEIGHED, JudgedTable, Loss, aims_of, deal
from .playing import noise_factor, secret

SEEDS = (0, 1)
SETTINGS = ((3, 100), (3, 500), *PARTIES[1:])


def cell(name: str, table: JudgedTable, n_parties: int, n_rows: int, seed: int) -> dict[str, float]:
    """Return the loss with rows as they are and shortened, and how many are, in one draw."""
    X, y, public, parties, judges = deal(name, table, n_parties, n_rows, "iid", seed)
    learnt = np.concatenate([public, *parties])
    with warnings.catch_warnings():
        # Of categories that public rows lack.
        warnings.simplefilter("ignore")
        space = CommonSpace(X.iloc[public], secret(seed), unknown="allow")
        v = space.transform(X)
    rule = space.recommended
    aims = aims_of(table, y[learnt])
    statistic = RidgeSums(v.shape[1], **aims, noise=rule.noise)
    normal = np.random.default_rng([seed, 73]).normal(size=statistic.n_numbers)
    total = statistic.part(v[public], y[public]) + noise_factor(n_parties) * statistic.noise_of_each * normal
    corrected = np.zeros_like(total)
    n_shortened = 0
    for rows in parties:
        alone = IsolatedRows(statistic, n_parties)
        total += alone.part(v[rows], y[rows])
        # The correction turns the sum of rows as they are into that of shortened ones.
        correction, n_of_party = alone.correction()
        corrected += correction
        n_shortened += n_of_party
    loss = Loss(y[judges], aims.get("classes"))
    losses = []
    for each in (total, total + corrected):
        model = statistic.solve(each, noise=noise_factor(n_parties) * rule.noise, least_penalty=rule.least_penalty)
        losses.append(loss(predictions(statistic, model, v[judges])))
    n_all = sum(map(len, parties))
    return {"rows": n_all / n_parties, "as they are": losses[0], "shortened": losses[1], "part": n_shortened / n_all}


def rows() -> Iterator[dict[str, object]]:
    """Yield the means over draws of each table and setting."""
    for name, table in (SEEN | WEIGHED | UNSEEN).items():
        for n_parties, n_rows in SETTINGS:
            draws = [cell(name, table, n_parties, n_rows, seed) for seed in SEEDS]
            mean = {key: float(np.mean([each[key] for each in draws])) for key in draws[0]}
            yield {
                "table": name,
                "parties": n_parties,
                "rows of each": round(mean["rows"]),
                "as they are": round(mean["as they are"], 4),
                "shortened": round(mean["shortened"], 4),
                "rows shortened": round(mean["part"], 3),
            }


if __name__ == "__main__":
    write_table(rows)
