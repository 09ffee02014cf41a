"""Signing a request, by whoever makes it."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping

from datacollab.bundle import KeyPair

from ._message import TAG, Message, parts_to_sign, signatures

__all__ = ["sign_request"]

# 128 random bits, or 22 letters, the fewest that a hub takes: no two requests share them.
_NONCE_BYTES = 16


def sign_request(
    method: str, url: str, headers: Mapping[str, str], body: bytes, key: KeyPair, *, now: float | None = None
) -> dict[str, str]:
    """Return headers that say who makes a request, and that nobody changed it.

    Parameters
    ----------
    method : str
    url : str
        Absolute, and as it will be sent; a client such as httpx may spell an address differently.
    headers : mapping of str to str
        Those that the request has already.  They are not signed.
    body : bytes
        All of it; empty where there is none.
    key : KeyPair
        Who asks.
    now : float, optional
        Seconds since 1970, when the own clock is known to be wrong.

    Returns
    -------
    dict of str to str
        Headers to add: ``Signature-Input``, ``Signature``, and with a body ``Content-Digest``.  Each call gives
        others, as a request is taken once.

    Examples
    --------
    >>> from datacollab.bundle import KeyPair
    >>> sorted(sign_request("GET", "https://hub.example/v1/projects", {}, b"", KeyPair.generate()))
    ['Signature', 'Signature-Input']
    """
    library = signatures()
    # Without the caller's headers: proxies may change those, and they are not signed.
    message = Message.of(method, url, {})
    signer = library.HTTPMessageSigner(signature_algorithm=library.algorithms.ED25519)
    # Without a time of the caller's the library takes this machine's.
    created: datetime.datetime | None = None
    if now is not None:
        created = datetime.datetime.fromtimestamp(now, datetime.UTC)
    prepared = signer.prepare(
        message,
        key_id=key.public.fingerprint,
        created=created,
        nonce=secrets.token_urlsafe(_NONCE_BYTES),
        label="datacollab",
        tag=TAG,
        covered_component_ids=parts_to_sign(bool(body)),
        # The library adds Content-Digest (RFC 9530) where it is given a body.
        body=body or None,
    )
    # Signed out here: the library never holds the private key.
    signer.apply(message, prepared, key.sign(prepared.signature_base))
    return message.headers
