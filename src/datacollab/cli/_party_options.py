"""Options of the party's commands, in words that fit into 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from .._obfuscators import OBFUSCATORS

__all__ = [
    "HERE",
    "AsJson",
    "Audit",
    "Collaboration",
    "Combined",
    "Components",
    "Details",
    "Distilled",
    "Epsilon",
    "File",
    "FitOnAnchor",
    "Folder",
    "GroupSize",
    "Local",
    "Noise",
    "Obfuscator",
    "Preset",
    "Standardize",
    "Table",
    "TimeBudget",
]

HERE = Path()


def _known_obfuscator(name: str | None) -> str | None:
    return _one_of(name, OBFUSCATORS)


def _known_preset(name: str | None) -> str | None:
    from ..party import PRESETS

    return _one_of(name, PRESETS)


def _one_of(name: str | None, known: Sequence[str]) -> str | None:
    if name is not None and name not in known:
        raise typer.BadParameter(f"{name!r} is unknown; one of {', '.join(known)} is wanted.")
    return name


File = partial(typer.Argument, exists=True, dir_okay=False)
Folder = Annotated[Path, Option("--folder", "-C", metavar="DIR", help="The party's folder.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]
Details = Annotated[bool, Option("--details", help="List what was clipped, filled in or counted as other.")]
Table = Annotated[Path, File(help="CSV, Parquet or Arrow file.")]
Obfuscator = Annotated[
    str | None,
    Option(
        metavar="KIND",
        callback=_known_obfuscator,
        help=f"{', '.join(OBFUSCATORS)}. Default: {next(iter(OBFUSCATORS))}.",
    ),
]
Components = Annotated[
    int | None, Option(min=1, metavar="N", help="Columns to be shared. Default: 16, or what is allowed.")
]
Preset = Annotated[
    str | None,
    Option(
        metavar="NAME",
        callback=_known_preset,
        help="groups: means of five rows, with noise: the default, where no defence is named; for effects "
        "it is --group-size 5 --fit-on-anchor. none: your rows themselves; sharing them takes --undefended, too.",
    ),
]
Standardize = Annotated[bool, Option(help="Bring columns to mean 0 and variance 1 first.")]
Epsilon = Annotated[
    float | None,
    Option(
        min=0,
        metavar="E",
        help="Differential privacy of each row's features, by noise on every row. Takes no other defence.",
    ),
]
GroupSize = Annotated[int | None, Option(min=2, metavar="K", help="Share means of at least so many rows of a class.")]
Noise = Annotated[float | None, Option(min=0, metavar="SD", help="Add noise of so many standard deviations.")]
FitOnAnchor = Annotated[bool, Option("--fit-on-anchor", help="Learn the map from the anchor, not your rows.")]
Combined = Annotated[bool, Option("--combined", help="Your own models and the collaboration's together: the default.")]
Local = Annotated[bool, Option("--local", help="Your own models, without the others.")]
Collaboration = Annotated[bool, Option("--collaboration", help="The collaboration's model, without your own.")]
Distilled = Annotated[bool, Option("--distilled", help="What you distilled from anchor predictions.")]
Audit = Annotated[bool, Option(help="Attack the share first, to show the risk.")]
TimeBudget = Annotated[float | None, Option(min=0, metavar="S", help="Seconds after which no attack is begun.")]
