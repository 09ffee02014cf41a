"""Explanations and effects of columns, beside those of models on all rows, on own rows, and of meta-analysis.

The anchor is a held-out part of the same table.  Explanations are compared on anchor rows, which are the same at every
party; by age, each party has rows of other ages, so that own rows are no common base.

```console
$ python -m datacollab_experiments.downstream --section explanations
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import datacollab as dc
from datacollab.model import LeastSquaresInference, LinearMap, PartyModel
from datacollab.party import Explanation, explanation_agreement
from datacollab.survival import CoxRegression
from datacollab.targets import survival_target

from .measuring import Measured, Wanted
from .tables import survival_table

SECTION = "explanations"
N_EXPLAINED, N_BACKGROUND, N_ANCHORS = 20, 50, 300
RIDGE = 0.1
"""Of Cox regressions on one party's rows alone, which often have no end without."""
Rows = list[NDArray[np.intp]]


def logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression())


def forest() -> Any:
    return RandomForestClassifier(100, min_samples_leaf=5, random_state=0)


def _deal(
    X: NDArray[np.float64], generator: np.random.Generator, n_parties: int, n_rows: int, *, by: int | None
) -> Rows:
    """Rows of each party, and of the anchor at the end; sorted by a column with noise, or at random."""
    order = generator.permutation(len(X))[: n_parties * n_rows + N_ANCHORS]
    own, anchor = order[:-N_ANCHORS], order[-N_ANCHORS:]
    if by is not None:
        noisy = X[own, by] + X[own, by].std() * generator.normal(scale=0.5, size=len(own))
        own = own[np.argsort(noisy)]
    return [*np.split(own, n_parties), anchor]


def _alone(name: Any, X: NDArray[np.float64], y: NDArray[Any], h: Any) -> tuple[dc.Party, PartyModel]:
    """A model on raw columns as a party's: f and g change nothing."""
    g = LinearMap(name, np.eye(X.shape[1]))
    return dc.Party(name, FunctionTransformer()).fit(X, y), PartyModel(
        party=name, integration_function=g, estimator=h.fit(X, y)
    )


def _explained(
    models: Sequence[tuple[dc.Party, PartyModel]], rows: NDArray[np.float64], backgrounds: Sequence[NDArray[np.float64]]
) -> list[Explanation]:
    found = []
    for (party, model), background in zip(models, backgrounds, strict=True):
        found.append(
            party.explain(
                rows, model, background=background, n_background=N_BACKGROUND, n_permutations=2, random_state=0
            )
        )
    return found


def explanations(seed: int, name: str, *, by: int | None) -> Iterator[tuple[str, str, float]]:
    """Method, measure and figure: how alike parties explain anchor rows, and how near to a model of all rows."""
    table = survival_table(name)
    X, y = table.X.to_numpy(), table.event.astype(np.int64)
    *own, public = _deal(X, np.random.default_rng(seed), 10, 60, by=by)
    anchor, rows, everything = X[public], X[public[:N_EXPLAINED]], np.concatenate(own)
    n = X.shape[1]
    variants: dict[str, tuple[Any, Any, Callable[[], Any]]] = {
        "PCA affine, logistic": (
            dc.obfuscator("pca", n_components=n, standardize=True),
            dc.LTI(n, fit_intercept=True),
            logistic,
        ),
        "kernel PCA KTI, forest": (dc.obfuscator("kernel-pca", n_components=2 * n), dc.KTI(n), forest),
    }
    for variant, (f, integrator, h) in variants.items():
        kind = variant.rpartition(", ")[2]
        parties = [dc.Party(k, f).fit(X[places], y[places]) for k, places in enumerate(own)]
        together = dc.Analyst(integrator, h()).fit([party.share(anchor) for party in parties])
        dc_models = [(party, together.party_model(party.name)) for party in parties]
        local = [_alone(k, X[places], y[places], h()) for k, places in enumerate(own)]
        with_public = [np.concatenate([places, public]) for places in own]
        local_public = [_alone(k, X[places], y[places], h()) for k, places in enumerate(with_public)]
        central = _explained([_alone("all", X[everything], y[everything], h())], rows, [anchor])
        common, private = [anchor] * len(own), [X[places] for places in own]
        for method, models, backgrounds in (
            (f"DC {variant}", dc_models, common),
            (f"DC {variant}, own rows as background", dc_models, private),
            (f"Local, {kind}", local, private),
            (f"Local, {kind}, anchor as background", local, common),
            (f"Local+Public, {kind}, anchor as background", local_public, common),
        ):
            found = _explained(models, rows, backgrounds)
            yield method, "discrepancy between parties", explanation_agreement(found).discrepancy
            beside = [explanation_agreement([one, *central]) for one in found]
            yield method, "discrepancy with Central", float(np.mean([one.discrepancy for one in beside]))
            yield method, "rank correlation with Central", float(np.mean([one.ranks[0, 1] for one in beside]))
            off = [
                np.abs(one.base_values + one.values.sum(axis=1) - party.predict_proba(rows, model)).max()
                for one, (party, model) in zip(found, models, strict=True)
            ]
            yield method, "error of sums", float(max(off))


def effects(seed: int, name: str, n_parties: int, n_rows: int) -> Iterator[tuple[str, str, float]]:
    """Method, measure and figure: log hazard ratios of a standard deviation beside those of all rows in one place."""
    table = survival_table(name)
    X, y = table.X.to_numpy(), survival_target(table.event, table.time)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    *own, public = _deal(X, np.random.default_rng(seed), n_parties, n_rows, by=None)
    anchor, everything, n = X[public], np.concatenate(own), X.shape[1]
    central = CoxRegression().fit(X[everything], y[everything])
    errors = np.sqrt(np.diag(central.covariance_))

    def off(effect: NDArray[np.float64]) -> float:
        return float(np.nanmean(np.abs(effect - central.coef_) / errors))

    alone = [CoxRegression(alpha=RIDGE).fit(X[places], y[places]) for places in own]
    yield "Local", "error in SE of Central", float(np.mean([off(each.coef_) for each in alone]))
    precisions = np.array([np.linalg.inv(each.covariance_) for each in alone])
    pooled = np.linalg.solve(precisions.sum(axis=0), sum(P @ h.coef_ for P, h in zip(precisions, alone, strict=True)))
    yield "meta (multivariate)", "error in SE of Central", off(pooled)
    for method, f, integrator in (
        ("DC PCA affine", dc.obfuscator("pca", n_components=n), dc.LTI(n, fit_intercept=True)),
        ("DC PCA linear", dc.obfuscator("pca", n_components=n), dc.LTI(n)),
        (
            "DC PCA affine, two less",
            dc.obfuscator("pca", n_components=n - 2),
            dc.LTI(n - 2, fit_intercept=True),
        ),
        (
            "DC kernel PCA affine, wide",
            dc.obfuscator("kernel-pca", n_components=n, bandwidth_factor=3.0),
            dc.LTI(n, fit_intercept=True),
        ),
    ):
        parties = [dc.Party(k, f, shuffle=False).fit(X[places], np.zeros(len(places))) for k, places in enumerate(own)]
        together = dc.Analyst(integrator, LeastSquaresInference()).fit([party.share(anchor) for party in parties])
        representation = np.concatenate([together.representations_[party.name] for party in parties])
        h = CoxRegression().fit(representation, y[everything])
        shown = [
            party.column_effects(
                anchor,
                PartyModel(
                    party=party.name,
                    integration_function=together.integrator_.integration_functions_[party.name],
                    estimator=h,
                ),
                scale="unit",
            )
            for party in parties
        ]
        yield method, "share of columns shown", float(np.mean([each.identified.mean() for each in shown]))
        some = [each for each in shown if each.identified.any()]
        if some:
            yield method, "error in SE of Central", float(np.mean([off(each.effect) for each in some]))


def measured(seed: int) -> Iterator[Measured]:
    """All figures of one split."""
    sources = {
        "flchain 10x60": explanations(seed, "flchain", by=None),
        "flchain 10x60 by age": explanations(seed, "flchain", by=0),
        "gbsg2 5x60, effects": effects(seed, "gbsg2", 5, 60),
        "rotterdam 10x50, effects": effects(seed, "rotterdam", 10, 50),
    }
    for data, figures in sources.items():
        for method, measure, value in figures:
            yield Measured(section=SECTION, data=data, method=method, measure=measure, seed=seed, value=value)


def _wanted(
    data: str,
    method: str,
    measure: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    beside: str | None = None,
) -> Wanted:
    return Wanted(
        section=SECTION,
        data=data,
        method=method,
        measure=measure,
        at_least=at_least,
        at_most=at_most,
        beside=beside,
    )


_AGE, _KERNEL, _LINEAR = "flchain 10x60 by age", "DC kernel PCA KTI, forest", "DC PCA affine, logistic"
_BETWEEN, _OFF = "discrepancy between parties", "error in SE of Central"
WANTED = (
    _wanted(_AGE, _KERNEL, _BETWEEN, at_most=0.18),
    _wanted(_AGE, _KERNEL, _BETWEEN, at_most=-0.25, beside=f"{_KERNEL}, own rows as background"),
    _wanted(_AGE, _KERNEL, _BETWEEN, at_most=-0.5, beside="Local, forest"),
    _wanted(_AGE, _LINEAR, _BETWEEN, at_most=1e-6),
    _wanted(_AGE, _LINEAR, "discrepancy with Central", at_most=0.05),
    _wanted("flchain 10x60", _KERNEL, _BETWEEN, at_most=-0.3, beside="Local, forest"),
    *(_wanted(_AGE, method, "error of sums", at_most=1e-12) for method in (_KERNEL, _LINEAR)),
    *(
        _wanted(data, "DC PCA affine", _OFF, at_most=bound, beside=beside)
        for data in ("gbsg2 5x60, effects", "rotterdam 10x50, effects")
        for bound, beside in ((0.03, None), (-0.05, "DC PCA linear"), (-0.1, "meta (multivariate)"))
    ),
)


def main() -> None:
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for seed in range(5):
        for one in measured(seed):
            values[one.data, one.measure, one.method].append(one.value)
    for (data, measure, method), of_seeds in sorted(values.items()):
        print(f"{data:26} {measure:30} {method:52} {np.mean(of_seeds):.3g} +- {np.std(of_seeds):.2g}")


if __name__ == "__main__":
    main()
