"""What has to be true of every bundle, however it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import ExchangeError
from ._container import MANIFEST, SIGNATURE
from ._manifest import Manifest
from ._public_key import PublicKey

__all__ = ["SIGNED", "check_members", "check_order", "check_signature"]

SIGNED = b"datacollab bundle 1\n"
"""What a signed manifest begins with, so that the signature is of no use elsewhere."""


def check_order(names: Sequence[str], what: str) -> None:
    """Refuse another order than: the manifest, the signature where there is one, and the rest by name."""
    order = [name for name in (MANIFEST, SIGNATURE) if name in names]
    if list(names) != order + sorted(set(names) - set(order)):
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has its parts in another order. Have it sent again.")


def check_members(manifest: Manifest, members: Mapping[str, tuple[int, str]], what: str) -> None:
    """Refuse members that are not those that the manifest lists, with these sizes and hashes."""
    if manifest.members.keys() != members.keys():
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} lacks parts, or has others than it lists. Have it sent again.")
    for name, described in members.items():
        if manifest.members[name] != described:
            raise ExchangeError("HASH_MISMATCH", f"{what}: {name} was changed on its way. Have it sent again.")


def check_signature(
    manifest: Manifest, data: bytes, signature: bytes | None, signed_by: PublicKey | None, what: str
) -> None:
    """Refuse a signature that is missing, does not fit, or is somebody else's."""
    signer = manifest.signer
    if signature is None and (signer is not None or signed_by is not None):
        raise ExchangeError("SIGNATURE_MISSING", f"{what} is not signed. Ask the sender for a signed file.")
    if signature is None:
        return
    if signer is None:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has a signature but no signer. Have it sent again.")
    try:
        signer.verify(signature, SIGNED + data)
    except ExchangeError as error:
        raise ExchangeError(error.code, f"{what}: {error}") from None
    if signed_by is not None and signer != signed_by:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{what} is signed by {signer.fingerprint}; {signed_by.fingerprint} is wanted. Do not use the file; ask "
            "the sender by another way.",
        )
