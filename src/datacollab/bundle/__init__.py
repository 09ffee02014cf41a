"""Files that cross between organisations: their container, keys, seals, and the log of what was done."""

from ._arrays import arrays_to_bytes, bytes_to_arrays
from ._atomic import write_atomically
from ._bundle import Bundle, pack, unpack
from ._container import is_container
from ._json import canonical_json, digest, parse_json
from ._key_file import KeyFile
from ._key_pair import KeyPair
from ._key_proof import key_with_proof
from ._limits import Limits
from ._lock import locked
from ._log import AuditLog
from ._log_witness import check_log_against, log_witnesses
from ._passphrase import decrypt, encrypt, is_encrypted
from ._public_key import PublicKey
from ._seal import seal, sealed_to, unseal
from ._spelling import spelt

__all__ = [
    "AuditLog",
    "Bundle",
    "KeyFile",
    "KeyPair",
    "Limits",
    "PublicKey",
    "arrays_to_bytes",
    "bytes_to_arrays",
    "canonical_json",
    "check_log_against",
    "decrypt",
    "digest",
    "encrypt",
    "is_container",
    "is_encrypted",
    "key_with_proof",
    "locked",
    "log_witnesses",
    "pack",
    "parse_json",
    "seal",
    "sealed_to",
    "spelt",
    "unpack",
    "unseal",
    "write_atomically",
]
