"""``datacollab demo --roles``: the exchange of files, each command in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ._data import USUAL_PARTIES
from ._stage import Stage, Step

__all__ = ["play_roles"]


def steps() -> Iterator[Step]:
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


def play_roles(output: Path, *, quiet: bool) -> Path:
    """Run all steps in a new directory, in which everybody gets one; return the first party's predictions."""
    with Stage(output, quiet=quiet) as stage:
        for step in steps():
            stage.play(replace(step, is_shown=True))
    return output / "predictions.csv"
