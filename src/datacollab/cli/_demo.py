"""``datacollab demo``: whether collaborating pays."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ._data import USUAL_PARTIES
from ._output import Report
from ._progress import shown_progress
from ._stage import Stage, Step

if TYPE_CHECKING:
    from ._demonstration import Demonstration

__all__ = ["demo"]

_ENOUGH_DRAWS = 5


def demo(
    report: Report,
    dataset: str,
    data_dir: Path | None,
    parties: int,
    rows: int,
    seeds: int,
    jobs: int,
    output: Path,
    roles: bool,
    quiet: bool,
) -> None:
    if roles:
        report.unchanged = f"The files in {output} are as the last step left them."
        report.facts = {"predictions": str(_play_roles(output, quiet=quiet or report.as_json))}
        return
    report.unchanged = "Nothing was written; run the command again, with fewer --seeds if it takes too long."
    start = time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    demonstration, written = _run(dataset, data_dir, parties, rows, seeds, jobs, output, quiet)
    report.facts = demonstration.as_dict()
    if not report.as_json:
        _print_table(demonstration, dataset)
    report.line("\n".join([*(f"  {path}" for path in written), f"Done in {time.perf_counter() - start:.0f} s."]))


def _run(
    dataset: str, data_dir: Path | None, parties: int, rows: int, seeds: int, jobs: int, output: Path, quiet: bool
) -> tuple[Demonstration, list[Path]]:
    from ._demonstration import demonstrate, demonstration_figure, demonstration_page

    with shown_progress(quiet, steps=2 + seeds, first="loading") as progress:
        from ..datasets import load

        data = load(dataset, data_dir=data_dir)
        if data.task != "classification":
            raise ValueError(f"The demonstration is of classes, and {dataset!r} has numbers; try `datacollab compare`.")
        progress(f"playing {seeds} draw{'s' if seeds > 1 else ''}")
        demonstration = demonstrate(
            data, n_parties=parties, n_rows=rows, seeds=range(seeds), progress=progress, n_jobs=jobs
        )
        progress("drawing")
        figure = demonstration_figure(data, demonstration)
        picture, page, scores = output / "pays.png", output / "index.html", output / "scores.json"
        figure.savefig(picture, dpi=144)
        command = shlex.join(["datacollab", *sys.argv[1:]])
        page.write_text(demonstration_page(demonstration, dataset, figure, command), encoding="utf-8")
        scores.write_text(json.dumps(demonstration.as_dict(), indent=2), encoding="utf-8")
    return demonstration, [picture, page, scores]


def _print_table(demonstration: Demonstration, dataset: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from ._demonstration import ALONE, WAYS, in_words

    console = Console()
    n_parties, n_rows = demonstration.n_parties, demonstration.n_rows
    table = Table(title=f"{dataset}: {n_parties} parties with {n_rows} rows each, on new rows", box=box.SIMPLE_HEAD)
    table.add_column("way")
    for heading in ("accuracy", "above alone"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("what leaves a party")
    for way, leaves in WAYS.items():
        gain = "" if way == ALONE else in_words(*demonstration.gain(way), sign="+")
        table.add_row(way, in_words(*demonstration.interval(way)), gain, leaves)
    console.print(table)
    console.print(demonstration.sentence, highlight=False)
    if len(demonstration.seeds) < _ENOUGH_DRAWS:
        console.print(f"With more draws intervals are narrower: --seeds {_ENOUGH_DRAWS}.", highlight=False)


def _exchange() -> Iterator[Step]:
    """Yield the whole exchange over handwritten digits; the first party owns the project."""
    owner, *_ = USUAL_PARTIES
    yield Step("Tables to try it with.", ("data", "deal", "digits", "tables"))
    yield Step("Everybody makes keys.", ("keys", "new", *USUAL_PARTIES, "analyst"))
    members = [option for party in USUAL_PARTIES for option in ("--party", f"{party}={party}/public.key")]
    yield Step(
        "The owner drafts the project from public rows, and signs it.",
        (
            *("project", "new", "digits", "--like", "tables/public.csv", "--target", "digit"),
            *("--purpose", "Recognise digits.", *members, "--analyst", "analyst/public.key"),
            *("-C", owner, "-o", "project.toml"),
        ),
    )
    yield Step(
        "The owner makes the anchor and seals it to the parties.",
        ("anchor", "seal", "tables/public.csv", "--project", "project.toml", "-C", owner, "-o", "anchor.dcanchor"),
    )
    for party in USUAL_PARTIES:
        known = ("--owner", f"{owner}/public.key")
        yield Step("A party joins.", ("party", "join", "project.toml", "anchor.dcanchor", *known, "-C", party))
        share = ("party", "share", f"tables/{party}.csv", "--approve", "-C", party)
        yield Step("It looks at what would leave, and shares once.", share)
    sums = [f"{party}/outbox/{party}.dcsum" for party in USUAL_PARTIES]
    yield Step(
        "The analyst adds up all files and makes one model.",
        ("analyst", "integrate", *sums, "--project", "project.toml", "-C", "analyst"),
    )
    yield Step("The analyst writes a file with the model for each party.", ("analyst", "export", "-C", "analyst"))
    yield Step("A party installs its own.", ("party", "install", f"analyst/outbox/{owner}.dcmodel", "-C", owner))
    yield Step(
        "From now on it predicts alone.",
        ("party", "predict", "tables/new.csv", "-o", "predictions.csv", "-C", owner),
    )
    yield Step("How good is it?", ("party", "evaluate", "tables/new.csv", "-C", owner))


def _play_roles(output: Path, *, quiet: bool) -> Path:
    """Run all steps in a new directory, in which everybody gets one; return the first party's predictions."""
    with Stage(output, quiet=quiet) as stage:
        for step in _exchange():
            stage.play(replace(step, is_shown=True))
    return output / "predictions.csv"
