"""An envelope says what `unpack` says, and refuses what it refuses, without holding the members."""

import io
import random

import pytest

from datacollab.bundle import KeyPair, Limits, digest, pack, read_envelope, unpack
from datacollab.errors import ExchangeError

KEY = KeyPair.generate()
MEMBERS = {"rows.bin": random.Random(0).randbytes(3_000_000), "empty.bin": b""}
DATA = pack("datacollab.share", {"party": "north"}, MEMBERS, key=KEY)
SMALL = pack("datacollab.share", {"party": "north"}, {"rows.bin": b"0123", "more.bin": b"45"}, key=KEY)


def read(data, **options):
    return read_envelope(io.BytesIO(data), len(data), what="The file", **options)


def code_of(action):
    try:
        action()
    except ExchangeError as error:
        return error.code
    return None


def test_it_says_what_unpacking_says():
    found, whole = read(DATA, signed_by=KEY.public), unpack(DATA)
    for name in ("kind", "facts", "signer", "digest"):
        assert getattr(found, name) == getattr(whole, name)
    assert found.members == {name: (len(data), digest(data)) for name, data in MEMBERS.items()}


def test_no_more_than_a_part_is_asked_for():
    class Watched(io.BytesIO):
        most = 0

        def read(self, size=-1):
            Watched.most = max(self.most, size)
            return super().read(size)

    read_envelope(Watched(DATA), len(DATA), what="The file")
    assert 0 < Watched.most <= 2**20


@pytest.mark.parametrize("position", range(0, len(SMALL), 7))
def test_a_changed_byte_is_refused_as_by_unpacking(position):
    changed = SMALL[:position] + bytes([SMALL[position] ^ 1]) + SMALL[position + 1 :]
    assert code_of(lambda: read(changed)) == code_of(lambda: unpack(changed)) is not None


@pytest.mark.parametrize("length", range(0, len(SMALL), 31))
def test_a_file_that_was_cut_is_refused(length):
    assert code_of(lambda: read(SMALL[:length])) == "BUNDLE_MALFORMED"


def test_another_signer_and_too_large_a_file_are_refused():
    assert code_of(lambda: read(SMALL, signed_by=KeyPair.generate().public)) == "SIGNATURE_INVALID"
    assert code_of(lambda: read(SMALL, limits=Limits(total_bytes=len(SMALL) - 1))) == "TOO_LARGE"
    assert code_of(lambda: read(pack("datacollab.share", {}, {}), signed_by=KEY.public)) == "SIGNATURE_MISSING"
