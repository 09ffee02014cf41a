"""Keys of a person or an organisation: public and secret halves, how they are written, and proof that they are held."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import stat
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

from ..errors import ExchangeError
from ._data import canonical_json, parse_json
from ._files import open_regular, write_atomically
from ._passphrase import decrypt, encrypt

__all__ = ["MASK_CARD_PREFIX", "KeyFile", "KeyPair", "PublicKey", "key_with_proof", "mask_card_in", "spelt"]

_GROUP = 4


def _letters_of(data: bytes) -> str:
    """Return base32 in lower case, without padding: five bits a letter."""
    return base64.b32encode(data).decode().rstrip("=").lower()


def _bytes_of(letters: str) -> bytes:
    """Return what `_letters_of` spelt, or raise ValueError."""
    if not letters.isascii():
        raise ValueError("expected letters and digits")
    return base64.b32decode(letters.upper() + "=" * (-len(letters) % 8))


def spelt(data: bytes, n_letters: int) -> str:
    """Return the first letters of bytes, in groups of four with hyphens between them.

    Examples
    --------
    >>> spelt(bytes(range(10)), 16)
    'aaaq-eaye-auda-ocaj'
    """
    letters = _letters_of(data)[:n_letters]
    return "-".join(letters[start : start + _GROUP] for start in range(0, n_letters, _GROUP))


_PREFIX, _PROOF_PREFIX = "dcpub1-", "dcproof1-"
MASK_CARD_PREFIX = "dcmask1-"
"""Prefix of the third line of ``public.key``, if its owner has made a mask key."""
_CONTEXT = b"datacollab public key 1 proof\n"
_MOST_BYTES, _MOST_BYTES_OF_KEYS = 1024, 64 * 1024
_CHECKSUM = 4
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
        """Text to send and to paste: ``dcpub1-`` and 109 letters and digits."""
        halves = self.signing + self.sealing
        return _PREFIX + _letters_of(halves + _hash(b"checksum", halves)[:_CHECKSUM])

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen letters and digits in groups of four, that is 80 bits, to compare on the telephone."""
        return spelt(self.fingerprint_bytes, 16)

    @property
    def fingerprint_bytes(self) -> bytes:
        """The ten bytes that the fingerprint spells."""
        return _hash(b"fingerprint", self.signing + self.sealing)[:10]

    @classmethod
    def from_text(cls, text: str, *, what: str = "The text") -> PublicKey:
        """Read a key; spaces and line ends around it do not matter.

        Raises
        ------
        ExchangeError
            ``KEY_MALFORMED``, which names `what`, if the text is no key, or was changed or cut.
        """
        stripped = text.strip()
        letters = stripped.removeprefix(_PREFIX)
        try:
            if letters == stripped:
                raise ValueError
            data = _bytes_of(letters)
        except ValueError:
            raise _malformed(what, f"it does not consist of {_PREFIX} and letters and digits") from None
        key = cls(data[:32], data[32:64])
        if len(data) != 64 + _CHECKSUM or key.text != stripped:
            raise _malformed(what, "its letters do not fit one another, so some were changed or cut")
        if key.signing[:31] + bytes([key.signing[31] & 0x7F]) in _SMALL_ORDER:
            raise _malformed(what, "signatures under it can be made by everybody")
        return key

    @classmethod
    def load(cls, path: Path, *, proven: bool = False) -> PublicKey:
        """Read a key from a file, and check its owner's signature, which a proven key must have.

        Raises
        ------
        ExchangeError
            ``KEY_MISSING`` if there is no such file; ``KEY_MALFORMED`` if it holds no key, or not its owner's.
        """
        # The key, in another line the proof, and in a third one the card of a mask key.
        word, *proofs = _words_in(path)
        key = cls.from_text(word, what=str(path))
        if len(proofs) == 2 and proofs[1].startswith(MASK_CARD_PREFIX):
            del proofs[1]
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
        """Raise SIGNATURE_INVALID if this is not the key's signature of these bytes."""
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.signing).verify(signature, data)
        except (InvalidSignature, ValueError):
            raise ExchangeError(
                "SIGNATURE_INVALID",
                f"The signature does not fit the contents and the key {self.fingerprint}. Do not use the file; ask "
                "the sender by another way.",
            ) from None

    @property
    def proof_statement(self) -> bytes:
        """Bytes that the owner signs, to say that the signing half means this sealing half."""
        return _CONTEXT + self.signing + self.sealing

    def is_proven_by(self, word: str) -> bool:
        """Return whether a word is this key's signature of its own two halves."""
        letters = word.removeprefix(_PROOF_PREFIX)
        try:
            self.verify(_bytes_of(letters), self.proof_statement)
        except (ValueError, ExchangeError):
            return False
        return letters != word

    def __repr__(self) -> str:
        return f"PublicKey({self.fingerprint})"


def mask_card_in(path: Path) -> str | None:
    """Return the card of a mask key in a file ``public.key``, unchecked; None if there is none."""
    cards = [word for word in _words_in(path)[2:] if word.startswith(MASK_CARD_PREFIX)]
    return cards[0] if cards else None


def _words_in(path: Path) -> list[str]:
    """Return the words of a file ``public.key``, one at least."""
    try:
        with open_regular(path, code="KEY_MISSING") as file:
            text = file.read(_MOST_BYTES).decode("ascii")
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
    return text.split() or [""]


def _hash(purpose: bytes, data: bytes) -> bytes:
    return hashlib.sha256(b"datacollab public key 1 " + purpose + b"\n" + data).digest()


def _malformed(what: str, reason: str) -> ExchangeError:
    return ExchangeError("KEY_MALFORMED", f"{what} is no public key: {reason}. Ask its owner to send it again.")


_FORMAT, _VERSION = "datacollab.keys", 1


@dataclass(frozen=True)
class KeyFile:
    """Contents of a file of keys.

    Attributes
    ----------
    public : PublicKey
        As the file says; `KeyPair.load` checks that it fits the secret.
    encrypted : bool
    secret : bytes
        The secret keys, or their ciphertext by `encrypt`.
    """

    public: PublicKey
    encrypted: bool
    secret: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> KeyFile:
        """Read the file, without a passphrase.

        Raises
        ------
        ExchangeError
            ``KEY_MISSING``, ``KEY_MALFORMED``, ``FORMAT_TOO_NEW``.
        """
        try:
            with open(path, "rb") as file:
                data = file.read(_MOST_BYTES_OF_KEYS)
        except (FileNotFoundError, NotADirectoryError):
            raise ExchangeError(
                "KEY_MISSING",
                f"There are no keys in {path}. If your folder is another, name it with -C; if you have no keys yet, "
                f"make them with: datacollab keys new {path.parent}",
            ) from None
        except OSError as error:
            raise ExchangeError(
                "KEY_MISSING", f"{path} cannot be read ({error.strerror}). Run as the one who made the keys."
            ) from None
        try:
            contents = parse_json(data, what=str(path))
            version, encrypted = contents["format_version"], contents["encrypted"]
            if type(version) is int and version > _VERSION and contents["format"] == _FORMAT:
                raise ExchangeError(
                    "FORMAT_TOO_NEW", f"{path} was written by a later version. Upgrade datacollab, then try again."
                )
            if (contents["format"], version) != (_FORMAT, _VERSION) or type(encrypted) is not bool:
                raise ValueError
            return cls(
                PublicKey.from_text(contents["public"]), encrypted, base64.b64decode(contents["secret"], validate=True)
            )
        except ExchangeError as error:
            raise (error if error.code == "FORMAT_TOO_NEW" else _keys_malformed(path)) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _keys_malformed(path) from None


def _keys_malformed(path: Path) -> ExchangeError:
    return ExchangeError("KEY_MALFORMED", f"{path} holds no keys of this program. Take the file from a backup.")


_LEAST_LETTERS = 8


class KeyPair:
    """Secret keys: one signs (Ed25519), one opens seals (X25519).

    Parameters
    ----------
    signing, sealing : bytes
        The secret halves, of 32 bytes each.

    Attributes
    ----------
    public : PublicKey
        The public halves.

    Examples
    --------
    >>> key = KeyPair.generate()
    >>> key.public.verify(key.sign(b"contents"), b"contents")
    """

    def __init__(self, signing: bytes, sealing: bytes) -> None:
        self._secret = signing + sealing
        self._signing = ed25519.Ed25519PrivateKey.from_private_bytes(signing)
        self._sealing = x25519.X25519PrivateKey.from_private_bytes(sealing)
        self.public = PublicKey(
            self._signing.public_key().public_bytes_raw(), self._sealing.public_key().public_bytes_raw()
        )

    @classmethod
    def generate(cls) -> KeyPair:
        """Return fresh keys from the system's source of randomness."""
        return cls(secrets.token_bytes(32), secrets.token_bytes(32))

    def sign(self, data: bytes) -> bytes:
        """Return a signature of 64 bytes; `data` should begin with its purpose, so that it means one thing only."""
        return self._signing.sign(data)

    def exchange(self, other: x25519.X25519PublicKey) -> bytes:
        """Return the secret that this key shares with another, or raise ValueError if that is a degenerate one."""
        return self._sealing.exchange(other)

    def save(self, path: Path, passphrase: str | None = None) -> None:
        """Write the keys, readable by their owner alone, and encrypted if a passphrase is given.

        Raises
        ------
        ExchangeError
            ``PASSPHRASE_WEAK`` below eight letters; ``ALREADY_THERE``, as a lost key cannot be made again.
        """
        if passphrase is not None and len(passphrase) < _LEAST_LETTERS:
            raise ExchangeError(
                "PASSPHRASE_WEAK",
                f"The passphrase has {len(passphrase)} letters; a thief of the file could try all short ones. Give one "
                f"of {_LEAST_LETTERS} or more, such as four words.",
            )
        secret = self._secret if passphrase is None else encrypt(self._secret, passphrase)
        contents = {
            "format": _FORMAT,
            "format_version": _VERSION,
            "public": self.public.text,
            "encrypted": passphrase is not None,
            "secret": base64.b64encode(secret).decode(),
        }
        write_atomically(Path(path), canonical_json(contents) + b"\n", mode=0o600, overwrite=False)

    @classmethod
    def load(cls, path: Path, passphrase: str | None = None) -> KeyPair:
        """Read keys.

        Raises
        ------
        ExchangeError
            ``KEY_MISSING`` if there is no such file; ``KEY_EXPOSED`` if others than its owner can read it;
            ``KEY_MALFORMED`` if it holds no keys; ``PASSPHRASE_WRONG`` if the passphrase does not open it or is
            missing; ``FORMAT_TOO_NEW``.
        """
        path = Path(path)
        file = KeyFile.read(path)
        mode = path.stat().st_mode
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ExchangeError(
                "KEY_EXPOSED",
                f"{path} can be read or changed by others than its owner (mode {stat.S_IMODE(mode):03o}). If nobody "
                f"may have taken the keys, close it with `chmod 600 {path}`; otherwise make new ones.",
            )
        secret = file.secret
        if file.encrypted:
            if passphrase is None:
                raise ExchangeError(
                    "PASSPHRASE_WRONG",
                    f"{path} is under a passphrase, and none was given. Give it with --passphrase-file, or in "
                    "DATACOLLAB_PASSPHRASE.",
                )
            try:
                secret = decrypt(secret, passphrase, what=str(path))
            except ExchangeError as error:
                raise (error if error.code == "PASSPHRASE_WRONG" else _keys_malformed(path)) from None
        pair = cls(secret[:32], secret[32:]) if len(secret) == 64 else None
        if pair is None or pair.public != file.public:
            raise _keys_malformed(path)
        return pair

    def __repr__(self) -> str:
        return f"KeyPair({self.public.fingerprint})"


def key_with_proof(pair: KeyPair) -> str:
    """Return the text of ``public.key``: the public key, and a signature by its signing half over both halves.

    Without it somebody could join another's signing half and a sealing half of their own, and read the other's seals.
    It does not prove that the signer holds the sealing half; opening a seal does.
    """
    signature = pair.sign(pair.public.proof_statement)
    return f"{pair.public.text}\n{_PROOF_PREFIX}{_letters_of(signature)}\n"
