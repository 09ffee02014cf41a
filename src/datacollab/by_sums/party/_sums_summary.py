"""A message of sums as its approver sees it, and the sentences about such messages."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from scipy.special import ndtr

from ...agreement import META_ANALYSIS
from ...linalg import gaussian_epsilon, gaussian_sigma
from ...study import RIDGE_MOVED, StudyMembership
from ...sums import MeasuredMembership
from ...table import adjustments_text
from ..plan import DELTA

if TYPE_CHECKING:
    from ...anchor import EqualRows

_OVERHEAD_BYTES = 2200
"""About what a message takes beside its numbers."""
_WIDTH = 100
APART = (
    "If at least two other institutions do not work with the analyst, it learns nothing of yours alone: only the "
    "total, with noise, of all that do not. This tells how many people there are, and how often each outcome occurs. "
    "It may reveal a person whose outcome is rare; two totals, a person who is in only one of them."
)
BUT_FOR_FIGURES = (
    "The meta-analysis tells figures of yours alone, as the warning below says. But for these, the following holds."
)
_PERSONAL = "The noise promises no anonymity, so the file remains personal data."
TOGETHER = (
    "If the analyst and one institution work together, or are the same, they guess better than by chance whether a "
    f"known person is among the rows. {_PERSONAL}"
)
ATTACKERS = {
    "analyst": "the analyst alone",
    "party": "parties alone, from the model",
    "together": "the analyst and parties together",
}
"""In words, by the attributes of `MeasuredMembership`."""
WORST_ROSTERS = "The attacking parties are one of three, or five of ten: the higher figure."
_TENTH = "the same, the tenth who stand out most"
_STUDY_ATTACKERS = {
    "analyst": "the analyst alone",
    "analyst_of_tenth": _TENTH,
    "together": "the analyst and parties together",
    "together_of_tenth": _TENTH,
}
"""In words, by the attributes of `StudyMembership`."""
OF_STUDY = (
    "No secret map hides the rows of a study, other than an effect's. So the analyst alone guesses better than by "
    "chance whether a known person is among the rows, and better still with an institution, or as one. So may "
    f"institutions alone, which get the results. {_PERSONAL}"
)
_MEASURED_HOW = "How well attackers distinguished people in a total from others (AUC: .50 is guessing, 1.00 certain)"
LESS_NOISE = "This total has less noise or more columns than those measured, and reveals more."
INVENTED = (
    "One person who made up all the other parties could read your part. Ring up two of these institutions, at numbers "
    "that you know: each reads out its own key's fingerprint, which you type."
)
HEARD = "Two read their fingerprints out to you. So nobody has made up all the other parties."
ONE_CLASS = (
    "All your rows are of one class. If the others are not recorded at your institution, or not in this file, do not "
    "share: the model would learn that nobody is of them. If there was really nobody, you may share: the total hides "
    "it, as it hides every count of yours."
)


def also_in_anchor(in_anchor: EqualRows) -> str:
    """Say how many own rows every party sees in the anchor, and how many of them chance explains."""
    return (
        f"{in_anchor.n_equal} different rows of your table are in the anchor, which every party sees. Chance explains "
        f"up to {in_anchor.by_chance}: different people may have equal rows. If the anchor was made from rows of your "
        "people, do not share."
    )


NOT_COUNTED = (
    "No counts of exactly these rows were shared before. If a level has few people in the total, this study may reveal "
    "them. Best have the owner ask for counts alone first, and merge what is rare."
)
_FEWEST_OF_CLASS = 10
"""People of a class in a total: with fewer the total may reveal them."""


def classes_not_counted(n_rows_of: Counter[Any], n_rows_together: int) -> list[str]:
    """Return the risk of a total of classes that were never counted; `n_rows_of` is how many own rows each has."""
    # Targets that are numbers have no classes to be counted, and own rows alone may be enough of each class.
    if not n_rows_of or min(n_rows_of.values()) >= _FEWEST_OF_CLASS:
        return []
    text = "No counts of these rows were shared before. A rare class would reveal its people: best have the owner ask "
    text += "for counts first."
    # Own rows are all that a party knows of the shares in the total.
    least = _FEWEST_OF_CLASS * n_rows_of.total() / n_rows_together
    if rare := [f"{name}" for name, n_rows in n_rows_of.items() if n_rows < least]:
        text += f" Going by your rows, {', '.join(rare)} may have fewer than {_FEWEST_OF_CLASS} people in the total, "
        text += "if other parties have few rows. Without counts, have the owner merge what is rare ([task.merged])."
    return [text]


SHORTENED = (
    "{} of your rows stood out from your others, and were shortened: the total tells little more of them than of "
    "others."
)


def still_alone(n: int, *, of_study: bool) -> str:
    """Say how many own rows stand out in a message, and are added up as they are."""
    who = "the analyst and one party"
    way_on = "policy.toml has shorten_rows = false, so they leave as they are."
    if of_study:
        who = "the analyst"
        way_on = "Have the owner merge rare levels and narrow ranges, or leave these rows out: a study shortens none."
    verb = "stands" if n == 1 else "stand"
    return (
        f"{n} of your rows {verb} out from your others. If nobody else in the total has their values, {who} may read "
        f"these people's outcomes. {way_on}"
    )


@dataclass(frozen=True, kw_only=True)
class SumsSummary:
    """A message of sums as its approver sees it.

    Attributes
    ----------
    n_rows, n_public, n_rows_together : int
        Own rows in the sums; labelled public ones; and the rows that the total has at least.
    n_components, n_numbers, n_bytes : int
        Columns of the common map, how many numbers leave, and about how many bytes they take.
    noise, noise_before : float
        Standard deviation of the noise of sums that hides a row as well as this total's; and that of all totals so far
        with any of these rows, or None.
    earlier : tuple of str
        Those totals: their purpose, statistic and date.
    epsilon : float or None
        Of differential privacy, if the project asks for it.
    tells, others, sentences : tuple of str
        Disclosures of each statistic of a study; other parties and their institutions; and warnings about participants.
    n_unconfirmed : int
        Other institutions that have still to be confirmed, by fingerprints that they read out.
    measured : tuple of MeasuredMembership
        Attacks on such totals; none of a study.
    measured_study : tuple of StudyMembership
        Attacks on the totals of such statistics.
    adjusted : dict of str to object
        Counts of entries that the project's rules changed.
    n_shortened : int
        Own rows that stood alone, and were shortened; see `IsolatedRows`.
    """

    party: str
    project: str
    analyst: str
    n_rows: int
    n_public: int
    statistic: str
    tells: tuple[str, ...]
    of_study: bool
    n_components: int
    n_numbers: int
    n_bytes: int
    noise: float
    epsilon: float | None
    noise_before: float | None
    earlier: tuple[str, ...]
    n_parties: int
    n_entities: int
    others: tuple[str, ...]
    n_unconfirmed: int
    sentences: tuple[str, ...]
    n_rows_together: int
    measured: tuple[MeasuredMembership, ...]
    measured_study: tuple[StudyMembership, ...]
    adjusted: dict[str, Any]
    n_shortened: int = 0

    @property
    def defences(self) -> tuple[str, ...]:
        """Names of the defences of rows."""
        return ("masks", "noise")

    @property
    def noise_words(self) -> str:
        """The noise of the total in words; a study's numbers have noise of different sizes."""
        if self.of_study:
            return f"noise that hides a row as well as {self.noise:.2g} does in sums for a model"
        return f"noise of {self.noise:g}"

    @property
    def above_limits(self) -> tuple[str, ...]:
        """Figures above the policy's limits: none, as it has none for sums."""
        return ()

    @property
    def is_less_hidden(self) -> bool:
        """Whether the total has less noise or more columns than those that were attacked."""
        # Attacks on weaker hiding were not made, so that figures would be too low.
        return any(self.noise < each.noise or self.n_components > each.n_components for each in self.measured)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON holds it."""
        listed = {name: list(getattr(self, name)) for name in ("tells", "sentences", "others", "earlier")}
        return asdict(self) | {"way": "sums", **listed, "who": self._who_learns()}

    def _who_learns(self) -> list[str]:
        """Say who learns what, by itself and together with others."""
        last = OF_STUDY if self.of_study else TOGETHER
        if META_ANALYSIS in self.statistic.split(", "):
            return [BUT_FOR_FIGURES, APART, last]
        return [APART, last]

    def to_text(self) -> str:
        """Return the same for people."""
        lines = [*self._fact_lines(), ""]
        for sentence in self._who_learns():
            lines += _wrap(sentence)
        lines += ["", "The other parties:", *(f"  {each}" for each in self.others)]
        lines += [*_wrap(INVENTED if self.n_unconfirmed else HEARD), ""]
        lines += self.study_lines() if self.of_study else self._membership_lines()
        if self.epsilon is not None:
            lines += ["", *_wrap(promise(self.epsilon))]
        for sentence in self.sentences:
            lines += ["", *_wrap(f"Warning: {sentence}")]
        if self.noise_before is not None:
            lines += ["", *_wrap(self._earlier_sentence(self.noise_before))]
        return "\n".join(lines)

    def _fact_lines(self) -> list[str]:
        """Describe the message, and the changes of rows before they were added up."""
        rows = f"sums over {self.n_rows} of its rows"
        if self.of_study:
            rows = f"{self.statistic} over {self.n_rows} of its rows"
        if self.n_public:
            rows += f", and {self.n_public} labelled public ones"
        lines = [
            f"Party {self.party} of project {self.project} would send the analyst ({self.analyst}) one file:",
            f"{self.n_numbers:,} numbers, about {self.n_bytes:,} bytes: {rows}.",
            f"Masks hide them: only the total of all {self.n_parties} parties, {self.n_entities} institutions, can be "
            f"read, with {self.noise_words}.",
            "No row leaves, and no target.",
        ]
        if self.adjusted["columns"]:
            lines.append(f"Before they were added up: {adjustments_text(self.adjusted)}.")
        if self.n_shortened:
            lines += _wrap(SHORTENED.format(self.n_shortened))
        if self.tells:
            lines += ["", "The total tells:", *(f"  {each}" for each in self.tells)]
        return lines

    def _earlier_sentence(self, noise_before: float) -> str:
        """Say how much all totals with some of these rows tell together."""
        # Precisions add up: totals over the same rows are measurements of the same numbers.
        together = (noise_before**-2 + self.noise**-2) ** -0.5
        joint = ""
        # Gaussian noise of several totals adds up as that of one.
        if self.epsilon is not None:
            least = gaussian_epsilon(together / RIDGE_MOVED, DELTA)
            joint = f", which is ({math.ceil(100 * least) / 100:g}, {DELTA:g})-differentially private for one row"
        last = "; ".join(self.earlier[-3:])
        return (
            f"Totals with some of these rows, or rows that look alike, left before: {len(self.earlier)}, the last of "
            f"them {last}. All together with this one they have as little noise as one total with noise of "
            f"{together:.2g}{joint}."
        )

    def _membership_lines(self) -> list[str]:
        """Say how well attackers tell members from others, by rows together."""
        people = [each for each in self.measured if not each.rare]
        rare = next(each for each in reversed(self.measured) if each.rare)
        title = f"{_MEASURED_HOW}, on public tables with noise of {rare.noise:g}; your table may reveal more. "
        caution = f"* Ten of them are of a rare class. Fewer rows reveal more. {self._rows_text}"
        if self.is_less_hidden:
            caution += f" {LESS_NOISE}"
        return [*_wrap(title + WORST_ROSTERS), *_figure_lines([*people, rare], ATTACKERS), *_wrap(caution)]

    def study_lines(self) -> list[str]:
        """Say how well attackers tell members of a study's totals, by set of statistics and rows together."""
        lines = list[str]()
        # In the order in which the project names them, each set once.
        for statistics in dict.fromkeys(each.statistics for each in self.measured_study):
            measured = [each for each in self.measured_study if each.statistics == statistics]
            lines += [f"The totals of {', '.join(statistics)}:", *_figure_lines(measured, _STUDY_ATTACKERS), ""]
        if lines:
            title = f"{_MEASURED_HOW}, on public tables; your table may reveal more. {WORST_ROSTERS}"
            lines = [*_wrap(title), "", *lines]
        caution = f"Fewer rows reveal more, and so do all totals together. {self._rows_text}"
        attacked = {title.partition(" (")[0] for each in self.measured_study for title in each.statistics}
        unmeasured = [each for each in self.statistic.split(", ") if each not in attacked]
        if unmeasured:
            caution += f" Attacks on {' and '.join(unmeasured)} were not measured."
        return [*lines, *_wrap(caution)]

    @property
    def _rows_text(self) -> str:
        # Each other party adds at least so many, as the project demands.
        fewest = (self.n_rows_together - self.n_rows) // (self.n_parties - 1)
        return (
            f"This total has at least {self.n_rows_together:,} rows (your {self.n_rows:,}, and {fewest:,} or more from "
            "each other party)."
        )


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)


def _figure_lines(measured: Sequence[MeasuredMembership | StudyMembership], attackers: dict[str, str]) -> list[str]:
    """Return a table of areas under the curve: a line for each attacker, a column for each number of rows."""
    marks = ["*" * (isinstance(each, MeasuredMembership) and each.rare) for each in measured]
    heads = [f"{each.n_rows:,}{mark}" for each, mark in zip(measured, marks, strict=True)]
    table = [("Rows of all parties together:", *heads)]
    table += [(name, *(auc_text(getattr(each, who)) for each in measured)) for who, name in attackers.items()]
    width = max(len(name) for name, *_ in table)
    return [f"  {name:<{width}}{''.join(f'{value:>8}' for value in values)}" for name, *values in table]


def auc_text(value: float) -> str:
    """Return the value as a table shows it; guessing is the least."""
    return f"{max(value, 0.5):.2f}".removeprefix("0")


def message_bytes(n_numbers: int) -> int:
    """Return about how many bytes a message of so many numbers takes, in hundreds."""
    return round(8 * (n_numbers + 1) + _OVERHEAD_BYTES, -2)


def promise(epsilon: float) -> str:
    """State the differential privacy of the total."""
    # Two normal distributions that are 1/sigma apart: no test of membership has a larger area.
    auc = ndtr(1 / gaussian_sigma(epsilon, DELTA) / math.sqrt(2))
    return (
        f"Proven, if at most half of the parties work with the analyst: the total is ({epsilon:g}, {DELTA:g})-"
        f"differentially private for one row. Even somebody who knows all rows but one tells whether that row is in it "
        f"with an AUC of {auc:.2f} at most, where .50 is guessing. A person with several rows is protected less."
    )
