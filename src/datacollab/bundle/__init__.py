"""Signed files: the container of all that crosses, arrays in it (no pickle), keys, and seals."""

from ._arrays import arrays_to_bytes, bytes_to_arrays
from ._atomic import remove_leftovers, sync_folder, write_atomically
from ._bundle import Bundle, pack, unpack
from ._container import is_container
from ._envelope import Envelope, read_envelope
from ._json import canonical_json, digest, parse_json
from ._key_file import KeyFile
from ._key_pair import KeyPair
from ._key_proof import key_with_proof
from ._limits import Limits
from ._opening import open_regular, open_unlinked, read_regular
from ._passphrase import decrypt, encrypt, is_encrypted
from ._public_key import PublicKey
from ._seal import seal, sealed_to, unseal
from ._signed_file import SignedFile
from ._spelling import spelt

__all__ = [
    "Bundle",
    "Envelope",
    "KeyFile",
    "KeyPair",
    "Limits",
    "PublicKey",
    "SignedFile",
    "arrays_to_bytes",
    "bytes_to_arrays",
    "canonical_json",
    "decrypt",
    "digest",
    "encrypt",
    "is_container",
    "is_encrypted",
    "key_with_proof",
    "open_regular",
    "open_unlinked",
    "pack",
    "parse_json",
    "read_envelope",
    "read_regular",
    "remove_leftovers",
    "seal",
    "sealed_to",
    "spelt",
    "sync_folder",
    "unpack",
    "unseal",
    "write_atomically",
]
