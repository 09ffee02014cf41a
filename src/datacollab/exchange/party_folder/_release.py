"""What would leave of rows, what attacks find in it, and every reason against it: for the person who approves it."""

from __future__ import annotations

import math
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..._obfuscators import OBFUSCATORS
from ..._typing import FloatArray, PartyName
from ...agreement import Anchor, Project
from ...anchor import EqualRows
from ...errors import DataCollabError, DataCollabWarning, ExchangeError, NoGuaranteeError
from ...party import Party, SharingPlan
from ...share import Share
from ...table import Adjustments, EncodedTable, adjustments_text
from ...testing import is_row_wise
from ._policy import Policy, private_rows_in_anchor

if TYPE_CHECKING:
    from ...risk.audit import AuditResult

Progress = Callable[[str, float | None], None]
LEAST_ROWS = 50
"""With fewer rows none are kept apart: every interval would be too wide."""
_HELD, _APART = 0.6, 0.2
_REHEARSALS, _MANY_ROWS = 3, 1000
_OF_STRANGERS = ("open-world", "membership")
ATTACKS = (
    "kernel ridge and emulator, averaged",
    "forward emulator",
    "kernel ridge",
    "emulator",
    "linear regression",
    "subspace",
    "membership",
    "demixing",
    "shadow shares",
)
"""The strongest of those that an audit makes; the others find less, and take as long again."""


_WIDTH = 100
_MARGIN = 18
_MOST_CLASSES = 20
_ROUNDING = 1e-9
_STAYS = ("the rows themselves", "the fitted obfuscator", "the anchor", "which row is whose", "keys, policy and log")
_BESIDES = (
    "the name of the approver (by default who is logged in), the time, versions of the software, hashes of the "
    "project, of the anchor (with a secret key) and of the log's last entry, and the party's signature"
)
_AGAIN = (
    "This takes its place, but the analyst will have seen both, which tell more than one. The installed model stops "
    "working until a new one comes."
)
_FEWER = "take fewer (--components)"
_FALSE_POSITIVES = 0.01
_NO_BREAK = "\N{NO-BREAK SPACE}"
_STANDS_FOR = {"one row": "each stands for one of yours", "several rows": "none is one of yours"}
FIGURES = {
    "linkage": "rows linked to their originals",
    "reidentification": "re-identified among strangers",
    "membership": "membership inference (AUC)",
}
CRITERIA = {"linkage": "linkability", "reidentification": "singling out", "membership": "membership"}
"""The audit's criterion to which each figure belongs."""
_LONE_ROWS = 20
_BATCH_ROWS = 500
"""Rows that are mapped together: company enough for its influence to show."""


@dataclass(frozen=True, kw_only=True)
class RiskFigures:
    """The strongest attack on each measure, at the upper end of its 95 % interval; None if it was not measured.

    `linkage` is the share of rows linked right among about a hundred originals, `reidentification` with strangers among
    these, and `membership` an area under the curve.  `targets_alone` are figures of an attacker who knows the targets
    and nothing of the share, `notes` say why a figure is missing, and `complete` whether all attacks were made in time.
    """

    linkage: float | None
    reidentification: float | None
    membership: float | None
    targets_alone: dict[str, float] = field(default_factory=dict)
    ratings: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    n_attacked: int = 0
    seconds: float = 0.0
    complete: bool = True

    def of(self, name: str) -> float | None:
        """Return the figure "linkage", "reidentification" or "membership"."""
        return {"linkage": self.linkage, "reidentification": self.reidentification, "membership": self.membership}[name]


def risk_figures(
    party: Party,
    X: FloatArray,
    anchor_rows: FloatArray,
    *,
    y: NDArray[Any],
    anchor_target: NDArray[Any] | None = None,
    time_budget: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    progress: Progress | None = None,
) -> RiskFigures:
    """Attack the share of a fitted party as an attacker does who holds the whole anchor.

    Linkage is measured on the share itself.  The other figures need rows that are not in the share: a fresh party with
    three fifths of the rows stands for this one, and the attacker holds one half of the others.  With fewer than 1,000
    rows a figure would depend on these few strangers; so this is done three times, and upper ends are averaged.
    """
    started = time.monotonic()
    random = check_random_state(random_state)
    n_rehearsals = 0 if len(X) < LEAST_ROWS else _REHEARSALS if len(X) < _MANY_ROWS else 1
    parts = iter(range(1 + n_rehearsals))

    def attacked(of: Party, X: FloatArray, y: NDArray[Any], levels: Sequence[str], **others: Any) -> AuditResult:
        from ...risk.audit import audit

        left = None if time_budget is None else max(0.0, time_budget - (time.monotonic() - started))
        part = next(parts)

        def say(done: int, total: int, name: str) -> None:
            if progress is not None:
                words = f"measuring the risk, part {part + 1} of {1 + n_rehearsals}, attack {done + 1} of {total}"
                progress(words, (part + done / total) / (1 + n_rehearsals))

        others |= {"anchor_target": anchor_target, "random_state": random, "progress": say}
        return audit(of, X, anchor_rows, y=y, levels=levels, attacks=ATTACKS, time_budget=left, **others)

    share, notes = _attempt("The share", lambda: attacked(party, X, y, ["T2"]))
    rehearsals: list[AuditResult] = []
    if not n_rehearsals:
        notes += (
            f"Re-identification among strangers and membership are not measured with {len(X)} rows: {LEAST_ROWS} are "
            "needed to keep some apart.",
        )
    else:
        for _ in range(n_rehearsals):
            made, more = _attempt("The rehearsal", lambda: _rehearsed(party, X, y, random, attacked))
            notes += tuple(note for note in more if note not in notes)
            rehearsals += [] if made is None else [made]
    rehearsal = rehearsals[0] if rehearsals else None
    results = [result for result in (share, *rehearsals) if result is not None]
    return RiskFigures(
        linkage=None if share is None else _worst([share], "linkage"),
        reidentification=_worst(rehearsals, "open-world re-identification"),
        membership=_worst(rehearsals, "membership AUC"),
        targets_alone=_baseline("linkage", share, "linkage")
        | _baseline("reidentification", rehearsal, "open-world re-identification"),
        ratings=_ratings(share, rehearsals),
        notes=notes,
        n_attacked=0 if share is None else share.n_attacked,
        seconds=time.monotonic() - started,
        complete=all(result.complete for result in results),
    )


def _rehearsed(
    party: Party, X: FloatArray, y: NDArray[Any], random: np.random.RandomState, attacked: Callable[..., AuditResult]
) -> AuditResult:
    """Attack a party with a part of the rows; the attacker holds some of the others, and nobody the rest."""
    order = random.permutation(len(X))
    held, public, apart = np.split(order, [round(_HELD * len(X)), round((1 - _APART) * len(X))])
    stand_in = Party(
        party.name,
        clone(party.obfuscator),
        fit_on=party.fit_on,
        defences=tuple(clone(defence) for defence in party.defences),
        time_step=party.time_step,
        random_state=random,
    ).fit(X[held], y[held])
    others = {"public": X[public], "public_target": y[public], "control": X[apart], "control_target": y[apart]}
    return attacked(stand_in, X[held], y[held], ["T2", "T2f"], **others)


def _attempt(what: str, make: Callable[[], AuditResult]) -> tuple[AuditResult | None, tuple[str, ...]]:
    """Return a result, or a sentence on why there is none."""
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
            # Rows kept back here say nothing about the share.
            warnings.simplefilter("ignore", DataCollabWarning)
            return make(), ()
    except DataCollabError as error:
        return None, (f"{what} could not be attacked: {error}",)
    except (ValueError, ArithmeticError) as error:
        # Its words may quote data.
        return None, (f"{what} could not be attacked ({type(error).__name__}).",)


def _worst(results: Sequence[AuditResult], metric: str) -> float | None:
    """Return the largest upper end of an attack; of each attack the mean over its audits."""
    uppers: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for found in result.findings:
            if found.metric == metric and found.is_measured:
                uppers.setdefault((found.level, found.leak, found.attack), []).append(found.upper)
    return max((float(np.mean(values)) for values in uppers.values()), default=None)


def _baseline(name: str, result: AuditResult | None, metric: str) -> dict[str, float]:
    findings = () if result is None else result.findings
    values = [finding.baseline for finding in findings if finding.metric == metric and finding.baseline is not None]
    return {name: max(values)} if values else {}


def _ratings(share: AuditResult | None, rehearsals: Sequence[AuditResult]) -> dict[str, str]:
    """Return the share's own ratings, and those of the rehearsals' means for attacks that need strangers."""
    from ...risk.audit import mean_findings

    measured = ((finding for finding in rehearsal.findings if finding.is_measured) for rehearsal in rehearsals)
    of_strangers = [each for each in mean_findings(measured) if each.metric.startswith(_OF_STRANGERS)]
    basis = share or next(iter(rehearsals), None)
    if basis is None:
        return {}
    judged = replace(basis, findings=(*(share.findings if share is not None else ()), *of_strangers))
    return {criterion.name: criterion.rating for criterion in judged.all_criteria()}


@dataclass(frozen=True, kw_only=True)
class NamedTargets:
    """Targets that leave, other than single ones; rounding is 0 if times leave exactly, None without times."""

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
        parts = [self.words]
        if self.counts:
            parts.append(", ".join(f"{name}: {count}" for name, count in self.counts.items()))
        if self.rounding:
            unit = self.unit and f" {self.unit}"
            parts.append(f"times rounded up to multiples of {self.rounding:.10g}{unit}, all else exactly as it is")
        elif self.rounding is not None:
            parts.append("TIMES LEAVE EXACTLY AS THEY ARE, and can tell whose a row is: ask the owner for a rounding")
        elif self.kind != "none":
            parts.append("exactly as they are")
        if self.kind != "none":
            found = ", and anyone who knows one finds its row" if self.n_alone_after else ""
            parts.append(
                f"targets that no other row has: {self.n_alone_before} in the table, {self.n_alone_after} in what "
                f"leaves{found}"
            )
        return "; ".join(parts)


def named_targets(project: Project, own: NDArray[Any], shared: NDArray[Any]) -> NamedTargets | None:
    """Sum up the targets of the table and those that would leave; None if they are single classes or numbers."""
    task, counts, alone = project.task, dict[str, int](), []
    if task.is_single:
        return None
    names = {"treatment": ("treated", "untreated"), "event": ("event seen", "event not seen")}
    for name in task.fields:
        if name in names:
            n_yes = int(np.count_nonzero(shared[name]))
            counts |= dict(zip(names[name], (n_yes, len(shared) - n_yes), strict=True))
    for target in (own, shared):
        times = np.unique(target, return_counts=True)[1] if target.dtype.names else np.zeros(0)
        alone.append(int(np.count_nonzero(times == 1)))
    return NamedTargets(
        kind=task.kind,
        words=task.words,
        unit=task.unit,
        rounding=task.rounding,
        counts=counts,
        n_alone_before=alone[0],
        n_alone_after=alone[1],
    )


@dataclass(frozen=True, kw_only=True)
class ReleaseSummary:
    """A share as its approver sees it.

    Attributes
    ----------
    n_rows, n_suppressed : int
        Rows that leave, and rows of the table that a defence keeps back.
    in_anchor : EqualRows
        Different rows of the table that are in the anchor, and how many of them chance explains.
    n_components, n_anchors, n_bytes : int
        Columns of the representation, rows of the anchor, and about the size of the file.
    class_counts : dict of str to int or None
        Rows that leave of each class; None if there are no classes.
    fitted_on_private_rows, anchor_targets : bool
        Whether the map was, and whether targets of the anchor's rows leave with them.
    kinds_of_defence, defences : tuple of str
        As policies name them, and in words.
    stands_for, row_order : str
        A row that leaves is "one row" of the table or "several rows"; "shuffled" or "kept".
    risk, limits : RiskFigures or None, and dict of str to float
        None without an audit; the policy's limits of the figures.
    guarantee, promise, proven : str or None, and dict of str to float
        Statement of differential privacy, the same in a few words, and bounds for any attack: "membership", the area
        under the curve, and "found", the members found by an attacker who takes one in a hundred others for one.
    earlier_share : str or None
        Date of the share that this one would replace.
    n_free : int or None
        How many numbers determine a row of the table; as many components of a linear map hide nothing.
    named : NamedTargets or None
        Targets other than single classes or numbers.
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
    in_anchor: EqualRows
    guarantee: str | None
    promise: str | None = None
    proven: dict[str, float] = field(default_factory=dict)
    earlier_share: str | None = None
    adjusted: dict[str, Any] = field(default_factory=Adjustments().to_dict)
    n_free: int | None = None
    anchor_targets: bool = False
    named: NamedTargets | None = None
    stays: tuple[str, ...] = _STAYS

    @property
    def above_limits(self) -> tuple[str, ...]:
        """Figures of the risk that are above their limits or rated red, or should have been measured."""
        if self.risk is None:
            return ()
        found = {name: self.figure(name) for name in self.limits}
        return tuple(
            name for name, figure in found.items() if figure is None or figure > self.limits[name] or self.is_red(name)
        )

    def is_red(self, name: str) -> bool:
        """Return whether another measure makes the figure's criterion red, and the limit is not above the default."""
        if self.risk is None or self.guarantee is not None:
            return False
        usual = Policy().risk_limits[name]
        return self.limits.get(name, 1.0) <= usual and self.risk.ratings.get(CRITERIA[name]) == "red"

    def figure(self, name: str) -> float | None:
        """Return a figure of the risk as it is compared with limits: the measured one, or a proven bound below it."""
        measured, proven = None if self.risk is None else self.risk.of(name), self.proven.get(name)
        return min((each for each in (measured, proven) if each is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as JSON holds it."""
        return asdict(self)

    def to_text(self) -> str:
        """Return the same for people, on one screen."""
        lines = [f"What would leave party {self.party!r} for the analyst of project {self.project!r} ({self.analyst})"]
        lines += [*self._risk_lines(), ""]
        lines += [line for name, text in self.facts() for line in _entry(name, text)]
        lines += ["", *_entry("does not leave", ", ".join(self.stays))]
        if self.earlier_share is not None:
            lines += ["", *_entry("EARLIER SHARE", f"one of {self.earlier_share} exists. {_AGAIN}")]
        return "\n".join(lines)

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each fact, and the fact in words."""
        kept_back = f"; {self.n_suppressed} more are kept back by the defence" if self.n_suppressed else ""
        order = "in random order" if self.row_order == "shuffled" else "IN THE ORDER OF THE TABLE"
        yield "rows", f"{self.n_rows}, {order}{kept_back}; {_STANDS_FOR[self.stands_for]}"
        if self.adjusted["columns"]:
            yield "adjusted entries", adjustments_text(self.adjusted)
        yield "columns", f"{self.n_components} of {self.dtype}, instead of the table's{self._turned()}"
        classes = f"one for each row, exactly as it is: {self._targets()}"
        yield "targets", classes if self.named is None else self.named.sentence
        known = ", and their targets" if self.anchor_targets else ""
        yield "anchor", f"its {self.n_anchors} rows in the same {self.n_components} columns{known}"
        fitted = (
            "YOUR ROWS, and it discloses something about them"
            if self.fitted_on_private_rows
            else "a secret half of the anchor"
        )
        yield "obfuscator", f"{self.obfuscator}, fitted on {fitted}"
        yield "defences", "; ".join(self.defences) or "none: every row stands for one of yours"
        yield "guarantee", self.promise or "none (no differential privacy is claimed)"
        in_anchor = self.in_anchor
        explained = f"{in_anchor.n_equal}; chance explains {in_anchor.by_chance}"
        yield "own rows in anchor", explained if in_anchor.n_equal else "none"
        yield "besides", _BESIDES
        yield "size", f"about {self.n_bytes:,} bytes"

    def _turned(self) -> str:
        """Say so if a linear map leaves nothing out of a row."""
        all_kept = self.n_free is not None and self.n_components >= self.n_free
        if not all_kept or not OBFUSCATORS[self.obfuscator].is_linear:
            return ""
        return f"; {self.n_free} numbers determine a row of it, so that this turns the table and hides nothing: " + (
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
        yield "Risk, at most, if somebody has the share, the anchor and candidates, and makes this audit's attacks"
        yield f"  (upper ends of 95 % intervals; {self.risk.seconds:.0f} s)"
        for name, words in FIGURES.items():
            measure, found, limit = self.risk.of(name), self.figure(name), self.limits.get(name)
            measured = "not measured" if measure is None else figure_text(name, measure)
            allowed = "" if limit is None else f"limit {limit_text(name, limit)}"
            over = "RED" if self.is_red(name) else ""
            over = "ABOVE" if found is not None and limit is not None and found > limit else over
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
        ended = () if self.risk.complete else ("The time ended it before all attacks were made.",)
        for note in (*self.risk.notes, *ended):
            yield from textwrap.wrap(note, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def release_summary(
    project: Project,
    policy: Policy,
    plan: SharingPlan,
    party: Party,
    share: Share,
    encoded: EncodedTable,
    anchor: Anchor,
    risk: RiskFigures | None,
    in_anchor: EqualRows,
) -> ReleaseSummary:
    """Sum up the share of a fitted party; its size is that of the arrays."""
    n_rows, n_components = share.representation.shape
    try:
        guarantee = party.guarantee(anchor.rows)
    except NoGuaranteeError:
        guarantee = None
    promised: dict[str, Any] = {}
    if guarantee is not None:
        promised = {
            "promise": f"differential privacy of each row's features, epsilon {guarantee.epsilon:g}, delta "
            f"{guarantee.delta:g}; targets and row counts are not covered; --json has the whole statement",
            "proven": {"membership": guarantee.auc_at_most, "found": guarantee.tpr_at_most(_FALSE_POSITIVES)},
        }
    counts = None
    if project.task.kind == "classification":
        counts = {str(label): int(np.count_nonzero(share.target == label)) for label in project.task.classes}
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
        class_counts=counts,
        n_bytes=share.nbytes,
        row_order="shuffled" if party.shuffle else "kept",
        obfuscator=plan.obfuscator,
        fitted_on_private_rows=party.fit_on is None,
        kinds_of_defence=plan.kinds_of_defence,
        stands_for="several rows" if "microaggregation" in plan.kinds_of_defence else "one row",
        defences=tuple(defence.description for defence in plan.defences),
        risk=risk,
        limits=policy.risk_limits,
        in_anchor=in_anchor,
        guarantee=None if guarantee is None else guarantee.statement,
        adjusted=encoded.adjusted.to_dict(),
        n_free=project.n_free,
        anchor_targets=share.anchor_target is not None,
        named=None if encoded.target is None else named_targets(project, encoded.target, share.target),
        **promised,
    )


def figure_text(name: str, value: float) -> str:
    """Return a figure as people read it, rounded up: per cent, or the area under a curve."""
    hundredths = math.ceil(100 * value - _ROUNDING)
    return f"{hundredths / 100:.2f}" if name == "membership" else f"{hundredths} %"


def limit_text(name: str, value: float) -> str:
    """Return a limit in the same form, as the policy has it."""
    return f"{value:g}" if name == "membership" else f"{100 * value:g} %"


def _entry(name: str, text: str) -> list[str]:
    indent = " " * (_MARGIN + 4)
    lines = textwrap.wrap(text, _WIDTH, initial_indent=f"  {name:<{_MARGIN}}  ", subsequent_indent=indent)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def reasons_against(summary: ReleaseSummary, policy: Policy, project: Project) -> list[ExchangeError]:
    """Return every reason not to share, in the order in which people would look for it."""
    party = summary.party
    return [
        *_too_few_rows(party, summary.n_rows, policy, project),
        *_small_classes(summary, policy, project),
        *_plan_not_allowed(party, summary, policy, project),
        *private_rows_in_anchor(party, summary.in_anchor, summary.n_anchors, policy),
        *_risks(summary, policy),
    ]


def reasons_before(
    party: PartyName,
    plan: SharingPlan,
    policy: Policy,
    project: Project,
    n_rows: int,
    n_anchors: int,
    in_anchor: EqualRows,
) -> list[ExchangeError]:
    """Return the reasons that do not depend on the share; `n_rows` is that of the table."""
    return [
        *_too_few_rows(party, n_rows, policy, project),
        *_plan_not_allowed(party, plan, policy, project),
        *private_rows_in_anchor(party, in_anchor, n_anchors, policy),
    ]


def _too_few_rows(party: PartyName, n_rows: int, policy: Policy, project: Project) -> Iterator[ExchangeError]:
    least, whose = _stricter("min_rows", policy, project)
    if n_rows < least:
        yield ExchangeError(
            "TOO_FEW_ROWS",
            f"Party {party!r} would share {n_rows} rows; the {whose} demands {least} at least. Take more rows, defend "
            "with smaller groups, or stay out.",
        )


def _small_classes(summary: ReleaseSummary, policy: Policy, project: Project) -> Iterator[ExchangeError]:
    """Yield why classes, events or arms with few rows must not leave: such people stand out, or all have one target."""
    least, whose = _stricter("min_class_rows", policy, project)
    present = [count for count in (summary.class_counts or {}).values() if count]
    if len(present) == 1:
        yield ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {summary.party!r}: all {present[0]} rows that leave are of one class, so the share tells each "
            f"target. Take rows of another class too, {least} at least, share sums instead, or stay out.",
        )
    if small := [count for count in present if count < least]:
        yield ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {summary.party!r}: {len(small)} of its {len(present)} classes have fewer rows than the {least} "
            f"that the {whose} demands; the smallest has {min(small)}. Leave out the rows of rare classes, or share "
            f"with --group-size {max(least, 2)}, which keeps them back.",
        )
    counts = {} if summary.named is None else summary.named.counts
    if few := [f"{name}: {count}" for name, count in counts.items() if 0 < count < least]:
        yield ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {summary.party!r}: rows that leave are too few of a kind ({', '.join(few)}); the {whose} demands "
            f"{least} at least, or none. Take more rows, leave these out if that does not bend the result, or stay "
            "out.",
        )


def _plan_not_allowed(
    party: PartyName, plan: SharingPlan | ReleaseSummary, policy: Policy, project: Project
) -> Iterator[ExchangeError]:
    most, whose = _stricter("max_components", policy, project)
    if plan.n_components > most:
        yield ExchangeError(
            "DIM_TOO_LARGE",
            f"Party {party!r}: the representation has {plan.n_components} columns; the {whose} allows {most}. Share "
            f"with --components {most} or fewer.",
        )
    if plan.obfuscator not in policy.obfuscators:
        yield ExchangeError(
            "OBFUSCATOR_NOT_ALLOWED",
            f"Party {party!r}: the policy does not allow the obfuscator {plan.obfuscator!r}. Share with "
            f"--obfuscator {' or '.join(policy.obfuscators)}.",
        )
    kinds = plan.kinds_of_defence
    is_met = policy.defence in kinds or (policy.defence == "any" and kinds)
    if policy.defence != "none" and not is_met:
        demanded = "a defence" if policy.defence == "any" else "that every row is the mean of a group"
        yield ExchangeError(
            "DEFENCE_NEEDED",
            f"Party {party!r}: the policy demands {demanded}, and that is not so. Share with --preset groups.",
        )


def undefended_rows(party: PartyName, obfuscator: str) -> ExchangeError:
    """Return the error UNDEFENDED, which explains what leaves without a defence, and how to ask for it."""
    return ExchangeError(
        "UNDEFENDED",
        f"Party {party!r}: without a defence its rows themselves leave, each under the map {obfuscator} alone. Anyone "
        "who knows the anchor undoes a linear map, and nearly so a kernel map; anyone who knows a row finds it. Share "
        "with --preset groups. To share the rows undefended, ask for it twice: --preset none and --undefended.",
    )


def not_row_wise(party: Party, rows: FloatArray) -> Iterator[ExchangeError]:
    """Yield why nothing may leave if f_k maps a row differently in other company.

    The rows must be others than f_k was fitted on: such maps may give back those they were fitted on.
    """
    chosen = rows[:_BATCH_ROWS]
    if not is_row_wise(SimpleNamespace(transform=party.obfuscate), chosen, rows=_LONE_ROWS):
        yield ExchangeError(
            "OBFUSCATOR_NOT_ROWWISE",
            f"Party {party.name!r}: its obfuscator maps single rows differently when others are beside them, seen on "
            f"{len(chosen)} rows that it was not fitted on. A prediction would depend on who else is in the file. Take "
            "an obfuscator that maps each row by itself; for UMAP, out_of_sample='row-wise'.",
        )


def _risks(summary: ReleaseSummary, policy: Policy) -> Iterator[ExchangeError]:
    # Whether a draw with a promise leaves must not depend on what attacks find in it.
    if policy.audit != "required" or summary.guarantee is not None:
        return
    who, risk = f"Party {summary.party!r}", summary.risk
    if risk is None:
        yield ExchangeError(
            "RISK_UNKNOWN",
            f"{who}: the policy demands an audit, and none was made. Run the command without --no-audit.",
        )
        return
    for name, limit in policy.risk_limits.items():
        found = summary.figure(name)
        if found is not None and found > limit:
            yield ExchangeError(
                "RISK_TOO_HIGH",
                f"{who}: {name} ({FIGURES[name]}) reaches up to {figure_text(name, found)} in the audit; the policy "
                f"allows {limit_text(name, limit)}. {_advice(summary, name, limit)}.",
            )
        elif found is not None and summary.is_red(name):
            yield ExchangeError(
                "RISK_TOO_HIGH",
                f"{who}: the audit rates {CRITERIA[name]} red by another measure than {name} ({FIGURES[name]}), and "
                f"only a limit above {limit_text(name, Policy().risk_limits[name])} lets that leave. "
                f"{_advice(summary, name, limit)}.",
            )
    if unknown := [name for name in policy.risk_limits if summary.figure(name) is None]:
        yield ExchangeError(
            "RISK_UNKNOWN",
            f"{who}: the policy limits {', '.join(unknown)}, which could not be measured. {' '.join(risk.notes)} "
            "Take more rows, or have the limit taken out of the policy.",
        )
    elif not risk.complete:
        yield ExchangeError(
            "RISK_UNKNOWN",
            f"{who}: the audit did not end within its time, so an attack that was not tried may be worse. Give it a "
            "longer --time-budget.",
        )


def _advice(summary: ReleaseSummary, name: str, limit: float) -> str:
    if summary.named is not None:
        assert summary.risk is not None
        of_targets = summary.risk.targets_alone.get(name, 0.0)
        if of_targets > limit:
            return (
                f"Targets alone reach {figure_text(name, of_targets)}, and no way of sharing rows goes below that: "
                "agree on coarser times, or share nothing"
            )
        return "Share with larger groups (--group-size) and noise (--noise)"
    if summary.kinds_of_defence:
        return "Share with fewer --components, larger groups (--group-size) or more noise (--noise)"
    return "Share with --preset groups"


def _stricter(name: str, policy: Policy, project: Project) -> tuple[int, str]:
    """Return the limit that holds, and whether it is the project's or the policy's."""
    ours, theirs = int(getattr(policy, name)), int(getattr(project, name))
    stricter = min if name.startswith("max") else max
    return (theirs, "project") if stricter(ours, theirs) == theirs else (ours, "policy")
