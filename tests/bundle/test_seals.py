import hashlib
import struct
import subprocess
import sys
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyPair, PublicKey, decrypt, digest, encrypt, is_encrypted, list_recipients, seal, unseal
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


PROGRAM = "import sys, datacollab.bundle as b; sys.stdout.buffer.write(b.encrypt(b'the state', 'correct horse'))"


def closed_by_another_process():
    """What the package writes where no fixture makes its work lighter."""
    return subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def closed():
    return encrypt(b"the state", "correct horse")


def opened(data, passphrase="correct horse"):
    try:
        return decrypt(data, passphrase)
    except ExchangeError as error:
        return error.code


def with_parameters(log2_n, r, p):
    """Bytes that ask for other work, rightly closed where that work is light."""
    header = struct.pack(">8sBBB16s12s", b"dcpass01", log2_n, r, p, b"s" * 16, b"n" * 12)
    if 128 * r << log2_n > 2**22 or not (r and p and log2_n):
        return header + bytes(16)
    key = hashlib.scrypt(b"correct horse", salt=b"s" * 16, n=1 << log2_n, r=r, p=p, maxmem=2**26, dklen=32)
    return header + ChaCha20Poly1305(key).encrypt(b"n" * 12, b"light", header)


def test_what_was_closed_opens():
    for data in (b"", b"x", bytes(100_000)):
        closed = encrypt(data, "Straße ☃")
        assert is_encrypted(closed)
        assert opened(closed, "Straße ☃") == data
        assert len(closed) == 39 + len(data) + 16
    assert encrypt(b"x", "p") != encrypt(b"x", "p")
    assert not is_encrypted(b"PK\x03\x04")


@pytest.mark.parametrize("wrong", ["", "Correct horse", "correct horse ", "\udcff"])
def test_another_passphrase_does_not_open_it(closed, wrong):
    assert opened(closed, wrong) == "PASSPHRASE_WRONG"


def test_a_refusal_names_the_file(closed):
    for data in (closed, closed[:50]):
        with pytest.raises(ExchangeError, match=r"in the box|open the box"):
            decrypt(data, "wrong", what="the box")


def test_an_empty_passphrase_closes_nothing():
    with pytest.raises(ValueError, match="empty"):
        encrypt(b"x", "")


@given(st.data())
def test_every_byte_counts(closed, data):
    changed = bytearray(closed)
    changed[data.draw(st.integers(11, len(closed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert opened(bytes(changed)) == "PASSPHRASE_WRONG"


def test_a_cut_file_is_refused(closed):
    for length in range(len(closed)):
        expected = "BUNDLE_MALFORMED" if length < 55 else "PASSPHRASE_WRONG"
        assert opened(closed[:length]) == expected


@given(st.binary(max_size=100))
def test_other_bytes_are_refused(data):
    assert opened(data) == "BUNDLE_MALFORMED"


@pytest.mark.parametrize(
    ("log2_n", "r", "p"),
    [
        *((255, 8, 1), (21, 8, 1), (20, 255, 4), (20, 8, 1), (18, 9, 1), (15, 8, 255), (15, 8, 5)),
        *((0, 8, 1), (9, 8, 1), (15, 0, 1), (15, 8, 0)),
    ],
)
def test_a_file_cannot_ask_for_gigabytes_or_minutes(log2_n, r, p):
    start = time.process_time()
    assert opened(with_parameters(log2_n, r, p)) == "BUNDLE_MALFORMED"
    assert time.process_time() - start < 0.5


@pytest.mark.slow
def test_guessing_costs_what_is_recommended():
    """OWASP: 2^17 rounds of blocks of 8; and a file may not ask for so much that honest ones are refused."""
    shipped = closed_by_another_process()
    log2_n, r, p = struct.unpack(">8xBBB", shipped[:11])
    assert (log2_n, r, p) >= (17, 8, 1)
    assert opened(shipped) == b"the state"


def test_a_file_with_other_parameters_opens():
    assert opened(with_parameters(10, 8, 2)) == b"light"
