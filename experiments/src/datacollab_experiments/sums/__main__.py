"""Play, attack, look at the further tables, and write tables; draws that are there are not computed again."""

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from ..pays.draws import draw
from ..pays.settings import Setting
from ..pays.tables import FURTHER, load_table
from .attacks import TARGETS, Scene, draw_world
from .further import further_setting, without_sums
from .membership import N_AUXILIARY, Membership
from .playing import (
    ALIKE,
    ALONE,
    BESIDE,
    MANY_AUXILIARY,
    MEMBERS,
    MEMBERS_OF_RARE_CLASS,
    N_DRAWS,
    N_MEMBERSHIP_DRAWS,
    N_REBUILT_DRAWS,
    REBUILT,
    ROSTERS,
    SEEDS,
    SETTINGS,
    WORLDS,
    Roster,
    Variant,
    candidates,
    play,
    rule_for,
)
from .rebuilding import rebuild
from .report import package_table, write_report

Row = Mapping[str, object]


def scores_of(setting: Setting, seed: int, data_dir: Path | None) -> Iterator[Row]:
    """Yield scores of all candidates in one draw of `pays`."""
    drawn = draw(load_table(setting.dataset, data_dir), setting, seed)
    for variant, columns, score in play(drawn, candidates(alike=setting.dataset in ALIKE)):
        yield {"setting": setting.label, "seed": seed, **_facts(variant), "columns": columns, "score": score}


def _facts(variant: Variant) -> Row:
    return {"D": variant.components, "s": variant.noise, "least": variant.least}


def attacks_of(name: str, seed: int, data_dir: Path | None) -> Iterator[Row]:
    """Yield all attacks in one draw of a world, on both kinds of targets."""
    rule = rule_for(alike=name in ALIKE)
    for roster, n_others in product((*ROSTERS, ALONE), WORLDS[name]):
        world = draw_world(name, roster, n_others, seed, data_dir)
        # Numbers and classes are of the same people, with the same rule and noise.
        for target in TARGETS:
            case = {"world": name, "target": target, **_of_roster(roster), "rows": n_others, **_facts(rule)}
            scene = Scene(world, rule.components, seed, roster, target)
            for attacker, read, correlation, named in scene.read(rule):
                scores = {"correlation": correlation, "named": named}
                yield {**case, "seed": seed, "attacker": attacker, "read": read, **scores}


def _of_roster(roster: Roster) -> Row:
    return {"parties": roster.n_parties, "attacking": roster.n_colluding}


def membership_of(name: str, seed: int, data_dir: Path | None) -> Iterator[Row]:
    """Yield all attacks on membership in one draw."""
    rule = rule_for(alike=name in ALIKE)
    cases = [(rows, False, N_AUXILIARY, roster) for rows in MEMBERS[name] for roster in ROSTERS]
    cases += [(MEMBERS_OF_RARE_CLASS[name], True, N_AUXILIARY, roster) for roster in ROSTERS]
    if name in MANY_AUXILIARY:
        cases.append((MANY_AUXILIARY[name], False, 3000, ROSTERS[-1]))
    for rows, rare, n_auxiliary, roster in cases:
        of_total = Membership(name, rows, seed, rule, roster, data_dir, rare=rare, n_auxiliary=n_auxiliary)
        for attacker, read, value in of_total.readings():
            case = {"table": name, **_of_roster(roster), "rows": rows, "class of ten": rare}
            case |= {"rows of the kind": n_auxiliary, "seed": seed, "D": rule.components, "s": rule.noise}
            yield case | {"attacker": attacker, "read": read, "AUC": value}


def rebuilding_of(name: str, seed: int, data_dir: Path | None) -> Iterator[Row]:
    """Yield figures of rows rebuilt in one draw, by the rule and without noise."""
    rule = rule_for(alike=name in ALIKE)
    for rows, s in product(REBUILT[name], (rule.noise, 0.0)):
        case: Row = {"table": name, "rows": rows, "D": rule.components, "s": s, "seed": seed}
        yield {**case, **dict(rebuild(name, rows, seed, replace(rule, noise=s), data_dir))}


def further_of(name: str, seed: int, data_dir: Path | None) -> Iterator[Row]:
    """Yield scores of the rule, and of parties without sums, in one draw of a further table."""
    for labelled in (True, False):
        setting = further_setting(name, labelled=labelled)
        drawn = draw(load_table(name, data_dir), setting, seed)
        case: Row = {"setting": setting.label, "seed": seed}
        for _, _, score in play(drawn, [rule_for(alike=False)]):
            yield {**case, "method": "sums", "score": score}
        for method, score in without_sums(drawn).items():
            yield {**case, "method": method, "score": score}


def append_draw(path: Path, done: str, make: Iterable[Row]) -> None:
    """Append rows to a file, all of one draw or none."""
    marks = path.with_suffix(".done")
    # Runs of hours are stopped and go on: a draw that is marked is not computed again.
    if marks.exists() and done in marks.read_text(encoding="utf-8").splitlines():
        return
    # A draw counts once its mark is written: rows first, so that one that was stopped is computed again.
    rows = [{key: _format(value) for key, value in row.items()} for row in make]
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        if is_new:
            writer.writeheader()
        writer.writerows(rows)
    with marks.open("a", encoding="utf-8") as stream:
        stream.write(f"{done}\n")
    print(done, flush=True)


def _format(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value


PAYS = Path("docs/results/pays/scores.csv.gz")
PACKAGE = Path("src/datacollab/sums/membership.csv")
"""Scores that those of sums stand beside, and the package's file, which `ship` makes of the report's."""
Play = Callable[..., Iterable[Row]]

# Runs of each part, in their order, and the function that plays one of them.
PARTS: dict[str, tuple[Iterable[tuple[Any, int]], Play]] = {
    "scores": (list(product((*SETTINGS, *BESIDE), SEEDS)), scores_of),
    "further": (list(product(FURTHER, SEEDS)), further_of),
    # World by world: a table of pictures takes half a minute to read.
    "attacks": (list(product(WORLDS, range(N_DRAWS))), attacks_of),
    "membership": (list(product(MEMBERS, range(N_MEMBERSHIP_DRAWS))), membership_of),
    "rebuilding": ([(name, seed) for seed in range(N_REBUILT_DRAWS) for name in REBUILT], rebuilding_of),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute the parts that are named, and write tables."""
    parser = argparse.ArgumentParser(prog="python -m datacollab_experiments.sums", description=__doc__)
    parser.add_argument("part", choices=(*PARTS, "report", "ship"), nargs="+")
    parser.add_argument("--output", type=Path, default=Path("output/sums"))
    parser.add_argument("--copy-to", type=Path, help="folder that the report's tables are written to as well")
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST and others")
    options = parser.parse_args(arguments)
    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    for part in (part for part in PARTS if part in options.part):
        runs, play_run = PARTS[part]
        for case, seed in runs:
            label = case.label if isinstance(case, Setting) else case
            append_draw(folder / f"{part}.csv", f"{label}, seed {seed}", play_run(case, seed, options.data_dir))
    if "report" in options.part:
        write_report(folder, PAYS, options.copy_to or folder / "report")
    # The package's table comes from the committed one, so that everybody can make it again.
    if "ship" in options.part:
        members = pd.read_csv((options.copy_to or folder / "report") / "membership.csv")
        PACKAGE.write_text(package_table(members), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
