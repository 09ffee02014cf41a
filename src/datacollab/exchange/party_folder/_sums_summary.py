"""What would leave of a project that shares sums, and who learns what of it: for whoever approves it."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass
from typing import Any

from scipy.special import ndtr

from ...linalg import gaussian_sigma
from ...sums import MeasuredMembership
from ..project import Project, sharing_sentences
from ..sums import DELTA

__all__ = ["APART", "TOGETHER", "SumsSummary"]

_WIDTH = 100
APART = (
    "If two other institutions at least do not work with the analyst, it learns one blurred total of all institutions "
    "alone. The total tells how many people there are, and how often each outcome occurs. It may tell somebody whose "
    "outcome is rare, or whom only one of two totals has."
)
TOGETHER = (
    "If the analyst and one institution work together, or are the same, they guess better than by chance whether "
    "somebody they know is among the rows. The blur promises no anonymity, so the file remains personal data."
)

INVENTED = (
    "Somebody who invents all other parties reads what this one adds. Compare the fingerprints of at least two, by "
    "telephone, with people of these institutions whom you know."
)


@dataclass(frozen=True, kw_only=True)
class SumsSummary:
    """What would leave.

    Attributes
    ----------
    party, project, analyst : str
        The last by its fingerprint.
    n_rows : int
        Own rows in the sums.
    n_public : int
        Labelled public rows in them.
    n_components, n_numbers, n_bytes : int
        Columns of the common map, how many numbers leave, and what they take.
    noise : float
        Standard deviation of the total's noise.
    epsilon : float or None
        Of differential privacy, if the project asks for it.
    noise_before : float or None
        That of all totals so far with any of these rows; None if there is none.
    n_parties, n_entities : int
    others : tuple of str
        Each other party, its institution and its key's fingerprint.
    sentences : tuple of str
        What people have to know of who takes part.
    n_rows_together : int
        Rows that the total has at least: own ones, and as many of each other party as the project demands.
    measured : tuple of MeasuredMembership
        What attackers read of such totals.
    adjusted : dict of str to object
        Counts of entries that the project's rules made something else.
    """

    party: str
    project: str
    analyst: str
    n_rows: int
    n_public: int
    n_components: int
    n_numbers: int
    n_bytes: int
    noise: float
    epsilon: float | None
    noise_before: float | None
    n_parties: int
    n_entities: int
    others: tuple[str, ...]
    sentences: tuple[str, ...]
    n_rows_together: int
    measured: tuple[MeasuredMembership, ...]
    adjusted: dict[str, Any]

    @property
    def defences(self) -> tuple[str, ...]:
        """What defends the rows."""
        return ("masks", "noise")

    def to_dict(self) -> dict[str, Any]:
        """Return the same as what JSON can hold."""
        listed = {"sentences": list(self.sentences), "others": list(self.others), "who": [APART, TOGETHER]}
        return asdict(self) | {"way": "sums", **listed}

    def to_text(self) -> str:
        """Return the same for people."""
        public = f", and {self.n_public} labelled public ones" if self.n_public else ""
        lines = [
            f"Party {self.party} of project {self.project} would send one file to the analyst ({self.analyst}).",
            f"It holds {self.n_numbers:,} numbers, about {self.n_bytes:,} bytes: sums over {self.n_rows} of its rows"
            f"{public}.",
            f"Masks hide them: only the total of all {self.n_parties} parties, {self.n_entities} institutions, can be "
            f"read, with noise of {self.noise:g}.",
            "No row leaves, and no target.",
            "",
            *textwrap.wrap(APART, _WIDTH),
            *textwrap.wrap(TOGETHER, _WIDTH),
            *("", "The other parties:", *(f"  {each}" for each in self.others)),
            *textwrap.wrap(INVENTED, _WIDTH),
            *("", *self._measured_lines()),
        ]
        if self.epsilon is not None:
            lines += ["", *textwrap.wrap(promise(self.epsilon), _WIDTH)]
        for sentence in self.sentences:
            lines += ["", *textwrap.wrap(f"Warning: {sentence}", _WIDTH)]
        if self.noise_before is not None:
            together = (self.noise_before**-2 + self.noise**-2) ** -0.5
            lines += [
                "",
                f"Totals with some of these rows left before. All together they are blurred like one with noise of "
                f"{together:.2g}.",
            ]
        return "\n".join(lines)

    def _measured_lines(self) -> list[str]:
        """Say what attackers read of membership, by rows together."""
        people = [each for each in self.measured if not each.rare]
        rare = next(each for each in reversed(self.measured) if each.rare)
        title = (
            "Measured on public tables, no bound: how well attackers told people in a total from others, with noise "
            f"of {rare.noise:g}, as an AUC (.50 is guessing, 1.00 is certain)."
        )
        heads = ("Rows of all parties together:", *(f"{each.n_rows:,}" for each in people))
        by_attacker = {
            "the analyst alone": "analyst",
            "one party alone, from the model": "party",
            "the analyst and one party together": "together",
        }
        table = [heads]
        table += [(name, *(_auc(getattr(each, who)) for each in people)) for name, who in by_attacker.items()]
        width = max(len(line[0]) for line in table)
        lines = [f"  {name:<{width}}{''.join(f'{value:>8}' for value in values)}" for name, *values in table]
        rest = (
            f"Here there are {self.n_rows_together:,} rows at least. Fewer rows tell more, as does a rare class: with "
            f"ten people of a class among {rare.n_rows:,} rows, {_auc(rare.analyst)}, {_auc(rare.party)} and "
            f"{_auc(rare.together)}."
        )
        if self.noise < rare.noise or self.n_components > rare.n_components:
            rest += " This total has less noise or more columns than those measured, and tells more."
        return [*textwrap.wrap(title, _WIDTH), *lines, *textwrap.wrap(rest, _WIDTH)]


def _auc(value: float) -> str:
    """The value as a table has it; guessing is the least."""
    return f"{max(value, 0.5):.2f}".removeprefix("0")


def promise(epsilon: float) -> str:
    """Say what differential privacy of the total promises."""
    auc = ndtr(1 / gaussian_sigma(epsilon, DELTA) / math.sqrt(2))
    return (
        f"Proven, if at most half of the parties work with the analyst: the total is ({epsilon:g}, {DELTA:g})-"
        f"differentially private. Even somebody who knows all rows but one tells whether a person is in it with an AUC "
        f"of {auc:.2f} at most, where .50 is guessing."
    )


def others_in(project: Project, name: str) -> tuple[str, ...]:
    """Return each other party, its institution and its key's fingerprint."""
    assert project.sharing is not None
    return tuple(
        f"{other} ({project.sharing.entities[other]}): {key.fingerprint}"
        for other, key in project.parties.items()
        if other != name
    )


def entities_in(project: Project) -> int:
    """Return how many legal entities are parties."""
    assert project.sharing is not None
    return len({project.sharing.entity(name) for name in project.parties})


def sentences_of(project: Project) -> tuple[str, ...]:
    """Return what people have to know of who takes part."""
    assert project.sharing is not None
    return tuple(sharing_sentences(project.sharing))


def or_none(noise: float) -> float | None:
    """Return the noise of all totals; None if there is no total."""
    return None if math.isinf(noise) else noise
