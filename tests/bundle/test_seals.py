import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyPair, PublicKey, digest, list_recipients, seal, unseal
from datacollab.errors import ExchangeError
from refusals import refused_with

A, B, C = (KeyPair(bytes([2 * n]) * 32, bytes([2 * n + 1]) * 32) for n in range(1, 4))
SEALED = seal(b"the anchor", [A.public, B.public], purpose="anchor of 12ab")
HEADER, SLOT = 42, 90


def outcome(data, key, purpose="anchor of 12ab"):
    try:
        return unseal(data, key, purpose=purpose)
    except ExchangeError as error:
        return error.code


@given(st.binary(max_size=300), st.text(st.characters(codec="utf-8"), max_size=10))
def test_each_recipient_opens_it_and_nobody_else(data, purpose):
    sealed = seal(data, [A.public, B.public, A.public], purpose=purpose)
    assert list_recipients(sealed) == [A.public.fingerprint, B.public.fingerprint]
    assert outcome(sealed, A, purpose) == outcome(sealed, B, purpose) == data
    assert outcome(sealed, C, purpose) == "SEAL_NOT_FOR_YOU"
    assert outcome(sealed, A, purpose + "x") == "SEAL_DAMAGED"


def test_many_recipients():
    keys = [KeyPair.generate() for _ in range(40)]
    sealed = seal(b"x" * 1000, [key.public for key in keys], purpose="p")
    assert all(unseal(sealed, key, purpose="p") == b"x" * 1000 for key in keys)
    assert len(sealed) == HEADER + 40 * SLOT + 1000 + 16


def test_nothing_of_the_contents_is_visible_and_no_two_seals_are_alike():
    contents = b"Xaver Huber, born 1950"
    sealed = [seal(contents, [A.public], purpose="p") for _ in range(2)]
    assert contents not in sealed[0]
    for start, stop in ((10, 42), (52, 84), (84, 132), (132, None)):
        assert sealed[0][start:stop] != sealed[1][start:stop]


def test_every_bit_counts():
    for position in range(8 * len(SEALED)):
        changed = bytearray(SEALED)
        changed[position // 8] ^= 1 << position % 8
        assert outcome(bytes(changed), A) in ("SEAL_DAMAGED", "SEAL_NOT_FOR_YOU")
    other = bytearray(SEALED)
    other[HEADER + SLOT + 20] ^= 1
    assert outcome(bytes(other), A) == "SEAL_DAMAGED", "another recipient's slot is bound, too"


@given(st.integers(0, len(SEALED) - 1))
def test_a_cut_seal_is_refused(length):
    assert outcome(SEALED[:length], A) == "SEAL_DAMAGED"


@given(st.binary(max_size=400) | st.binary(max_size=300).map(b"dcseal01".__add__))
def test_any_bytes_are_refused(data):
    assert outcome(data, A) in ("SEAL_DAMAGED", "SEAL_NOT_FOR_YOU")


def test_a_recipient_named_twice_is_refused():
    doubled = SEALED[: HEADER + SLOT] + SEALED[HEADER : HEADER + SLOT] + SEALED[HEADER + 2 * SLOT :]
    assert outcome(doubled, A) == "SEAL_DAMAGED"
    with refused_with("SEAL_DAMAGED", match="twice"):
        list_recipients(doubled)


def test_the_sender_cannot_show_different_contents_to_different_keys():
    """A content key that the commitment does not name opens nothing, though its slot is in order."""
    content_key, other_key = b"k" * 32, b"o" * 32
    header = struct.pack(">8sH32s", b"dcseal01", 1, bytes.fromhex(committed(other_key)))
    suite = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
    sealing = X25519PublicKey.from_public_bytes(A.public.sealing)
    header += A.public.fingerprint_bytes + suite.encrypt(content_key, sealing, b"datacollab seal 1 key\np")
    body = ChaCha20Poly1305(content_key).encrypt(bytes(12), b"contents", header + b"p")
    assert outcome(header + body, A, "p") == "SEAL_DAMAGED"
    honest = header.replace(bytes.fromhex(committed(other_key)), bytes.fromhex(committed(content_key)))
    body = ChaCha20Poly1305(content_key).encrypt(bytes(12), b"contents", honest + b"p")
    assert outcome(honest + body, A, "p") == b"contents"


def committed(content_key):
    return digest(b"datacollab seal 1 commitment\n" + content_key)


def test_what_cannot_be_sealed(monkeypatch):
    with pytest.raises(ValueError, match="got 0"):
        seal(b"x", [], purpose="p")
    with refused_with("KEY_MALFORMED"):
        seal(b"x", [PublicKey(A.public.signing, bytes(32))], purpose="p")

    class Huge(bytes):
        def __len__(self):
            return 2**31

    with refused_with("TOO_LARGE"):
        seal(Huge(), [A.public], purpose="p")
