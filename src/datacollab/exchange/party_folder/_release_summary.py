"""What would leave, and what would not: for whoever approves it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._obfuscators import OBFUSCATORS
from ...errors import NoGuaranteeError
from ...party import Defence, Party, PrivacyGuarantee
from ...share import Share
from ..project import Adjustments, Anchor, EncodedTable, Project, Task, adjusted_text
from ._risk import RiskFigures

__all__ = ["NamedTargets", "ReleaseSummary", "named_counts", "named_targets", "release_summary"]


@dataclass(frozen=True, kw_only=True)
class NamedTargets:
    """What leaves of targets that are no single class or number.

    Attributes
    ----------
    kind : {"survival", "effect", "none"}
    words : str
        What there is to learn, with the names of the columns.
    unit : str
        Of times, or of the outcome.
    rounding : float or None
        To multiples of what times are rounded up; 0 where they leave exactly, None where there are none.
    counts : dict of str to int
        Rows that leave, by what their targets say: events seen and not seen, rows treated and untreated.
    n_alone_before, n_alone_after : int
        Rows of the table, and rows that leave, whose targets no other row has: a time of their own.
    """

    kind: str
    words: str
    unit: str = ""
    rounding: float | None = None
    counts: dict[str, int]
    n_alone_before: int
    n_alone_after: int

    @property
    def sentence(self) -> str:
        """The same for people."""
        return "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        yield self.words
        if self.counts:
            yield ", ".join(f"{name}: {count}" for name, count in self.counts.items())
        if self.rounding:
            unit = self.unit and f" {self.unit}"
            yield f"times rounded up to multiples of {self.rounding:.10g}{unit}, all else exactly as it is"
        elif self.rounding is not None:
            yield "TIMES LEAVE EXACTLY AS THEY ARE, and can tell whose a row is: ask the owner for a rounding"
        elif self.kind != "none":
            yield "exactly as they are"
        if self.kind != "none":
            found = ", and whoever knows one finds its row" if self.n_alone_after else ""
            yield (
                f"targets that no other row has: {self.n_alone_before} in the table, {self.n_alone_after} in what "
                f"leaves{found}"
            )


def named_targets(project: Project, own: NDArray[Any], shared: NDArray[Any]) -> NamedTargets | None:
    """Sum up the targets that would leave; None where they are single classes or numbers.

    Parameters
    ----------
    project : Project
    own : ndarray of shape (n_rows,)
        Of the party's table.
    shared : ndarray of shape (n_shared,)
        As they would leave.
    """
    task = project.task
    if task.is_single:
        return None
    return NamedTargets(
        kind=task.kind,
        words=task.words,
        unit=task.unit,
        rounding=task.rounding,
        counts=named_counts(task, shared),
        n_alone_before=_n_alone(own),
        n_alone_after=_n_alone(shared),
    )


def named_counts(task: Task, target: NDArray[Any]) -> dict[str, int]:
    """Rows by what their targets say of event and treatment; empty where there are neither."""
    names = {"treatment": ("treated", "untreated"), "event": ("event seen", "event not seen")}
    counts: dict[str, int] = {}
    for name in task.fields:
        if name in names:
            yes, no = names[name]
            n_yes = int(np.count_nonzero(target[name]))
            counts |= {yes: n_yes, no: len(target) - n_yes}
    return counts


def _n_alone(target: NDArray[Any]) -> int:
    """Rows whose targets no other row has."""
    if not target.dtype.names:
        return 0
    return int(np.count_nonzero(np.unique(target, return_counts=True)[1] == 1))


_WIDTH = 100
_MARGIN = 18
_MOST_CLASSES = 20
_ROUNDING = 1e-9
STAYS = (
    "the rows themselves",
    "the fitted obfuscator",
    "the anchor",
    "which row is whose",
    "keys, policy and log",
)
BESIDES = (
    "the name of whoever approves (by default who is logged in), the time, versions of the software, hashes of the "
    "project, of the anchor (with a secret key) and of the log's last entry, and the party's signature"
)
_AGAIN = (
    "This takes its place, but the analyst will have seen both, which tell more than one. The installed model stops "
    "working until a new one comes."
)
_FEWER = "take fewer (--components)"
_FALSE_POSITIVES = 0.01
_NO_BREAK = "\N{NO-BREAK SPACE}"
_STANDS_FOR = {
    "one row": "each stands for one of yours",
    "several rows": "none is one of yours",
}
FIGURES = {
    "linkage": "rows linked to their originals",
    "reidentification": "rows told among strangers",
    "membership": "members told from others (AUC)",
}


@dataclass(frozen=True, kw_only=True)
class ReleaseSummary:
    """All that somebody who approves a share should know of it.

    Attributes
    ----------
    party, project : str
    analyst : str
        Fingerprint of the key that may open what leaves, or that the project names for whoever gets it.
    n_rows, n_suppressed : int
        Rows that leave, and rows of the table that a defence keeps back.
    n_components, n_anchors : int
        Columns of the representation, and rows of the anchor.
    n_free : int or None
        How many numbers tell a row of the table; as many components of a linear map hide nothing.
    anchor_targets : bool
        Whether targets of the anchor's rows leave with them.
    dtype : str
        Of the representation.
    task : {"classification", "regression", "survival", "effect", "none"}
    class_counts : dict of str to int or None
        Rows that leave of each class of the project; None where there are no classes.
    n_bytes : int
        Size of the file, or of the arrays alone where it is not made yet.
    stays : tuple of str
        What does not leave.
    row_order : {"shuffled", "kept"}
    obfuscator : str
        Its kind.
    fitted_on_private_rows : bool
    kinds_of_defence : tuple of str
        Of "microaggregation" and "noise".
    stands_for : {"one row", "several rows"}
        What a row that leaves stands for: one row of the table, or several of a group.
    defences : tuple of str
        In words.
    risk : RiskFigures or None
        None where no attack was made.
    limits : dict of str to float
        Of the figures, where the policy has any.
    n_private_in_anchor : int
        Rows of the party that are in the anchor.
    guarantee : str or None
        Statement of differential privacy, where there is any.
    promise : str or None
        The same in a few words.
    proven : dict of str to float
        What that means for any attack: "membership", the area under the curve at most, and "found", the share of
        members at most that are found by whoever takes one in a hundred others for one.  Empty without a guarantee.
    earlier_share : str or None
        When the share was made whose place this one would take; None where there is none.
    adjusted : dict of str to object
        Counts of entries that became something else by the project's rules, as `Adjustments.to_dict` gives them.
    named : NamedTargets or None
        What leaves of times to events or of effects; None where targets are single classes or numbers.
    """

    party: str
    project: str
    analyst: str
    n_rows: int
    n_suppressed: int
    n_components: int
    n_anchors: int
    dtype: str
    task: str
    class_counts: dict[str, int] | None
    n_bytes: int
    row_order: str
    obfuscator: str
    fitted_on_private_rows: bool
    kinds_of_defence: tuple[str, ...]
    stands_for: str
    defences: tuple[str, ...]
    risk: RiskFigures | None
    limits: dict[str, float] = field(default_factory=dict)
    n_private_in_anchor: int
    guarantee: str | None
    promise: str | None = None
    proven: dict[str, float] = field(default_factory=dict)
    earlier_share: str | None = None
    adjusted: dict[str, Any] = field(default_factory=Adjustments().to_dict)
    n_free: int | None = None
    anchor_targets: bool = False
    named: NamedTargets | None = None
    stays: tuple[str, ...] = STAYS

    @property
    def above_limits(self) -> tuple[str, ...]:
        """Figures of the risk that are above their limits, or should have been measured."""
        if self.risk is None:
            return ()
        found = {name: self.figure(name) for name in self.limits}
        return tuple(name for name, figure in found.items() if figure is None or figure > self.limits[name])

    def figure(self, name: str) -> float | None:
        """A figure of the risk as it is held against limits: the measured one, or the proven bound below it."""
        measured, proven = None if self.risk is None else self.risk.of(name), self.proven.get(name)
        return min((each for each in (measured, proven) if each is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON holds it."""
        risk = None if self.risk is None else asdict(self.risk) | {"notes": list(self.risk.notes)}
        return asdict(self) | {"defences": list(self.defences), "stays": list(self.stays), "risk": risk}

    def to_text(self) -> str:
        """The same for people, on one screen."""
        lines = [f"What would leave party {self.party!r} for the analyst of project {self.project!r} ({self.analyst})"]
        lines += [*self._risk_lines(), ""]
        lines += [line for name, text in self.facts() for line in _entry(name, text)]
        lines += ["", *_entry("does not leave", ", ".join(self.stays))]
        if self.earlier_share is not None:
            lines += ["", *_entry("EARLIER SHARE", f"one of {self.earlier_share} exists. {_AGAIN}")]
        return "\n".join(lines)

    def facts(self) -> Iterator[tuple[str, str]]:
        """What leaves, in words: the name of each fact, and the fact."""
        kept_back = f"; {self.n_suppressed} more are kept back by the defence" if self.n_suppressed else ""
        order = "in random order" if self.row_order == "shuffled" else "IN THE ORDER OF THE TABLE"
        yield "rows", f"{self.n_rows}, {order}{kept_back}; {_STANDS_FOR[self.stands_for]}"
        if self.adjusted["columns"]:
            yield "adjusted entries", adjusted_text(self.adjusted)
        yield "columns", f"{self.n_components} of {self.dtype}, instead of the table's{self._turned()}"
        classes = f"one for each row, exactly as it is: {self._targets()}"
        yield "targets", classes if self.named is None else self.named.sentence
        known = ", and their targets" if self.anchor_targets else ""
        yield "anchor", f"its {self.n_anchors} rows in the same {self.n_components} columns{known}"
        fitted = (
            "YOUR ROWS, of which it tells something" if self.fitted_on_private_rows else "a secret half of the anchor"
        )
        yield "obfuscator", f"{self.obfuscator}, fitted on {fitted}"
        yield "defences", "; ".join(self.defences) or "none: every row stands for one of yours"
        yield "guarantee", self.promise or "none (no differential privacy is claimed)"
        yield "own rows in anchor", f"{self.n_private_in_anchor}" if self.n_private_in_anchor else "none"
        yield "besides", BESIDES
        yield "size", f"{self.n_bytes:,} bytes"

    def _turned(self) -> str:
        """Where a linear map leaves nothing out of a row, that it does."""
        all_kept = self.n_free is not None and self.n_components >= self.n_free
        if not all_kept or not OBFUSCATORS[self.obfuscator].is_linear:
            return ""
        return f"; {self.n_free} numbers tell a row of it, so that this turns the table and hides nothing: " + (
            "an effect needs them all, and the defences alone hide rows" if self.task == "effect" else _FEWER
        )

    def _targets(self) -> str:
        if self.class_counts is None:
            return f"{self.n_rows} numbers"
        present = {name: count for name, count in self.class_counts.items() if count}
        if len(present) > _MOST_CLASSES:
            return f"{len(present)} classes of {min(present.values())} to {max(present.values())} rows"
        return ", ".join(f"{name}:{_NO_BREAK}{count}" for name, count in present.items())

    def _risk_lines(self) -> Iterator[str]:
        if self.risk is None:
            yield "Risk: not measured; no attack was made."
            return
        yield "Risk, at most, by the attacks tried of whoever holds the share, the anchor and a list of candidates"
        yield f"  (upper ends of 95 % intervals; {self.risk.seconds:.0f} s)"
        for name, words in FIGURES.items():
            told, found, limit = self.risk.of(name), self.figure(name), self.limits.get(name)
            measured = "not measured" if told is None else figure_text(name, told)
            allowed = "" if limit is None else f"limit {limit_text(name, limit)}"
            over = "ABOVE" if found is not None and limit is not None and found > limit else ""
            alone = self.risk.targets_alone.get(name)
            known = "" if alone is None else f"targets alone: {figure_text(name, alone)}"
            if name in self.proven:
                known = f"proven for any attack: at most {figure_text(name, self.proven[name])}"
            yield f"  {words:<33}{measured:>13}   {allowed:<14}{over:<8}{known}".rstrip()
        if "found" in self.proven:
            yield from _entry(
                "proven besides",
                f"nobody who takes one in a hundred others for one of them finds more than "
                f"{figure_text('found', self.proven['found'])} of your rows in the share",
            )
        if self.risk.ratings:
            yield from _entry("ratings", ", ".join(f"{name} {rating}" for name, rating in self.risk.ratings.items()))
            yield from _entry("", "of all attacks and measures, not of the figures above alone")
        for note in (
            *self.risk.notes,
            *([] if self.risk.complete else ["The time ended it before all attacks were made."]),
        ):
            yield from textwrap.wrap(note, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def release_summary(
    project: Project,
    party: Party,
    share: Share,
    encoded: EncodedTable,
    anchor: Anchor,
    *,
    obfuscator: str,
    n_bytes: int,
    risk: RiskFigures | None,
    limits: Mapping[str, float],
    n_private_in_anchor: int,
) -> ReleaseSummary:
    """Sum up what would leave.

    Parameters
    ----------
    project : Project
    party : Party
        Fitted on the table.
    share : Share
        What it gives.
    encoded : EncodedTable
        The party's table.
    anchor : Anchor
    obfuscator : str
        Kind of the obfuscator.
    n_bytes : int
    risk : RiskFigures or None
    limits : mapping of str to float
        Of the risk figures.
    n_private_in_anchor : int
    """
    n_rows, n_components = share.representation.shape
    guarantee = _guarantee(party, anchor)
    return ReleaseSummary(
        party=str(share.party),
        project=project.name,
        analyst=project.analyst.fingerprint,
        n_rows=n_rows,
        n_suppressed=encoded.n_rows - n_rows,
        n_components=n_components,
        n_anchors=len(share.anchor_representation),
        dtype=str(share.representation.dtype),
        task=project.task.kind,
        class_counts=_class_counts(project, share),
        n_bytes=n_bytes,
        row_order="shuffled" if party.shuffle else "kept",
        obfuscator=obfuscator,
        fitted_on_private_rows=party.fit_on is None,
        kinds_of_defence=kinds_of(party.defences),
        stands_for="several rows" if "microaggregation" in kinds_of(party.defences) else "one row",
        defences=tuple(defence.description for defence in party.defences),
        risk=risk,
        limits=dict(limits),
        n_private_in_anchor=n_private_in_anchor,
        guarantee=None if guarantee is None else guarantee.statement,
        promise=None if guarantee is None else _promise(guarantee),
        proven={} if guarantee is None else _bounds(guarantee),
        adjusted=encoded.adjusted.to_dict(),
        n_free=project.n_free,
        anchor_targets=share.anchor_target is not None,
        named=None if encoded.target is None else named_targets(project, encoded.target, share.target),
    )


def figure_text(name: str, value: float) -> str:
    """A figure as people read it, rounded up: per cent, or the area under a curve."""
    hundredths = math.ceil(100 * value - _ROUNDING)
    return f"{hundredths / 100:.2f}" if name == "membership" else f"{hundredths} %"


def limit_text(name: str, value: float) -> str:
    """A limit in the same form, as it was given."""
    return f"{value:g}" if name == "membership" else f"{100 * value:g} %"


def _class_counts(project: Project, share: Share) -> dict[str, int] | None:
    if project.task.kind != "classification":
        return None
    return {str(label): int(np.count_nonzero(share.target == label)) for label in project.task.classes}


def _guarantee(party: Party, anchor: Anchor) -> PrivacyGuarantee | None:
    try:
        return party.guarantee(anchor.rows)
    except NoGuaranteeError:
        return None


def _promise(guarantee: PrivacyGuarantee) -> str:
    return (
        f"differential privacy of each row's features, epsilon {guarantee.epsilon:g}, delta {guarantee.delta:g}; "
        "targets and row counts are not covered; --json has the whole statement"
    )


def _bounds(guarantee: PrivacyGuarantee) -> dict[str, float]:
    return {"membership": guarantee.auc_at_most, "found": guarantee.tpr_at_most(_FALSE_POSITIVES)}


def kinds_of(defences: Sequence[Defence]) -> tuple[str, ...]:
    """Names of the defences as policies have them."""
    return tuple(dict.fromkeys(defence.kind for defence in defences))


def _entry(name: str, text: str) -> list[str]:
    indent = " " * (_MARGIN + 4)
    lines = textwrap.wrap(text, _WIDTH, initial_indent=f"  {name:<{_MARGIN}}  ", subsequent_indent=indent)
    return [line.replace(_NO_BREAK, " ") for line in lines]
