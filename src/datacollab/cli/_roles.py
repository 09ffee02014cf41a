"""``datacollab demo --roles``: the exchange of files, each command in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ._stage import Stage, Step

__all__ = ["play_roles"]


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
    with Stage(output, quiet=quiet) as stage:
        for step in steps(parties):
            stage.play(replace(step, is_shown=True))
    return output / "predictions.csv"
