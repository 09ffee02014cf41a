"""The anchor on its way: signed by the owner, readable by parties alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ...bundle import KeyPair, arrays_to_bytes, bytes_to_arrays, pack, seal, unpack, unseal
from ...errors import ExchangeError
from ._anchor import Anchor, anchor_arrays, anchor_from_arrays
from ._anchor_making import check_anchor
from ._project import Project

__all__ = ["open_anchor", "seal_anchor"]

_KIND, _MEMBER = "datacollab.anchor", "sealed.bin"


def seal_anchor(anchor: Anchor, project: Project, key: KeyPair) -> bytes:
    """Seal an anchor to all parties of a project: the bytes of a `.dcanchor` file.

    Parameters
    ----------
    anchor : Anchor
    project : Project
    key : KeyPair
        The owner's, who signs.

    Raises
    ------
    ExchangeError
        When the key is not the owner's, or the anchor does not fit the project.
    """
    if key.public != project.owner:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The key {key.public.fingerprint} is not the owner's ({project.owner.fingerprint}), and only the owner "
            "seals the anchor. Seal it in the owner's folder.",
        )
    checked = check_anchor(anchor, project, what="the owner")
    sealed = seal(arrays_to_bytes(anchor_arrays(checked)), list(project.parties.values()), purpose=_purpose(project))
    # To the microsecond, so that of two anchors the later one is known.
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    facts = {"sealed": True, "sealed_at": now, "project": project.name, "project_digest": project.digest}
    return pack(_KIND, facts, {_MEMBER: sealed}, key=key)


def open_anchor(path: Path, project: Project, key: KeyPair) -> Anchor:
    """Open a `.dcanchor` file with a party's key.

    Parameters
    ----------
    path : Path
    project : Project
    key : KeyPair
        A party's.

    Raises
    ------
    ExchangeError
        When the file is not the owner's, belongs to another version of the project, was changed, is not for this key,
        or holds an anchor that does not fit the project.
    """
    bundle = unpack(path, kind=_KIND, signed_by=project.owner)
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{path} was sealed for another version of project {project.name!r} than {project.fingerprint}. Compare "
            "`datacollab project show`; the owner seals the anchor again after each change of the project.",
        )
    if list(bundle.members) != [_MEMBER]:
        raise ExchangeError("BUNDLE_MALFORMED", f"{path} holds no sealed anchor. Have it sent again.")
    data = unseal(bundle.members[_MEMBER], key, purpose=_purpose(project))
    anchor = anchor_from_arrays(bytes_to_arrays(data, what=str(path)), what=str(path))
    sealed_at = _time(bundle.facts.get("sealed_at", ""), path)
    return replace(check_anchor(anchor, project, what=str(path)), sealed_at=sealed_at)


def _time(said: Any, path: Path) -> str:
    """As anchors are written; empty in files of before."""
    if said == "":
        return ""
    try:
        if datetime.fromisoformat(said).utcoffset() != timedelta(0):
            raise ValueError
    except (TypeError, ValueError):
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{path} does not say when the anchor was sealed. Have it sent again."
        ) from None
    return str(said)


def _purpose(project: Project) -> str:
    return f"datacollab anchor of project {project.digest}"
