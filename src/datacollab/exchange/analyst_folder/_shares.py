"""Shares that came in: checks of each, those of named targets, and who has sent one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...bundle import Bundle, KeyPair, unpack, unseal
from ...errors import ExchangeError
from ...share import Share, share_from
from ..project import Project

__all__ = [
    "SEALED",
    "SHARE_KIND",
    "PartyStatus",
    "ReceivedShare",
    "check_named",
    "check_newer",
    "check_same_anchor",
    "receive",
    "sender_of",
]

_ROUNDING = 1e-9


def check_named(share: Share, project: Project, party: str, where: str) -> None:
    """Refuse targets of another kind, out of their range, not rounded as agreed, or with too few of a sort."""
    task = project.task
    if share.target_kind is not task.target_kind:
        raise _invalid(
            f"Party {party!r}: targets in {where} are of kind {share.target_kind.value!r}; project {project.name!r} "
            f"agreed on {task.target_kind.value!r}"
        )
    if share.anchor_target is not None:
        raise _invalid(f"Party {party!r}: {where} has targets of the anchor, and anchors of this kind have none")
    for name, wrong in _wrong(share.target, project).items():
        if n_wrong := int(np.count_nonzero(wrong)):
            raise _invalid(
                f"Party {party!r}: {n_wrong} of {len(share.target)} entries of {name} in {where} are not as project "
                f"{project.name!r} wants them ({_wanted(name, project)})"
            )
    for field in ("event", "treatment"):
        if field in task.fields:
            _check_counts(share.target[field], field, project, party)


def _wrong(target: NDArray[Any], project: Project) -> dict[str, NDArray[np.bool_]]:
    """Entries that cannot be, by the name of their part; that events are truth values, the share has checked."""
    task, wrong = project.task, {}
    if "outcome" in task.fields:
        assert task.minimum is not None
        assert task.maximum is not None
        wrong["outcome"] = (target["outcome"] < task.minimum) | (target["outcome"] > task.maximum)
    if "time" in task.fields:
        assert task.latest is not None
        wrong["time"] = target["time"] > task.latest * (1 + _ROUNDING)
        if task.time_step is not None:
            steps = target["time"] / task.time_step
            wrong["time"] |= np.abs(steps - np.round(steps)) > _ROUNDING * np.maximum(1.0, steps)
    return wrong


def _wanted(name: str, project: Project) -> str:
    task = project.task
    if name == "outcome":
        return f"from {task.minimum:.10g} to {task.maximum:.10g}"
    rounded = "" if task.time_step is None else f", multiples of {task.time_step:.10g}"
    return f"at most {task.latest:.10g}{rounded}"


def _check_counts(values: NDArray[Any], field: str, project: Project, party: str) -> None:
    n_yes = int(np.count_nonzero(values))
    small = [count for count in (n_yes, len(values) - n_yes) if 0 < count < project.min_class_rows]
    if small:
        raise ExchangeError(
            "CLASS_TOO_SMALL",
            f"Party {party!r} shares {min(small)} rows of one sort of {field}; project {project.name!r} wants "
            f"{project.min_class_rows}. Leave the share out, or ask for one with more rows.",
        )


def _invalid(sentence: str) -> ExchangeError:
    return ExchangeError("TARGET_INVALID", f"{sentence}. Have it made again with the project file as it is now.")


@dataclass(frozen=True, kw_only=True)
class PartyStatus:
    """Where a party stands.

    Attributes
    ----------
    party, fingerprint : str
    created : str or None
        When its share was made; None where there is none yet.
    n_rows, n_components : int or None
    exported : bool
        Whether a model or answers made of the share that is there lie in the outbox.
    """

    party: str
    fingerprint: str
    created: str | None = None
    n_rows: int | None = None
    n_components: int | None = None
    exported: bool = False


SHARE_KIND = "datacollab.share"
SEALED, OPEN = "sealed.bin", "share.safetensors"
LONGEST_TEXT = 200


@dataclass(frozen=True, kw_only=True)
class ReceivedShare:
    """A share that belongs to the project and comes from whom it says.

    Attributes
    ----------
    share : Share
    facts : dict of str to object
        Of its manifest.
    digest : str
        Identity of the bundle.
    """

    share: Share
    facts: dict[str, Any]
    digest: str

    @property
    def party(self) -> str:
        """The party that sent it."""
        return str(self.share.party)


def receive(source: bytes, project: Project, key: KeyPair, *, where: str) -> ReceivedShare:
    """Read and check a share.

    Parameters
    ----------
    source : bytes
        Of a `.dcshare` file.
    project : Project
    key : KeyPair
        The analyst's, to which it may be sealed.
    where : str
        Name of the file, for errors.

    Raises
    ------
    ExchangeError
        When the file is damaged, is not signed by the party that it names, belongs to another version of the project,
        says that it was made after the deadline, or holds other arrays than it says or the project allows.
    """
    bundle = unpack(source, kind=SHARE_KIND, what=where)
    party = sender_of(bundle, project, where)
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"Party {party!r} made {where} for another version of project {project.name!r}. Compare what "
            "`datacollab project show` prints on both sides, and ask for a new share.",
        )
    _check_facts(bundle.facts, project, party, where)
    opened = _opened(bundle, project, key, where)
    _check_classes(opened.facts, project, party, where)
    share = share_from(opened)
    _check_what_it_says(share, bundle.facts, project, party, where)
    return ReceivedShare(share=share, facts=bundle.facts, digest=bundle.digest)


def check_same_anchor(commitments: Mapping[str, str], party: str, commitment: str) -> None:
    """Raise where a party used another anchor than the others."""
    others = [name for name, known in commitments.items() if name != party and known != commitment]
    if others:
        raise ExchangeError(
            "ANCHOR_MISMATCH",
            f"Party {party!r} used another anchor than {others!r}, so their representations cannot be aligned. All of "
            "them should join with the same anchor file, and share again.",
        )


def check_newer(received: ReceivedShare, present: ReceivedShare | None, *, where: str) -> None:
    """Raise where a party has shared already, and the new share does not say that it takes that one's place."""
    if present is None or present.digest == received.digest:
        return
    if received.facts.get("supersedes") != present.digest:
        raise ExchangeError(
            "ALREADY_THERE",
            f"Party {received.party!r} has shared already, and {where} does not say that it takes that share's place. "
            "Ask the party which one counts, and remove the other from the folder shares.",
        )


def sender_of(bundle: Bundle, project: Project, where: str) -> str:
    """Return the party that a file comes from; refuse it if that is none, or has not signed it."""
    party = bundle.facts.get("party")
    if not isinstance(party, str) or party not in project.parties:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"{where} comes from a party that is not in project {project.name!r}; its parties are "
            f"{list(project.parties)!r}. Ask the project's owner.",
        )
    if bundle.signer is None:
        raise ExchangeError(
            "SIGNATURE_MISSING", f"{where} is not signed. Ask party {party!r} for the file that its program wrote."
        )
    if bundle.signer != (key := project.parties[party]):
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{where} says that it comes from party {party!r}, but is signed by {bundle.signer.fingerprint}; the "
            f"project names {key.fingerprint}. Do not use it, and ask the party by another way.",
        )
    return party


def _check_facts(facts: Mapping[str, Any], project: Project, party: str, where: str) -> None:
    """Facts of the right types, made before the deadline."""
    texts = ("anchor_commitment", "created", "row_order", "approved_by", "log_head")
    wrong = [name for name in texts if not isinstance(facts.get(name), str) or len(facts[name]) > LONGEST_TEXT]
    if not (facts.get("supersedes", ...) is None or isinstance(facts["supersedes"], str)):
        wrong.append("supersedes")
    if facts.get("task") != project.task.kind:
        wrong.append("task")
    created = None if "created" in wrong else _time(facts["created"])
    if created is None:
        wrong.append("created")
    if wrong:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} does not say what it should of {sorted(set(wrong))!r}. Have it made again.",
        )
    assert created is not None
    project.check_deadline(created.date())


def _time(text: str) -> datetime | None:
    """Read a time as programs of this project write it; None if it is none."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None and time.astimezone(UTC).isoformat(timespec="seconds") == text else None


def _opened(bundle: Bundle, project: Project, key: KeyPair, where: str) -> Bundle:
    """Return the bundle with its arrays in the open."""
    wanted = SEALED if SEALED in bundle.members else OPEN
    if list(bundle.members) != [wanted]:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} has the members {list(bundle.members)!r}; expected {SEALED} or {OPEN} alone. Have it made again.",
        )
    if wanted == OPEN:
        if project.seal_shares:
            raise ExchangeError(
                "SHARE_MALFORMED",
                f"{where} is not sealed, but project {project.name!r} wants shares sealed to the analyst. Have it made "
                "again.",
            )
        return bundle
    inner = unseal(bundle.members[SEALED], key, purpose=f"share of {bundle.facts['party']} in {project.digest}")
    return unpack(inner, kind=SHARE_KIND, what=where)


def _check_classes(facts: Mapping[str, Any], project: Project, party: str, where: str) -> None:
    """Names of classes are the project's; they are compared before an entry for each row is made of them."""
    target = facts.get("target")
    named = target.get("classes") if isinstance(target, Mapping) else None
    if named is not None and not (
        isinstance(named, list) and set(map(str, named)) <= set(map(str, project.task.classes))
    ):
        raise ExchangeError(
            "TARGET_INVALID",
            f"Party {party!r}: targets in {where} have names that project {project.name!r} does not have. Have it made "
            "again from corrected rows.",
        )


def _check_what_it_says(share: Share, facts: Mapping[str, Any], project: Project, party: str, where: str) -> None:
    n_rows, n_components = share.representation.shape
    found = {
        "party": share.party,
        "n_rows": n_rows,
        "n_components": n_components,
        "n_anchors": share.anchor_representation.shape[0],
    }
    wrong = [name for name, value in found.items() if facts.get(name) != value]
    if facts.get("one_to_one", True) is not share.one_to_one:
        wrong.append("one_to_one")
    if found["n_anchors"] != project.anchor.n_rows:
        wrong.append("n_anchors")
    if wrong:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} holds something other than its manifest or the project says "
            f"({wrong!r}). Have it made again.",
        )
    if n_components > project.max_components:
        raise ExchangeError(
            "DIM_TOO_LARGE",
            f"Party {party!r} shares {n_components} columns; project {project.name!r} allows {project.max_components}. "
            "Ask for a share with fewer components.",
        )
    if n_rows < project.min_rows:
        raise ExchangeError(
            "TOO_FEW_ROWS",
            f"Party {party!r} shares {n_rows} rows; project {project.name!r} wants {project.min_rows}. Leave it out, "
            "or have the project changed.",
        )
    if not project.task.is_single:
        check_named(share, project, party, where)
        return
    _check_targets(share, project, party, where)
    if project.task.kind == "classification":
        smallest = int(np.unique(share.target, return_counts=True)[1].min())
        if smallest < project.min_class_rows:
            raise ExchangeError(
                "CLASS_TOO_SMALL",
                f"Party {party!r} shares a class with {smallest} rows; project {project.name!r} wants "
                f"{project.min_class_rows}. Leave the share out, or ask for one without that class.",
            )


def _check_targets(share: Share, project: Project, party: str, where: str) -> None:
    """Targets of the kind agreed; a class nobody agreed on would become one of the model's."""
    for name, target in (("targets", share.target), ("anchor targets", share.anchor_target)):
        if target is None:
            continue
        if project.task.kind == "classification":
            n_unknown = int((~np.isin(target, project.task.class_array)).sum())
        elif target.dtype.kind in "biuf":
            low, high = project.task.minimum, project.task.maximum
            outside = (False if low is None else target < low) | (False if high is None else target > high)
            n_unknown = int(np.sum(outside))
        else:
            n_unknown = len(target)
        if n_unknown:
            raise ExchangeError(
                "TARGET_INVALID",
                f"Party {party!r}: {n_unknown} of {len(target)} {name} in {where} are none of those that project "
                f"{project.name!r} names. Have it made again from corrected rows.",
            )
