import hashlib
import struct
import subprocess
import sys
import time

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollab.bundle import decrypt, encrypt, is_encrypted
from datacollab.errors import ExchangeError

PROGRAM = "import sys, datacollab.bundle as b; sys.stdout.buffer.write(b.encrypt(b'the state', 'correct horse'))"


def closed_by_another_process():
    """What the package writes where no fixture makes its work lighter."""
    return subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True).stdout


@pytest.fixture(scope="module")
def closed():
    return encrypt(b"the state", "correct horse")


def outcome(data, passphrase="correct horse"):
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
        assert outcome(closed, "Straße ☃") == data
        assert len(closed) == 39 + len(data) + 16
    assert encrypt(b"x", "p") != encrypt(b"x", "p")
    assert not is_encrypted(b"PK\x03\x04")


@pytest.mark.parametrize("wrong", ["", "Correct horse", "correct horse ", "\udcff"])
def test_another_passphrase_does_not_open_it(closed, wrong):
    assert outcome(closed, wrong) == "PASSPHRASE_WRONG"


def test_a_refusal_names_the_file(closed):
    for data in (closed, closed[:50]):
        with pytest.raises(ExchangeError, match=r"in the box|open the box"):
            decrypt(data, "wrong", what="the box")


def test_an_empty_passphrase_closes_nothing():
    with pytest.raises(ValueError, match="empty"):
        encrypt(b"x", "")


@given(st.data())
@settings(max_examples=50)
def test_every_byte_counts(closed, data):
    changed = bytearray(closed)
    changed[data.draw(st.integers(11, len(closed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert outcome(bytes(changed)) == "PASSPHRASE_WRONG"


def test_a_cut_file_is_refused(closed):
    for length in range(len(closed)):
        expected = "BUNDLE_MALFORMED" if length < 55 else "PASSPHRASE_WRONG"
        assert outcome(closed[:length]) == expected


@given(st.binary(max_size=100))
def test_other_bytes_are_refused(data):
    assert outcome(data) == "BUNDLE_MALFORMED"


@pytest.mark.parametrize(
    ("log2_n", "r", "p"),
    [
        *((255, 8, 1), (21, 8, 1), (20, 255, 4), (20, 8, 1), (18, 9, 1), (15, 8, 255), (15, 8, 5)),
        *((0, 8, 1), (9, 8, 1), (15, 0, 1), (15, 8, 0)),
    ],
)
def test_a_file_cannot_ask_for_gigabytes_or_minutes(log2_n, r, p):
    start = time.process_time()
    assert outcome(with_parameters(log2_n, r, p)) == "BUNDLE_MALFORMED"
    assert time.process_time() - start < 0.5


@pytest.mark.slow
def test_guessing_costs_what_is_recommended():
    """OWASP: 2^17 rounds of blocks of 8; and a file may not ask for so much that honest ones are refused."""
    shipped = closed_by_another_process()
    log2_n, r, p = struct.unpack(">8xBBB", shipped[:11])
    assert (log2_n, r, p) >= (17, 8, 1)
    assert outcome(shipped) == b"the state"


def test_a_file_with_other_parameters_opens():
    assert outcome(with_parameters(10, 8, 2)) == b"light"
