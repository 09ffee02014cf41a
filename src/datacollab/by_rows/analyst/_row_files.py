"""Shares of rows that came in: checks of each file against the project, and of files against one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...agreement import Project, Task
from ...bundle import Bundle, KeyPair, time_of, unpack, unseal
from ...errors import ExchangeError
from ...folder.analyst import SEALED, ReceivedFile, check_anchors, sender_of
from ...share import SHARE_KIND, Share, share_from

OPEN = "share.safetensors"
_LONGEST_TEXT = 200
"""Letters of a text in the manifest, which pages show."""
_ROUNDING = 1e-9


def receive_rows(source: bytes, project: Project, key: KeyPair, *, where: str) -> ReceivedFile:
    """Read and check a party's share of rows; refuse one that is not as its manifest says, or the project allows.

    `key` is the analyst's, to which it is sealed, and `where` the name of the file in errors.  An ExchangeError is
    raised if the file is damaged, is not signed by the party that it names, belongs to another version of the project,
    was made after the deadline, or holds something else than it says or the project allows.
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
    return ReceivedFile(party=party, share=share, facts=bundle.facts, digest=bundle.digest)


def check_rows_fit(received: ReceivedFile, present: Mapping[str, ReceivedFile], *, where: str) -> None:
    """Refuse a share that takes an earlier one's place without saying so, and one of another anchor."""
    party = received.party
    known = present.get(party)
    # A share names the one that it replaces, so that none is put in its place unnoticed.
    if known is not None and received.digest != known.digest != received.facts.get("supersedes"):
        raise ExchangeError(
            "ALREADY_THERE",
            f"Party {party!r} has shared already, and {where} does not say that it takes that share's place. Ask the "
            "party which one counts, and remove the other from the folder shares.",
        )
    check_anchors(received, present, "All of them should join with the same anchor file, and share again.")


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
        created = time_of("" if "created" in wrong else facts["created"])
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
