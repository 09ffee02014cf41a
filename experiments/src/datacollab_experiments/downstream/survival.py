"""Survival: Cox regressions and forests on collaboration representations, beside one-shot meta-analysis.

Parties have rows of one table, the anchor is other rows of it, and all is judged on rows that nobody else has.  What is
shared of times is whole months.  Each party predicts every test row; figures are means over parties.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

import datacollab as dc
from datacollab.errors import AgreementError, NumericalError
from datacollab.party import Microaggregation
from datacollab.survival import CoxRegression, SurvivalForest, SurvivalModel, concordance_index, risk_groups
from datacollab.targets import coarsen_times, survival_target

from .report import Figure, read_wanted
from .tables import mean_brier_score, survival_table

SECTION = "survival"
# Days of a mean month.
MONTH = 30.4375
# Ridge penalty on standardised columns of all Cox regressions: fifty rows with fourteen columns need one.
ALPHA = 1.0
# The same where rows are means of five, which say a fifth as much.
ALPHA_OF_MEANS = 20.0
# Components of kernel PCA, and the factor of its bandwidth.
N_KERNEL = 20
WIDER = 3.0
MOST_TEST_ROWS = 1000
COX_TABLES = {"whas500": (5, 50), "gbsg2": (5, 50), "rotterdam": (10, 50), "flchain": (10, 60)}
FOREST_TABLES = {"rotterdam": (10, 50), "flchain": (16, 25)}
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one seed; targets are in whole months, those of test rows exact.  Curves are compared at `times`."""

    label: str
    parties: dict[int, tuple[Array, NDArray[np.void]]]
    anchor: Array
    anchor_target: NDArray[np.void]
    test: Array
    test_target: NDArray[np.void]
    times: Array = field(init=False)

    def __post_init__(self) -> None:
        ends = [y["time"].max() for _, y in self.parties.values()]
        events = np.concatenate([y["time"][y["event"]] for _, y in self.parties.values()])
        # Curves end where every party still has rows under observation.
        last = min(*ends, np.quantile(self.test_target["time"], 0.8), np.quantile(events, 0.8))
        object.__setattr__(self, "times", np.linspace(last / 12, last, 12))


def split_of(name: str, n_parties: int, n_rows: int, seed: int) -> Split:
    """Parties, anchor and test rows of a table, drawn without replacement."""
    table = survival_table(name)
    X = table.X.to_numpy()
    exact = survival_target(table.event, table.time / MONTH)
    shared = coarsen_times(exact, 1.0)
    order = draw_order(len(X), seed)
    n_own = n_parties * n_rows
    # At least as many rows stay to test on as the anchor takes.
    n_anchor = min(300, (len(X) - n_own) // 2)
    anchor = order[n_own : n_own + n_anchor]
    test = order[n_own + n_anchor :][:MOST_TEST_ROWS]
    # Columns that hardly vary among the public rows are left out by agreement.
    X = X[:, X[anchor].std(axis=0) > 0]
    own = {k: order[k * n_rows : (k + 1) * n_rows] for k in range(n_parties)}
    return Split(
        f"{name} {n_parties}x{n_rows}",
        {k: (X[rows], shared[rows]) for k, rows in own.items()},
        X[anchor],
        shared[anchor],
        X[test],
        exact[test],
    )


def draw_order(n_rows: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, n_rows]).permutation(n_rows)


@dataclass(frozen=True, eq=False)
class Predicted:
    """A party's predictions: log risks of test rows and of anchor rows, and survival of test rows."""

    risk: Array
    anchor_risk: Array
    survival: Array | None


def predict_party(model: SurvivalModel, party: int | None, test: Array, anchor: Array, times: Array) -> Predicted:
    own = model if party is None else model.for_party(party)
    return Predicted(own.predict(test), own.predict(anchor), own.predict_survival(test, times))


def cox(alpha: float = ALPHA) -> CoxRegression:
    return CoxRegression(alpha, standardize=True)


def central(split: Split, h: Callable[[], Any]) -> dict[int, Predicted]:
    """All rows in one place, with the parties as strata."""
    X = np.concatenate([rows for rows, _ in split.parties.values()])
    model = h().fit(X, target_of_all(split), strata=strata_of(split.parties))
    return {k: predict_party(model, k, split.test, split.anchor, split.times) for k in split.parties}


def local(split: Split, h: Callable[[], Any], *, public: bool = False) -> dict[int, Predicted | None]:
    """Each party alone, or with the labelled public rows; None where it cannot train a model."""
    found: dict[int, Predicted | None] = {}
    for k, (X, y) in split.parties.items():
        try:
            if public:
                rows = np.concatenate([X, split.anchor])
                target = np.concatenate([y, split.anchor_target])
                # Public rows are a stratum of their own: their baseline may be another.
                model = h().fit(rows, target, strata=[k] * len(X) + [-1] * len(split.anchor))
                found[k] = predict_party(model, k, split.test, split.anchor, split.times)
            else:
                found[k] = predict_party(h().fit(X, y), None, split.test, split.anchor, split.times)
        # Few rows may have no event, or no two to compare.
        except (AgreementError, NumericalError):
            found[k] = None
    return found


def meta(split: Split) -> dict[int, Predicted]:
    """Local coefficients, each weighing by the inverse of its covariance (multivariate, fixed effects)."""
    d = split.test.shape[1]
    precision = np.zeros((d, d))
    weighted = np.zeros(d)
    for X, y in split.parties.values():
        model = cox().fit(X, y)
        # The information of a party's own estimate.
        own = np.linalg.inv(model.covariance_)
        precision = precision + own
        weighted = weighted + own @ model.coef_
    beta = np.linalg.solve(precision, weighted)
    return {k: Predicted(split.test @ beta, split.anchor @ beta, None) for k in split.parties}


def collaboration(
    split: Split,
    h: Callable[[], Any],
    kind: str,
    integrator: dc.LTI | dc.KTI,
    *,
    n_components: int,
    grouped: str | None = None,
    seed: int = 0,
    **options: float,
) -> dict[int, Predicted]:
    """f_k at each party, g_k from the anchor's rows, h on all shared rows, with the parties as strata."""
    maps = {
        k: dc.obfuscator(kind, n_components, standardize=True, random_state=0, **options).fit(X)
        for k, (X, _) in split.parties.items()
    }
    g = integrator.fit({k: f.transform(split.anchor) for k, f in maps.items()}).integration_functions_
    shared = {k: defend(maps[k].transform(X), y, grouped, seed) for k, (X, y) in split.parties.items()}
    rows = np.concatenate([g[k](X) for k, (X, _) in shared.items()])
    target = np.concatenate([y for _, y in shared.values()])
    model = h().fit(rows, target, strata=strata_of(shared))
    return {
        k: predict_party(model, k, g[k](f.transform(split.test)), g[k](f.transform(split.anchor)), split.times)
        for k, f in maps.items()
    }


def defend(X: Array, y: NDArray[np.void], grouped: str | None, seed: int) -> tuple[Array, NDArray[np.void]]:
    """Means of five rows in place of rows, of whatever rows or of rows with and without event; targets as they are."""
    if grouped is None:
        return X, y
    classes = y["event"].astype(np.int64) if grouped == "by event" else np.zeros(len(y), dtype=np.int64)
    # Grouped over class borders where a class is small, no row is left out and all keep their order.
    rows, *_ = Microaggregation(k=5, small_classes="group").apply(X, classes, random_state=seed)
    return rows, y


def strata_of(parties: Mapping[int, tuple[Array, NDArray[np.void]]]) -> NDArray[np.int64]:
    return np.repeat(list(parties), [len(y) for _, y in parties.values()])


def target_of_all(split: Split) -> NDArray[np.void]:
    return np.concatenate([y for _, y in split.parties.values()])


def scores(split: Split, said: Mapping[int, Predicted | None], beside: Mapping[int, Predicted]) -> dict[str, float]:
    """Means over parties; a party without a model guesses."""
    concordance = []
    brier = []
    kappa = []
    for k, one in said.items():
        if one is None:
            # Half of all pairs are right by chance.
            concordance.append(0.5)
            continue
        concordance.append(concordance_index(split.test_target, one.risk))
        groups, of_central = (risk_groups(each.risk, reference=each.anchor_risk) for each in (one, beside[k]))
        kappa.append(cohen_kappa_score(groups, of_central))
        if one.survival is not None:
            y = split.test_target
            brier.append(mean_brier_score(y, y, one.survival, split.times))
    found = {"C-index": concordance, "integrated Brier score": brier, "kappa of risk groups with Central": kappa}
    return {measure: float(np.mean(values)) for measure, values in found.items() if values}


def measure(seed: int) -> Iterator[Figure]:
    for name, (n_parties, n_rows) in COX_TABLES.items():
        split = split_of(name, n_parties, n_rows, seed)
        d = split.test.shape[1]
        affine = dc.LTI(d, fit_intercept=True)
        whole = central(split, cox)
        said: dict[str, Mapping[int, Predicted | None]] = {
            "Central": whole,
            "Local": local(split, cox),
            "Local+Public": local(split, cox, public=True),
            "meta": meta(split),
            "DC PCA affine": collaboration(split, cox, "pca", affine, n_components=d),
            "DC kernel PCA affine": collaboration(
                split, cox, "kernel-pca", affine, n_components=N_KERNEL, bandwidth_factor=WIDER
            ),
        }
        for grouped in ("by event", "by=None"):
            said[f"DC groups, {grouped}"] = collaboration(
                split, lambda: cox(ALPHA_OF_MEANS), "pca", affine, n_components=d, grouped=grouped, seed=seed
            )
        yield from list_figures(split, said, whole)
        yield from alone(name, split.label, n_parties * n_rows, seed)
    for name, (n_parties, n_rows) in FOREST_TABLES.items():
        split = split_of(name, n_parties, n_rows, seed)
        d = split.test.shape[1]

        def forest() -> SurvivalForest:
            return SurvivalForest(100, min_samples_leaf=5, min_expected_events=1.0, random_state=seed)

        whole = central(split, forest)
        affine = dc.LTI(d, fit_intercept=True)
        said = {
            "Central forest": whole,
            "Local forest": local(split, forest),
            "Local+Public forest": local(split, forest, public=True),
            "DC PCA affine forest": collaboration(split, forest, "pca", affine, n_components=d),
        }
        yield from list_figures(split, said, whole)


def list_figures(
    split: Split, said: Mapping[str, Mapping[int, Predicted | None]], whole: Mapping[int, Predicted]
) -> Iterator[Figure]:
    for method, each in said.items():
        for measure, value in scores(split, each, whole).items():
            yield split.label, method, measure, value


def alone(name: str, label: str, n_rows: int, seed: int) -> Iterator[Figure]:
    """How many of all parties' rows have an event and time that no other of them has, in days and in months."""
    table = survival_table(name)
    target = survival_target(table.event, table.time)[draw_order(len(table.X), seed)[:n_rows]]
    for method, step in (("days", 1.0), ("months", MONTH)):
        _, counts = np.unique(coarsen_times(target, step), return_counts=True)
        yield label, method, "rows alone with their event and time", float((counts == 1).sum() / counts.sum())


WANTED = read_wanted(SECTION)
