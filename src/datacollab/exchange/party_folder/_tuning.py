"""The most useful way of sharing that party and project allow."""

from __future__ import annotations

import textwrap
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...errors import DataCollabError, ExchangeError
from ...party import Party
from ...share import Share
from ..project import Anchor, EncodedTable, Project, Task
from ._policy import Policy
from ._prepare import largest_possible, prepare_way
from ._release_summary import figure_text, limit_text
from ._rows_only import check_shares_rows
from ._way import Way, of_task

if TYPE_CHECKING:
    from ...risk.audit import Assessment, Choice, Option

__all__ = ["Tuning", "kept_variance", "tune", "ways_to_try"]


def kept_variance(party: Party, X: FloatArray, share: Share, order: NDArray[np.intp]) -> float:
    """Squared correlation of the shared rows with the own ones that they stand for, over all columns at once.

    1 where rows leave as their representations, and the less the more groups and noise take away.

    Parameters
    ----------
    party : Party
        Fitted.
    X : ndarray of shape (n_rows, n_features)
    share : Share
    order : ndarray of shape (n_shared,)
        Which own row each shared one stands for.
    """
    own = party.obfuscate(X)[order]
    own, shared = own - own.mean(axis=0), share.representation - share.representation.mean(axis=0)
    scale = float((own**2).sum() * (shared**2).sum())
    return float((own * shared).sum()) ** 2 / scale if scale else 0.0


DIMENSIONS = (4, 8, 16, 32)
_FOLDS = 3
_COLUMNS = {"linkage": "linked", "reidentification": "told apart", "membership": "members"}
_LIMITS = "limits of the policy"
_CELLS, _LEAST = 53, 20
"""Columns of a line besides the name, and the fewest for the name."""
_USUAL = ("pca", "kernel-pca")
_DEFENCES: tuple[dict[str, Any], ...] = (
    {"preset": "groups"},
    {"epsilon": 8.0},
    {"epsilon": 16.0},
    {"fit_on_anchor": True, "group_size": 5},
    {"fit_on_anchor": True, "group_size": 10},
    {"fit_on_anchor": True, "group_size": 20},
    {"fit_on_anchor": True, "noise": 1.0},
    {"fit_on_anchor": True, "group_size": 3},
    {"preset": "none", "fit_on_anchor": True},
    {"preset": "none"},
)
"""The strongest first, in case the time does not suffice for all."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tuning:
    """Ways of sharing, assessed, and the one to take.

    Attributes
    ----------
    choice : Choice
        Utility and risk of each.
    ways : dict of str to Way
        By the option's name.
    reasons : dict of str to list of ExchangeError
        What speaks against each, by the option's name.
    """

    choice: Choice
    ways: dict[str, Way]
    reasons: dict[str, list[ExchangeError]]

    @property
    def best(self) -> Way | None:
        """The most useful way that is allowed, if any is."""
        best = self.choice.best
        return None if best is None else self.ways[best.option.name]

    @property
    def refusal(self) -> ExchangeError | None:
        """NOTHING_ALLOWED, with what is lacking most, where no way is allowed."""
        if self.best is not None:
            return None
        n_tried, why = len(self.choice.assessments), self._lacking()
        within = "" if self.choice.complete else " for which there was time"
        advice = "Take more rows, have a limit of the policy raised, or do not share."
        if not self.choice.complete:
            advice = f"Give it a longer --time-budget. {advice}"
        found = f"None of the {n_tried} ways of sharing{within} is allowed." if n_tried else "No way could be assessed."
        if not (n_tried or self.choice.complete or self.choice.failed):
            found, advice = "There was no time for a single way.", "Give it a longer --time-budget."
        return ExchangeError("NOTHING_ALLOWED", " ".join((found, *why, advice)))

    def _lacking(self) -> list[str]:
        """What no way attains, in sentences."""
        sentences = []
        for name, limit in asdict(self.choice.limits).items():
            figures = (getattr(each.risk, name) for each in self.choice.assessments)
            found = [figure for figure in figures if figure is not None]
            if limit is not None and found and min(found) > limit:
                least, allowed = figure_text(name, min(found)), limit_text(name, limit)
                sentences.append(f"The lowest {name} is up to {least}; the policy allows {allowed}.")
        others = (reason for reasons in self.reasons.values() for reason in reasons if reason.code != "RISK_TOO_HIGH")
        first = next(others, None)
        return sentences if first is None or sentences else [str(first)]

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each way, the most useful first."""
        return [
            {
                "way": each.option.name,
                "options": self.ways[each.option.name].options,
                self.choice.utility_name: each.utility,
                **asdict(each.risk),
                "allowed": each.allowed,
                "on_frontier": each.on_frontier,
                "reasons": [reason.code for reason in self.reasons[each.option.name]],
            }
            for each in sorted(self.choice.assessments, key=lambda each: -each.utility)
        ]

    def to_text(self, *, width: int | None = None) -> str:
        """A table for people, the most useful way first, and the limits at its foot.

        Parameters
        ----------
        width : int, optional
            Columns that there are; names are continued on a second line where they need more.
        """
        longest = max(len(name) for name in (*self.ways, _LIMITS))
        given = longest if width is None else min(longest, max(width - _CELLS, _LEAST))
        lines = [_line("", (self.choice.utility_name.partition(" ")[0], *_COLUMNS.values()), given)]
        for row in self.rows():
            risks = ["-" if row[name] is None else figure_text(name, row[name]) for name in _COLUMNS]
            useful = f"{row[self.choice.utility_name]:.2f}"
            first, *rest = textwrap.wrap(row["way"], given, subsequent_indent="  ")
            lines.append(_line(first, (useful, *risks), given) + ("  allowed" if row["allowed"] else ""))
            lines += rest
        limits = asdict(self.choice.limits)
        allowed = ["none" if limits[name] is None else limit_text(name, limits[name]) for name in _COLUMNS]
        lines.append(_line(_LIMITS, ("", *allowed), given))
        lines += [f"Not assessed: {name}. {reason}" for name, reason in self.choice.failed.items()]
        if not self.choice.complete:
            lines.append("The time was up before all ways were tried.")
        return "\n".join(lines)


def ways_to_try(
    project: Project,
    policy: Policy,
    encoded: EncodedTable,
    *,
    obfuscators: Collection[str] | None = None,
    dimensions: Collection[int] | None = None,
    standardize: bool | None = None,
) -> list[Way]:
    """Ways of sharing that the policy allows as such, the best defended first.

    Parameters
    ----------
    project : Project
    policy : Policy
    encoded : EncodedTable
    obfuscators : collection of str, optional
        By default PCA and kernel PCA, or else whatever is allowed.
    dimensions : collection of int, optional
        Columns of the representation.  By default 4, 8, 16 and 32, as far as they are possible.
    standardize : bool, optional
        As in `Way.of`.

    Raises
    ------
    ExchangeError
        OBFUSCATOR_NOT_ALLOWED or DIM_TOO_LARGE for what was named.
    """
    usual = [kind for kind in _USUAL if kind in policy.obfuscators]
    kinds = list(obfuscators or usual or policy.obfuscators)
    for kind in kinds:
        if kind not in policy.obfuscators:
            raise ExchangeError(
                "OBFUSCATOR_NOT_ALLOWED",
                f"The policy does not allow the obfuscator {kind!r}. Allowed: {', '.join(policy.obfuscators)}.",
            )
    largest = largest_possible(project, policy, encoded)
    for n_components in dimensions or ():
        if n_components > largest:
            raise ExchangeError(
                "DIM_TOO_LARGE",
                f"{n_components} components are more than the {largest} that table, project and policy permit. Name "
                "fewer.",
            )
    widths = list(dimensions or [width for width in DIMENSIONS if width <= largest] or [largest])
    ways = (
        Way.of(
            obfuscator=kind,
            n_components=width,
            standardize=standardize,
            **of_task(project.task),
            largest=largest,
            **defence,
        )
        for defence, width, kind in product(_DEFENCES, widths, kinds)
        if project.task.is_single or "epsilon" not in defence
    )
    return [way for way in ways if _is_defended_enough(way, policy) and _has_rows_enough(way, encoded)]


def tune(
    project: Project,
    policy: Policy,
    name: str,
    encoded: EncodedTable,
    anchor: Anchor,
    ways: Sequence[Way],
    *,
    time_budget: float | None = None,
    random_state: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Tuning:
    """Assess ways of sharing as `datacollab party check` would, with the policy's limits of risk enforced.

    Parameters
    ----------
    project : Project
    policy : Policy
    name : str
        Of the party.
    encoded : EncodedTable
    anchor : Anchor
    ways : sequence of Way
    time_budget : float, optional
        Seconds after which no further way is begun.
    random_state : int, optional
        Of the folds and models for the utility.
    progress : callable, optional
        Called with a line before each way.

    Returns
    -------
    Tuning

    Notes
    -----
    Utility is what a model reaches on the party's own obfuscated rows, cross-validated; what it will reach in the
    collaboration depends on the others.  For times to events, effects and no targets no model is tried: it is the share
    of the rows' variance that the shared ones keep, see `kept_variance`.
    """
    from ...risk.audit import Assessment, Choice, Risk, RiskLimits
    from ...risk.audit._choice import _undominated

    strict = replace(policy, audit="required")
    check_shares_rows(project)
    target = encoded.target
    assert target is not None
    seed = int(np.random.default_rng(random_state).integers(2**31))
    started = time.monotonic()
    found: list[Assessment] = []
    failed: dict[str, str] = {}
    reasons: dict[str, list[ExchangeError]] = {}
    complete = True
    for number, way in enumerate(ways, start=1):
        if time_budget is not None and time.monotonic() - started > time_budget:
            complete = False
            break
        if progress is not None:
            progress(f"{number} of {len(ways)}: {way.name}")
        option = way.option
        try:
            prepared = prepare_way(project, strict, name, encoded, anchor, way)
            utility = (
                _utility(option, encoded.X, target, anchor, seed)
                if project.task.is_single
                else kept_variance(prepared.party, encoded.X, prepared.share, prepared.order)
            )
        except DataCollabError as error:
            failed[way.name] = str(error)
            continue
        except ValueError as error:
            # scikit-learn refuses folds with too few rows of a class; its words may name one.
            failed[way.name] = f"It could not be assessed ({type(error).__name__})."
            continue
        risk = prepared.summary.risk
        assert risk is not None
        reasons[way.name] = prepared.reasons
        figures = Risk(linkage=risk.linkage, reidentification=risk.reidentification, membership=risk.membership)
        found.append(Assessment(option=option, utility=utility, risk=figures, allowed=not prepared.reasons))
    choice = Choice(
        assessments=tuple(replace(each, on_frontier=_undominated(each, found)) for each in found),
        limits=RiskLimits(
            linkage=policy.max_linkage, reidentification=policy.max_reidentification, membership=policy.max_membership
        ),
        utility_name=_utility_name(project.task, target),
        failed=failed,
        complete=complete,
    )
    return Tuning(choice=choice, ways={way.name: way for way in ways}, reasons=reasons)


def _utility(option: Option, X: FloatArray, y: NDArray[Any], anchor: Anchor, seed: int) -> float:
    from ...risk.audit._choice import local_utility

    with warnings.catch_warnings():
        # Folds with few rows of a class are no news in a rehearsal.
        warnings.simplefilter("ignore", UserWarning)
        return local_utility(option, X, y, anchor.rows, anchor.rows, anchor_target=anchor.target, cv=_FOLDS, seed=seed)


def _utility_name(task: Task, target: NDArray[Any]) -> str:
    from ...risk.audit._choice import is_numeric_target

    if not task.is_single:
        return "variance kept of own rows"
    return "R2 on own rows" if is_numeric_target(target) else "accuracy on own rows"


def _has_rows_enough(way: Way, encoded: EncodedTable) -> bool:
    """Whether there can be a group even where a fold of the rows is left out."""
    if way.group_size is None or not encoded.n_rows:
        return True
    if encoded.target is not None and encoded.target.dtype.names is not None:
        return way.group_size <= encoded.n_rows
    whole = encoded.n_rows if way.n_bins else np.unique(np.asarray(encoded.target), return_counts=True)[1].max()
    return bool(way.group_size <= whole * (_FOLDS - 1) // _FOLDS)


def _line(name: str, cells: Sequence[str], width: int) -> str:
    return f"{name:<{width}}" + "".join(f"{cell:>11}" for cell in cells)


def _is_defended_enough(way: Way, policy: Policy) -> bool:
    return {
        "none": True,
        "any": bool(way.defences),
        "microaggregation": way.group_size is not None,
    }[policy.defence]
