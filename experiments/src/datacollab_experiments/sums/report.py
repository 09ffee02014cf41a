"""Tables of scores and of attackers' readings, with 95 % intervals over draws."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..harness import markdown
from ..pays.results import Difference, Measured, student
from ..pays.settings import Setting
from ..pays.trial import AVERAGE, CENTRAL, METHODS
from .attacks import N_WIDE
from .playing import (
    ALIKE,
    BESIDE,
    LEAST_ABOVE_AVERAGE,
    LEAST_ABOVE_OWN,
    MOST_BELOW_AVERAGE,
    SETTINGS,
    Variant,
    candidates,
    rule_for,
)

SUMS = "sums"
SHIPPING = "Written by: python -m datacollab_experiments.sums ship --copy-to docs/results/sums"
_MEMBERSHIP_BY = ("together", "party", "analyst")
_OF_ROSTER = ("parties", "attacking")
_OF_ATTACK = ("world", "target", *_OF_ROSTER, "rows", "D", "s", "attacker")
_OF_MEMBERSHIP = ("table", "rows", "class of ten", "rows of the kind", *_OF_ROSTER, "D", "s", "attacker")
_INTRODUCTION = (
    "Correlations with what no features tell, ± half of the 95 % interval over draws. Half of the draws choose the way "
    "of reading, the others are read."
)
_BASELINES = ("own", "own and public", "average of locals", "average of locals with public", "all in one place")


def write_report(folder: Path, pays: Path, target: Path) -> None:
    """Write the tables of all parts that were computed, and pages of them: `tables.md`, and `attacks.md`."""
    target.mkdir(parents=True, exist_ok=True)
    if (folder / "scores.csv").exists():
        parts = ["# All tables", "As the command in [the report](README.md) writes them."]
        parts += _report_scores(pd.read_csv(folder / "scores.csv"), pd.read_csv(pays), target)
        if (folder / "further.csv").exists():
            further = pd.read_csv(folder / "further.csv")
            further.to_csv(target / "further.csv", index=False, float_format="%.4f")
            parts += ["## Further tables", _further(further)]
        (target / "tables.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    parts = ["# All attacks on totals", "As the command in [the report](README.md) writes them."]
    for name, report in (("attacks", _report_attacks), ("membership", _report_members), ("rebuilding", _rows_rebuilt)):
        path = folder / f"{name}.csv"
        if path.exists():
            table, lines = report(pd.read_csv(path))
            table.to_csv(target / f"{name}.csv", index=False, float_format="%.3f")
            parts += lines
    (target / "attacks.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _report_scores(scores: pd.DataFrame, committed: pd.DataFrame, target: Path) -> list[str]:
    parts = ["## By the rule, the 24 settings", _by_setting(scores, committed, SETTINGS)]
    parts += ["## By the rule, beside them", _by_setting(scores, committed, BESIDE)]
    for alike, kind in ((False, "tables, 16 settings"), (True, "pixels and signals, 8 settings")):
        parts += [f"## Candidates: {kind}", _counts(scores, committed, alike=alike)]
    keys = ["D", "s", "least"]
    means = scores.pivot_table(index=keys, columns="setting", values="score", sort=False).reset_index()
    means.to_csv(target / "means.csv", index=False, float_format="%.4g")
    alike = scores.setting.str.startswith(tuple(f"{name} " for name in ALIKE))
    by_rule = pd.concat([_of(scores[alike == kind], rule_for(alike=kind)) for kind in (True, False)])
    by_rule.to_csv(target / "rule.csv", index=False, float_format="%.4f")
    return parts


def _report_attacks(draws: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    attacks = summarise_attacks(draws)
    return attacks, ["## Targets beyond what features tell", _INTRODUCTION, _attacks(attacks)]


def _report_members(draws: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    members = read_best(draws, _OF_MEMBERSHIP, "AUC")
    return members, [
        "## Membership",
        "Areas under the curve, ± half of the 95 % interval over draws.",
        _members(members),
    ]


def compare(scores: pd.DataFrame, committed: pd.DataFrame, setting: Setting, variant: Variant) -> Measured:
    """Return scores of `pays` under one setting, and those of sums beside them."""
    facts = {"dataset": setting.dataset, "split": setting.split, "public": setting.n_public}
    facts |= {"labelled": setting.labelled, "f": setting.f, "defence": setting.defence}
    # A setting is known by its facts: the committed file has no labels.
    theirs = committed[np.logical_and.reduce([committed[name] == value for name, value in facts.items()])]
    every = Measured(setting, str(theirs.metric.iloc[0]))
    for method in METHODS:
        of = theirs[theirs.method == method]
        if len(of):
            every.scores[method] = {
                int(seed): dict(zip(rows.party, rows.score, strict=True)) for seed, rows in of.groupby("seed")
            }
    parties = list(every.scores[AVERAGE][0])
    ours = _of(scores[scores.setting == setting.label], variant)
    every.scores[SUMS] = {int(row.seed): dict.fromkeys(parties, float(row.score)) for row in ours.itertuples()}
    return every


def _of(scores: pd.DataFrame, variant: Variant) -> pd.DataFrame:
    same = scores.D.eq(variant.components) & scores.least.eq(variant.least)
    return scores[same & scores.s.eq(variant.noise)]


def _counts(scores: pd.DataFrame, committed: pd.DataFrame, *, alike: bool) -> str:
    rows = []
    settings = [setting for setting in SETTINGS if (setting.dataset in ALIKE) == alike]
    for variant in candidates(alike=alike):
        # The committed scores of `pays` are of the same draws, so differences are paired.
        every = [compare(scores, committed, setting, variant) for setting in settings]
        against = [each.gain(SUMS, AVERAGE) for each in every]
        own = [each.gain(SUMS, each.own) for each in every]
        verdicts = [sum(each.verdict == sign for each in against) for sign in "+0-"]
        cells = [f"{variant.components}", f"{variant.noise:g}", f"{variant.least:g}"]
        cells += [f"{sum(each.mean >= 0 for each in against)}", " / ".join(map(str, verdicts))]
        cells += [f"{sum(each.mean > 0 for each in own)}", f"{sum(each.verdict == '-' for each in own)}"]
        cells += [f"{100 * np.mean([each.mean for each in against]):+.2f}"]
        if variant == rule_for(alike=alike):
            cells = [f"**{cell}**" for cell in cells]
        rows.append(cells)
    head = ["D", "s", "least penalty", "at or above average", "beyond chance + / 0 / −"]
    return markdown([*head, "above own", "below own beyond chance", "mean gain, points or % of RMSE"], rows)


def _by_setting(scores: pd.DataFrame, committed: pd.DataFrame, settings: Sequence[Setting]) -> str:
    rows = []
    averages = []
    owns = []
    for setting in settings:
        variant = rule_for(alike=setting.dataset in ALIKE)
        every = compare(scores, committed, setting, variant)
        digits = 1 if every.is_error else 3
        means = [f"{every.mean(each):.{digits}f}" for each in (SUMS, AVERAGE, every.own, CENTRAL)]
        averages.append(every.gain(SUMS, AVERAGE))
        owns.append(every.gain(SUMS, every.own))
        used = [f"{variant.components}", f"{variant.noise:g}"]
        label = setting.label.removesuffix(", sums")
        rows.append([label, *used, every.metric, *means, _write(averages[-1]), _write(owns[-1])])
    head = ["setting", "D", "s", "measure", "sums", "average of locals", "own", "all in one place"]
    counted = (
        f"At or above the average of locals: {sum(each.mean >= 0 for each in averages)} of {len(settings)}; below it "
        f"beyond chance: {sum(each.verdict == '-' for each in averages)}. Above own: "
        f"{sum(each.mean > 0 for each in owns)}; below own beyond chance: "
        f"{sum(each.verdict == '-' for each in owns)}."
    )
    if settings is SETTINGS:
        counted += (
            f" Demanded: at least {LEAST_ABOVE_AVERAGE}, at most {MOST_BELOW_AVERAGE}, at least {LEAST_ABOVE_OWN}, 0."
        )
    return f"{counted}\n\n{markdown([*head, 'sums − average', 'sums − own'], rows)}"


def _write(difference: Difference) -> str:
    text = f"{difference.mean:+.3f}"
    # Bold is beyond chance: the interval is on one side of 0.
    if difference.verdict != "0":
        text = f"**{text}**"
    return f"{text} ({difference.low:+.3f} to {difference.high:+.3f})"


def read_best(attacks: pd.DataFrame, keys: Sequence[str], value: str) -> pd.DataFrame:
    """Return each attacker's mean reading: in even draws in the way that is best in odd ones, and the other way round.

    So nothing is chosen by its own luck.
    """
    rows = []
    for named, of in attacks.groupby(list(keys), sort=False):
        by_way = of.pivot_table(index="seed", columns="read", values=value)
        # Cross-fitting: the best of some sixty ways would be chosen by its luck otherwise.
        best = [by_way[by_way.index % 2 != half].mean().idxmax() for half in (0, 1)]
        values = [float(by_way.loc[seed, best[seed % 2]]) for seed in by_way.index]
        mean = student(values)
        case = dict(zip(keys, named, strict=True))
        rows.append(case | {"draws": len(values), "mean": mean.mean, "low": mean.low, "high": mean.high})
    return pd.DataFrame(rows)


def summarise_attacks(attacks: pd.DataFrame) -> pd.DataFrame:
    """Return each attacker's mean correlation, and how often it names classes rightly, in the best way for each."""
    # The way that is best for naming need not be the one with the highest correlation.
    summary = read_best(attacks, _OF_ATTACK, "correlation")
    classes = attacks[attacks.target == "classes"]
    # Features alone were not scored beside an analyst without a party, whose guesses hardly name a class more often.
    named = read_best(classes[classes.attacker != "analyst"], _OF_ATTACK, "named")
    return summary.merge(named[[*_OF_ATTACK, "mean"]].rename(columns={"mean": "named"}), how="left", on=_OF_ATTACK)


def _attacks(attacks: pd.DataFrame) -> str:
    rows = []
    by_case = attacks[attacks.attacker != "features alone"]
    for (world, target, n, attacker), of in by_case.groupby(["world", "target", "rows", "attacker"], sort=False):
        cells = dict.fromkeys(("1 of 3", "5 of 10", "0 of 3"), "")
        for row in of.itertuples():
            cells[f"{row.attacking} of {row.parties}"] = _with_interval(row)
        rows.append([str(world), str(target), f"{n}", str(attacker), *cells.values()])
    heads = ["features", "target", "rows of others", "attacker", "one party of three", "five of ten", "no party"]
    named = attacks[attacks.named.notna()]
    table = named.pivot_table(index=["world", "rows", *_OF_ROSTER], columns="attacker", values="named", sort=False)
    names = ("features alone", "together", "party", "party, everybody's features")
    lines = [
        [str(world), f"{n}", f"{attacking} of {parties}", *(f"{means[name]:.3f}" for name in names)]
        for (world, n, parties, attacking), means in table.iterrows()
    ]
    named_heads = ["features", "rows of others", "parties that attack", *names]
    words = "How often classes are rightly named: by the rule of the features, and with each attacker's guess added."
    return "\n\n".join((markdown(heads, rows), words, markdown(named_heads, lines)))


def _with_interval(row: Any) -> str:
    return f"{row.mean:.2f} ± {(row.high - row.low) / 2:.2f}"


def _members(members: pd.DataFrame) -> str:
    rows = []
    for case, of in members.groupby(list(_OF_MEMBERSHIP[:-1]), sort=False):
        table, n, rare, of_kind, parties, attacking, D, s = case
        cells = {row.attacker: _with_interval(row) for row in of.itertuples()}
        people = "all"
        if rare:
            people = "a class of ten"
        roster = f"{attacking} of {parties}"
        rows.append(
            [table, f"{n}", people, f"{of_kind}", roster, f"{D}", f"{s:g}", *(cells[each] for each in _MEMBERSHIP_BY)]
        )
    heads = ["table", "rows", "people", "rows of the kind at most", "parties that attack", "D", "s"]
    return markdown([*heads, *_MEMBERSHIP_BY], rows)


def package_table(members: pd.DataFrame) -> str:
    """Return the table of membership that parties see: by the rule, the largest mean of a kind's tables and rosters."""
    kind_of = members.table.isin(ALIKE).map({False: "table", True: "alike"})
    # The map turns the columns of wide tables themselves.
    kind_of[members.table == "wide"] = "own columns"
    rows = []
    for kind in ("table", "alike", "own columns"):
        variant = rule_for(alike=kind == "alike")
        components = variant.components
        if kind == "own columns":
            components = N_WIDE
        of = members[kind_of.eq(kind) & members.D.eq(variant.components) & members.s.eq(variant.noise)]
        # A party cannot know which roster it meets: the table has the worst.
        most = of.pivot_table(index=["class of ten", "rows"], columns="attacker", values="mean", aggfunc="max")
        # Together they can do as each of them does.
        most["together"] = most.max(axis=1)
        facts = {"kind": kind, "D": components, "s": variant.noise}
        rows.append(most[list(_MEMBERSHIP_BY)].reset_index().assign(**facts))
    columns = ["kind", "rows", "class of ten", "D", "s", *_MEMBERSHIP_BY]
    table: str = pd.concat(rows)[columns].to_csv(index=False, lineterminator="\n")
    return f"# {SHIPPING}\n{table}"


def _rows_rebuilt(draws: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    rows = []
    kinds = ("rebuilt", "nearest of 400 rows", "principal coordinates alone")
    for (table, n, D, s), of in draws.groupby(["table", "rows", "D", "s"], sort=False):
        mean = of.mean(numeric_only=True)
        cells = [f"{100 * mean[f'{kind}, near']:.0f} %; {mean[f'{kind}, median']:.3f}" for kind in kinds]
        rows.append([table, str(n), str(D), f"{s:g}", *cells])
    head = ["table", "rows", "D", "s", *(f"{kind}: nearer than .05; median" for kind in kinds)]
    return draws, ["## Rows rebuilt by analyst and parties together", markdown(head, rows)]


def _further(scores: pd.DataFrame) -> str:
    rule = rule_for(alike=False)
    rows = []
    for setting, of in scores.groupby("setting", sort=False):
        by_method = of.pivot_table(index="seed", columns="method", values="score")
        cells = [str(setting).removesuffix(", sums"), f"{rule.components}", f"{rule.noise:g}"]
        cells.append(f"{by_method[SUMS].mean():.3f}")
        for who in _BASELINES:
            kinds = [name for name in by_method if name.endswith(f"|{who}")]
            if not kinds:
                cells.append("–")
                continue
            # The better of both models, picked on the test rows: that favours those without sums.
            better = by_method[by_method[kinds].mean().idxmax()]
            cells.append(f"{better.mean():.3f}; {_write(student(list(by_method[SUMS] - better)))}")
        rows.append(cells)
    return markdown(["setting", "D", "s", "sums", *_BASELINES], rows)
