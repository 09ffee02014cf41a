"""Signed files: the container of all that crosses, arrays in it (no pickle), keys, and seals."""

from ._bundle import Bundle, Envelope, Limits, SignedFile, is_container, pack, peek, read_envelope, unpack
from ._data import arrays_to_bytes, bytes_to_arrays, canonical_json, canonical_pieces, digest, now, parse_json, time_of
from ._files import open_regular, open_unlinked, read_regular, remove_leftovers, replaced, sync_folder, write_atomically
from ._keys import (
    MASK_CARD_PREFIX,
    KeyFile,
    KeyPair,
    PublicKey,
    decrypt,
    encrypt,
    is_encrypted,
    key_with_proof,
    list_recipients,
    mask_card_in,
    seal,
    spell,
    unseal,
)

__all__ = ["Bundle", "Envelope", "Limits", "SignedFile", "is_container", "pack", "peek", "read_envelope", "unpack"]
__all__ += ["MASK_CARD_PREFIX", "KeyFile", "KeyPair", "PublicKey", "key_with_proof", "mask_card_in", "spell"]
__all__ += ["decrypt", "encrypt", "is_encrypted", "list_recipients", "seal", "unseal"]
__all__ += ["arrays_to_bytes", "bytes_to_arrays", "canonical_json", "canonical_pieces", "digest", "parse_json"]
__all__ += ["now", "time_of"]
__all__ += ["open_regular", "open_unlinked", "read_regular", "remove_leftovers", "replaced", "sync_folder"]
__all__ += ["write_atomically"]
