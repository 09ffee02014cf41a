"""Keys of a person or an organisation, bytes under a passphrase, and bytes sealed to keys."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import stat
import struct
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from ..errors import ExchangeError
from ._data import canonical_json, parse_json
from ._files import open_regular, write_atomically

_GROUP = 4


def letters_of(data: bytes) -> str:
    """Return base32 in lower case, without padding: five bits a letter."""
    return base64.b32encode(data).decode().rstrip("=").lower()


def bytes_of(letters: str) -> bytes:
    """Return the bytes that `letters_of` has turned into letters, or raise ValueError."""
    if not letters.isascii():
        raise ValueError("expected letters and digits")
    return base64.b32decode(letters.upper() + "=" * (-len(letters) % 8))


def spell(data: bytes, n_letters: int) -> str:
    """Return the first letters of bytes in base32, in groups of four with hyphens between them."""
    letters = letters_of(data)[:n_letters]
    return "-".join(letters[start : start + _GROUP] for start in range(0, n_letters, _GROUP))


_PREFIX = "dcpub1-"
_PROOF_PREFIX = "dcproof1-"
MASK_CARD_PREFIX = "dcmask1-"
"""Prefix of the third line of ``public.key``, if its owner has made a mask key."""
_CONTEXT = b"datacollab public key 1 proof\n"
_MOST_BYTES = 1024
_MOST_BYTES_OF_KEYS = 64 * 1024
"""Bytes that are read of a file of a public key, and of one of secret keys; both have far fewer."""
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
    """Two public halves of 32 bytes: one verifies signatures (Ed25519), one is sealed to (X25519)."""

    signing: bytes
    sealing: bytes

    @property
    def text(self) -> str:
        """Text to send and to paste: ``dcpub1-`` and 109 letters and digits."""
        halves = self.signing + self.sealing
        return _PREFIX + letters_of(halves + _hash(b"checksum", halves)[:_CHECKSUM])

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen letters and digits in groups of four, that is 80 bits, to compare on the telephone."""
        return spell(self.fingerprint_bytes, 16)

    @property
    def fingerprint_bytes(self) -> bytes:
        """The ten bytes that the fingerprint spells."""
        return _hash(b"fingerprint", self.signing + self.sealing)[:10]

    @classmethod
    def from_text(cls, text: str, *, what: str = "The text") -> PublicKey:
        """Read a key, with spaces and line ends around it or not, or raise KEY_MALFORMED under the name given."""
        stripped = text.strip()
        letters = stripped.removeprefix(_PREFIX)
        try:
            if letters == stripped:
                raise ValueError
            data = bytes_of(letters)
        except ValueError:
            raise _key_error(what, f"it does not consist of {_PREFIX} and letters and digits") from None
        key = cls(data[:32], data[32:64])
        # One spelling alone, so that equal keys are equal texts.
        if len(data) != 64 + _CHECKSUM or key.text != stripped:
            raise _key_error(what, "its letters do not fit one another, so some were changed or cut")
        if key.signing[:31] + bytes([key.signing[31] & 0x7F]) in _SMALL_ORDER:
            raise _key_error(what, "signatures under it can be made by everybody")
        return key

    @classmethod
    def load(cls, path: Path, *, proven: bool = False) -> PublicKey:
        """Read a key from a file, and check its owner's signature, which a proven key must have.

        It raises KEY_MISSING, or KEY_MALFORMED if the file holds no key, or not its owner's.
        """
        # The key, in another line the proof, and in a third one the card of a mask key.
        word, *proofs = _words_in(path)
        key = cls.from_text(word, what=str(path))
        # The card of a mask key is checked where sums are shared.
        if len(proofs) == 2 and proofs[1].startswith(MASK_CARD_PREFIX):
            del proofs[1]
        if proofs and not (len(proofs) == 1 and key.is_proven_by(proofs[0])):
            raise _key_error(str(path), "its owner has not signed it, so its halves may be of two people")
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
            self.verify(bytes_of(letters), self.proof_statement)
        except (ValueError, ExchangeError):
            return False
        return letters != word

    def __repr__(self) -> str:
        return f"PublicKey({self.fingerprint})"


def mask_card_in(path: Path) -> str | None:
    """Return the card of a mask key in a file ``public.key``, unchecked; None if there is none."""
    return next((word for word in _words_in(path)[2:] if word.startswith(MASK_CARD_PREFIX)), None)


def _words_in(path: Path) -> list[str]:
    """Return the words of a file ``public.key``, one at least."""
    try:
        with open_regular(path, code="KEY_MISSING") as file:
            text = file.read(_MOST_BYTES).decode("ascii")
    except UnicodeError:
        raise _key_error(str(path), "it is not even text") from None
    except OSError as error:
        raise ExchangeError(
            "KEY_MISSING", f"{path} cannot be read ({error.strerror}). Give the file that its owner sent."
        ) from None
    # Somebody is about to send the secret keys to everybody.
    if text.lstrip().startswith("{"):
        raise ExchangeError(
            "KEY_MALFORMED",
            f"{path} is no public key; it looks like a file of secret keys, which never leaves its owner. Give the "
            "file public.key that stands beside it.",
        )
    return text.split() or [""]


def _hash(purpose: bytes, data: bytes) -> bytes:
    return hashlib.sha256(b"datacollab public key 1 " + purpose + b"\n" + data).digest()


def _key_error(what: str, reason: str) -> ExchangeError:
    return ExchangeError("KEY_MALFORMED", f"{what} is no public key: {reason}. Ask its owner to send it again.")


_ENCRYPTED = b"dcpass01"
"""Magic of bytes under a passphrase."""
_ENCRYPTED_HEADER = struct.Struct(">8sBBB16s12s")
"""The magic, log2 of n, r, p, salt, nonce."""
# Cost of scrypt, as OWASP recommends: 128 MiB, and less than half a second.
_LOG2_N = 17
_R = 8
_P = 1
_MOST_MEMORY = 256 * 1024**2
"""The most bytes of memory that a file may ask for."""


def is_encrypted(data: bytes) -> bool:
    """Return whether bytes begin as those of `encrypt` do."""
    return data.startswith(_ENCRYPTED)


def encrypt(data: bytes, passphrase: str) -> bytes:
    """Encrypt under a passphrase, which must not be empty, by scrypt and ChaCha20-Poly1305."""
    if not passphrase:
        raise ValueError("The passphrase is empty; give one, or store without.")
    salt = os.urandom(16)
    nonce = os.urandom(12)
    # The header is signed by the cipher's tag, too: nobody can lower the cost of a guess.
    header = _ENCRYPTED_HEADER.pack(_ENCRYPTED, _LOG2_N, _R, _P, salt, nonce)
    key = _scrypt(passphrase, salt, _LOG2_N, _R, _P)
    return header + ChaCha20Poly1305(key).encrypt(nonce, data, header)


def decrypt(data: bytes, passphrase: str, *, what: str = "the file") -> bytes:
    """Decrypt the bytes of `encrypt`; raise BUNDLE_MALFORMED if they are none.

    PASSPHRASE_WRONG is raised if the passphrase does not open it, or the file was changed.
    """
    if not is_encrypted(data) or len(data) < _ENCRYPTED_HEADER.size + 16:
        raise _secret_error(what, "it does not begin as such a file does, or is cut")
    header = data[: _ENCRYPTED_HEADER.size]
    _, log2_n, r, p, salt, nonce = _ENCRYPTED_HEADER.unpack(header)
    # A file from elsewhere must not take all the memory, or hours, of the one who opens it.
    if not (10 <= log2_n <= 20 and r >= 1 and 1 <= p <= 4 and 128 * r << log2_n <= _MOST_MEMORY):
        raise _secret_error(what, "it asks for more work than is allowed")
    try:
        cipher = ChaCha20Poly1305(_scrypt(passphrase, salt, log2_n, r, p))
        return cipher.decrypt(nonce, data[_ENCRYPTED_HEADER.size :], header)
    except InvalidTag:
        raise ExchangeError(
            "PASSPHRASE_WRONG",
            f"The passphrase does not open {what}, or that was changed. Try again; without the passphrase it cannot be "
            "opened.",
        ) from None


def _scrypt(passphrase: str, salt: bytes, log2_n: int, r: int, p: int) -> bytes:
    # Keyboards differ in how they compose accents.
    secret = unicodedata.normalize("NFKC", passphrase).encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=1 << log2_n, r=r, p=p, maxmem=2 * _MOST_MEMORY, dklen=32)


def _secret_error(what: str, reason: str) -> ExchangeError:
    return ExchangeError(
        "BUNDLE_MALFORMED", f"The encrypted part in {what} is damaged: {reason}. Take it from a backup."
    )


_FORMAT = "datacollab.keys"
_VERSION = 1


@dataclass(frozen=True)
class KeyFile:
    """Contents of a file of keys: the secret may be encrypted; `KeyPair.load` checks that the public key fits it."""

    public: PublicKey
    encrypted: bool
    secret: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> KeyFile:
        """Read the file without a passphrase, or raise KEY_MISSING, KEY_MALFORMED or FORMAT_TOO_NEW."""
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
            version = contents["format_version"]
            encrypted = contents["encrypted"]
            if type(version) is int and version > _VERSION and contents["format"] == _FORMAT:
                raise ExchangeError(
                    "FORMAT_TOO_NEW", f"{path} was written by a later version. Upgrade datacollab, then try again."
                )
            if (contents["format"], version) != (_FORMAT, _VERSION) or type(encrypted) is not bool:
                raise ValueError
            return cls(
                PublicKey.from_text(contents["public"]), encrypted, base64.b64decode(contents["secret"], validate=True)
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ExchangeError) and error.code == "FORMAT_TOO_NEW":
                raise error from None
            raise _keys_malformed(path) from None


def _keys_malformed(path: Path) -> ExchangeError:
    return ExchangeError("KEY_MALFORMED", f"{path} holds no keys of this program. Take the file from a backup.")


_LEAST_LETTERS = 8
_HPKE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
"""RFC 9180, base mode."""


class KeyPair:
    """Secret keys of 32 bytes: one signs (Ed25519), one opens seals (X25519); `public` holds their public halves."""

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

    def unwrap(self, wrapped: bytes, info: bytes) -> bytes:
        """Return the bytes that were encrypted to the sealing half by HPKE, or raise InvalidTag."""
        return _HPKE.decrypt(wrapped, self._sealing, info)

    def save(self, path: Path, passphrase: str | None = None) -> None:
        """Write the keys, readable by their owner alone, and encrypted if a passphrase is given.

        It raises PASSPHRASE_WEAK below eight letters, and ALREADY_THERE, as a lost key cannot be made again.
        """
        if passphrase is not None and len(passphrase) < _LEAST_LETTERS:
            raise ExchangeError(
                "PASSPHRASE_WEAK",
                f"The passphrase has {len(passphrase)} letters; a thief of the file could try all short ones. Give one "
                f"of {_LEAST_LETTERS} or more, such as four words.",
            )
        secret = self._secret
        if passphrase is not None:
            secret = encrypt(secret, passphrase)
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

        It raises KEY_MISSING, KEY_EXPOSED if others than their owner can read them, KEY_MALFORMED, PASSPHRASE_WRONG
        (also if it is missing) or FORMAT_TOO_NEW.
        """
        path = Path(path)
        file = KeyFile.read(path)
        mode = path.stat().st_mode
        # As ssh does: keys that others could read may have been taken.
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
                if error.code == "PASSPHRASE_WRONG":
                    raise error from None
                raise _keys_malformed(path) from None
        if len(secret) != 64:
            raise _keys_malformed(path)
        pair = cls(secret[:32], secret[32:])
        # Somebody who exchanges the public key in the file would have others seal to it.
        if pair.public != file.public:
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
    return f"{pair.public.text}\n{_PROOF_PREFIX}{letters_of(signature)}\n"


_SEALED = b"dcseal01"
"""Magic of sealed bytes."""
_SEALED_HEADER = struct.Struct(">8sH32s")
"""The magic, the number of recipients, and a commitment to the content key."""
_SLOT = struct.Struct(">10s80s")
"""A recipient's fingerprint, and the content key wrapped to it."""
_NONCE = bytes(12)
"""A content key is used for one message only."""
_MOST_RECIPIENTS = 1000
_TAG = 16
"""Bytes that the cipher adds."""


def seal(data: bytes, recipients: Sequence[PublicKey], *, purpose: str) -> bytes:
    """Seal bytes to 1 to 1000 keys: each of them opens the seal alone, for the same purpose only, and no other does.

    It raises KEY_MALFORMED if a key cannot be sealed to, and TOO_LARGE from 2 GiB on.
    """
    distinct = list(dict.fromkeys(recipients))
    if not 1 <= len(distinct) <= _MOST_RECIPIENTS:
        raise ValueError(f"A seal needs 1 to {_MOST_RECIPIENTS} recipients; got {len(distinct)}.")
    if len(data) >= 2**31 - _TAG:
        raise ExchangeError("TOO_LARGE", f"{len(data)} bytes are to be sealed; fewer than 2 GiB can be. Send fewer.")
    # A key for this message alone, wrapped to each recipient: the contents are encrypted once.
    content_key = os.urandom(32)
    header = _SEALED_HEADER.pack(_SEALED, len(distinct), _commitment(content_key))
    for recipient in distinct:
        try:
            sealing = x25519.X25519PublicKey.from_public_bytes(recipient.sealing)
            wrapped = _HPKE.encrypt(content_key, sealing, _info(purpose))
        except ValueError:
            raise ExchangeError(
                "KEY_MALFORMED", f"The key {recipient.fingerprint} cannot be sealed to. Ask its owner for another."
            ) from None
        header += _SLOT.pack(recipient.fingerprint_bytes, wrapped)
    return header + ChaCha20Poly1305(content_key).encrypt(_NONCE, data, header + purpose.encode())


def unseal(data: bytes, key: KeyPair, *, purpose: str) -> bytes:
    """Open a seal.

    It raises SEAL_NOT_FOR_YOU if it was sealed to other keys, and SEAL_DAMAGED if it was changed, or sealed for another
    purpose.
    """
    commitment, slots, start = _parts(data)
    if key.public.fingerprint_bytes not in slots:
        raise ExchangeError(
            "SEAL_NOT_FOR_YOU",
            f"The file is sealed to {len(slots)} other keys, not to {key.public.fingerprint}. Ask the sender to seal "
            "it to your key.",
        )
    try:
        content_key = key.unwrap(slots[key.public.fingerprint_bytes], _info(purpose))
        # Without the commitment a sender could make one seal that opens to different contents for different keys.
        if _commitment(content_key) != commitment:
            raise ValueError
        return ChaCha20Poly1305(content_key).decrypt(_NONCE, data[start:], data[:start] + purpose.encode())
    except (InvalidTag, ValueError, OverflowError):
        raise _seal_error("was changed on its way, or made for another purpose") from None


def list_recipients(data: bytes) -> list[str]:
    """Return the fingerprints of the keys that bytes are sealed to, which anybody can see, or raise SEAL_DAMAGED."""
    _, slots, _ = _parts(data)
    return [spell(fingerprint, 16) for fingerprint in slots]


def _parts(data: bytes) -> tuple[bytes, dict[bytes, bytes], int]:
    """Return the commitment, the wrapped keys by fingerprint, and the start of the contents."""
    if len(data) < _SEALED_HEADER.size or not data.startswith(_SEALED):
        raise _seal_error("does not begin as one")
    _, n_recipients, commitment = _SEALED_HEADER.unpack_from(data)
    start = _SEALED_HEADER.size + n_recipients * _SLOT.size
    if not 1 <= n_recipients <= _MOST_RECIPIENTS or len(data) < start + _TAG:
        raise _seal_error("is cut")
    slots = dict(_SLOT.iter_unpack(data[_SEALED_HEADER.size : start]))
    if len(slots) != n_recipients:
        raise _seal_error("names a recipient twice")
    return commitment, slots, start


def _info(purpose: str) -> bytes:
    return b"datacollab seal 1 key\n" + purpose.encode()


def _commitment(content_key: bytes) -> bytes:
    return hashlib.sha256(b"datacollab seal 1 commitment\n" + content_key).digest()


def _seal_error(reason: str) -> ExchangeError:
    return ExchangeError("SEAL_DAMAGED", f"The seal {reason}. Have the file sent again.")
