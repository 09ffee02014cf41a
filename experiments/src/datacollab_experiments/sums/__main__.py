"""Play, attack, look at the further tables, and write tables; what is there already is not computed again."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

from ..pays.draws import draw
from ..pays.settings import Setting
from ..pays.tables import load_table
from .attacks import correlations, correlations_of_model, made_world, staged, wage_world
from .further import TARGET_RANGE, further_setting, further_table, without_sums
from .plan import (
    BESIDE,
    COMPONENTS_UNDER_ATTACK,
    EARLIER,
    FLOORS,
    FURTHER,
    N_DRAWS,
    NOISES,
    ROWS_UNDER_ATTACK,
    SEEDS,
    SETTINGS,
    Anchor,
    Variant,
    floored,
    ruled,
    variants,
)
from .playing import played
from .report import write_report

Row = Mapping[str, object]

PARTS = ("scores", "floors", "rule", "attacks", "further", "wage", "report")


Variants = Callable[[Setting], list[Variant]]


def scores_of(setting: Setting, seed: int, data_dir: Path | None, variants_of: Variants) -> Iterator[Row]:
    """All variants in one draw of `pays`."""
    table = load_table(setting.dataset, data_dir)
    drawn = draw(table, setting, seed)
    for variant, columns, score in played(drawn, variants_of(setting)):
        yield _row(setting, seed, variant, columns, score)


def _anchors(setting: Setting) -> tuple[Anchor, ...]:
    return ("public", "between") if setting.n_public else ("public",)


PLAYS: dict[str, Variants] = {
    "scores": lambda setting: variants(_anchors(setting)),
    "floors": lambda setting: floored(_anchors(setting)),
    "rule": lambda setting: [ruled(setting)],
}


def _row(setting: Setting, seed: int, variant: Variant, columns: int, score: float) -> Row:
    return {
        "setting": setting.label,
        "seed": seed,
        "scale": variant.scale,
        "anchor": variant.anchor,
        "components": variant.components,
        "columns": columns,
        "s": variant.noise,
        "s of moments": variant.moments,
        "noise": "all" if variant.from_all else "others",
        "floor": variant.floor or "released",
        "score": score,
    }


def attacks_of(seed: int, made: str, floor: float | None = None) -> Iterator[Row]:
    """All attacks in one draw of a made-up or a real world; those on the model alone, where there is a floor."""
    world_of = made_world if made == "made-up" else wage_world
    for rows, components in product(ROWS_UNDER_ATTACK, COMPONENTS_UNDER_ATTACK):
        world = world_of(rows, seed)
        if components > len(world.anchor):
            continue
        for noise in NOISES:
            scene = staged(world, components, noise, seed, floor)
            read_of = correlations if floor is None else correlations_of_model
            for name, value in read_of(scene).items():
                attacker, read = name.split("|")
                said = {"world": made if floor is None else f"{made}, least penalty {floor:g}", "seed": seed}
                said |= {"rows": rows, "D": components, "s": noise}
                yield said | {"attacker": attacker, "read": read, "correlation": value}


def further_of(name: str, seed: int) -> Iterator[Row]:
    """The rule, what the library did before, and what parties have without sums, in one draw of a further table."""
    for labelled in (True, False):
        setting = further_setting(name, labelled=labelled)
        drawn = draw(further_table(name), setting, seed)
        drawn = replace(drawn, target_range=TARGET_RANGE.get(name, drawn.target_range))
        for method, variant in (("rule", ruled(setting)), ("earlier", EARLIER)):
            for _, _, score in played(drawn, [variant]):
                yield {"setting": setting.label, "seed": seed, "method": method, "score": score}
        for method, score in without_sums(drawn).items():
            yield {"setting": setting.label, "seed": seed, "method": method, "score": score}


def computed(path: Path, done: str, make: Iterable[Row]) -> None:
    """Append rows to a file, all of one draw or none."""
    marks = path.with_suffix(".done")
    if marks.exists() and done in marks.read_text(encoding="utf-8").splitlines():
        return
    rows = list(make)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        if is_new:
            writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    with marks.open("a", encoding="utf-8") as stream:
        stream.write(f"{done}\n")
    print(done, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m datacollab_experiments.sums", description=__doc__)
    parser.add_argument("part", choices=PARTS, nargs="+")
    parser.add_argument("--output", type=Path, default=Path("output/sums"))
    parser.add_argument("--copy-to", type=Path, help="folder that the report's tables are written to as well")
    parser.add_argument("--pays", type=Path, default=Path("docs/results/pays/scores.csv"))
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST and others")
    options = parser.parse_args(arguments)
    folder: Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    for part in (part for part in PLAYS if part in options.part):
        for setting, seed in product((*SETTINGS, *BESIDE), SEEDS):
            rows = scores_of(setting, seed, options.data_dir, PLAYS[part])
            computed(folder / f"{part}.csv", f"{setting.label}, seed {seed}", rows)
    attacks = partial(computed, folder / "attacks.csv")
    for part, made, n_draws in (("attacks", "made-up", N_DRAWS), ("wage", "wage", N_DRAWS // 2)):
        if part in options.part:
            for seed in range(n_draws):
                for floor in (None, *FLOORS[1:]):
                    attacks(f"{made}, {floor}, seed {seed}", attacks_of(seed, made, floor))
    if "further" in options.part:
        for name, seed in product(FURTHER, SEEDS):
            computed(folder / "further.csv", f"{name}, seed {seed}", further_of(name, seed))
    if "report" in options.part:
        write_report(folder, options.pays, options.copy_to or folder / "report")
    return 0


if __name__ == "__main__":
    sys.exit(main())
