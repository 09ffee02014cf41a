"""A share as the file that leaves, and what the log says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...bundle import KeyPair, pack, seal
from ...errors import ExchangeError
from ...share import SHARE_KIND, Share, share_contents
from ..project import Anchor, Project
from ._prepare import Prepared
from ._release_summary import ReleaseSummary

__all__ = ["figures", "refuse", "share_facts", "share_file"]

SEALED = "sealed.bin"


def share_file(share: Share, project: Project, key: KeyPair, facts: Mapping[str, Any]) -> bytes:
    """A signed `.dcshare` file, its arrays sealed to the analyst where the project wants that.

    Parameters
    ----------
    share : Share
    project : Project
    key : KeyPair
        The party's.
    facts : mapping of str to object
        What the manifest says besides what follows from the arrays.
    """
    own_facts, members = share_contents(share)
    own_facts |= {"task": project.task.kind, "project": project.name, "project_digest": project.digest}
    if project.seal_shares:
        inner = pack(SHARE_KIND, own_facts, members)
        purpose = f"share of {share.party} in {project.digest}"
        members = {SEALED: seal(inner, [project.analyst], purpose=purpose)}
        # What the targets are called is for the analyst, like the targets.
        own_facts = {name: value for name, value in own_facts.items() if name != "target"}
    return pack(SHARE_KIND, {**own_facts, **facts}, members, key=key)


def share_facts(
    prepared: Prepared, project: Project, anchor: Anchor, *, supersedes: str | None, log_head: str
) -> dict[str, Any]:
    """What the manifest says of how and when the share was made.

    Parameters
    ----------
    prepared : Prepared
    project : Project
    anchor : Anchor
    supersedes : str or None
        Identity of the share that it takes the place of.
    log_head : str
        Of the party's log.
    """
    return {
        "party": prepared.summary.party,
        "anchor_commitment": anchor.commitment(project),
        "row_order": prepared.summary.row_order,
        "supersedes": supersedes,
        "log_head": log_head,
    }


def figures(summary: ReleaseSummary) -> dict[str, Any]:
    """What the log says of what would leave: counts, and what attacks achieved."""
    risk = summary.risk
    found = (
        {} if risk is None else {name: getattr(risk, name) for name in ("linkage", "reidentification", "membership")}
    )
    return {
        "n_rows": summary.n_rows,
        "n_components": summary.n_components,
        "n_anchors": summary.n_anchors,
        "obfuscator": summary.obfuscator,
        "defences": list(summary.defences),
        "row_order": summary.row_order,
        "adjusted": summary.adjusted,
        **{name: value for name, value in found.items() if value is not None},
    }


def refuse(reasons: Sequence[ExchangeError]) -> None:
    """Raise the first of the reasons against sharing, and say how many more there are."""
    if not reasons:
        return
    first, *others = reasons
    count = "is 1 more reason" if len(others) == 1 else f"are {len(others)} more reasons"
    more = f" There {count} against it: run `datacollab party check`." if others else ""
    raise ExchangeError(first.code, f"{first}{more}")
