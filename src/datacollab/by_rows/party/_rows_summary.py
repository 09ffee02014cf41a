"""A share of rows as its approver sees it: its facts, the risk that attacks measure, and every reason against it."""

from __future__ import annotations

import math
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..._by_name import OBFUSCATORS
from ..._typing import FloatArray, PartyName
from ...agreement import Anchor, Project
from ...anchor import EqualRows
from ...errors import DataCollabError, DataCollabWarning, ExchangeError, NoGuaranteeError, RepresentationError
from ...folder.party import Policy, judge_private_rows
from ...party import Party, SharingPlan
from ...share import Share
from ...table import Adjustments, EncodedTable, adjustments_text
from ...testing import is_row_wise

if TYPE_CHECKING:
    from ...risk.audit import AuditResult

Progress = Callable[[str, float | None], None]
LEAST_ROWS = 50
"""With fewer rows none are kept apart: every interval would be too wide."""
_HELD = 0.6
"""Fraction of the rows that a rehearsal's party holds."""
_APART = 0.2
"""Fraction of the rows that nobody has in a rehearsal: strangers beside the members."""
_REHEARSALS = 3
_MANY_ROWS = 1000
"""From so many rows on one rehearsal is enough."""
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
"""A figure that exceeds a hundredth by so little was that hundredth before it was computed in floating point."""
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
"""Strangers taken for members, among all strangers, at which the members found are bounded."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
_ORDERS = {"shuffled": "in random order", "kept": "IN THE ORDER OF THE TABLE"}
_STANDS_FOR = {"one row": "each stands for one of yours", "several rows": "none is one of yours"}
FIGURES = {
    "linkage": "rows linked to their originals",
    "reidentification": "re-identified among strangers",
    "membership": "membership inference (AUC)",
}
CRITERIA = {"linkage": "linkability", "reidentification": "singling out", "membership": "membership"}
"""The audit's criterion to which each figure belongs."""
_LONE_ROWS = 20
"""Rows that are mapped each by itself, and compared with their maps in company."""
_BATCH_ROWS = 500
"""Rows that are mapped together: company enough for its influence to show."""


@dataclass(frozen=True, kw_only=True)
class RiskFigures:
    """The strongest attack on each measure, at the upper end of its 95 % interval; None if it was not measured.

    `linkage` is the fraction of rows linked right among about a hundred originals, `reidentification` with strangers
    among these, and `membership` an area under the curve.  `targets_alone` are figures of an attacker who knows the
    targets and nothing of the share, `notes` say why a figure is missing, and `complete` whether all attacks were made
    in time.
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


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """Whether attacks are made before a share leaves, for how many seconds, and who hears of their progress."""

    audit: bool = True
    time_budget: float | None = None
    progress: Progress | None = None


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
    n_rehearsals = 1
    if len(X) < LEAST_ROWS:
        n_rehearsals = 0
    elif len(X) < _MANY_ROWS:
        n_rehearsals = _REHEARSALS
    parts = iter(range(1 + n_rehearsals))

    def attack(of: Party, X: FloatArray, y: NDArray[Any], levels: Sequence[str], **others: Any) -> AuditResult:
        from ...risk.audit import audit

        left = None
        if time_budget is not None:
            left = max(0.0, time_budget - (time.monotonic() - started))
        part = next(parts)

        def say(done: int, total: int, name: str) -> None:
            if progress is not None:
                words = f"measuring the risk, part {part + 1} of {1 + n_rehearsals}, attack {done + 1} of {total}"
                progress(words, (part + done / total) / (1 + n_rehearsals))

        others |= {"anchor_target": anchor_target, "random_state": random, "progress": say}
        return audit(of, X, anchor_rows, y=y, levels=levels, attacks=ATTACKS, time_budget=left, **others)

    share, notes = _attempt("The share", lambda: attack(party, X, y, ["T2"]))
    rehearsals: list[AuditResult] = []
    if not n_rehearsals:
        notes += (
            f"Re-identification among strangers and membership are not measured with {len(X)} rows: {LEAST_ROWS} are "
            "needed to keep some apart.",
        )
    for _ in range(n_rehearsals):
        made, more = _attempt("The rehearsal", lambda: _rehearse(party, X, y, random, attack))
        notes += tuple(note for note in more if note not in notes)
        if made is not None:
            rehearsals.append(made)
    # Both are lists of audits; those that failed are missing.
    of_share = [share] if share is not None else []
    targets_alone = _baseline("linkage", of_share, "linkage")
    targets_alone |= _baseline("reidentification", rehearsals[:1], "open-world re-identification")
    return RiskFigures(
        linkage=_worst(of_share, "linkage"),
        reidentification=_worst(rehearsals, "open-world re-identification"),
        membership=_worst(rehearsals, "membership AUC"),
        targets_alone=targets_alone,
        ratings=_ratings(of_share, rehearsals),
        notes=notes,
        n_attacked=sum(result.n_attacked for result in of_share),
        seconds=time.monotonic() - started,
        complete=all(result.complete for result in (*of_share, *rehearsals)),
    )


def _rehearse(
    party: Party, X: FloatArray, y: NDArray[Any], random: np.random.RandomState, attack: Callable[..., AuditResult]
) -> AuditResult:
    """Attack a party with a part of the rows; the attacker holds some of the others, and nobody the rest."""
    # Three parts without a row in common: members, public rows of the attacker, and strangers.
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
    return attack(stand_in, X[held], y[held], ["T2", "T2f"], **others)


def _attempt(target: str, make: Callable[[], AuditResult]) -> tuple[AuditResult | None, tuple[str, ...]]:
    """Return a result, or a sentence on why there is none."""
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
            # Rows kept back here say nothing about the share.
            warnings.simplefilter("ignore", DataCollabWarning)
            return make(), ()
    except RepresentationError:
        # Attacks ask a researcher for more rows, and a party has no others.
        return None, (f"{target} could not be attacked: too few of the rows differ from each other.",)
    except DataCollabError as error:
        return None, (f"{target} could not be attacked: {error}",)
    except (ValueError, ArithmeticError) as error:
        # Its words may quote data.
        return None, (f"{target} could not be attacked ({type(error).__name__}).",)


def _worst(results: Sequence[AuditResult], metric: str) -> float | None:
    """Return the largest upper end of an attack; of each attack the mean over its audits."""
    uppers: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for finding in result.findings:
            if finding.metric == metric and finding.is_measured:
                uppers.setdefault((finding.level, finding.leak, finding.attack), []).append(finding.upper)
    return max((float(np.mean(values)) for values in uppers.values()), default=None)


def _baseline(name: str, results: Sequence[AuditResult], metric: str) -> dict[str, float]:
    """Return by the figure's name the best that an attacker does who knows targets alone; nothing if not measured."""
    findings = [finding for result in results for finding in result.findings]
    values = [finding.baseline for finding in findings if finding.metric == metric and finding.baseline is not None]
    if not values:
        return {}
    return {name: max(values)}


def _ratings(of_share: Sequence[AuditResult], rehearsals: Sequence[AuditResult]) -> dict[str, str]:
    """Return the share's own ratings, and those of the rehearsals' means for attacks that need strangers."""
    from ...risk.audit import mean_findings

    measured = ((finding for finding in rehearsal.findings if finding.is_measured) for rehearsal in rehearsals)
    of_strangers = [each for each in mean_findings(measured) if each.metric.startswith(_OF_STRANGERS)]
    if not (of_share or rehearsals):
        return {}
    basis = (*of_share, *rehearsals)[0]
    own = [finding for result in of_share for finding in result.findings]
    # One audit's limits and levels, with the findings of all: lights stand beside the figures that they are of.
    judged = replace(basis, findings=(*own, *of_strangers))
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
        # A rounding of 0 is that of exact times; without times it is None.
        if self.rounding:
            unit = self.unit and f" {self.unit}"
            parts.append(f"times rounded up to multiples of {self.rounding:.10g}{unit}, all else exactly as it is")
        elif self.rounding is not None:
            parts.append("TIMES LEAVE EXACTLY AS THEY ARE, and can tell whose a row is: ask the owner for a rounding")
        elif self.kind != "none":
            parts.append("exactly as they are")
        if self.kind != "none":
            alone = (
                f"targets that no other row has: {self.n_alone_before} in the table, {self.n_alone_after} in what "
                "leaves"
            )
            if self.n_alone_after:
                alone += ", and anyone who knows one finds its row"
            parts.append(alone)
        return "; ".join(parts)


def describe_targets(project: Project, own: NDArray[Any], shared: NDArray[Any]) -> NamedTargets | None:
    """Sum up the targets of the table and those that would leave; None if they are single classes or numbers."""
    task = project.task
    if task.is_single:
        return None
    counts: dict[str, int] = {}
    names = {"treatment": ("treated", "untreated"), "event": ("event seen", "event not seen")}
    for name in task.fields:
        if name in names:
            n_yes = int(np.count_nonzero(shared[name]))
            counts |= dict(zip(names[name], (n_yes, len(shared) - n_yes), strict=True))
    return NamedTargets(
        kind=task.kind,
        words=task.words,
        unit=task.unit,
        rounding=task.rounding,
        counts=counts,
        n_alone_before=_n_alone(own),
        n_alone_after=_n_alone(shared),
    )


def _n_alone(target: NDArray[Any]) -> int:
    """Return how many rows have a target that no other row has; 0 if there are no targets."""
    if not target.dtype.names:
        return 0
    _, counts = np.unique(target, return_counts=True)
    return int(np.count_nonzero(counts == 1))


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
        figures = {name: self.figure(name) for name in self.limits}
        return tuple(
            name
            for name, figure in figures.items()
            if figure is None or figure > self.limits[name] or self.is_red(name)
        )

    def is_red(self, name: str) -> bool:
        """Return whether another measure makes the figure's criterion red, and the limit is not above the default."""
        # With a promise attacks inform, and decide nothing.
        if self.risk is None or self.guarantee is not None:
            return False
        # Who wrote a limit above the default has decided; otherwise red by any measure is too much.
        usual = Policy().risk_limits[name]
        return self.limits.get(name, 1.0) <= usual and self.risk.ratings.get(CRITERIA[name]) == "red"

    def figure(self, name: str) -> float | None:
        """Return a figure of the risk as it is compared with limits: the measured one, or a proven bound below it."""
        known = [self.proven.get(name)]
        if self.risk is not None:
            known.append(self.risk.of(name))
        return min((figure for figure in known if figure is not None), default=None)

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
        kept_back = ""
        if self.n_suppressed:
            kept_back = f"; {self.n_suppressed} more are kept back by the defence"
        yield "rows", f"{self.n_rows}, {_ORDERS[self.row_order]}{kept_back}; {_STANDS_FOR[self.stands_for]}"
        if self.adjusted["columns"]:
            yield "adjusted entries", adjustments_text(self.adjusted)
        yield "columns", f"{self.n_components} of {self.dtype}, instead of the table's{self._say_if_turned()}"
        if self.named is None:
            yield "targets", f"one for each row, exactly as it is: {self._targets()}"
        else:
            yield "targets", self.named.sentence
        anchor = f"its {self.n_anchors} rows in the same {self.n_components} columns"
        if self.anchor_targets:
            anchor += ", and their targets"
        yield "anchor", anchor
        basis = "a secret half of the anchor"
        if self.fitted_on_private_rows:
            basis = "YOUR ROWS, and it discloses something about them"
        yield "obfuscator", f"{self.obfuscator}, fitted on {basis}"
        yield "defences", "; ".join(self.defences) or "none: every row stands for one of yours"
        yield "guarantee", self.promise or "none (no differential privacy is claimed)"
        in_anchor = "none"
        if self.in_anchor.n_equal:
            in_anchor = f"{self.in_anchor.n_equal}; chance explains {self.in_anchor.by_chance}"
        yield "own rows in anchor", in_anchor
        yield "besides", _BESIDES
        yield "size", f"about {self.n_bytes:,} bytes"

    def _say_if_turned(self) -> str:
        """Say so if a linear map leaves nothing out of a row."""
        all_kept = self.n_free is not None and self.n_components >= self.n_free
        if not all_kept or not OBFUSCATORS[self.obfuscator].is_linear:
            return ""
        way_on = _FEWER
        if self.task == "effect":
            way_on = "an effect needs them all, and the defences alone hide rows"
        return (
            f"; {self.n_free} numbers determine a row of it, so that this turns the table and hides nothing: {way_on}"
        )

    def _targets(self) -> str:
        if self.class_counts is None:
            return f"{self.n_rows} numbers"
        present = {name: count for name, count in self.class_counts.items() if count}
        # More would fill the screen.
        if len(present) > _MOST_CLASSES:
            return f"{len(present)} classes of {min(present.values())} to {max(present.values())} rows"
        return ", ".join(f"{name}:{_NO_BREAK}{count}" for name, count in present.items())

    def _risk_lines(self) -> Iterator[str]:
        if self.risk is None:
            yield "Risk: not measured; no attack was made."
            return
        yield "Risk, at most, if somebody has the share, the anchor and candidates, and makes this audit's attacks"
        yield f"  (upper ends of 95 % intervals; {self.risk.seconds:.0f} s)"
        for name in FIGURES:
            yield self._figure_line(name, self.risk)
        if "found" in self.proven:
            yield from _entry(
                "proven besides",
                f"nobody who takes one in a hundred others for one of them finds more than "
                f"{figure_text('found', self.proven['found'])} of your rows in the share",
            )
        if self.risk.ratings:
            yield from _entry("ratings", ", ".join(f"{name} {rating}" for name, rating in self.risk.ratings.items()))
            yield from _entry("", "of all attacks and measures, not of the figures above alone")
        notes = list(self.risk.notes)
        if not self.risk.complete:
            notes.append("The time ended it before all attacks were made.")
        for note in notes:
            yield from textwrap.wrap(note, _WIDTH, initial_indent="  ", subsequent_indent="  ")

    def _figure_line(self, name: str, risk: RiskFigures) -> str:
        """Return a figure with its limit, whether it is above, and the part that targets alone or a proof give."""
        measured = "not measured"
        if (measure := risk.of(name)) is not None:
            measured = figure_text(name, measure)
        allowed = ""
        over = "RED" * self.is_red(name)
        if (limit := self.limits.get(name)) is not None:
            allowed = f"limit {limit_text(name, limit)}"
            # A bound that is proven takes the place of a figure above it.
            if (figure := self.figure(name)) is not None and figure > limit:
                over = "ABOVE"
        known = ""
        if name in self.proven:
            known = f"proven for any attack: at most {figure_text(name, self.proven[name])}"
        elif name in risk.targets_alone:
            known = f"targets alone: {figure_text(name, risk.targets_alone[name])}"
        return f"  {FIGURES[name]:<33}{measured:>13}   {allowed:<14}{over:<8}{known}".rstrip()


def release_summary(
    project: Project,
    policy: Policy,
    plan: SharingPlan,
    party: Party,
    share: Share,
    encoded: EncodedTable,
    anchor: Anchor,
    in_anchor: EqualRows,
) -> ReleaseSummary:
    """Sum up the share of a fitted party before it is attacked; its size is that of the arrays."""
    n_rows, n_components = share.representation.shape
    promised: dict[str, Any] = {"guarantee": None}
    with suppress(NoGuaranteeError):
        guarantee = party.guarantee(anchor.rows)
        promised = {
            "guarantee": guarantee.statement,
            "promise": f"differential privacy of each row's features, epsilon {guarantee.epsilon:g}, delta "
            f"{guarantee.delta:g}; targets and row counts are not covered; --json has the whole statement",
            "proven": {"membership": guarantee.auc_at_most, "found": guarantee.tpr_at_most(_FALSE_POSITIVES)},
        }
    counts = None
    named = None
    if encoded.target is not None:
        named = describe_targets(project, encoded.target, share.target)
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
        risk=None,
        limits=policy.risk_limits,
        in_anchor=in_anchor,
        adjusted=encoded.adjusted.to_dict(),
        n_free=project.n_free,
        anchor_targets=share.anchor_target is not None,
        named=named,
        **promised,
    )


def figure_text(name: str, value: float) -> str:
    """Return a figure as people read it, rounded up: per cent, or the area under a curve."""
    # Up, as it is the upper end of an interval.
    hundredths = math.ceil(100 * value - _ROUNDING)
    if name == "membership":
        return f"{hundredths / 100:.2f}"
    return f"{hundredths} %"


def limit_text(name: str, value: float) -> str:
    """Return a limit in the same form, as the policy has it."""
    if name == "membership":
        return f"{value:g}"
    return f"{100 * value:g} %"


def _entry(name: str, text: str) -> list[str]:
    indent = " " * (_MARGIN + 4)
    lines = textwrap.wrap(text, _WIDTH, initial_indent=f"  {name:<{_MARGIN}}  ", subsequent_indent=indent)
    return [line.replace(_NO_BREAK, " ") for line in lines]


def reasons_against(summary: ReleaseSummary, policy: Policy, project: Project) -> list[ExchangeError]:
    """Return every reason not to share, in the order in which people would look for it."""
    party = summary.party
    return [
        *_judge_number(party, summary.n_rows, policy, project),
        *_judge_classes(summary, policy, project),
        *_judge_plan(party, summary, policy, project),
        *judge_private_rows(party, summary.in_anchor, summary.n_anchors, policy),
        *_judge_risk(summary, policy),
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
        *_judge_number(party, n_rows, policy, project),
        *_judge_plan(party, plan, policy, project),
        *judge_private_rows(party, in_anchor, n_anchors, policy),
    ]


def _judge_number(party: PartyName, n_rows: int, policy: Policy, project: Project) -> Iterator[ExchangeError]:
    least, whose = _stricter("min_rows", policy, project)
    if n_rows < least:
        yield ExchangeError(
            "TOO_FEW_ROWS",
            f"Party {party!r} would share {n_rows} rows; the {whose} demands {least} at least. Take more rows, defend "
            "with smaller groups, or stay out.",
        )


def _judge_classes(summary: ReleaseSummary, policy: Policy, project: Project) -> Iterator[ExchangeError]:
    """Yield why classes, events or arms with few rows must not leave: such people stand out, or all have one target."""
    least, whose = _stricter("min_class_rows", policy, project)
    present = [count for count in (summary.class_counts or {}).values() if count]
    # Then the class of everybody who is known to be in the share is known.
    if len(present) == 1:
        yield ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {summary.party!r}: all {present[0]} rows that leave are of one class, so the share tells each "
            f"target. Take rows of another class too, {least} at least, share sums instead, or stay out.",
        )
    # Each person of a rare class stands out, and in a group with others of it little is hidden.
    if small := [count for count in present if count < least]:
        yield ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {summary.party!r}: {len(small)} of its {len(present)} classes have fewer rows than the {least} "
            f"that the {whose} demands; the smallest has {min(small)}. Leave out the rows of rare classes, or share "
            f"with --group-size {max(least, 2)}, which keeps them back.",
        )
    counts = summary.named.counts if summary.named is not None else {}
    if few := [f"{name}: {count}" for name, count in counts.items() if 0 < count < least]:
        yield ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {summary.party!r}: rows that leave are too few of a kind ({', '.join(few)}); the {whose} demands "
            f"{least} at least, or none. Take more rows, leave these out if that does not bend the result, or stay "
            "out.",
        )


def _judge_plan(
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
    is_met = policy.defence in ("none", *kinds) or (policy.defence == "any" and kinds)
    if not is_met:
        demanded = {"any": "a defence", "microaggregation": "that every row is the mean of a group"}[policy.defence]
        yield ExchangeError(
            "DEFENCE_NEEDED",
            f"Party {party!r}: the policy demands {demanded}, and that is not so. Share with --preset groups.",
        )


def no_defence(party: PartyName, obfuscator: str) -> ExchangeError:
    """Return the error UNDEFENDED, which explains that the rows themselves leave, and how to ask for it."""
    return ExchangeError(
        "UNDEFENDED",
        f"Party {party!r}: without a defence its rows themselves leave, each under the map {obfuscator} alone. Anyone "
        "who knows the anchor undoes a linear map, and nearly so a kernel map; anyone who knows a row finds it. Share "
        "with --preset groups. To share the rows undefended, ask for it twice: --preset none and --undefended.",
    )


def judge_row_wise(party: Party, rows: FloatArray) -> Iterator[ExchangeError]:
    """Yield why nothing may leave if f_k maps a row differently in other company.

    The rows must be others than f_k was fitted on: such maps may give back those they were fitted on.
    """
    # Of some maps the influence of others shows in large batches alone.
    chosen = rows[:_BATCH_ROWS]
    if not is_row_wise(SimpleNamespace(transform=party.obfuscate), chosen, rows=_LONE_ROWS):
        yield ExchangeError(
            "OBFUSCATOR_NOT_ROWWISE",
            f"Party {party.name!r}: its obfuscator maps single rows differently when others are beside them, seen on "
            f"{len(chosen)} rows that it was not fitted on. A prediction would depend on who else is in the file. Take "
            "an obfuscator that maps each row by itself; for UMAP, out_of_sample='row-wise'.",
        )


def _judge_risk(summary: ReleaseSummary, policy: Policy) -> Iterator[ExchangeError]:
    # Whether a draw with a promise leaves must not depend on what attacks find in it.
    if policy.audit != "required" or summary.guarantee is not None:
        return
    who = f"Party {summary.party!r}"
    risk = summary.risk
    if risk is None:
        yield ExchangeError(
            "RISK_UNKNOWN",
            f"{who}: the policy demands an audit, and none was made. Run the command without --no-audit.",
        )
        return
    for name, limit in policy.risk_limits.items():
        figure = summary.figure(name)
        if figure is not None and figure > limit:
            yield ExchangeError(
                "RISK_TOO_HIGH",
                f"{who}: {name} ({FIGURES[name]}) reaches up to {figure_text(name, figure)} in the audit; the policy "
                f"allows {limit_text(name, limit)}. {_advice(summary, name, limit)}.",
            )
        elif figure is not None and summary.is_red(name):
            yield ExchangeError(
                "RISK_TOO_HIGH",
                f"{who}: the audit rates {CRITERIA[name]} red by another measure than {name} ({FIGURES[name]}), and "
                f"only a limit above {limit_text(name, Policy().risk_limits[name])} lets that leave. "
                f"{_advice(summary, name, limit)}.",
            )
    # A limit on a figure that could not be measured is not kept.
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
        # Targets leave as they are, and no defence of the rows hides them.
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
    ours = int(getattr(policy, name))
    theirs = int(getattr(project, name))
    is_theirs = theirs >= ours
    if name.startswith("max"):
        is_theirs = theirs <= ours
    if is_theirs:
        return theirs, "project"
    return ours, "policy"
