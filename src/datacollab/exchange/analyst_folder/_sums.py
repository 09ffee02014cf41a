"""Sums that came in: checks of each file, and of the total; the one model of all, kept and sent."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...bundle import KeyPair, digest, unpack
from ...errors import AgreementError, DataCollabError, ExchangeError, ShareError
from ...sums import MASKED_SUM_KIND, CountsPlan, MaskedMessage, SumsPlan, read_message
from ..project import Project
from ..sums import SumsFacts, fewest_rows, plan_of, read_sums_facts
from ._shares import check_same_anchor, sender_of

__all__ = ["FEWEST_IN_TOTAL", "ReceivedSum", "SumsIntegration", "check_new_sum", "receive_sum", "solve_sums"]

FEWEST_IN_TOTAL = 10
"""Each row of a class with fewer rows in the total may be recognised."""
_FARTHEST = 8.0
"""Standard deviations of noise within which a total has to be what rows give."""
_ETA_SQUARED = 0.25


@dataclass(frozen=True, kw_only=True, eq=False)
class ReceivedSum:
    """A message that belongs to the project and comes from whom it says.

    Attributes
    ----------
    message : MaskedMessage
    outside : SumsFacts
        What the file says on its outside.
    digest : str
        Identity of the bundle.
    """

    message: MaskedMessage = field(repr=False)
    outside: SumsFacts
    digest: str

    @property
    def party(self) -> str:
        """The party that sent it."""
        return str(self.message.party)


@dataclass(frozen=True, kw_only=True)
class SumsIntegration:
    """A total in numbers, all of them blurred by its noise, and the model that was made of it.

    Attributes
    ----------
    n_rows : int
        Of all parties, and labelled public ones.
    n_parties, n_components : int
    alpha : float or None
        The penalty chosen; None if there is no model.
    class_counts : dict of str to int
        Rows of each class in the total; empty for numbers.
    rare : tuple of str
        Classes that have fewer than ten rows in the total; of counts, that may have.
    context : str
        Of the sum.
    model_digest : str or None
        Of the model's file; the same for all parties.
    created : str
    """

    n_rows: int
    n_parties: int
    n_components: int
    alpha: float | None
    class_counts: dict[str, int]
    rare: tuple[str, ...]
    context: str
    model_digest: str | None
    created: str

    def facts(self) -> dict[str, Any]:
        """Return the same as what JSON can hold."""
        return asdict(self) | {"rare": list(self.rare)}


def receive_sum(source: bytes, project: Project, key: KeyPair, *, where: str) -> ReceivedSum:
    """Read and check a file of sums.

    Parameters
    ----------
    source : bytes
        Of a `.dcsum` file.
    project : Project
        With `sharing`.
    key : KeyPair
        The analyst's.
    where : str
        Name of the file, for errors.

    Raises
    ------
    ExchangeError
        If the file is damaged, is not signed by the party that it names, belongs to another version of the project or
        another run, says that it was made after the deadline, or holds something else than the plan wants.
    """
    bundle = unpack(source, kind=MASKED_SUM_KIND, what=where)
    party = sender_of(bundle, project, where)
    outside = read_sums_facts(bundle.facts, project, party, where)
    try:
        message = read_message(source, key, signed_by=project.parties[party])
        plan_of(project, anchor_commitment=outside.anchor_commitment, n_components=outside.n_components).agreed.check(
            message
        )
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{where} of party {party!r}: {error}") from None
    except (AgreementError, ShareError) as error:
        raise ExchangeError("SHARE_MALFORMED", f"{where}: {error}") from None
    return ReceivedSum(message=message, outside=outside, digest=bundle.digest)


def check_new_sum(received: ReceivedSum, present: Mapping[str, ReceivedSum], *, where: str) -> None:
    """Refuse a second message of a party, and one that does not go with the others."""
    party = received.party
    known = present.get(party)
    if known is not None and known.digest != received.digest:
        raise ExchangeError(
            "ALREADY_THERE",
            f"Party {party!r} has sent its sums already, and {where} is another file. The difference of two tells "
            "rows: remove this one, tell the party, and begin a new run with new mask keys.",
        )
    check_same_anchor(
        {name: each.outside.anchor_commitment for name, each in present.items()},
        party,
        received.outside.anchor_commitment,
    )
    others = [name for name, each in present.items() if each.outside.n_components != received.outside.n_components]
    if others:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} has {received.outside.n_components} columns in the common map; those of "
            f"{others!r} have another number. Have all parties compare their versions of datacollab.",
        )


def solve_sums(received: Sequence[ReceivedSum], project: Project, key: KeyPair) -> tuple[bytes | None, SumsIntegration]:
    """Add up the messages of all parties, and check the total; return the bytes of the model, unless it is counts."""
    there = {each.party for each in received}
    if missing := [name for name in project.parties if name not in there]:
        raise ExchangeError(
            "QUORUM_NOT_MET",
            f"The sums of {missing} are missing, and without them nothing can be added up. Wait for them; if one never "
            "comes, the owner raises the run, with new mask keys of the others.",
        )
    outside = received[0].outside
    plan = plan_of(project, anchor_commitment=outside.anchor_commitment, n_components=outside.n_components)
    messages = [each.message for each in received]
    model = None
    try:
        if isinstance(plan, CountsPlan):
            counts = plan.counts(messages)
            rare, n_rows = plan.rare(counts), sum(counts.values())
            _check_counts(counts, n_rows, _FARTHEST * plan.noise * plan.agreed.excess, project)
        else:
            total = plan.agreed.total(messages)
            n_rows, counts = _check_total(plan, total, project)
            rare = [name for name, count in counts.items() if round(count) < FEWEST_IN_TOTAL]
            model = plan.model(total)
    except ExchangeError:
        raise
    except DataCollabError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    data = None if model is None else model.to_bytes(key=key)
    return data, SumsIntegration(
        n_rows=round(n_rows),
        n_parties=len(project.parties),
        n_components=outside.n_components,
        alpha=None if model is None else float(model.fit.alpha),
        class_counts={str(name): max(0, round(count)) for name, count in counts.items()},
        rare=tuple(map(str, rare)),
        context=plan.agreed.context.hex(),
        model_digest=None if data is None else digest(data),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _check_counts(counts: Mapping[Any, float], n: float, slack: float, project: Project) -> None:
    """Refuse counts that rows cannot give."""
    _refuse_if(
        _too_few(n, slack * math.sqrt(len(counts)), project)
        or ("a class has fewer than no rows" if min(counts.values()) < -slack else None),
        project,
    )


def _too_few(n: float, slack: float, project: Project) -> str | None:
    K, least = len(project.parties), len(project.parties) * fewest_rows(project)
    if n >= least - slack:
        return None
    return f"it says that there are {n:.0f} rows, and {K} parties add at least {least}"


def _check_total(plan: SumsPlan, total: Any, project: Project) -> tuple[float, dict[Any, float]]:
    """Refuse a total that rows cannot give; return the number of rows, and of those of each class."""
    figures = plan.statistic.figures(total)
    n = figures.n_rows
    slack = _FARTHEST * plan.noise * plan.agreed.excess
    rows_slack = slack / _ETA_SQUARED
    wrong = _too_few(n, rows_slack, project)
    if wrong is not None:
        pass
    elif (
        not -slack * math.sqrt(plan.n_components)
        <= figures.length_v
        <= n + rows_slack + slack * math.sqrt(plan.n_components)
    ):
        wrong = "rows of the common map are longer than 1, or their squares are negative"
    elif figures.length_t > figures.most_t + rows_slack * (1 + math.sqrt(plan.statistic.n_outputs)):
        wrong = "targets are beyond their range"
    elif figures.class_counts and min(figures.class_counts) < -2 * rows_slack:
        wrong = "a class has fewer than no rows"
    _refuse_if(wrong, project)
    return n, dict(zip(plan.classes or (), figures.class_counts, strict=True))


def _refuse_if(wrong: str | None, project: Project) -> None:
    if wrong is not None:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"The total of project {project.name!r} is not one of rows: {wrong}. At least one party added something "
            "else, and nobody can tell who. Ask all of them, and begin a new run.",
        )
