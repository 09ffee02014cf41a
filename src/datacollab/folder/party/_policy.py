"""A party's own rules for releases, its `policy.toml`; and reasons against a release of rows or of sums."""

from __future__ import annotations

import math
import textwrap
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._by_name import OBFUSCATORS
from ..._typing import PartyName
from ...agreement import Project
from ...bundle import canonical_json, digest
from ...errors import ExchangeError
from ...targets import TargetKind

if TYPE_CHECKING:
    from ...anchor import AnchorFit, EqualRows


def _quote(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _entry(default: Any, words: str, fits: Callable[[Any], bool]) -> Any:
    """Return a field with the values that its entry allows, in words and as a test."""
    return field(default=default, metadata={"words": words, "fits": fits})


def _count(default: int, least: int) -> Any:
    # By its type, as True is an int as well.
    return _entry(default, f"a whole number from {least} on", lambda value: type(value) is int and value >= least)


def _share(default: float, lowest: float) -> Any:
    words = f"a number from {lowest:g} to 1"
    return _entry(default, words, lambda value: type(value) in (int, float) and lowest <= value <= 1)


def _one_of(default: str, *names: str) -> Any:
    return _entry(default, f"one of {_quote(names)}", lambda value: isinstance(value, str) and value in names)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name.strip() for name in value)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A party's limits on its releases; the stricter one holds if the project has a limit of the same name.

    Each attribute is an entry of ``policy.toml``, explained by `default_policy_text`.
    """

    min_rows: int = _count(20, 1)
    min_class_rows: int = _count(5, 1)
    max_components: int = _count(32, 1)
    obfuscators: tuple[str, ...] = _entry(
        tuple(OBFUSCATORS),
        f"a list with some of {_quote(tuple(OBFUSCATORS))}",
        lambda value: _are_texts(value) and 0 < len(value) == len(set(value)) and set(value) <= set(OBFUSCATORS),
    )
    defence: str = _one_of("none", "none", "any", "microaggregation")
    shuffle: bool = _entry(True, "true or false", lambda value: isinstance(value, bool))
    # Beyond chance, none.  `datacollab_experiments.sums.false_alarms` counts how often an honest anchor is refused.
    max_rows_in_anchor: int = _count(0, 0)
    max_anchor_rows_near: int = _count(0, 0)
    # `datacollab_experiments.sums.density` has the densities of honest anchors, and `crafted` those of others.
    max_anchor_density: float = _entry(
        1.2, "a number from 1 on", lambda value: type(value) in (int, float) and 1 <= value < math.inf
    )
    min_anchor_spread: float = _share(0.7, 0)
    shorten_rows: bool = _entry(True, "true or false", lambda value: isinstance(value, bool))
    # Where the audit's red begins: with these limits nothing leaves that it rates red.
    max_linkage: float | None = _share(0.2, 0)
    max_reidentification: float | None = _share(0.2, 0)
    max_membership: float | None = _share(0.7, 0.5)
    audit: str = _one_of("required", "required", "warn", "off")
    approvers: tuple[str, ...] = _entry((), "a list of names", _are_texts)
    ledger: str = _entry("", "the path of a folder, as text", lambda value: isinstance(value, str))

    @property
    def digest(self) -> str:
        """Identity of the rules; comments in the file do not change it."""
        return digest(canonical_json(asdict(self)))

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


def load_policy(path: Path) -> Policy:
    """Read a policy; every entry may be left out.  Raise FOLDER_MISSING or POLICY_INVALID."""
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
    known = {field.name: field.metadata for field in fields(Policy)}
    # A limit with a slip in its name would be no limit.
    if unknown := sorted(set(entries) - set(known)):
        raise _invalid(path, f"unknown entry {unknown[0]!r}; known are {', '.join(known)}")
    for name, value in entries.items():
        if not known[name]["fits"](value):
            raise _invalid(path, f"{name} is {_describe_value(value)}; allowed is {known[name]['words']}")
        # A policy is frozen, and lists are not.
        if isinstance(value, list):
            entries[name] = tuple(value)
    return Policy(**entries)


def _describe_value(value: Any) -> str:
    """Return a value of the wrong kind in TOML's words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value}"
    names = {"str": "a text", "list": "a list", "dict": "a table"}
    return f"{names.get(type(value).__name__, 'a date')} that does not fit"


def _invalid(path: Path, fault: str) -> ExchangeError:
    return ExchangeError("POLICY_INVALID", f"Policy {path.name}: {fault}. Correct it; nothing was shared.")


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
    # The first one is what people would look at first; all together would fill the screen.
    first, *others = reasons
    text = str(first)
    if len(others) == 1:
        text += " There is 1 more reason against it: run `datacollab party check`."
    elif others:
        text += f" There are {len(others)} more reasons against it: run `datacollab party check`."
    raise ExchangeError(first.code, text)


def ask_approver(policy: Policy, approve: Callable[[Any], str | None], summary: Any) -> str:
    """Return the name of the person who approves, or raise NOT_APPROVED."""
    approved_by = approve(summary)
    if not approved_by:
        raise ExchangeError(
            "NOT_APPROVED",
            f"Nobody has approved the share of party {summary.party!r}; nothing left. Look at what would leave, and "
            "run the command again with --approve.",
        )
    policy.check_approver(approved_by)
    return approved_by


_ASK = "Ask the project's owner where its rows come from."
"""The way on from any reason against an anchor."""


def judge_private_rows(
    party: PartyName, in_anchor: EqualRows, n_anchors: int, policy: Policy
) -> Iterator[ExchangeError]:
    """Yield why nothing may leave if more own rows are in the anchor than chance explains."""
    beyond = in_anchor.n_beyond_chance
    if beyond > policy.max_rows_in_anchor:
        yield ExchangeError(
            "ANCHOR_HAS_PRIVATE_ROWS",
            f"Party {party!r}: {in_anchor.n_equal} different rows of its table are among the {n_anchors} anchor rows. "
            f"Chance explains {in_anchor.by_chance}, and the policy allows {policy.max_rows_in_anchor} more, "
            f"max_rows_in_anchor. Every party sees the anchor as it is. {_ASK} If they are public, write "
            f"max_rows_in_anchor = {beyond} in policy.toml: the other parties then see these records, even if they are "
            "of your people.",
        )


def judge_anchor_fit(party: PartyName, fit: AnchorFit | None, policy: Policy) -> Iterator[ExchangeError]:
    """Yield why nothing may leave if the anchor was made for single own rows, or covers little of the table."""
    if fit is None:
        return
    beyond = fit.n_near_beyond_chance
    if beyond > policy.max_anchor_rows_near:
        finding = (
            f"{fit.n_near} of the {fit.n_anchors} anchor rows lie much nearer to a row of its table than its other "
            f"rows do, and {fit.n_around_one} different ones near one row. Chance explains {fit.near_by_chance} and "
            f"{fit.around_one_by_chance}, and the policy allows {policy.max_anchor_rows_near} more, "
            "max_anchor_rows_near"
        )
        yield _unfit(party, finding, f"max_anchor_rows_near = {beyond}")
    elif fit.spread < policy.min_anchor_spread:
        finding = (
            f"the anchor's columns vary {fit.spread:.2f} times as much as those of its table; its policy demands "
            f"{policy.min_anchor_spread:g}, min_anchor_spread"
        )
        # Rounded down, so that the entry lets this anchor pass.
        yield _unfit(party, finding, f"min_anchor_spread = {math.floor(100 * fit.spread) / 100:g}")


def judge_anchor_density(party: PartyName, fit: AnchorFit | None, policy: Policy) -> Iterator[ExchangeError]:
    """Yield why no sums may leave if anchor rows crowd where few own rows are: the common map tells these apart."""
    if fit is not None and fit.density > policy.max_anchor_density:
        finding = (
            f"near a row of its table, or along one column, the fraction of anchor rows is {fit.density:.1f} times the "
            f"fraction of the table's own rows; its policy allows {policy.max_anchor_density:g}, max_anchor_density"
        )
        yield _unfit(party, finding, f"max_anchor_density = {math.ceil(10 * fit.density) / 10:g}")


def _unfit(party: PartyName, finding: str, entry: str) -> ExchangeError:
    return ExchangeError(
        "ANCHOR_UNFIT",
        f"Party {party!r}: {finding}. With such an anchor others may read single rows. {_ASK} If they are public rows "
        f"of another mix of people, and you trust where they come from, write {entry} in policy.toml. If the owner "
        "made them for one of your people, the model then tells this person's outcome more clearly.",
    )


_OF_SUMS = (
    *("min_rows", "max_rows_in_anchor", "max_anchor_rows_near", "max_anchor_density", "min_anchor_spread"),
    *("shorten_rows", "approvers", "ledger"),
)
"""Entries that count if parties share sums."""


def default_policy_text(kind: TargetKind | None = TargetKind.SINGLE) -> str:
    """Return a policy for rows with a kind of targets, or for sums, with entries at their defaults, and explained.

    For times and effects risks are shown, not refused.  Means of groups without noise exceed any limit, and effects can
    be estimated from them alone with intervals that hold; rows with their times exceed any limit in every form.
    """
    group = "sums"
    if kind in (TargetKind.EFFECT, TargetKind.SURVIVAL_EFFECT):
        group = "effect"
    elif kind is not None:
        group = kind.value
    texts = tomllib.loads(Path(__file__).with_name("comments.toml").read_text(encoding="utf-8"))
    comments = texts["any"] | texts.get(group, {})
    entries = {field.name: getattr(Policy(), field.name) for field in fields(Policy)}
    if kind is None:
        entries = {name: entries[name] for name in _OF_SUMS}
    if group in ("survival", "effect"):
        # Rows with their targets exceed the default limits in every form, so that nothing could ever leave.
        entries["audit"] = "warn"
    parts = [_comment(texts["head"])]
    parts += [f"{_comment(comments[name])}\n{name} = {_toml(value)}" for name, value in entries.items()]
    return "\n\n".join(parts) + "\n"


def _comment(text: str) -> str:
    return textwrap.fill(text, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False)


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{_quote(value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value}"
