"""Tables of what was played and what was read, with 95 % intervals over draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..harness import markdown
from ..pays.intervals import Difference, student
from ..pays.results import Measured
from ..pays.settings import Setting
from ..pays.trial import AVERAGE, CENTRAL, METHODS
from .plan import (
    BESIDE,
    LEAST_ABOVE_AVERAGE,
    LEAST_ABOVE_OWN,
    MOST_BELOW_AVERAGE,
    SETTINGS,
    Variant,
    floored,
    ruled,
    variants,
)

SUMS = "sums"


def write_report(folder: Path, pays: Path, target: Path) -> None:
    """Write `tables.md`, every draw of the rule, means of all variants, and what was read by attackers."""
    target.mkdir(parents=True, exist_ok=True)
    played = [pd.read_csv(folder / f"{part}.csv", dtype={"floor": str}) for part in ("scores", "floors", "rule")]
    scores = pd.concat(played).fillna({"floor": "released"})
    committed = pd.read_csv(pays)
    parts = ["# All tables", "As the command in [the report](README.md) writes them."]
    parts += ["## By the rule, the 24 settings", _by_setting(scores, committed, SETTINGS)]
    parts += ["## By the rule, beside them", _by_setting(scores, committed, BESIDE)]
    parts += ["## How many of the 24 settings, by scale, least penalty, anchor, D and s", _counts(scores, committed)]
    if (folder / "attacks.csv").exists():
        parts.append(
            "Correlations with what no features tell, ± half of the 95 % interval over draws. Half of the draws choose "
            "the way of reading, the others are read."
        )
        attacks = read_best(pd.read_csv(folder / "attacks.csv"))
        attacks.to_csv(target / "attacks.csv", index=False, float_format="%.3f")
        for world in attacks.world.unique():
            parts += [f"## Targets beyond what features tell: {world}", _attacked(attacks[attacks.world == world])]
    if (folder / "further.csv").exists():
        further = pd.read_csv(folder / "further.csv")
        further.to_csv(target / "further.csv", index=False, float_format="%.4f")
        parts += ["## Further tables", _further(further)]
    keys = ["scale", "floor", "anchor", "components", "columns", "s", "s of moments", "noise"]
    of_variants = scores.pivot_table(index=keys, columns="setting", values="score", sort=False).reset_index()
    of_variants = of_variants.dropna(how="all", subset=of_variants.columns[len(keys) :])
    of_variants.to_csv(target / "means.csv", index=False, float_format="%.4g")
    played[-1].to_csv(target / "rule.csv", index=False, float_format="%.4f")
    (target / "tables.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def measured(scores: pd.DataFrame, committed: pd.DataFrame, setting: Setting, variant: Variant) -> Measured:
    """Scores of `pays` under one setting, and those of sums beside them."""
    facts = {"dataset": setting.dataset, "split": setting.split, "public": setting.n_public}
    facts |= {"labelled": setting.labelled, "f": setting.f, "defence": setting.defence}
    theirs = committed[np.logical_and.reduce([committed[name] == value for name, value in facts.items()])]
    found = Measured(setting, str(theirs.metric.iloc[0]))
    for method in METHODS:
        of = theirs[theirs.method == method]
        if len(of):
            found.scores[method] = {
                int(seed): dict(zip(rows.party, rows.score, strict=True)) for seed, rows in of.groupby("seed")
            }
    parties = list(found.scores[AVERAGE][0])
    ours = _of(scores[scores.setting == setting.label], variant)
    found.scores[SUMS] = {int(row.seed): dict.fromkeys(parties, float(row.score)) for row in ours.itertuples()}
    return found


def _of(scores: pd.DataFrame, variant: Variant) -> pd.DataFrame:
    """The rows of a variant, or of the one with fewer components that its anchor's rank makes it."""
    same = (
        (scores.anchor == variant.anchor)
        & (
            (scores.scale == variant.scale)
            | ((variant.scale == "roots") & scores.setting.str.startswith("uji") & (scores.scale == "declared"))
        )
        & (scores.s == variant.noise)
        & (scores["s of moments"] == variant.moments)
        & ((scores.noise == "all") == (variant.from_all or variant.noise == 0))
        & (scores.components <= variant.components)
        & (scores.floor == ("released" if variant.floor is None else f"{variant.floor:g}"))
    )
    kept = scores[same]
    return kept[kept.components == kept.components.max()]


def _counts(scores: pd.DataFrame, committed: pd.DataFrame) -> str:
    rows = []
    for variant in (None, *_listed()):
        every = [measured(scores, committed, setting, variant or ruled(setting)) for setting in SETTINGS]
        against = [each.gain(SUMS, AVERAGE) for each in every]
        own = [each.gain(SUMS, each.own) for each in every]
        verdicts = [sum(each.verdict == sign for each in against) for sign in "+0-"]
        cells = ["by the rule", "", "", "", "", ""] if variant is None else _words(variant)
        cells += [f"{sum(each.mean >= 0 for each in against)}", " / ".join(map(str, verdicts))]
        cells += [f"{sum(each.mean > 0 for each in own)}", f"{sum(each.verdict == '-' for each in own)}"]
        cells += [f"{100 * np.mean([each.mean for each in against]):+.2f}"]
        rows.append(cells)
    head = ["columns divided by", "least penalty", "anchor", "D at most", "s", "noise of"]
    head += [f"at or above average (≥ {LEAST_ABOVE_AVERAGE})"]
    head += [f"beyond chance + / 0 / − (− ≤ {MOST_BELOW_AVERAGE})", f"above own (≥ {LEAST_ABOVE_OWN})"]
    return markdown([*head, "below own beyond chance", "mean gain, points or % of RMSE"], rows)


def _words(variant: Variant) -> list[str]:
    noise = f"{variant.noise:g}" if variant.noise == variant.moments else f"{variant.moments:g} / {variant.noise:g}"
    floor = "released" if variant.floor is None else f"{variant.floor:g}"
    who = "all" if variant.from_all else "others"
    return [variant.scale, floor, variant.anchor, str(variant.components), noise, who]


def _listed() -> Iterator[Variant]:
    for variant in (*variants(("public", "between")), *floored(("public", "between"))):
        if variant.from_all or variant.noise == variant.moments == 0.1:
            yield variant


def _by_setting(scores: pd.DataFrame, committed: pd.DataFrame, settings: Sequence[Setting]) -> str:
    rows = []
    for setting in settings:
        found = measured(scores, committed, setting, ruled(setting))
        digits = 1 if found.is_error else 3
        means = [f"{found.mean(each):.{digits}f}" for each in (SUMS, AVERAGE, found.own, CENTRAL)]
        gains = [_said(found.gain(SUMS, AVERAGE)), _said(found.gain(SUMS, found.own))]
        rows.append([setting.label.removesuffix(", private"), found.metric, *means, *gains])
    head = ["setting", "measure", "sums", "average of locals", "own", "all in one place"]
    return markdown([*head, "sums − average", "sums − own"], rows)


def _said(difference: Difference) -> str:
    text = f"{difference.mean:+.3f}"
    strong = f"**{text}**" if difference.verdict != "0" else text
    return f"{strong} ({difference.low:+.3f} to {difference.high:+.3f})"


def read_best(attacks: pd.DataFrame) -> pd.DataFrame:
    """Each attacker's correlations: in even draws in the way that is best in odd ones, and the other way round.

    So nothing is chosen by its own luck.
    """
    rows = []
    keys = ["world", "rows", "D", "s", "attacker"]
    for named, of in attacks.groupby(keys, sort=False):
        by_way = of.pivot_table(index="seed", columns="read", values="correlation")
        best = [by_way[by_way.index % 2 != half].mean().idxmax() for half in (0, 1)]
        values = [float(by_way.loc[seed, best[seed % 2]]) for seed in by_way.index]
        found = student(values)
        said = dict(zip(keys, named, strict=True))
        rows.append(said | {"draws": len(values), "mean": found.mean, "low": found.low, "high": found.high})
    return pd.DataFrame(rows)


def _attacked(attacks: pd.DataFrame) -> str:
    rows = []
    levels = sorted(attacks.s.unique())
    for (attacker, n, D), of in attacks.groupby(["attacker", "rows", "D"], sort=False):
        cells = [
            f"{row['mean']:.2f} ± {(row['high'] - row['low']) / 2:.2f}" for _, row in of.sort_values("s").iterrows()
        ]
        rows.append([str(attacker), str(n), str(D), *cells])
    rows.sort(key=lambda row: row[0])
    return markdown(["attacker", "rows of others", "D", *(f"s = {s:g}" for s in levels)], rows)


def _further(scores: pd.DataFrame) -> str:
    rows = []
    for setting, of in scores.groupby("setting", sort=False):
        by_method = of.pivot_table(index="seed", columns="method", values="score")
        is_error = by_method.to_numpy().max() > 1
        kinds = [name for name in by_method if "|" in name]
        whos = list(dict.fromkeys(name.split("|")[1] for name in kinds))
        for rule in (name for name in by_method if name not in kinds):
            cells = [str(setting), rule, f"{by_method[rule].mean():.{1 if is_error else 3}f}"]
            for who in (
                "own",
                "own and public",
                "average of locals",
                "average of locals with public",
                "all in one place",
            ):
                if who not in whos:
                    cells.append("–")
                    continue
                means = by_method[[f"forest|{who}", f"linear|{who}"]]
                better = means[means.mean().idxmin() if is_error else means.mean().idxmax()]
                gain = 1 - by_method[rule] / better if is_error else by_method[rule] - better
                cells.append(f"{better.mean():.{1 if is_error else 3}f}; {_said(student(list(gain)))}")
            rows.append(cells)
    head = ["setting", "rule", "sums", "own", "own and public", "average of locals"]
    return markdown([*head, "the same with public rows", "all in one place"], rows)


__all__ = ["measured", "read_best", "write_report"]
