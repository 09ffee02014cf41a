"""The harm that one of five parties does to the common model by adding something else than its rows.

Five parties have 100 rows each (70 of breast-cancer), and there are 100 public rows without targets.  The last party
adds its rows with every label moved to the next class, nothing, its rows times some factor, or other products of
columns and target; all others are honest.  The total is checked as the analyst's program does, alone and with the
agreement that each party adds 120 rows at most.  Accuracy and log loss are of the model on test rows, also where the
total is refused.

Run ``python -m datacollab_experiments.sums.poisoning --draws 20 --output FILE``.
"""

from collections.abc import Callable, Iterator

import numpy as np

from datacollab.linalg import largest_noise
from datacollab.sums import RidgeSums

from ..harness import write_table
from ..pays.draws import Draw, Rows, draw
from ..pays.settings import Setting
from ..pays.tables import Array, load_table
from .playing import ALIKE, common_map, exact_total, matrix_of, noise_factor, rows_of_total, rule_for, statistic_of

N_PARTIES = 5
MOST_ROWS = 120
TABLES = {"breast-cancer": 70, "flchain": 100, "mlc_churn": 100, "hmda": 100, "digits": 100}
"""Rows of each party."""
Way = Callable[[RidgeSums, Array, Rows], Array]


def _flip(statistic: RidgeSums, v: Array, own: Rows) -> Array:
    return statistic.part(v, (own.y + 1) % statistic.n_outputs)


def _multiply(factor: float) -> Way:
    return lambda statistic, v, own: factor * statistic.part(v, own.y)


def _flip_and_multiply(factor: float) -> Way:
    return lambda statistic, v, own: factor * _flip(statistic, v, own)


def _multiply_products(factor: float) -> Way:
    """Return a way that adds true sums, but for those of products of columns and target."""

    def part(statistic: RidgeSums, v: Array, own: Rows) -> Array:
        D = statistic.n_components
        M = matrix_of(statistic.part(v, own.y), statistic.size)
        M[:D, D:-1] *= factor
        return np.asarray(M[np.triu_indices(statistic.size)])

    return part


WAYS: dict[str, Way] = {
    "its rows": _multiply(1.0),
    "its rows, labels moved": _flip,
    "nothing": _multiply(0.0),
    "its rows, subtracted": _multiply(-1.0),
    "products of columns and target times -4": _multiply_products(-4.0),
    "products of columns and target times -10": _multiply_products(-10.0),
    "products of columns and target times -20": _multiply_products(-20.0),
    "10 times its rows, labels moved": _flip_and_multiply(10.0),
    "1,000 times its rows, labels moved": _flip_and_multiply(1000.0),
}


def outcomes(drawn: Draw) -> Iterator[tuple[str, tuple[bool, bool, float, float]]]:
    """Yield for each way whether the total is refused, alone and with the agreement, and accuracy and log loss.

    The last two are NaN where no model is made, as the total is refused.
    """
    rule = rule_for(alike=drawn.setting.dataset in ALIKE)
    excess = noise_factor(N_PARTIES)
    common, unit = common_map(drawn, rule.components)
    statistic = statistic_of(drawn, common.n_components, rule.noise)
    noise = excess * rule.noise
    # The last party poisons; the others are honest.
    *others, last = [Rows(own.X / unit, own.y) for own in rows_of_total(drawn)]
    honest = exact_total(statistic, common, others)
    v = common.transform(last.X)
    tested = common.transform(drawn.test.X / unit)
    y = drawn.test.y
    normal = np.random.default_rng([drawn.seed, 71]).normal(size=len(honest))
    for name, way in WAYS.items():
        # One draw of noise for all ways, so that they differ by the poison alone.
        total = honest + way(statistic, v, last) + excess * statistic.noise_of_each * normal
        # As the analyst's program checks it: the number of rows has four times the noise of a sum of squares.
        is_over = statistic.figures(total).n_rows > N_PARTIES * MOST_ROWS + 4 * largest_noise(1, noise)
        if statistic.impossible(total, noise=noise) is not None:
            yield name, (True, True, np.nan, np.nan)
            continue
        fit = statistic.solve(total, noise=noise, least_penalty=rule.least)
        assert fit.link is not None
        # Outputs are centred at 1/C, as encoded classes are.
        p = fit.link.probabilities(fit.predict(tested) + 1 / statistic.n_outputs)
        accuracy = (p.argmax(axis=1) == y).mean()
        loss = -np.log(p[np.arange(len(y)), y]).mean()
        yield name, (False, is_over, float(accuracy), float(loss))


def rows(draws: int) -> Iterator[dict[str, object]]:
    for name, n_rows in TABLES.items():
        setting = Setting(dataset=name, n_parties=N_PARTIES, n_per_party=n_rows, labelled=False, defence="sums")
        outcomes_of: dict[str, list[tuple[float, ...]]] = {way: [] for way in WAYS}
        for seed in range(draws):
            for way, each in outcomes(draw(load_table(name), setting, seed)):
                outcomes_of[way].append(each)
        for way, found in outcomes_of.items():
            refused, with_agreement, accuracy, loss = np.array(found, dtype=float).T
            is_model = refused == 0
            scores = {"accuracy": "", "log loss": ""}
            if is_model.any():
                scores = {"accuracy": f"{accuracy[is_model].mean():.3f}", "log loss": f"{loss[is_model].mean():.3f}"}
            yield {
                "table": name,
                "adds": way,
                "draws": draws,
                "refused": float(refused.mean()),
                "refused with most_rows": float(with_agreement.mean()),
                **scores,
            }


if __name__ == "__main__":
    write_table(rows, draws=20)
