import io
import json
import os
import struct
import tracemalloc
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyPair, Limits, canonical_json, digest, pack, unpack
from datacollab.errors import ExchangeError
from refusals import each, refused_with

KEY, OTHER = KeyPair(b"\1" * 32, b"\2" * 32), KeyPair(b"\3" * 32, b"\4" * 32)
KIND = "datacollab.share"
FACTS = {"party": "north", "n_rows": 100, "task": {"kind": "classification", "classes": ["a", "é"]}}
MEMBERS = {"rows.safetensors": bytes(range(200)), "a.bin": b""}
SIGNED = pack(KIND, FACTS, MEMBERS, key=KEY)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,63}", fullmatch=True).filter(lambda name: name != "manifest.json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(st.characters(codec="utf-8"), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def refusal(source, **options):
    with pytest.raises(ExchangeError) as caught:
        unpack(source, **options)
    return caught.value.code


def zipped(members, *, compression=zipfile.ZIP_STORED, date=(1980, 1, 1, 0, 0, 0)):
    """A file as the general library writes it, in the layout that is wanted where nothing else is asked for."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, date)
            info.create_system, info.compress_type = 3, compression
            archive.writestr(info, data)
    return file.getvalue()


def manifest(parts, **changes):
    described = {name: {"bytes": len(data), "sha256": digest(data)} for name, data in parts.items()}
    return {"format": KIND, "format_version": 1, "facts": {}, "members": described, "signer": None, **changes}


def assembled(parts=None, text=None, **changes):
    """An unsigned bundle with a manifest of one's choice."""
    parts = {"a.bin": b"1"} if parts is None else parts
    return zipped({"manifest.json": canonical_json(manifest(parts, **changes)) if text is None else text, **parts})


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


def test_the_general_library_reads_it_and_writes_the_same():
    with zipfile.ZipFile(io.BytesIO(SIGNED)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "SIGNATURE", *sorted(MEMBERS)]
        members = {name: archive.read(name) for name in archive.namelist()}
    assert zipped(members) == SIGNED
    assert unpack(SIGNED).digest == digest(members["manifest.json"])


def test_the_digest_is_of_all_contents():
    variants = [pack(KIND, FACTS, MEMBERS, key=key) for key in (None, KEY, OTHER)] + [
        pack("datacollab.model", FACTS, MEMBERS),
        pack(KIND, {}, MEMBERS),
        pack(KIND, FACTS, {"a.bin": b""}),
    ]
    assert len({unpack(data).digest for data in variants}) == len(variants)


def test_kinds():
    assert refusal(SIGNED, kind="datacollab.model") == "WRONG_KIND"
    assert refusal(assembled(format="somebody.else")) == "WRONG_KIND"
    with pytest.raises(ValueError, match="kind"):
        pack("datacollab.unknown", {}, {})


def test_a_later_version_is_not_guessed_at():
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


def parts():
    with zipfile.ZipFile(io.BytesIO(SIGNED)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_what_was_changed_by_somebody_who_knows_the_format():
    """Checksums and hashes are made to fit again; the signature cannot be."""
    whole = parts()
    said = json.loads(whole["manifest.json"])
    forged_rows = {**whole, "a.bin": b"forged"}
    code = refusal(zipped(forged_rows))
    assert code == "HASH_MISMATCH"
    said["members"]["a.bin"] = {"bytes": 6, "sha256": digest(b"forged")}
    assert refusal(zipped({**forged_rows, "manifest.json": canonical_json(said)})) == "SIGNATURE_INVALID"
    said = {**json.loads(whole["manifest.json"]), "facts": {}}
    assert refusal(zipped({**whole, "manifest.json": canonical_json(said)})) == "SIGNATURE_INVALID"
    said = {**json.loads(whole["manifest.json"]), "signer": OTHER.public.text}
    assert refusal(zipped({**whole, "manifest.json": canonical_json(said)})) == "SIGNATURE_INVALID"
    said = {**json.loads(whole["manifest.json"]), "signer": None}
    assert refusal(zipped({**whole, "manifest.json": canonical_json(said)})) == "BUNDLE_MALFORMED"
    stripped = {name: data for name, data in whole.items() if name != "SIGNATURE"}
    assert refusal(zipped(stripped)) == "SIGNATURE_MISSING"
    with_other_seal = {**whole, "SIGNATURE": OTHER.sign(b"datacollab bundle 1\n" + whole["manifest.json"])}
    assert refusal(zipped(with_other_seal)) == "SIGNATURE_INVALID"


def test_a_signature_from_elsewhere_is_none_of_a_bundle():
    whole = parts()
    assert refusal(zipped({**whole, "SIGNATURE": KEY.sign(whole["manifest.json"])})) == "SIGNATURE_INVALID"


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


@pytest.mark.parametrize("text", [b"", b"[]", b"1", b"\xff", b"{", b"null", b'{"format":"datacollab.share"}'])
def test_a_manifest_that_is_none(text):
    assert refusal(assembled({}, text=text)) == "BUNDLE_MALFORMED"


GOOD = {"manifest.json": canonical_json(manifest({"a.bin": b"1", "b.bin": b"2"})), "a.bin": b"1", "b.bin": b"2"}


def twice():
    """A member that is there twice, so that readers may differ in which of them they take."""
    file = io.BytesIO(zipped(GOOD))
    with zipfile.ZipFile(file, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(zipfile.ZipInfo("b.bin"), b"2")
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        zipped(GOOD, compression=zipfile.ZIP_DEFLATED),
        zipped(GOOD, compression=zipfile.ZIP_LZMA),
        zipped(GOOD, date=(2026, 1, 1, 0, 0, 0)),
        zipped({"a.bin": b"1", **GOOD}),
        zipped({name: GOOD[name] for name in ("manifest.json", "b.bin", "a.bin")}),
        zipped({name: GOOD[name] for name in ("manifest.json", "a.bin")}),
        zipped({**GOOD, "c.bin": b"3"}),
        zipped({name: data for name, data in GOOD.items() if name != "manifest.json"}),
        zipped({}),
        zipped({"manifest.json": GOOD["manifest.json"], "/a.bin": b"1", "b.bin": b"2"}),
        zipped({"manifest.json": GOOD["manifest.json"], "../a.bin": b"1", "b.bin": b"2"}),
        zipped({"manifest.json": GOOD["manifest.json"], "a.bin": b"1", "é.bin": b"2"}),
        zipped({"manifest.json": GOOD["manifest.json"], "a" * 65: b""}),
        assembled({f"{number:03}": b"" for number in range(63)}),
        assembled({f"{number:03}": b"" for number in range(1000)}),
        b"#!/bin/sh\n" + zipped(GOOD),
        zipped(GOOD) + b"\0",
        zipped(GOOD)[:-2] + b"\5\0hello",
        zipped(GOOD)[:-22],
        twice(),
        b"",
        b"PK\5\6" + bytes(18),
        b"PK\3\4",
    ],
)
def test_other_layouts_are_refused(data):
    assert refusal(data) == "BUNDLE_MALFORMED"


def test_the_layout_that_these_deviate_from_is_accepted():
    assert unpack(zipped(GOOD)).members == {"a.bin": b"1", "b.bin": b"2"}


def test_a_bomb_does_not_go_off():
    """Gigabytes that compress to kilobytes, and sizes that lie: refused before anything is made."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = b"".join(compressor.compress(bytes(10**7)) for _ in range(20)) + compressor.flush()
    name = b"a.bin"
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 33, 0, len(bomb), 2 * 10**8, len(name), 0)
    lies = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 33, 0, 10**9, 10**9, len(name), 0)
    lies_more = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 33, 0, 2**32 - 1, 2**32 - 1, len(name), 0)
    much_behind = zipped(GOOD) + bytes(50_000_000)
    tracemalloc.start()
    assert refusal(much_behind) == "BUNDLE_MALFORMED"
    assert refusal(local + name + bomb) == "BUNDLE_MALFORMED"
    assert refusal(lies + name + bytes(1000)) == "BUNDLE_MALFORMED"
    assert refusal(lies_more + name + bytes(1000)) == "TOO_LARGE"
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_more_members_than_can_be_counted():
    header = struct.Struct("<4s5H3I2H5s")
    fields = (b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, 5, 0)
    members = b"".join(header.pack(*fields, b"%05d" % number) for number in range(70_000))
    assert refusal(members + b"PK\1\2" + bytes(60)) == "BUNDLE_MALFORMED"


def test_limits(tmp_path):
    for limits in (Limits(total_bytes=100), Limits(member_bytes=199), Limits(manifest_bytes=100)):
        assert refusal(SIGNED, limits=limits) == "TOO_LARGE"
    exact = Limits(total_bytes=len(SIGNED), member_bytes=200, manifest_bytes=len(parts()["manifest.json"]))
    assert unpack(SIGNED, limits=exact).facts == FACTS
    sparse = tmp_path / "large.dcshare"
    with open(sparse, "wb") as file:
        file.truncate(3 * 1024**3)
    assert refusal(sparse) == "TOO_LARGE"
    assert refusal(zipped({"manifest.json": b" " * (2**20 + 1)})) == "TOO_LARGE"


def test_what_no_reader_would_take_is_not_written(monkeypatch):
    with refused_with("TOO_LARGE"):
        pack(KIND, {"text": "x" * 2**20}, {})
    for name in ("../a", "A", "", "a/b", "manifest.json", "SIGNATURE", "a" * 65, "é"):
        with pytest.raises(ValueError, match="members"):
            pack(KIND, {}, {name: b""})
    with pytest.raises(ValueError, match="too many"):
        pack(KIND, {}, {str(number): b"" for number in range(63)})
    assert len(unpack(pack(KIND, {}, {str(number): b"" for number in range(62)}, key=KEY)).members) == 62
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
        ("SIGNATURE_INVALID", zipped({**parts(), "SIGNATURE": OTHER.sign(b"other")}), {}),
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

    monkeypatch.setattr("zlib.crc32", exhausted)
    assert refusal(SIGNED) == "TOO_LARGE"
