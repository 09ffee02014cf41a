"""``datacollab demo --roles``: the exchange of files, each command in a process of its own."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import typer

__all__ = ["play_roles"]


@dataclass(frozen=True)
class Step:
    """A command, and what it is for.

    Attributes
    ----------
    note : str
    words : tuple of str
        After ``datacollab``.
    """

    note: str
    words: tuple[str, ...]


def steps(parties: tuple[str, ...]) -> Iterator[Step]:
    """The whole exchange over handwritten digits; the first party owns the project."""
    owner, *_ = parties
    named = [option for party in parties for option in ("--party", party)]
    yield Step("Tables to try it with.", ("data", "deal", "digits", "tables", *named))
    yield Step("Everybody makes keys.", ("keys", "new", *parties, "analyst"))
    members = [option for party in parties for option in ("--party", f"{party}={party}/public.key")]
    yield Step(
        "The owner drafts the project from public rows, and signs it.",
        (
            *("project", "new", "digits", "--like", "tables/public.csv", "--target", "digit"),
            *("--purpose", "Recognise digits.", *members, "--analyst", "analyst/public.key"),
            *("--range", "0", "1", "-C", owner, "-o", "project.toml"),
        ),
    )
    yield Step(
        "The owner makes the anchor and seals it to the parties.",
        ("anchor", "seal", "tables/public.csv", "--project", "project.toml", "-C", owner, "-o", "anchor.dcanchor"),
    )
    for party in parties:
        known = ("--owner", f"{owner}/public.key")
        yield Step("A party joins.", ("party", "join", "project.toml", "anchor.dcanchor", *known, "-C", party))
        share = ("party", "share", f"tables/{party}.csv", "--approve", "-C", party)
        yield Step("It looks at what would leave, and shares once.", share)
    shares = [f"{party}/outbox/{party}.dcshare" for party in parties]
    yield Step(
        "The analyst aligns the shares and trains one model.",
        ("analyst", "integrate", *shares, "--project", "project.toml", "-C", "analyst"),
    )
    yield Step("The analyst writes a model for each party.", ("analyst", "export", "-C", "analyst"))
    yield Step("A party installs its own.", ("party", "install", f"analyst/outbox/{owner}.dcmodel", "-C", owner))
    yield Step(
        "From now on it predicts alone.",
        ("party", "predict", "tables/new.csv", "-o", "predictions.csv", "-C", owner),
    )
    yield Step("How good is it?", ("party", "evaluate", "tables/new.csv", "-C", owner))


def play_roles(output: Path, parties: tuple[str, ...], *, quiet: bool) -> Path:
    """Run all steps; return the first party's predictions.

    Parameters
    ----------
    output : Path
        A new directory, in which everybody gets one.
    parties : tuple of str
    quiet : bool
        Whether to print nothing but errors.

    Raises
    ------
    ValueError
        When the directory is there already, or a step fails.
    """
    if output.exists() and any(output.iterdir()):
        raise ValueError(f"{output} is not empty; choose another --output, or remove it.")
    output.mkdir(parents=True, exist_ok=True)
    for step in steps(parties):
        if not quiet:
            typer.secho(f"# {step.note}", dim=True)
            typer.echo(f"$ {shlex.join(['datacollab', *step.words])}")
        done = subprocess.run(
            [sys.executable, "-m", "datacollab", *step.words],
            cwd=output,
            stdout=subprocess.DEVNULL if quiet else None,
            check=False,
        )
        if done.returncode:
            raise ValueError(f"The step `datacollab {shlex.join(step.words)}` failed; {output} is as it left it.")
    return output / "predictions.csv"
