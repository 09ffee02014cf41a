"""Shares and sums that came in: checks of each file against the project, and of files against one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agreement import Project, Task
from ...bundle import Bundle, KeyPair, unpack, unseal
from ...errors import AgreementError, ExchangeError, ShareError
from ...share import SHARE_KIND, Share, share_from
from ...sums import MASKED_SUM_KIND, MaskedMessage, read_message
from ..sums import plan_of, read_sums_facts

SEALED = "sealed.bin"
OPEN = "share.safetensors"
_LONGEST_TEXT = 200
"""Letters of a text in the manifest, which pages show."""
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class ReceivedFile:
    """A `Share` or `MaskedMessage` that belongs to the project and comes from its party; facts are those outside."""

    party: str
    share: Any = field(repr=False)
    facts: dict[str, Any]
    digest: str


def receive(source: bytes, project: Project, key: KeyPair, *, where: str) -> ReceivedFile:
    """Read and check a party's file: a share of rows, or of sums if the project shares sums.

    `key` is the analyst's, to which it is sealed, and `where` the name of the file in errors.  An ExchangeError is
    raised if the file is damaged, is not signed by the party that it names, belongs to another version of the project
    or another run, was made after the deadline, or holds something else than it says or the project allows.
    """
    bundle = unpack(source, kind=MASKED_SUM_KIND if project.shares_sums else SHARE_KIND, what=where)
    party = _sender_of(bundle, project, where)
    if not project.shares_sums:
        share = _rows_in(bundle, project, party, key, where)
        return ReceivedFile(party=party, share=share, facts=bundle.facts, digest=bundle.digest)
    facts, message = _sums_in(source, bundle, project, party, key, where)
    return ReceivedFile(party=party, share=message, facts=facts, digest=bundle.digest)


def check_fits(received: ReceivedFile, present: Mapping[str, ReceivedFile], *, of_sums: bool, where: str) -> None:
    """Refuse a file of another anchor than the others', and one that takes an earlier one's place without saying so."""
    party = received.party
    commitment = received.facts["anchor_commitment"]
    known = present.get(party)
    others = {name: each for name, each in present.items() if name != party}
    if known is not None and known.digest != received.digest:
        if of_sums:
            raise ExchangeError(
                "ALREADY_THERE",
                f"Party {party!r} has sent its sums already, and {where} is another file. The difference of two tells "
                "rows: remove this one, and tell the party.",
            )
        # A share names the one that it replaces, so that none is put in its place unnoticed.
        if received.facts.get("supersedes") != known.digest:
            raise ExchangeError(
                "ALREADY_THERE",
                f"Party {party!r} has shared already, and {where} does not say that it takes that share's place. Ask "
                "the party which one counts, and remove the other from the folder shares.",
            )
    if differing := [name for name, each in others.items() if each.facts["anchor_commitment"] != commitment]:
        again = "All of them should join with the same anchor file, and share again."
        if of_sums:
            again = (
                "Ledgers refuse a new run over the same rows, so a party with the wrong anchor leaves (`datacollab "
                "party withdraw`), and the others share again."
            )
        raise ExchangeError(
            "ANCHOR_MISMATCH",
            f"Party {party!r} used another anchor than {differing!r}, so what they sent cannot be combined. {again}",
        )
    n_components = received.facts["n_components"]
    if of_sums and (differing := [name for name in others if others[name].facts["n_components"] != n_components]):
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} has {n_components} columns in the common map; those of {differing!r} have "
            "another number. Have all parties compare their versions of datacollab.",
        )


def _sender_of(bundle: Bundle, project: Project, where: str) -> str:
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
    # A name in a file is a claim; the key that signed it is the proof.
    if bundle.signer != (key := project.parties[party]):
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{where} says that it comes from party {party!r}, but is signed by {bundle.signer.fingerprint}; the "
            f"project names {key.fingerprint}. Do not use it, and ask the party by another way.",
        )
    return party


def _sums_in(
    source: bytes, bundle: Bundle, project: Project, party: str, key: KeyPair, where: str
) -> tuple[dict[str, Any], MaskedMessage]:
    """Return the facts and the message of a file of sums; refuse one of another run, or of another length."""
    outside = read_sums_facts(bundle.facts, project, party, where)
    try:
        message = read_message(source, key, signed_by=project.parties[party])
        plan = plan_of(project, anchor_commitment=outside.anchor_commitment, n_components=outside.n_components)
        # Masks cancel among messages of the same run alone.
        plan.agreed.check(message)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{where} of party {party!r}: {error}") from None
    except (AgreementError, ShareError) as error:
        raise ExchangeError("SHARE_MALFORMED", f"{where}: {error}") from None
    return outside.facts(), message


def _rows_in(bundle: Bundle, project: Project, party: str, key: KeyPair, where: str) -> Share:
    """Return the share in a file of rows; refuse one that is not as its manifest says, or the project allows."""
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"Party {party!r} made {where} for another version of project {project.name!r}. Compare what "
            "`datacollab project show` prints on both sides, and ask for a new share.",
        )
    _check_facts(bundle.facts, project, party, where)
    opened = _open_share(bundle, project, key, where)
    # Names of classes are compared before an entry for each row is made of them.
    target = opened.facts.get("target")
    names = target.get("classes") if isinstance(target, Mapping) else None
    known = set(map(str, project.task.classes))
    if names is not None and not (isinstance(names, list) and set(map(str, names)) <= known):
        raise _invalid(f"Party {party!r}: targets in {where} have names that project {project.name!r} does not have")
    share = share_from(opened)
    _check_shapes(share, bundle.facts, project, party, where)
    _check_targets(share, project, party, where)
    return share


def _check_facts(facts: Mapping[str, Any], project: Project, party: str, where: str) -> None:
    """Refuse facts of other types, and a file made after the deadline."""
    texts = ("anchor_commitment", "created", "row_order", "approved_by", "log_head")
    # Texts of a party end in logs and on pages.
    wrong = {name for name in texts if not isinstance(facts.get(name), str) or len(facts[name]) > _LONGEST_TEXT}
    if not (facts.get("supersedes", ...) is None or isinstance(facts["supersedes"], str)):
        wrong.add("supersedes")
    if facts.get("task") != project.task.kind:
        wrong.add("task")
    # One spelling alone, in UTC, as a party's program writes it.
    try:
        created = datetime.fromisoformat("" if "created" in wrong else facts["created"])
        if created.tzinfo is None or created.astimezone(UTC).isoformat(timespec="seconds") != facts["created"]:
            raise ValueError
    except ValueError:
        wrong.add("created")
    if wrong:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} does not say what it should of {sorted(wrong)!r}. Have it made again.",
        )
    project.check_deadline(created.date())


def _open_share(bundle: Bundle, project: Project, key: KeyPair, where: str) -> Bundle:
    """Return the bundle with its arrays in the open."""
    expected = SEALED if SEALED in bundle.members else OPEN
    if list(bundle.members) != [expected]:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} has the members {list(bundle.members)!r}; expected {SEALED} or {OPEN} alone. Have it made again.",
        )
    if expected == SEALED:
        inner = unseal(bundle.members[SEALED], key, purpose=f"share of {bundle.facts['party']} in {project.digest}")
        return unpack(inner, kind=SHARE_KIND, what=where)
    # Everybody who carries the file could read it.
    if project.seal_shares:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} is not sealed, but project {project.name!r} wants shares sealed to the analyst. Have it made "
            "again.",
        )
    return bundle


def _check_shapes(share: Share, facts: Mapping[str, Any], project: Project, party: str, where: str) -> None:
    n_rows, n_components = share.representation.shape
    n_anchors = len(share.anchor_representation)
    contents = {"party": share.party, "n_rows": n_rows, "n_components": n_components, "n_anchors": n_anchors}
    wrong = [name for name, value in contents.items() if facts.get(name) != value]
    # A file that does not say it has single rows.
    if facts.get("one_to_one", True) is not share.one_to_one:
        wrong.append("one_to_one")
    if n_anchors != project.anchor.n_rows:
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


def _check_targets(share: Share, project: Project, party: str, where: str) -> None:
    """Refuse targets of another kind, out of their range, not rounded as agreed, or with too few of a sort."""
    task = project.task
    if share.target_kind is not task.target_kind:
        raise _invalid(
            f"Party {party!r}: targets in {where} are of kind {share.target_kind.value!r}; project {project.name!r} "
            f"agreed on {task.target_kind.value!r}"
        )
    if share.anchor_target is not None and not task.is_single:
        raise _invalid(f"Party {party!r}: {where} has targets of the anchor, and anchors of this kind have none")
    targets = {"targets": share.target, "anchor targets": share.anchor_target}
    for name, target in targets.items():
        if target is None:
            continue
        for part, (wrong, expected) in _wrong_entries(target, task).items():
            if n_wrong := int(np.count_nonzero(wrong)):
                of = name if task.is_single else f"entries of {part}"
                raise _invalid(
                    f"Party {party!r}: {n_wrong} of {len(wrong)} {of} in {where} are not as project {project.name!r} "
                    f"wants them ({expected})"
                )
    # People of a rare sort stand out among the rows, whatever was done to these.
    for part, counts in _counts(share.target, task).items():
        if small := [count for count in counts if 0 < count < project.min_class_rows]:
            raise ExchangeError(
                "CLASS_TOO_SMALL",
                f"Party {party!r} shares {min(small)} rows of one sort of {part}; project {project.name!r} wants "
                f"{project.min_class_rows}. Leave the share out, or ask for one with more rows, or none, of that sort.",
            )


def _wrong_entries(target: NDArray[Any], task: Task) -> dict[str, tuple[NDArray[np.bool_], str]]:
    """Return by part of the target which entries cannot be, and the agreement in words."""
    if task.kind == "classification":
        return {"class": (~np.isin(target, task.class_array), "one of its classes")}
    if task.is_single:
        if target.dtype.kind not in "biuf":
            return {"number": (np.ones(len(target), dtype=bool), "numbers")}
        return {"number": _outside_of_limits(target, task)}
    wrong = {}
    if "outcome" in task.fields:
        wrong["outcome"] = _outside_of_limits(target["outcome"], task)
    if "time" in task.fields:
        wrong["time"] = _wrong_times(target["time"], task)
    return wrong


def _outside_of_limits(values: NDArray[Any], task: Task) -> tuple[NDArray[np.bool_], str]:
    outside = np.zeros(len(values), dtype=bool)
    words = []
    if task.minimum is not None:
        outside |= values < task.minimum
        words.append(f"from {task.minimum:.10g}")
    if task.maximum is not None:
        outside |= values > task.maximum
        words.append(f"to {task.maximum:.10g}")
    return outside, " ".join(words)


def _wrong_times(times: NDArray[Any], task: Task) -> tuple[NDArray[np.bool_], str]:
    """Return which times are too long, or not rounded as agreed; binary fractions are no exact multiples."""
    assert task.latest is not None
    wrong = times > task.latest * (1 + _ROUNDING)
    expected = f"at most {task.latest:.10g}"
    if task.time_step is not None:
        steps = times / task.time_step
        wrong |= np.abs(steps - np.round(steps)) > _ROUNDING * np.maximum(1.0, steps)
        expected += f", multiples of {task.time_step:.10g}"
    return wrong, expected


def _counts(target: NDArray[Any], task: Task) -> dict[str, list[int]]:
    """Count rows of each class, with an event and without, and of each arm."""
    if task.kind == "classification":
        return {"class": np.unique(target, return_counts=True)[1].tolist()}
    counts: dict[str, list[int]] = {}
    for name in ("event", "treatment"):
        if name in task.fields:
            n_yes = int(np.count_nonzero(target[name]))
            counts[name] = [n_yes, len(target) - n_yes]
    return counts


def _invalid(sentence: str) -> ExchangeError:
    return ExchangeError("TARGET_INVALID", f"{sentence}. Have it made again with the project file as it is now.")
