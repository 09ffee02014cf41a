"""Any change of a bundle on its way: a refusal with a code, or what was sent, by `unpack` as by `read_envelope`."""

import collections
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyPair, Limits, digest, pack, read_envelope, unpack
from datacollab.errors import ExchangeError

KEY = KeyPair(b"\1" * 32, b"\2" * 32)
BUNDLE = pack(
    "datacollab.share",
    {"party": "north", "n_rows": 3, "shares": [0.5, None, True]},
    {"share.safetensors": b"\x08" + bytes(7) + b"{}      ", "b.bin": b"abc"},
    key=KEY,
)
UNSIGNED = pack("datacollab.model", {"party": "north"}, {"g.safetensors": b"abc"})
ORIGINALS = [unpack(BUNDLE), unpack(UNSIGNED)]
CODES = {
    *("BUNDLE_MALFORMED", "HASH_MISMATCH", "FORMAT_TOO_NEW", "WRONG_KIND", "TOO_LARGE"),
    *("SIGNATURE_INVALID", "SIGNATURE_MISSING"),
}


def enveloped(data, **options):
    return read_envelope(io.BytesIO(data), len(data), what="The bundle", **options)


def read(reader, data, **options):
    try:
        return reader(data, **options)
    except ExchangeError as error:
        return error.code


def outcome(data, kind=None, **options):
    """The bundle, or the code of its refusal, which is that of its envelope too."""
    bundle, envelope = read(unpack, data, kind=kind, **options), read(enveloped, data, **options)
    if isinstance(bundle, str):
        assert kind is not None or envelope == bundle
        return bundle
    for name in ("kind", "facts", "signer", "digest"):
        assert getattr(envelope, name) == getattr(bundle, name)
    assert envelope.members == {name: (len(part), digest(part)) for name, part in bundle.members.items()}
    return bundle


def test_an_envelope_is_read_a_part_at_a_time():
    class Watched(io.BytesIO):
        most = 0

        def read(self, size=-1):
            Watched.most = max(self.most, size)
            return super().read(size)

    members = {"rows.bin": random.Random(0).randbytes(3_000_000), "empty.bin": b""}
    data = pack("datacollab.share", {"party": "north"}, members, key=KEY)
    assert outcome(data, signed_by=KEY.public).members == members
    read_envelope(Watched(data), len(data), what="The bundle")
    assert 0 < Watched.most <= 2**20


def test_another_signer_and_too_large_a_file_are_refused():
    assert outcome(BUNDLE, signed_by=KeyPair.generate().public) == "SIGNATURE_INVALID"
    assert outcome(UNSIGNED, signed_by=KEY.public) == "SIGNATURE_MISSING"
    assert outcome(BUNDLE, limits=Limits(total_bytes=len(BUNDLE) - 1)) == "TOO_LARGE"


@pytest.mark.slow
@pytest.mark.parametrize("original", [BUNDLE, UNSIGNED])
def test_every_bit_flipped_is_refused(original):
    """Not one bit of the file is without meaning, so that nothing can be hidden in it, either."""
    found = collections.Counter()
    for position in range(8 * len(original)):
        changed = bytearray(original)
        changed[position // 8] ^= 1 << position % 8
        code = outcome(bytes(changed))
        assert code in CODES, position
        found[code] += 1
    assert found.keys() >= {"BUNDLE_MALFORMED", "HASH_MISMATCH"}


@pytest.mark.parametrize("original", [BUNDLE, UNSIGNED])
def test_every_cut_and_every_addition_is_refused(original):
    for length in range(len(original)):
        assert outcome(original[:length]) in CODES
        assert outcome(original[length:] if length else b"") in CODES
        assert outcome(original[:length] + b"\0" + original[length:]) in CODES
    assert outcome(original + b"\0") in CODES


@given(st.data())
def test_pieces_exchanged_repeated_or_overwritten(data):
    changed = bytearray(BUNDLE)
    for _ in range(data.draw(st.integers(1, 5))):
        start, end = sorted(data.draw(st.integers(0, len(changed))) for _ in range(2))
        piece = data.draw(st.sampled_from([BUNDLE[start:end], UNSIGNED[start:end], b""]) | st.binary(max_size=20))
        changed[start:end] = piece
    assert outcome(bytes(changed)) in [*CODES, *ORIGINALS]


@given(st.binary(max_size=2000) | st.binary(max_size=200).map(b'\x10\0\0\0\0\0\0\0{"'.__add__))
def test_any_bytes(data):
    assert outcome(data) in CODES
    assert outcome(data, kind="datacollab.share", signed_by=KEY.public) in CODES
