"""The signed parts of a request, and signing it, by whoever makes it."""

from __future__ import annotations

import datetime
import importlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType

from datacollab.bundle import KeyPair

# Wide enough for machines whose clock nobody sets; a hub remembers nonces for as long.
CLOCK_WINDOW = 300
"""Seconds by which the clocks of both sides may differ."""

TAG = "datacollab-hub-1"
"""Says what the signature is for, so that it is of no use elsewhere."""

DIGEST = "content-digest"
# RFC 9421, section 2.2: the authority binds a request to one hub, path and query to one question.
_ALWAYS = ("@method", "@authority", "@path", "@query")


@dataclass
class Message:
    """A request as the library reads it, which puts its headers into a dictionary of our own.

    Attributes
    ----------
    method, url : str
        The address as it is sent: absolute, other characters are written as percent signs and digits.
    """

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, method: str, url: str, headers: Mapping[str, str]) -> Message:
        """A request, with the headers that signatures are about."""
        # Nothing else is signed, so the library need not see it.
        ours = (DIGEST, "signature", "signature-input")
        return cls(method.upper(), url, {name: value for name, value in headers.items() if name.lower() in ours})


def parts_to_sign(has_body: bool) -> tuple[str, ...]:
    """Return the parts of a request that are signed: method, address, audience, and the body where there is one."""
    return (*_ALWAYS, DIGEST) if has_body else _ALWAYS


def signatures() -> ModuleType:
    """The library that knows RFC 9421 and RFC 9530."""
    # Loaded with the first request: whoever only asks for help waits for nothing.
    return importlib.import_module("http_message_signatures")


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
