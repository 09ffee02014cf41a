"""Verifying a request, by whoever answers it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from datacollab.bundle import PublicKey
from datacollab.errors import ExchangeError

from ._signing import CLOCK_WINDOW, DIGEST, TAG, Message, parts_to_sign, signatures

# From 128 bits on, as `sign_request` draws it, to the most that the hub's column holds.
_NONCE = re.compile(r"[A-Za-z0-9_-]{22,64}")
# 80 bits in base 32, as keys' fingerprints are spelt.
_FINGERPRINT = re.compile("[a-z2-7]{4}(-[a-z2-7]{4}){3}")
# These and no others: a parameter that nobody checks, as `expires`, would promise what does not hold.
_PARAMETERS = {"created", "nonce", "keyid", "alg", "tag"}
# A century, which switches the library's own check of clocks off.
_EVER = datetime.timedelta(days=36_500)


@dataclass(frozen=True)
class Verified:
    """Who made a request.

    Attributes
    ----------
    created : int
        When it was signed by its maker's clock, in seconds since 1970.
    nonce : str
        Tells it from every other request; a hub takes each once.
    digest : str or None
        Signed hash of its body, as ``Content-Digest`` has it; None where it has none.
    """

    key: PublicKey
    created: int
    nonce: str
    digest: str | None = None


def verify_request(
    method: str, url: str, headers: Mapping[str, str], body: bytes, keys: Callable[[str], PublicKey | None], now: float
) -> Verified:
    """Check who made a request, and that it is as they made it: `verify_head` and `check_body` together.

    That its nonce was not seen before is for the caller to check, after this.

    Parameters
    ----------
    method, url, headers, keys, now
        As for `verify_head`.
    body : bytes
        All of it, as it came.

    Raises
    ------
    ExchangeError
        And nothing else, for any headers, but errors of ``keys``: ``SIGNATURE_MISSING``,
        ``SIGNATURE_INVALID``, ``KEY_UNKNOWN``, ``CLOCK_SKEW``.
    """
    found = verify_head(method, url, headers, keys, now)
    check_body(found, body)
    return found


def verify_head(
    method: str, url: str, headers: Mapping[str, str], keys: Callable[[str], PublicKey | None], now: float
) -> Verified:
    """Check who made a request before its body was read, of which the signature covers the digest.

    Parameters
    ----------
    method : str
    url : str
        Absolute, with the path and query as they came, and the authority that the server is known by.
    headers : mapping of str to str
        In any case of letters; lines of one name joined by commas.
    keys : callable
        From a fingerprint to the key, or to None where it is not known.
    now : float
        Seconds since 1970 by the own clock.

    Raises
    ------
    ExchangeError
        As `verify_request`.
    """
    check_signed(headers)
    resolver = _Resolver(keys)
    result = _verify(Message.of(method, url, headers), resolver)
    # Trouble of our own, with the database say, is no word on the signature.
    if resolver.failure is not None:
        raise resolver.failure
    # Told apart from a wrong signature: its owner has to join, and not to sign anew.
    if resolver.unknown is not None:
        raise _unknown(resolver.unknown)
    if result is None or resolver.key is None:
        raise _invalid("it does not fit the request and the key")
    parameters: dict[str, Any] = result.parameters
    digest = result.covered_components.get(f'"{DIGEST}"')
    # A signature over fewer parts is valid too, but leaves the others open to change on the way.
    wanted = {f'"{name}"' for name in parts_to_sign(digest is not None)}
    if set(result.covered_components) - {'"@signature-params"'} != wanted or set(parameters) != _PARAMETERS:
        raise _invalid(f"it has to cover {', '.join(sorted(wanted))} with {', '.join(sorted(_PARAMETERS))}")
    if not _NONCE.fullmatch(parameters["nonce"]):
        raise _invalid("its nonce is not 22 to 64 letters, digits, hyphens and underscores")
    # After the signature, as a time that nobody signed says nothing.
    _check_clock(parameters["created"], now)
    return Verified(resolver.key, parameters["created"], parameters["nonce"], digest)


def check_signed(headers: Mapping[str, str]) -> None:
    """Refuse a request that carries no signature.

    Raises
    ------
    ExchangeError
        ``SIGNATURE_MISSING``.
    """
    if not {"signature", "signature-input"} <= {name.lower() for name in headers}:
        raise ExchangeError(
            "SIGNATURE_MISSING",
            "The request is not signed; Signature-Input and Signature of RFC 9421 are wanted. Sign it with "
            "`datacollab remote`, or as docs/hub.md says.",
        )


def check_body(found: Verified, body: bytes) -> None:
    """Refuse another body than the one that was signed.

    Raises
    ------
    ExchangeError
        ``SIGNATURE_INVALID``.
    """
    # A body without a signed digest was added on the way, and a digest without its body was robbed of it.
    if (found.digest is not None) != bool(body):
        wanted = ", ".join(f'"{name}"' for name in sorted(parts_to_sign(bool(body))))
        raise _invalid(f"it has to cover {wanted}, as the body is {'there' if body else 'empty'}")
    if found.digest is not None:
        library = signatures()
        try:
            library.ContentDigest.verify(found.digest, body)
        except library.HTTPMessageSignaturesException:
            raise _invalid("it does not fit the body") from None


class _Resolver:
    """The library's way to ask for a key; remembers the key, that there was none, or the error."""

    def __init__(self, keys: Callable[[str], PublicKey | None]) -> None:
        self._keys = keys
        self.key: PublicKey | None = None
        self.unknown: str | None = None
        self.failure: Exception | None = None

    def resolve_public_key(self, key_id: str) -> Any:
        from cryptography.hazmat.primitives.asymmetric import ed25519

        try:
            self.key = None
            # Text of any other form is not looked up: a stranger chose it.
            if _FINGERPRINT.fullmatch(key_id):
                self.key = self._keys(key_id)
        except Exception as error:
            # The library would take it for a wrong signature.
            self.failure = error
            raise
        # Whoever joins brings a key along: it has to be the one that the signature names.
        if self.key is None or self.key.fingerprint != key_id:
            self.unknown = key_id
            return None
        return ed25519.Ed25519PublicKey.from_public_bytes(self.key.signing)


def _verify(message: Message, resolver: _Resolver) -> Any:
    """Return the parts that the library finds signed, or None."""
    library = signatures()
    verifier = library.HTTPMessageVerifier(signature_algorithm=library.algorithms.ED25519, key_resolver=resolver)
    # Clocks are compared here, with the caller's: what is wrong with them is told apart from a wrong signature.
    verifier.max_clock_skew = _EVER
    try:
        # One signature with our tag: of two it would be open which one counts.
        (result,) = verifier.verify(message, max_age=None, expect_tag=TAG)
    # Headers are a stranger's text, at which the library may fail in ways of its own.
    except (library.HTTPMessageSignaturesException, ValueError, TypeError):
        return None
    return result


def _check_clock(created: int, now: float) -> None:
    behind = round(now - created)
    # In both directions: a request from the future could be kept back and sent when its nonce is forgotten.
    if abs(behind) > CLOCK_WINDOW:
        raise ExchangeError(
            "CLOCK_SKEW",
            f"The request was signed {abs(behind)} seconds {'ago' if behind > 0 else 'from now'} by the clock of who "
            f"answers; at most {CLOCK_WINDOW} are allowed. Set the clock of the machine that asks, or ask again at "
            "once.",
        )


def _unknown(key_id: str) -> ExchangeError:
    # What calls itself a fingerprint is the sender's text, and is not repeated unless it can be one.
    named = f"The key {key_id}" if _FINGERPRINT.fullmatch(key_id) else "The key of the request"
    return ExchangeError(
        "KEY_UNKNOWN",
        f"{named} is not known here. Join a project with its invitation, or ask the hub's operator to allow the key.",
    )


def _invalid(reason: str) -> ExchangeError:
    return ExchangeError(
        "SIGNATURE_INVALID",
        f"The signature of the request is refused: {reason}. Something on the way may have changed the request; look "
        "at proxies, and at the address by which the hub is known.",
    )
