"""The manifest of a bundle: what it is, what it says, what it consists of, and who signed it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import ExchangeError
from ._container import MANIFEST, MAX_MEMBERS, MEMBER_NAME
from ._json import canonical_json, digest, parse_json
from ._limits import Limits
from ._public_key import PublicKey

__all__ = ["FORMAT_VERSION", "KINDS", "Manifest"]

KINDS = (
    "datacollab.share",
    "datacollab.model",
    "datacollab.answers",
    "datacollab.anchor",
    "datacollab.party-state",
    "datacollab.balance",
    "datacollab.collaboration",
    "datacollab.sums",
)
"""Kinds of bundles."""

FORMAT_VERSION = 1
"""The one version of all their formats."""

_KEYS = {"format", "format_version", "facts", "members", "signer"}
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Manifest:
    """See the module.

    Attributes
    ----------
    kind : str
    facts : dict of str to object
    members : dict of str to (int, str)
        Bytes and SHA-256 of each.
    signer : PublicKey or None
    """

    kind: str
    facts: dict[str, Any]
    members: dict[str, tuple[int, str]]
    signer: PublicKey | None

    def to_bytes(self) -> bytes:
        """The one spelling."""
        members = {name: {"bytes": size, "sha256": sha256} for name, (size, sha256) in self.members.items()}
        return canonical_json(
            {
                "format": self.kind,
                "format_version": FORMAT_VERSION,
                "facts": self.facts,
                "members": members,
                "signer": None if self.signer is None else self.signer.text,
            }
        )

    @classmethod
    def describing(
        cls, kind: str, facts: Mapping[str, Any], members: Mapping[str, bytes], signer: PublicKey | None
    ) -> Manifest:
        """Of something about to be written.

        Raises
        ------
        ValueError
            When the kind is unknown, or a member's name is none.
        """
        if kind not in KINDS:
            raise ValueError(f"Unknown kind {kind!r}; one of {', '.join(KINDS)} is wanted.")
        wrong = sorted(name for name in members if not _is_member_name(name))
        if wrong or len(members) > MAX_MEMBERS:
            raise ValueError(f"Not what members of a bundle can be called, or too many: {wrong}.")
        described = {name: (len(members[name]), digest(members[name])) for name in sorted(members)}
        return cls(kind, dict(facts), described, signer)

    @classmethod
    def from_bytes(cls, data: bytes, *, kind: str | None, what: str) -> Manifest:
        """Read a manifest of unknown origin.

        Raises
        ------
        ExchangeError
            ``WRONG_KIND``, ``FORMAT_TOO_NEW``, ``BUNDLE_MALFORMED``.
        """
        value = parse_json(data, what=f"{what}: {MANIFEST}")
        if not isinstance(value, dict) or not isinstance(value.get("format"), str):
            raise _malformed(what)
        _check_format(value["format"], value.get("format_version"), kind, what)
        if value.keys() != _KEYS or not isinstance(value["facts"], dict):
            raise _malformed(what)
        signer = value["signer"]
        if not (signer is None or isinstance(signer, str)):
            raise _malformed(what)
        try:
            key = None if signer is None else PublicKey.from_text(signer)
        except ExchangeError:
            raise _malformed(what) from None
        members = _members(value["members"], what)
        return cls(value["format"], value["facts"], members, key)


def _is_member_name(name: str) -> bool:
    return name != MANIFEST and MEMBER_NAME.fullmatch(name) is not None


def _check_format(found: str, version: object, wanted: str | None, what: str) -> None:
    if found not in KINDS or wanted not in (None, found):
        # What a file calls itself is the sender's text; only names of this program are repeated.
        is_ = found if found in KINDS else "of a kind that this version does not know"
        raise ExchangeError(
            "WRONG_KIND", f"{what} is {is_}; {wanted or ' or '.join(KINDS)} is wanted. Give the right file."
        )
    if type(version) is not int or version < 1:
        raise _malformed(what)
    if version != FORMAT_VERSION:
        raise ExchangeError(
            "FORMAT_TOO_NEW",
            f"{what} has format version {version}; this program reads version {FORMAT_VERSION} of {found}. Upgrade "
            "datacollab, then read it again.",
        )


def _members(value: object, what: str) -> dict[str, tuple[int, str]]:
    if not isinstance(value, dict) or len(value) > MAX_MEMBERS:
        raise _malformed(what)
    members = {}
    for name, entry in value.items():
        if not (_is_member_name(name) and isinstance(entry, dict) and entry.keys() == {"bytes", "sha256"}):
            raise _malformed(what)
        size, sha256 = entry["bytes"], entry["sha256"]
        if type(size) is not int or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise _malformed(what)
        members[name] = (size, sha256)
    return members


def _malformed(what: str) -> ExchangeError:
    return ExchangeError(
        "BUNDLE_MALFORMED", f"{what} has a manifest that does not say what it has to say. Have it sent again."
    )


def check_size(manifest: bytes, limits: Limits) -> None:
    """Raise ``TOO_LARGE`` for a manifest that no reader would take."""
    if len(manifest) > limits.manifest_bytes:
        raise ExchangeError(
            "TOO_LARGE", f"The facts take {len(manifest)} bytes, {limits.manifest_bytes} are allowed. Say less."
        )
