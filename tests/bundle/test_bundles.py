"""The container of all that crosses: what is packed is unpacked, and any change of it is refused with a code."""

import collections
import io
import json
import os
import random
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyPair, Limits, canonical_json, digest, is_container, pack, read_envelope, unpack
from datacollab.errors import ExchangeError
from refusals import each, refused_with

KEY, OTHER = KeyPair(b"\1" * 32, b"\2" * 32), KeyPair(b"\3" * 32, b"\4" * 32)
KIND = "datacollab.share"
FACTS = {"party": "north", "n_rows": 100, "task": {"kind": "classification", "classes": ["a", "é"]}}
MEMBERS = {"rows.safetensors": bytes(range(200)), "a.bin": b""}
SIGNED = pack(KIND, FACTS, MEMBERS, key=KEY)
NAMES = st.from_regex(r"[a-z][a-z0-9._-]{0,63}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def refusal(source, **options):
    with pytest.raises(ExchangeError) as caught:
        unpack(source, **options)
    return caught.value.code


def tensors(members):
    """The entries of the members in a header, in one's order."""
    stops = np.cumsum([0, *map(len, members.values())]).tolist()
    return {
        name: {"dtype": "U8", "shape": [len(data)], "data_offsets": stops[place : place + 2]}
        for place, (name, data) in enumerate(members.items())
    }


def framed(header, body):
    """A file of a header of one's choice."""
    text = header if isinstance(header, bytes) else canonical_json(header)
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def header_of(manifest, members, signature=None):
    signed = {} if signature is None else {"signature": signature.hex()}
    metadata = {"manifest": manifest.decode(), "digest": digest(manifest), **signed}
    return {"__metadata__": metadata, **tensors(members)}


def laid_out(parts):
    """A file of a manifest, perhaps a signature, and members, in the layout that is accepted."""
    members = {name: data for name, data in sorted(parts.items()) if name not in ("manifest", "signature")}
    return framed(header_of(parts["manifest"], members, parts.get("signature")), b"".join(members.values()))


def manifest(parts, **changes):
    described = {name: {"bytes": len(data), "sha256": digest(data)} for name, data in parts.items()}
    return {"format": KIND, "format_version": 1, "facts": {}, "members": described, "signer": None, **changes}


def assembled(parts=None, text=None, **changes):
    """An unsigned bundle with a manifest of one's choice."""
    parts = {"a.bin": b"1"} if parts is None else parts
    return laid_out({"manifest": canonical_json(manifest(parts, **changes)) if text is None else text, **parts})


def contents(bundle):
    return bundle.kind, bundle.facts, bundle.members, bundle.signer


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), JSON, max_size=4),
    st.dictionaries(NAMES, st.binary(max_size=50), max_size=4),
    st.sampled_from([None, KEY]),
)
def test_what_is_packed_is_unpacked(facts, members, key):
    data = pack(KIND, facts, members, key=key)
    assert contents(unpack(data)) == (KIND, facts, members, key and key.public)
    assert pack(KIND, dict(reversed(facts.items())), dict(reversed(members.items())), key=key) == data


def test_from_a_file(tmp_path):
    path = tmp_path / "a.dcshare"
    path.write_bytes(SIGNED)
    bundle = unpack(path, kind=KIND, signed_by=KEY.public)
    assert contents(bundle) == (KIND, FACTS, dict(sorted(MEMBERS.items())), KEY.public)
    assert bundle.digest == unpack(SIGNED).digest
    assert contents(unpack(str(path))) == contents(bundle)
    assert "\\x" not in repr(bundle), "a repr shows no members"


@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=4), st.sampled_from([None, KEY]))
def test_safetensors_reads_the_members(members, key):
    data = pack(KIND, FACTS, members, key=key)
    assert {name: array.tobytes() for name, array in safetensors.numpy.load(data).items()} == members
    assert data == laid_out(parts(data))


def test_safetensors_reads_the_manifest_and_makes_headers_as_long(tmp_path):
    (tmp_path / "a.dcshare").write_bytes(SIGNED)
    with safetensors.safe_open(tmp_path / "a.dcshare", "np") as file:
        said = file.metadata()
    assert unpack(SIGNED).digest == digest(said["manifest"].encode())
    KEY.public.verify(bytes.fromhex(said["signature"]), b"datacollab bundle 1\n" + said["manifest"].encode())
    for n_letters in range(16):
        data = pack(KIND, {"text": "x" * n_letters}, MEMBERS)
        arrays = safetensors.numpy.load(data)
        said = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
        assert len(safetensors.numpy.save(arrays, said)) == len(data)


def test_safetensors_is_not_needed_to_read_it(monkeypatch):
    for name in ("safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    assert unpack(SIGNED, signed_by=KEY.public).members == MEMBERS
    assert pack(KIND, FACTS, MEMBERS, key=KEY) == SIGNED


def test_the_digest_is_of_all_contents():
    variants = [pack(KIND, FACTS, MEMBERS, key=key) for key in (None, KEY, OTHER)] + [
        pack("datacollab.model", FACTS, MEMBERS),
        pack(KIND, {}, MEMBERS),
        pack(KIND, FACTS, {"a.bin": b""}),
    ]
    assert len({unpack(data).digest for data in variants}) == len(variants)


def test_kinds_and_later_versions_are_not_guessed_at():
    assert refusal(SIGNED, kind="datacollab.model") == "WRONG_KIND"
    assert refusal(assembled(format="somebody.else")) == "WRONG_KIND"
    with pytest.raises(ValueError, match="kind"):
        pack("datacollab.unknown", {}, {})
    later = manifest({}, format_version=2, new={"key": 1})
    assert refusal(assembled({}, text=canonical_json(later))) == "FORMAT_TOO_NEW"
    with pytest.raises(ExchangeError, match="version 2.*reads version 1"):
        unpack(assembled({}, text=canonical_json(later)))


def test_signatures():
    unsigned = pack(KIND, FACTS, MEMBERS)
    assert unpack(unsigned).signer is None
    assert refusal(unsigned, signed_by=KEY.public) == "SIGNATURE_MISSING"
    assert refusal(SIGNED, signed_by=OTHER.public) == "SIGNATURE_INVALID"
    with pytest.raises(ExchangeError, match=f"{KEY.public.fingerprint}.*{OTHER.public.fingerprint}"):
        unpack(SIGNED, signed_by=OTHER.public)


def parts(data=SIGNED):
    """The manifest, the signature if there is one, and the members of a file."""
    said = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    signature = {"signature": bytes.fromhex(said["signature"])} if "signature" in said else {}
    members = {name: array.tobytes() for name, array in safetensors.numpy.load(data).items()}
    return {"manifest": said["manifest"].encode()} | signature | dict(sorted(members.items()))


def test_what_was_changed_by_somebody_who_knows_the_format():
    """Hashes are made to fit again; the signature cannot be."""
    whole = parts()
    said = json.loads(whole["manifest"])
    assert refusal(laid_out({**whole, "a.bin": b"forged"})) == "BUNDLE_MALFORMED"
    forged_rows = {**whole, "rows.safetensors": bytes(200)}
    assert refusal(laid_out(forged_rows)) == "HASH_MISMATCH"
    said["members"]["rows.safetensors"]["sha256"] = digest(bytes(200))
    assert refusal(laid_out({**forged_rows, "manifest": canonical_json(said)})) == "SIGNATURE_INVALID"
    for change, code in (
        ({"facts": {}}, "SIGNATURE_INVALID"),
        ({"signer": OTHER.public.text}, "SIGNATURE_INVALID"),
        ({"signer": None}, "BUNDLE_MALFORMED"),
    ):
        said = {**json.loads(whole["manifest"]), **change}
        assert refusal(laid_out({**whole, "manifest": canonical_json(said)})) == code
    stripped = {name: data for name, data in whole.items() if name != "signature"}
    assert refusal(laid_out(stripped)) == "SIGNATURE_MISSING"
    # Of another key, and by the right one for something else.
    for signature in (OTHER.sign(b"datacollab bundle 1\n" + whole["manifest"]), KEY.sign(whole["manifest"])):
        assert refusal(laid_out({**whole, "signature": signature})) == "SIGNATURE_INVALID"


ONE = {"bytes": 1, "sha256": digest(b"1")}


@pytest.mark.parametrize(
    "changes",
    each(
        facts=[[], None],
        members=[
            *([], {}, {"a.bin": 1}, {"../a.bin": ONE}, {"a.bin": ONE | {"more": 1}}, {"a.bin": ONE | {"bytes": True}}),
            *({"a.bin": ONE | {"sha256": wrong}} for wrong in ("0" * 63, digest(b"1").upper())),
        ],
        format_version=[0, True, 1.0, "1", None],
        format=[None],
        signer=[5, "dcpub1-abc", KEY.public.text],
        more=[1],
    ),
)
def test_a_manifest_that_says_something_else(changes):
    expected = {"signer": "SIGNATURE_MISSING"} if changes.get("signer") == KEY.public.text else {}
    assert refusal(assembled(**changes)) == expected.get("signer", "BUNDLE_MALFORMED")


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"{", b"null", b'{"format":"datacollab.share"}'])
def test_a_manifest_that_is_none(text):
    assert refusal(assembled({}, text=text)) == "BUNDLE_MALFORMED"


GOOD = {"a.bin": b"1", "b.bin": b"2"}
SAID = canonical_json(manifest(GOOD))
HEADER = header_of(SAID, GOOD)
TEXT = canonical_json(HEADER)
A, B = HEADER["a.bin"], HEADER["b.bin"]
ARRAYS = {name: np.frombuffer(data, "u1") for name, data in GOOD.items()}


def with_metadata(**changes):
    return {**HEADER, "__metadata__": HEADER["__metadata__"] | changes}


def zipped():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest", SAID)
    return file.getvalue()


@pytest.mark.parametrize(
    "header",
    [
        *(b"", b"{}", b"[]", b"1", b"{", b"\xff", b'{"__metadata__":[]}', b"[" * 40 + b"]" * 40),
        *({}, {"__metadata__": {}}, {"__metadata__": {"manifest": {}}}, tensors(GOOD)),
        {"__metadata__": HEADER["__metadata__"]},
        {"__metadata__": HEADER["__metadata__"], "a.bin": A},
        HEADER | tensors({**GOOD, "c.bin": b""}),
        HEADER | tensors({"b.bin": b"2", "a.bin": b"1"}),
        *(
            HEADER | {"b.bin": B | {"data_offsets": offsets}}
            for offsets in ([0, 1], [0, 2], [1, 3], [2, 3], [1.0, 2.0])
        ),
        *(HEADER | {"b.bin": B | changes} for changes in ({"dtype": "I8"}, {"shape": [1, 1]}, {"more": 1})),
        HEADER | {"b.bin": {"dtype": "U8", "shape": [1]}},
        *(with_metadata(**changes) for changes in ({"more": "1"}, {"signature": ""}, {"signature": None})),
        with_metadata(digest={digest(SAID): digest(SAID)}),
        *(header_of(text, GOOD) for text in (SAID + b" ", json.dumps(manifest(GOOD)).encode())),
        json.dumps(HEADER, sort_keys=True).encode(),
        json.dumps(dict(reversed(HEADER.items())), separators=(",", ":")).encode(),
        TEXT.replace(b"a.bin", b"\\u0061.bin", 1),
        TEXT[:-1] + b',"b.bin":' + canonical_json(B) + b"}",
        *(TEXT + b" " * 8, b" " + TEXT, TEXT + b"\n", TEXT + b"\0"),
    ],
)
def test_other_headers_are_refused(header):
    assert refusal(framed(header, b"12")) == "BUNDLE_MALFORMED"


@pytest.mark.parametrize(
    "data",
    [
        *(framed(HEADER, b"12") + b"\0", framed(HEADER, b"1"), b"#!/bin/sh\n" + framed(HEADER, b"12")),
        len(TEXT).to_bytes(8, "little") + TEXT + b"12",
        *(safetensors.numpy.save(ARRAYS, said) for said in (None, HEADER["__metadata__"])),
        *(assembled({name: b"1"}) for name in ("/a.bin", "../a.bin", "é.bin", "A", "a" * 65, "_a", "1")),
        *(assembled({f"a{number:03}": b"" for number in range(n)}) for n in (63, 1000)),
        *(b"", bytes(7), bytes(8), bytes(100), b"\xff" * 100, zipped()),
    ],
)
def test_other_layouts_are_refused(data):
    assert refusal(data) == "BUNDLE_MALFORMED"


def test_the_layout_that_these_deviate_from_is_accepted():
    assert len(TEXT) % 8, "spaces fill it up"
    assert unpack(framed(HEADER, b"12")).members == GOOD
    assert len(unpack(assembled({f"a{number:03}": b"" for number in range(62)})).members) == 62


@pytest.mark.parametrize("wrong", [digest(b""), digest(SAID).upper(), "", None])
def test_a_digest_of_something_else(wrong):
    assert refusal(framed(with_metadata(digest=wrong), b"12")) == "HASH_MISMATCH"


def test_a_bundle_is_known_by_its_beginning():
    assert is_container(SIGNED)
    assert is_container(framed(HEADER, b"")[:40])
    arrays = {"a.bin": np.frombuffer(b"1", "u1")}
    for data in (b"", SIGNED[:20], b"x" * 100, zipped(), safetensors.numpy.save(arrays)):
        assert not is_container(data)


def test_a_signature_has_one_spelling():
    said = json.loads(SIGNED[8 : 8 + int.from_bytes(SIGNED[:8], "little")])["__metadata__"]["signature"]
    for other in (said.upper(), said[:2] + " " + said[2:], said + "0", "x" + said[1:]):
        assert refusal(SIGNED.replace(said.encode(), other.encode().ljust(128))) == "BUNDLE_MALFORMED"
    for other in (said[:-2], said + "00", ""):
        assert refusal(laid_out(parts() | {"signature": bytes.fromhex(other)})) == "SIGNATURE_INVALID"


def test_sizes_that_lie_take_no_memory():
    """Refused before anything is made."""
    lies, lies_more = (
        assembled(members={"a.bin": {"bytes": n_bytes, "sha256": digest(b"1")}}) for n_bytes in (10**9, 2**32)
    )
    much_behind = framed(HEADER, b"12") + bytes(50_000_000)
    long_header = (2**62).to_bytes(8, "little") + b"{" + bytes(1000)
    longer_than_allowed = (3 * 2**20).to_bytes(8, "little") + b"{" + bytes(3 * 2**20)
    tracemalloc.start()
    assert refusal(much_behind) == "BUNDLE_MALFORMED"
    assert refusal(lies) == "BUNDLE_MALFORMED"
    assert refusal(lies_more) == "TOO_LARGE"
    assert refusal(long_header) == "BUNDLE_MALFORMED"
    assert refusal(longer_than_allowed) == "TOO_LARGE"
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_limits(tmp_path):
    for limits in (Limits(total_bytes=100), Limits(member_bytes=199), Limits(header_bytes=100)):
        assert refusal(SIGNED, limits=limits) == "TOO_LARGE"
    exact = Limits(total_bytes=len(SIGNED), member_bytes=200, header_bytes=len(SIGNED) - 200)
    assert unpack(SIGNED, limits=exact).facts == FACTS
    sparse = tmp_path / "large.dcshare"
    with open(sparse, "wb") as file:
        file.truncate(3 * 1024**3)
    assert refusal(sparse) == "TOO_LARGE"
    assert refusal(assembled({}, text=b" " * 2**20)) == "TOO_LARGE"


def test_what_no_reader_would_take_is_not_written(monkeypatch):
    with refused_with("TOO_LARGE"):
        pack(KIND, {"text": "x" * 2**20}, {})
    for name in ("../a", "A", "", "a/b", "__metadata__", "a" * 65, "é"):
        with pytest.raises(ValueError, match="members"):
            pack(KIND, {}, {name: b""})
    with pytest.raises(ValueError, match="too many"):
        pack(KIND, {}, {f"a{number}": b"" for number in range(63)})
    assert len(unpack(pack(KIND, {}, {f"a{number}": b"" for number in range(62)}, key=KEY)).members) == 62
    for facts in ({"large": 10**50}, {"deep": json.loads("[" * 31 + "]" * 31)}):
        with refused_with("BUNDLE_MALFORMED"):
            pack(KIND, facts, {})
    with pytest.raises(TypeError):
        pack(KIND, {"when": object()}, {})
    with pytest.raises(ValueError, match="JSON"):
        pack(KIND, {"loss": float("nan")}, {})

    class Huge(bytes):
        def __len__(self):
            return 2 * 1024**3

    with refused_with("TOO_LARGE"):
        pack(KIND, {}, {"a": Huge(b"x")})


def test_places_that_hold_no_bundle(tmp_path):
    assert refusal(tmp_path / "no.dcshare") == "BUNDLE_MALFORMED"
    assert refusal(tmp_path) == "BUNDLE_MALFORMED"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "BUNDLE_MALFORMED"
    assert refusal("no\0name") == "BUNDLE_MALFORMED"
    with pytest.raises(ExchangeError, match=r"no\.dcshare does not exist"):
        unpack(tmp_path / "no.dcshare")


@pytest.mark.parametrize(
    ("code", "data", "options"),
    [
        ("BUNDLE_MALFORMED", b"[project]", {}),
        ("BUNDLE_MALFORMED", SIGNED[:-1], {}),
        ("WRONG_KIND", SIGNED, {"kind": "datacollab.anchor"}),
        ("SIGNATURE_INVALID", SIGNED, {"signed_by": OTHER.public}),
        ("TOO_LARGE", SIGNED, {"limits": Limits(total_bytes=1)}),
        ("SIGNATURE_INVALID", laid_out({**parts(), "signature": OTHER.sign(b"other")}), {}),
    ],
)
def test_a_refusal_names_the_file(tmp_path, code, data, options):
    path = tmp_path / "received.dcshare"
    path.write_bytes(data)
    for source, wanted in ((path, options), (data, {**options, "what": str(path)})):
        with pytest.raises(ExchangeError) as caught:
            unpack(source, **wanted)
        assert caught.value.code == code
        assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    path = tmp_path / "a.dcshare"
    path.write_bytes(SIGNED)

    def denied(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with refused_with("BUNDLE_MALFORMED", match="Permission denied"):
        unpack(path)


def test_a_file_too_large_for_the_memory(tmp_path, monkeypatch):
    def exhausted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("hashlib.sha256", exhausted)
    assert refusal(SIGNED) == "TOO_LARGE"


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
