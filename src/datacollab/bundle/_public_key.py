"""A public key: whom a signature is from, and to whom something is sealed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .._require import require
from ..errors import ExchangeError
from ._opening import open_regular
from ._spelling import bytes_of, letters_of, spelt

__all__ = ["PROOF_PREFIX", "PublicKey"]

PREFIX = "dcpub1-"
PROOF_PREFIX = "dcproof1-"
_CONTEXT = b"datacollab public key 1 proof\n"
MAX_BYTES = 1024
CHECKSUM = 4
"""Bytes of a hash at the end of the text, against misreading."""

_SMALL_ORDER = frozenset(
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
"""Points of Ed25519 whose order divides 8, in all spellings of y, without the sign of x: signatures under them can be
made that fit any contents."""


@dataclass(frozen=True)
class PublicKey:
    """Two public halves: one verifies signatures (Ed25519), one is sealed to (X25519).

    Attributes
    ----------
    signing, sealing : bytes
        Of 32 bytes each.

    Examples
    --------
    >>> from datacollab.bundle import KeyPair
    >>> key = KeyPair.generate().public
    >>> PublicKey.from_text(key.text) == key
    True
    """

    signing: bytes
    sealing: bytes

    @property
    def text(self) -> str:
        """The key as text to send and to paste: ``dcpub1-`` and 109 letters and digits."""
        halves = self.signing + self.sealing
        return PREFIX + letters_of(halves + _hash(b"checksum", halves)[:CHECKSUM])

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen letters and digits in groups of four, that is 80 bits, to compare on the telephone."""
        return self.spell(self.fingerprint_bytes)

    @property
    def fingerprint_bytes(self) -> bytes:
        """The ten bytes that the fingerprint spells."""
        return _hash(b"fingerprint", self.signing + self.sealing)[:10]

    @staticmethod
    def spell(fingerprint: bytes) -> str:
        """A fingerprint's ten bytes as text."""
        return spelt(fingerprint, 16)

    @classmethod
    def from_text(cls, text: str, *, what: str = "The text") -> PublicKey:
        """Read a key; spaces and line ends around it do not matter.

        Parameters
        ----------
        text : str
        what : str
            What an error calls it.

        Raises
        ------
        ExchangeError
            ``KEY_MALFORMED``, when the text is no key, or was changed or cut.
        """
        stripped = text.strip()
        letters = stripped.removeprefix(PREFIX)
        try:
            if letters == stripped:
                raise ValueError
            data = bytes_of(letters)
        except ValueError:
            raise _malformed(what, f"it does not consist of {PREFIX} and letters and digits") from None
        key = cls(data[:32], data[32:64])
        if len(data) != 64 + CHECKSUM or key.text != stripped:
            raise _malformed(what, "its letters do not fit one another, so some were changed or cut")
        if _without_sign(key.signing) in _SMALL_ORDER:
            raise _malformed(what, "signatures under it can be made by everybody")
        return key

    @classmethod
    def load(cls, path: Path, *, proven: bool = False) -> PublicKey:
        """Read a key from a file, and check its owner's signature where there is one.

        Parameters
        ----------
        path : Path
        proven : bool, default=False
            Whether it has to be signed: where it is taken from its owner for the first time, rather than compared with
            one that is known.

        Raises
        ------
        ExchangeError
            ``KEY_MISSING``, when there is no such file; ``KEY_MALFORMED``, when it holds none, or not its owner's.
        """
        try:
            with open_regular(path, code="KEY_MISSING") as file:
                text = file.read(MAX_BYTES).decode("ascii")
        except UnicodeError:
            raise _malformed(str(path), "it is not even text") from None
        except OSError as error:
            raise ExchangeError(
                "KEY_MISSING", f"{path} cannot be read ({error.strerror}). Give the file that its owner sent."
            ) from None
        if text.lstrip().startswith("{"):
            raise ExchangeError(
                "KEY_MALFORMED",
                f"{path} is no public key; it looks like a file of secret keys, which never leaves its owner. Give the "
                "file public.key that stands beside it.",
            )
        # The key, and in another line the proof.
        word, *proofs = text.split() or [""]
        key = cls.from_text(word, what=str(path))
        if proofs and not (len(proofs) == 1 and key.is_proven_by(proofs[0])):
            raise _malformed(str(path), "its owner has not signed it, so its halves may be of two people")
        if proven and not proofs:
            raise ExchangeError(
                "KEY_MALFORMED",
                f"{path} holds a public key without its owner's signature, the second line. Ask its owner for the file "
                "that `datacollab keys public` writes.",
            )
        return key

    def verify(self, signature: bytes, data: bytes) -> None:
        """Check a signature.

        Raises
        ------
        ExchangeError
            ``SIGNATURE_INVALID``, when it is not this key's signature of these bytes.
        """
        ed25519 = require("cryptography.hazmat.primitives.asymmetric.ed25519", "exchange")
        exceptions = require("cryptography.exceptions", "exchange")
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, data)
        except (exceptions.InvalidSignature, ValueError):
            raise ExchangeError(
                "SIGNATURE_INVALID",
                f"The signature does not fit the contents and the key {self.fingerprint}. Do not use the file; ask "
                "the sender by another way.",
            ) from None

    @property
    def proof_statement(self) -> bytes:
        """What the owner signs of the key itself: that the signing half means this sealing half."""
        return _CONTEXT + self.signing + self.sealing

    def is_proven_by(self, word: str) -> bool:
        """Whether a word is this key's signature of its own two halves."""
        letters = word.removeprefix(PROOF_PREFIX)
        try:
            self.verify(bytes_of(letters), self.proof_statement)
        except (ValueError, ExchangeError):
            return False
        return letters != word

    def __repr__(self) -> str:
        return f"PublicKey({self.fingerprint})"


def _without_sign(point: bytes) -> bytes:
    return point[:31] + bytes([point[31] & 0x7F])


def _hash(purpose: bytes, data: bytes) -> bytes:
    return hashlib.sha256(b"datacollab public key 1 " + purpose + b"\n" + data).digest()


def _malformed(what: str, reason: str) -> ExchangeError:
    return ExchangeError("KEY_MALFORMED", f"{what} is no public key: {reason}. Ask its owner to send it again.")
