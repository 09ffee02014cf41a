"""A party's own rules for what may leave, its `policy.toml`; and the reasons against a release of rows or of sums."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..._typing import PartyName
from ...anchor import AnchorFit
from ...bundle import canonical_json, digest
from ...errors import ExchangeError
from ...party import OBFUSCATORS
from ...targets import TargetKind
from ..project import Project

_DEFENCES = ("none", "any", "microaggregation")
_AUDITS = ("required", "warn", "off")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A party's limits on what leaves; the stricter one holds if the project has a limit of the same name.

    Each attribute is an entry of ``policy.toml``; `default_policy_text` says what it means.
    """

    min_rows: int = 20
    min_class_rows: int = 5
    max_components: int = 32
    obfuscators: tuple[str, ...] = OBFUSCATORS
    defence: str = "none"
    shuffle: bool = True
    max_rows_in_anchor: int = 0
    max_linkage: float | None = 0.25
    max_reidentification: float | None = 0.25
    max_membership: float | None = 0.75
    audit: str = "required"
    approvers: tuple[str, ...] = ()
    ledger: str = ""

    @property
    def digest(self) -> str:
        """Identity of the rules; comments in the file do not change it."""
        # Left out while it is the default: policies from before there was a ledger keep their digests.
        entries = {name: entry for name, entry in asdict(self).items() if name != "ledger" or entry}
        return digest(canonical_json(entries))

    @property
    def risk_limits(self) -> dict[str, float]:
        """The limits there are, by the name of the figure."""
        limits = {name: getattr(self, f"max_{name}") for name in ("linkage", "reidentification", "membership")}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def check_approver(self, name: str) -> None:
        """Raise NOT_APPROVED if the policy names approvers, and this is none of them."""
        if self.approvers and name not in self.approvers:
            raise ExchangeError(
                "NOT_APPROVED",
                f"{name!r} is none of the {len(self.approvers)} approvers that the policy names. Have one of them "
                f"approve: {', '.join(self.approvers)}.",
            )


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _count(least: int) -> tuple[str, Callable[[Any], bool]]:
    return f"a whole number from {least} on", lambda value: type(value) is int and value >= least


def _share(lowest: float) -> tuple[str, Callable[[Any], bool]]:
    return f"a number from {lowest:g} to 1", lambda value: type(value) in (int, float) and lowest <= value <= 1


def _one_of(names: Sequence[str]) -> tuple[str, Callable[[Any], bool]]:
    return f"one of {_quoted(names)}", lambda value: isinstance(value, str) and value in names


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name.strip() for name in value)


_ENTRIES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "min_rows": _count(1),
    "min_class_rows": _count(1),
    "max_components": _count(1),
    "obfuscators": (
        f"a list with some of {_quoted(OBFUSCATORS)}",
        lambda value: _are_texts(value) and 0 < len(value) == len(set(value)) and set(value) <= set(OBFUSCATORS),
    ),
    "defence": _one_of(_DEFENCES),
    "shuffle": ("true or false", lambda value: isinstance(value, bool)),
    "max_rows_in_anchor": _count(0),
    "max_linkage": _share(0),
    "max_reidentification": _share(0),
    "max_membership": _share(0.5),
    "audit": _one_of(_AUDITS),
    "approvers": ("a list of names", _are_texts),
    "ledger": ("the path of a folder, as text", lambda value: isinstance(value, str)),
}
"""The values that each entry allows, in words and as a test."""


def load_policy(path: Path) -> Policy:
    """Read a policy; every entry may be left out.

    Parameters
    ----------
    path : pathlib.Path

    Raises
    ------
    ExchangeError
        FOLDER_MISSING if there is no such file; POLICY_INVALID if it is no TOML, or has an entry that is unknown or
        impossible.
    """
    try:
        entries = tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise ExchangeError(
            "FOLDER_MISSING", f"There is no policy {path}. Set the folder up with `datacollab party join`."
        ) from None
    except tomllib.TOMLDecodeError as error:
        # Its words name the place; no data are in a policy.
        raise _invalid(path, f"it is not TOML: {error}") from None
    except UnicodeDecodeError:
        raise _invalid(path, "it is not a text in UTF-8") from None
    if unknown := sorted(set(entries) - set(_ENTRIES)):
        raise _invalid(path, f"unknown entry {unknown[0]!r}; known are {', '.join(_ENTRIES)}")
    for name, value in entries.items():
        allowed, fits = _ENTRIES[name]
        if not fits(value):
            raise _invalid(path, f"{name} is {_found(value)}; allowed is {allowed}")
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()
    }
    return Policy(**given)


def _found(value: Any) -> str:
    """Return a value of the wrong kind in TOML's words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value}"
    names = {"str": "a text", "list": "a list", "dict": "a table"}
    return f"{names.get(type(value).__name__, 'a date')} that does not fit"


def _invalid(path: Path, what: str) -> ExchangeError:
    return ExchangeError("POLICY_INVALID", f"Policy {path.name}: {what}. Correct it; nothing was shared.")


def deadline_passed(project: Project) -> list[ExchangeError]:
    """Return why nothing may be shared today, if the project's last day is over; `PartyFolder.prepare` does not ask."""
    try:
        project.check_deadline(datetime.now(UTC).date())
    except ExchangeError as error:
        return [error]
    return []


def refuse(reasons: Sequence[ExchangeError]) -> None:
    """Raise the first of the reasons against sharing, with the number of the others."""
    if not reasons:
        return
    first, *others = reasons
    count = "is 1 more reason" if len(others) == 1 else f"are {len(others)} more reasons"
    more = f" There {count} against it: run `datacollab party check`." if others else ""
    raise ExchangeError(first.code, f"{first}{more}")


def approved(policy: Policy, approve: Callable[[Any], str | None], summary: Any) -> str:
    """Return who approves, or raise NOT_APPROVED."""
    approved_by = approve(summary)
    if not approved_by:
        raise ExchangeError(
            "NOT_APPROVED",
            f"Nobody has approved the share of party {summary.party!r}; nothing left. Look at what would leave, and "
            "run the command again with --approve.",
        )
    policy.check_approver(approved_by)
    return approved_by


def private_rows_in_anchor(party: PartyName, n_found: int, n_anchors: int, policy: Policy) -> Iterator[ExchangeError]:
    if n_found > policy.max_rows_in_anchor:
        allowed = f"; the policy allows {policy.max_rows_in_anchor}" if policy.max_rows_in_anchor else ""
        yield ExchangeError(
            "ANCHOR_HAS_PRIVATE_ROWS",
            f"Party {party!r}: {n_found} of the {n_anchors} anchor rows are rows of its table{allowed}. Every party "
            "sees the anchor as it is. Do not share; ask the project's owner for one from public or synthetic rows.",
        )


def crafted_anchor(party: PartyName, fit: AnchorFit | None) -> Iterator[ExchangeError]:
    """Yield why nothing may leave if the anchor was made for single own rows, or covers little of the table."""
    if fit is None or not (fit.is_crowded or fit.is_narrow):
        return
    found = f"the anchor's columns vary {fit.spread:.2f} times as much as those of its table; .7 is the least"
    if fit.is_crowded:
        found = (
            f"{fit.n_near} of the {fit.n_anchors} anchor rows crowd around rows of its table, {fit.n_crowded} of them "
            "have ten of these or more"
        )
    yield ExchangeError(
        "ANCHOR_UNFIT",
        f"Party {party!r}: {found}. With such an anchor others may read single rows. Do not share; ask the project's "
        "owner for public rows of the same kind of people.",
    )


def default_policy_text(kind: TargetKind = TargetKind.SINGLE) -> str:
    """Return a policy with every entry at its default, and the meaning of each.

    For times and effects risks are shown, not refused.  Means of groups without noise exceed any limit, and effects can
    be estimated from them alone with intervals that hold; rows with their times exceed any limit in every form.

    Parameters
    ----------
    kind : TargetKind, default=TargetKind.SINGLE
        Of the project's targets.
    """
    group = "effect" if kind in (TargetKind.EFFECT, TargetKind.SURVIVAL_EFFECT) else kind.value
    entries = {field.name: getattr(Policy(), field.name) for field in fields(Policy)}
    if group in _WARNED:
        entries["audit"] = "warn"
    parts = [_HEAD]
    for name, value in entries.items():
        parts.append(f"{_commented(_comment(name, group))}\n{name} = {_toml(value)}")
    return "\n\n".join(parts) + "\n"


def _comment(name: str, group: str) -> str:
    """Return the comment of an entry for targets of a kind."""
    if name == "max_linkage":
        return _LIMITS.format(_NOTES.get(group, _NOTES["none"]))
    if name == "audit" and group in _WARNED:
        return f"{_COMMENTS[name]} {_WARNING}"
    if name == "min_class_rows" and group != TargetKind.SINGLE.value:
        return _COUNTS
    return _DEFENCE_OF_EFFECTS if name == "defence" and group == "effect" else _COMMENTS[name]


def _commented(text: str) -> str:
    return textwrap.fill(text, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{_quoted(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value}"


_HEAD = _commented(
    "Limits on what this party lets leave. `datacollab party check` and `datacollab party share` read them each time; "
    "nobody else sees them. The stricter one holds if the project has a limit of the same name. An entry that is left "
    "out has the value given here."
)
_COMMENTS = {
    "min_rows": "Fewest rows that may be shared.",
    "min_class_rows": "Fewest rows of a class, if any of it are shared. Targets of own rows leave as they are.",
    "max_components": "Most columns of the representation. Fewer columns tell less.",
    "obfuscators": "Which maps may be used.",
    "defence": (
        'The defence that this policy demands: "microaggregation", means of groups; "any"; or "none", which leaves the '
        "choice to the person who shares. Every command's default, whatever stands here, is --preset groups: means of "
        "five rows, with noise of .3 standard deviations."
    ),
    "shuffle": "Whether rows leave in a random order. With false, anyone who has the table knows which row is whose.",
    "max_rows_in_anchor": (
        "How many rows of the anchor, which every party sees, may equal rows of the table. If columns are few, and "
        "whole numbers or categories, different people have equal rows; otherwise leave it at 0."
    ),
    "max_reidentification": "Share of rows that are re-identified with strangers among those originals.",
    "max_membership": "Membership inference: area under the curve; .5 is guessing and 1 is certainty.",
    "audit": (
        'The consequence of a risk that is above its limit, or not known: "required" refuses to share, "warn" shows it '
        'to the approver, "off" makes no attacks.'
    ),
    "approvers": "Names of the people who may approve a share; empty is anyone who can read this folder.",
    "ledger": (
        "Folder of the institution's ledger, of projects that share sums: it refuses two totals over nearly the same "
        "rows. Empty is the folder ledger beside keys.json. Name one for all projects of the institution, which no "
        "backup of this folder brings back to an earlier state."
    ),
}
_COUNTS = (
    "Fewest rows with the event, without it, and of each arm of a treatment, if any are shared. Events, treatments and "
    "outcomes leave exactly as they are; times are rounded up as the project says."
)
_DEFENCE_OF_EFFECTS = (
    'The defence that this policy demands: "microaggregation", means of groups of one arm; "any"; or "none", which '
    "leaves the choice to the person who shares. The default for effects, whatever stands here, is --group-size 5. "
    "With noise as well (--preset groups) the risks fall, and no effect can be estimated with an interval that holds."
)
_LIMITS = (
    "Limits of risk, each on the upper end of a 95 % interval, by attackers who hold the whole anchor; 1 is no limit. "
    "{} Share of rows that are linked to their originals among about a hundred that the attacker has."
)
_GROUPS = "--preset groups often exceeds them with some 200 rows: take larger groups and more noise"
_NOTES = {
    "single": f"{_GROUPS}, or have the project share sums. With thousands of rows, write lower ones.",
    "none": (
        "Means of groups without noise exceed them: the attacks solve for the members of each, and link nearly all. "
        f"{_GROUPS}."
    ),
    "survival": (
        "ROWS WITH THEIR EVENT AND TIME EXCEED THEM, also with --preset groups: anyone who knows both of somebody "
        "finds the row by these alone, or nearly. Coarser times (`rounding` in the project) tell less."
    ),
    "effect": (
        "MEANS OF GROUPS WITHOUT NOISE EXCEED THEM: anyone who has the anchor solves for the members of groups among "
        "people that they know of. They hide rows from anyone who has no such list."
    ),
}
_WARNED = ("survival", "effect")
_WARNING = (
    'For targets of this kind only "warn" lets rows leave: see max_linkage. Let the people who answer for the data see '
    "the figures of `datacollab party check` before anything leaves."
)
