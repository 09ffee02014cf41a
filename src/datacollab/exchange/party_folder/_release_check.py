"""Whether a share may leave: every reason against it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from ..._typing import FloatArray, PartyName
from ...anchor import AnchorFit
from ...errors import ExchangeError
from ...party import Party, SharingPlan
from ...testing import is_row_wise
from ..project import Project
from ._policy import Policy
from ._release_summary import FIGURES, ReleaseSummary, figure_text, limit_text

__all__ = [
    "check_row_wise",
    "crafted_anchor",
    "deadline_passed",
    "private_rows_in_anchor",
    "reasons_against",
    "reasons_before",
    "refuse_if_not_allowed",
    "undefended_rows",
]

_LONE_ROWS = 20
_BATCH_ROWS = 500
"""Rows that are mapped together: company enough for its influence to show."""


def deadline_passed(project: Project) -> list[ExchangeError]:
    """Why nothing may be shared today, if the project's last day is over: what `PartyFolder.prepare` does not ask."""
    try:
        project.check_deadline(datetime.now(UTC).date())
    except ExchangeError as error:
        return [error]
    return []


def reasons_against(summary: ReleaseSummary, policy: Policy, project: Project) -> list[ExchangeError]:
    """Every reason not to share, in the order in which people would look for it.

    Parameters
    ----------
    summary : ReleaseSummary
    policy : Policy
    project : Project
        Of its limits and the policy's, the stricter ones hold.

    Returns
    -------
    list of ExchangeError
        With the codes TOO_FEW_ROWS, CLASS_TOO_SMALL, DIM_TOO_LARGE, OBFUSCATOR_NOT_ALLOWED, DEFENCE_NEEDED,
        ANCHOR_HAS_PRIVATE_ROWS, RISK_TOO_HIGH and RISK_UNKNOWN.
    """
    way = (summary.obfuscator, summary.n_components, summary.kinds_of_defence)
    return [
        *_too_few_rows(summary.party, summary.n_rows, policy, project),
        *_small_classes(summary.party, summary.class_counts or {}, policy, project),
        *_small_counts(summary, policy, project),
        *_way_not_allowed(summary.party, *way, policy, project),
        *private_rows_in_anchor(summary.party, summary.n_private_in_anchor, summary.n_anchors, policy),
        *_risks(summary, policy),
    ]


def reasons_before(
    party: PartyName,
    plan: SharingPlan,
    policy: Policy,
    project: Project,
    *,
    n_rows: int,
    n_anchors: int,
    n_private_in_anchor: int,
) -> list[ExchangeError]:
    """The reasons that are there before anything is obfuscated; `n_rows` is that of the table."""
    return [
        *_too_few_rows(party, n_rows, policy, project),
        *_way_not_allowed(party, plan.obfuscator, plan.n_components, plan.kinds_of_defence, policy, project),
        *private_rows_in_anchor(party, n_private_in_anchor, n_anchors, policy),
    ]


def refuse_if_not_allowed(summary: ReleaseSummary, policy: Policy, project: Project) -> None:
    """Raise the first of `reasons_against`, if there are any."""
    for reason in reasons_against(summary, policy, project):
        raise reason


def check_row_wise(party: Party, rows: FloatArray) -> None:
    """Refuse an f_k that maps a row differently in other company.

    Parameters
    ----------
    party : Party
        Fitted.
    rows : ndarray of shape (n_rows, n_features)
        Rows that f_k was **not** fitted on: such maps may give back those they were fitted on.

    Raises
    ------
    ExchangeError
        OBFUSCATOR_NOT_ROWWISE.
    """
    chosen = rows[:_BATCH_ROWS]
    if not is_row_wise(_Transformer(party), chosen, rows=_LONE_ROWS):
        raise ExchangeError(
            "OBFUSCATOR_NOT_ROWWISE",
            f"Party {party.name!r}: its obfuscator maps single rows differently when others are beside them, seen on "
            f"{len(chosen)} rows that it was not fitted on. A prediction would depend on who else is in the file. Take "
            "an obfuscator that maps each row by itself; for UMAP, out_of_sample='row-wise'.",
        )


class _Transformer:
    """A party's f_k as a transformer."""

    def __init__(self, party: Party) -> None:
        self.transform = party.obfuscate


def _too_few_rows(party: PartyName, n_rows: int, policy: Policy, project: Project) -> list[ExchangeError]:
    least, whose = _stricter("min_rows", policy, project)
    if n_rows >= least:
        return []
    return [
        ExchangeError(
            "TOO_FEW_ROWS",
            f"Party {party!r} would share {n_rows} rows; the {whose} wants {least} at least. Take more rows, defend "
            "with smaller groups, or stay out.",
        )
    ]


def _small_classes(
    party: PartyName, counts: Mapping[str, int], policy: Policy, project: Project
) -> list[ExchangeError]:
    least, whose = _stricter("min_class_rows", policy, project)
    present = [count for count in counts.values() if count]
    small = [count for count in present if count < least]
    if not small:
        return []
    return [
        ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {party!r}: {len(small)} of its {len(present)} classes have fewer rows than the {least} that the "
            f"{whose} wants; the smallest has {min(small)}. Leave out the rows of rare classes, or share with "
            f"--group-size {max(least, 2)}, which keeps them back.",
        )
    ]


def _small_counts(summary: ReleaseSummary, policy: Policy, project: Project) -> list[ExchangeError]:
    """Of events and arms of a treatment, where any rows are of them; whoever is one of few stands out."""
    least, whose = _stricter("min_class_rows", policy, project)
    counts = {} if summary.named is None else summary.named.counts
    small = [f"{name}: {count}" for name, count in counts.items() if 0 < count < least]
    if not small:
        return []
    return [
        ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {summary.party!r}: rows that leave are too few of a kind ({', '.join(small)}); the {whose} wants "
            f"{least} at least, or none. Take more rows, leave these out where that does not bend the result, or stay "
            "out.",
        )
    ]


def _way_not_allowed(
    party: PartyName,
    obfuscator: str,
    n_components: int,
    kinds_of_defence: tuple[str, ...],
    policy: Policy,
    project: Project,
) -> list[ExchangeError]:
    reasons = []
    most, whose = _stricter("max_components", policy, project)
    if n_components > most:
        reasons.append(
            ExchangeError(
                "DIM_TOO_LARGE",
                f"Party {party!r}: the representation has {n_components} columns; the {whose} allows {most}. Share "
                f"with --components {most} or fewer.",
            )
        )
    if obfuscator not in policy.obfuscators:
        reasons.append(
            ExchangeError(
                "OBFUSCATOR_NOT_ALLOWED",
                f"Party {party!r}: the policy does not allow the obfuscator {obfuscator!r}. Share with --obfuscator "
                f"{' or '.join(policy.obfuscators)}.",
            )
        )
    is_wanted = policy.defence in kinds_of_defence or (policy.defence == "any" and kinds_of_defence)
    if policy.defence != "none" and not is_wanted:
        wanted, instead = _WANTED[policy.defence]
        reasons.append(
            ExchangeError(
                "DEFENCE_NEEDED",
                f"Party {party!r}: the policy wants {wanted}, and that is not so. Share with {instead}.",
            )
        )
    return reasons


_WANTED = {
    "any": ("a defence", "--preset groups"),
    "microaggregation": ("that every row is the mean of a group", "--preset groups"),
}
"""What a policy wants by each name, and how to share like that."""


def undefended_rows(party: PartyName, obfuscator: str) -> ExchangeError:
    """Return UNDEFENDED, which says what leaves without a defence, and how to ask for it.

    Parameters
    ----------
    party : str or int
    obfuscator : str
        Kind of the map.
    """
    return ExchangeError(
        "UNDEFENDED",
        f"Party {party!r}: without a defence its rows themselves leave, each under the map {obfuscator} alone. Anyone "
        "who knows the anchor undoes a linear map, and nearly so a kernel map; anyone who knows a row finds it. Share "
        "with --preset groups. To share the rows undefended, ask for it twice: --preset none and --undefended.",
    )


def private_rows_in_anchor(party: PartyName, n_found: int, n_anchors: int, policy: Policy) -> list[ExchangeError]:
    if n_found <= policy.max_rows_in_anchor:
        return []
    allowed = f"; the policy allows {policy.max_rows_in_anchor}" if policy.max_rows_in_anchor else ""
    return [
        ExchangeError(
            "ANCHOR_HAS_PRIVATE_ROWS",
            f"Party {party!r}: {n_found} of the {n_anchors} anchor rows are rows of its table{allowed}. Every party "
            "sees the anchor as it is. Do not share; ask the project's owner for one from public or synthetic rows.",
        )
    ]


def crafted_anchor(party: PartyName, fit: AnchorFit | None) -> list[ExchangeError]:
    """Why nothing may be shared if the anchor was made for single own rows, or sees little of the table."""
    if fit is None or not (fit.is_crowded or fit.is_narrow):
        return []
    found = f"the anchor's columns vary {fit.spread:.2f} times as much as those of its table, where .7 is the least"
    if fit.is_crowded:
        found = (
            f"the {fit.n_anchors} anchor rows crowd around single rows of its table: {fit.n_near} are much nearer to one "
            f"than its neighbours are, and up to {fit.density:.1f} times as much of the anchor as of the table lies around "
            "one, where 1.2 is the most"
        )
    return [
        ExchangeError(
            "ANCHOR_UNFIT",
            f"Party {party!r}: {found}. With such an anchor others may read single rows. Do not share; ask the "
            "project's owner for public rows of the same kind of people.",
        )
    ]


def _safer(summary: ReleaseSummary) -> str:
    if summary.named is not None:
        return "Share with larger groups (--group-size) and noise (--noise)"
    if summary.kinds_of_defence:
        return "Share with fewer --components, larger groups (--group-size) or more noise (--noise)"
    return "Share with --preset groups"


def _risks(summary: ReleaseSummary, policy: Policy) -> list[ExchangeError]:
    # Whether a draw with a promise leaves must not depend on what attacks find in it.
    if policy.audit != "required" or summary.guarantee is not None:
        return []
    who, risk = f"Party {summary.party!r}", summary.risk
    if risk is None:
        return [
            ExchangeError(
                "RISK_UNKNOWN",
                f"{who}: the policy wants an audit, and none was made. Run the command without --no-audit.",
            )
        ]
    reasons = []
    unknown = []
    for name, limit in policy.risk_limits.items():
        found = summary.figure(name)
        if found is None:
            unknown.append(name)
        elif found > limit:
            alone = risk.targets_alone.get(name, 0.0)
            advice = (
                f"Targets alone reach {figure_text(name, alone)}, and no way of sharing rows goes below that: agree on "
                "coarser times, or share nothing"
                if summary.named is not None and alone > limit
                else _safer(summary)
            )
            reasons.append(
                ExchangeError(
                    "RISK_TOO_HIGH",
                    f"{who}: {name} ({FIGURES[name]}) reaches up to {figure_text(name, found)} in the audit; the "
                    f"policy allows {limit_text(name, limit)}. {advice}.",
                )
            )
    if unknown:
        reasons.append(
            ExchangeError(
                "RISK_UNKNOWN",
                f"{who}: the policy limits {', '.join(unknown)}, which could not be measured. {' '.join(risk.notes)} "
                "Take more rows, or have the limit taken out of the policy.",
            )
        )
    elif not risk.complete:
        reasons.append(
            ExchangeError(
                "RISK_UNKNOWN",
                f"{who}: the audit did not end within its time, so what was not tried may be worse. Give it a longer "
                "--time-budget.",
            )
        )
    return reasons


def _stricter(name: str, policy: Policy, project: Project) -> tuple[int, str]:
    """The limit that holds, and whose it is."""
    ours, theirs = int(getattr(policy, name)), int(getattr(project, name))
    stricter = min if name.startswith("max") else max
    return (theirs, "project") if stricter(ours, theirs) == theirs else (ours, "policy")
