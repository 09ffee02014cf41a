"""A party's own rules for what may leave: its `policy.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...bundle import canonical_json, digest
from ...errors import ExchangeError
from ...party import OBFUSCATORS
from ...targets import TargetKind

__all__ = ["Policy", "default_policy_text", "load_policy"]

_DEFENCES = ("none", "any", "microaggregation")
_AUDITS = ("required", "warn", "off")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a party lets leave; where the project has a limit of the same name, the stricter one holds.

    Attributes
    ----------
    min_rows : int, default=20
        Fewest rows that are shared.
    min_class_rows : int, default=5
        Fewest rows that are shared of a class, where any are.
    max_components : int, default=32
        Most columns of the representation.
    obfuscators : tuple of str
        Kinds that are allowed, of "pca", "kernel-pca", "umap" and "random-projection"; by default all.
    defence : {"none", "any", "microaggregation"}, default="none"
        Which defence the policy insists on: none, any, or means of groups.
    shuffle : bool, default=True
        Whether the rows leave in a random order.
    max_rows_in_anchor : int, default=0
        How many rows of the anchor may equal rows of the table.
    max_linkage, max_reidentification, max_membership : float or None
        Limits on the upper ends of what attacks achieve, as in `datacollab.risk.audit.RiskLimits`; None is no limit.
        The defaults are .25, .25 and .75; the preset "groups" is often above them with tables of some 200 rows.
    audit : {"required", "warn", "off"}, default="required"
        Whether a risk above its limit, or not known, is shown ("warn") or refused ("required"); "off" makes no attacks.
    approvers : tuple of str, default=()
        Who may approve a share; empty is whoever can read the folder.
    ledger : str, default=""
        Folder of the institution's ledger of sums; empty is the folder `ledger` beside the party's keys.
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
        """Identity of the rules, whatever the file looks like."""
        # Left out while it is the default: policies from before there was a ledger keep their digests.
        entries = {name: entry for name, entry in asdict(self).items() if name != "ledger" or entry}
        return digest(canonical_json(entries))

    @property
    def risk_limits(self) -> dict[str, float]:
        """The limits there are, by the name of the figure."""
        limits = {
            "linkage": self.max_linkage,
            "reidentification": self.max_reidentification,
            "membership": self.max_membership,
        }
        return {name: limit for name, limit in limits.items() if limit is not None}

    def check_approver(self, name: str) -> None:
        """Raise NOT_APPROVED where the policy names approvers, and this is none of them."""
        if self.approvers and name not in self.approvers:
            raise ExchangeError(
                "NOT_APPROVED",
                f"{name!r} is none of the {len(self.approvers)} approvers that the policy names. Have one of them "
                f"approve: {', '.join(self.approvers)}.",
            )


@dataclass(frozen=True)
class _Entry:
    """What is allowed for an entry, in words and as a test."""

    allowed: str
    fits: Callable[[Any], bool]


def _is_count(least: int) -> _Entry:
    return _Entry(f"a whole number from {least} on", lambda value: type(value) is int and value >= least)


def _is_share(lowest: float) -> _Entry:
    return _Entry(f"a number from {lowest:g} to 1", lambda value: type(value) in (int, float) and lowest <= value <= 1)


def _is_one_of(names: Sequence[str]) -> _Entry:
    return _Entry(f"one of {_quoted(names)}", lambda value: isinstance(value, str) and value in names)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name.strip() for name in value)


_ENTRIES = {
    "min_rows": _is_count(1),
    "min_class_rows": _is_count(1),
    "max_components": _is_count(1),
    "obfuscators": _Entry(
        f"a list with some of {_quoted(OBFUSCATORS)}",
        lambda value: _are_texts(value) and 0 < len(value) == len(set(value)) and set(value) <= set(OBFUSCATORS),
    ),
    "defence": _is_one_of(_DEFENCES),
    "shuffle": _Entry("true or false", lambda value: isinstance(value, bool)),
    "max_rows_in_anchor": _is_count(0),
    "max_linkage": _is_share(0),
    "max_reidentification": _is_share(0),
    "max_membership": _is_share(0.5),
    "audit": _is_one_of(_AUDITS),
    "approvers": _Entry("a list of names", _are_texts),
    "ledger": _Entry("the path of a folder, as text", lambda value: isinstance(value, str)),
}


def load_policy(path: Path) -> Policy:
    """Read a policy; every entry may be left out.

    Parameters
    ----------
    path : pathlib.Path

    Raises
    ------
    ExchangeError
        FOLDER_MISSING where there is no such file; POLICY_INVALID where it is no TOML, or has an entry that is unknown
        or impossible.
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
    unknown = sorted(set(entries) - set(_ENTRIES))
    if unknown:
        raise _invalid(path, f"unknown entry {unknown[0]!r}; known are {', '.join(_ENTRIES)}")
    for name, value in entries.items():
        if not _ENTRIES[name].fits(value):
            raise _invalid(path, f"{name} is {_found(value)}; allowed is {_ENTRIES[name].allowed}")
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()
    }
    return Policy(**given)


def _found(value: Any) -> str:
    """What an entry is, in TOML's words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value}"
    names = {"str": "a text", "list": "a list", "dict": "a table"}
    return f"{names.get(type(value).__name__, 'a date')} that does not fit"


def _invalid(path: Path, what: str) -> ExchangeError:
    return ExchangeError("POLICY_INVALID", f"Policy {path.name}: {what}. Correct it; nothing was shared.")


def default_policy_text(kind: TargetKind = TargetKind.SINGLE) -> str:
    """A policy with every entry at its default, and what each means.

    Parameters
    ----------
    kind : TargetKind, default=TargetKind.SINGLE
        Of the project's targets.  Of times to events, effects and no targets other things are to be said, and of
        times and effects risks are shown, not refused.  Means of groups without noise, from which alone effects can be
        estimated with intervals that hold, are above any limit; and so are times to events whatever the rows are.
    """
    comments = _COMMENTS if kind is TargetKind.SINGLE else _COMMENTS | _NAMED_COMMENTS
    entries = {field.name: getattr(Policy(), field.name) for field in fields(Policy)}
    if kind in (TargetKind.EFFECT, TargetKind.SURVIVAL_EFFECT):
        comments, entries = comments | _EFFECT_COMMENTS, entries | {"audit": "warn"}
    elif kind is TargetKind.SURVIVAL:
        comments, entries = comments | _SURVIVAL_COMMENTS, entries | {"audit": "warn"}
    parts = [_HEAD]
    for name, value in entries.items():
        comment = "\n".join(f"# {line}" for line in comments[name].splitlines())
        parts.append(f"{comment}\n{name} = {_toml(value)}")
    return "\n\n".join(parts) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{_quoted(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value}"


_HEAD = """\
# What this party lets leave. It is read at every `datacollab party check` and `datacollab party share`; nobody else
# sees it. Where the project has a limit of the same name, the stricter one holds. An entry that is left out has the
# value given here."""
_COMMENTS = {
    "min_rows": "Fewest rows that may be shared.",
    "min_class_rows": "Fewest rows of a class, where any of it are shared. Targets of own rows leave as they are.",
    "max_components": "Most columns of the representation. Fewer columns tell less.",
    "obfuscators": "Which maps may be used.",
    "defence": (
        'Which defence this policy insists on: "microaggregation", means of groups (--preset groups, the default of\n'
        "every command, whatever stands here: means of five rows, with noise of .3 standard deviations);\n"
        '"any"; or "none", where it insists on nothing, and who shares may choose.'
    ),
    "shuffle": "Whether rows leave in a random order. With false, whoever has the table knows which row is whose.",
    "max_rows_in_anchor": (
        "How many rows of the anchor, which every party sees, may equal rows of the table. Where columns are few,\n"
        "and whole numbers or categories, different people have equal rows; otherwise leave it at 0."
    ),
    "max_linkage": (
        "Limits of risk, each on the upper end of a 95 % interval, by attackers who hold the whole anchor; 1 is no\n"
        "limit. --preset groups is often above them with some 200 rows: take larger groups and more noise, or have\n"
        "the project share sums. With thousands of rows, write lower ones.\n"
        "Share of rows that are linked to their originals among about a hundred that the attacker has."
    ),
    "max_reidentification": "Share of rows that are told where strangers stand among those originals.",
    "max_membership": "How well members are told from others: area under the curve, .5 is guessing and 1 is certainty.",
    "audit": (
        'What becomes of a risk that is above its limit, or not known: "required" refuses to share, "warn" shows it\n'
        'to whoever approves, "off" makes no attacks.'
    ),
    "approvers": "Names of those who may approve a share; empty is whoever can read this folder.",
    "ledger": (
        "Folder of the institution's ledger, of projects that share sums: it refuses two totals over nearly the same\n"
        "rows. Empty is the folder ledger beside keys.json. Name one for all projects of the institution, which no\n"
        "backup of this folder brings back to an earlier state."
    ),
}
_NAMED_COMMENTS = {
    "min_class_rows": (
        "Fewest rows with the event, without it, and of each arm of a treatment, where any are shared. Events,\n"
        "treatments and outcomes leave exactly as they are; times are rounded up as the project says."
    ),
    "max_linkage": (
        "Limits of risk, each on the upper end of a 95 % interval, by attackers who hold the whole anchor; 1 is no\n"
        "limit. Means of groups without noise are above them: the attacks solve for the members of each, and link\n"
        "nearly all. --preset groups is often above them with some 200 rows: take larger groups and more noise.\n"
        "Share of rows that are linked to their originals among about a hundred that the attacker has."
    ),
}
_SURVIVAL_COMMENTS = {
    "max_linkage": (
        "Limits of risk, each on the upper end of a 95 % interval, by attackers who hold the whole anchor; 1 is no\n"
        "limit. ROWS WITH THEIR EVENT AND TIME ARE ABOVE THEM, also with --preset groups: whoever knows both\n"
        "of somebody finds the row by these alone, or nearly. Coarser times (`rounding` in the project) tell less.\n"
        "Share of rows that are linked to their originals among about a hundred that the attacker has."
    ),
    "audit": (
        'What becomes of a risk that is above its limit, or not known: "required" refuses to share, "warn" shows it\n'
        'to whoever approves, "off" makes no attacks. "warn" is what survival leaves to choose: see max_linkage.\n'
        "Let those who answer for the data see the figures of `datacollab party check` before anything leaves."
    ),
}
_EFFECT_COMMENTS = {
    "defence": (
        'Which defence this policy insists on: "microaggregation", means of groups of one arm (--group-size 5, the\n'
        'default of every command for projects of this kind, whatever stands here); "any"; or "none", where it\n'
        "insists on nothing, and who shares may choose.\n"
        "With noise as well (--preset groups) the risks fall, and no effect can be estimated with an interval that\n"
        "holds."
    ),
    "max_linkage": (
        "Limits of risk, each on the upper end of a 95 % interval, by attackers who hold the whole anchor; 1 is no\n"
        "limit. MEANS OF GROUPS WITHOUT NOISE ARE ABOVE THEM: whoever has the anchor solves for the members of groups\n"
        "among people that they know of. They hide rows from whoever has no such list.\n"
        "Share of rows that are linked to their originals among about a hundred that the attacker has."
    ),
    "audit": (
        'What becomes of a risk that is above its limit, or not known: "required" refuses to share, "warn" shows it\n'
        'to whoever approves, "off" makes no attacks. "warn" is what an effect leaves to choose: see max_linkage. Let\n'
        "those who answer for the data see the figures of `datacollab party check` before anything leaves."
    ),
}
