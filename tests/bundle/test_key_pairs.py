import base64
import json
import os
import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyFile, KeyPair, PublicKey, key_with_proof
from datacollab.errors import ExchangeError
from refusals import each

KEY = KeyPair(b"\1" * 32, b"\2" * 32)
OTHER = KeyPair(b"\3" * 32, b"\4" * 32)
TEXT = KEY.public.text


def assert_refused(code, function, *arguments, words=()):
    with pytest.raises(ExchangeError) as caught:
        function(*arguments)
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "keys.json"


def test_keys_are_fresh_and_told_apart():
    keys = [KeyPair.generate() for _ in range(20)]
    assert len({key.public for key in keys}) == len({key.public.fingerprint for key in keys}) == 20
    assert KeyPair(b"\1" * 32, b"\2" * 32).public == KEY.public


def test_a_signature_is_of_these_bytes_by_this_key():
    signature = KEY.sign(b"contents")
    KEY.public.verify(signature, b"contents")
    Ed25519PublicKey.from_public_bytes(KEY.public.signing).verify(signature, b"contents")
    assert_refused("SIGNATURE_INVALID", KEY.public.verify, signature, b"Contents", words=[KEY.public.fingerprint])
    assert_refused("SIGNATURE_INVALID", OTHER.public.verify, signature, b"contents")
    for wrong in (b"", signature[:-1], signature + b"\0", bytes(64)):
        assert_refused("SIGNATURE_INVALID", KEY.public.verify, wrong, b"contents")


def test_every_bit_of_a_signature_counts():
    signature = KEY.sign(b"contents")
    for position in range(512):
        changed = bytearray(signature)
        changed[position // 8] ^= 1 << position % 8
        assert_refused("SIGNATURE_INVALID", KEY.public.verify, bytes(changed), b"contents")


def test_the_text_of_a_key():
    assert TEXT.startswith("dcpub1-")
    assert len(TEXT) == 116
    assert PublicKey.from_text(TEXT) == KEY.public
    assert PublicKey.from_text(f"  {TEXT}\r\n") == KEY.public
    groups = KEY.public.fingerprint.split("-")
    assert [len(group) for group in groups] == [4] * 4
    assert repr(KEY.public) == f"PublicKey({KEY.public.fingerprint})"


@given(st.integers(0, len(TEXT) - 1), st.sampled_from("abcdefghijklmnopqrstuvwxyz234567018-ABÄ \0"))
def test_a_letter_misread_is_noticed(position, letter):
    changed = TEXT[:position] + letter + TEXT[position + 1 :]
    if changed.strip() != TEXT:
        assert_refused("KEY_MALFORMED", PublicKey.from_text, changed)


@given(st.text() | st.text("abcdefghijklmnopqrstuvwxyz234567", max_size=120).map("dcpub1-".__add__))
def test_text_that_is_no_key_is_refused(text):
    swapped = [TEXT[:at] + TEXT[at + 1] + TEXT[at] + TEXT[at + 2 :] for at in range(7, len(TEXT) - 1)]
    for wrong in (text, "", TEXT[:-1], TEXT + "a", TEXT[7:], TEXT.upper(), f"{TEXT} {TEXT}", *({*swapped} - {TEXT})):
        assert_refused("KEY_MALFORMED", PublicKey.from_text, wrong)


def test_the_file_of_a_public_key(tmp_path):
    path = tmp_path / "public.key"
    path.write_text(TEXT + "\n")
    assert PublicKey.load(path) == KEY.public
    path.write_bytes(b"\xff\xfe")
    assert_refused("KEY_MALFORMED", PublicKey.load, path, words=[str(path)])
    path.write_text(TEXT[:-3])
    assert_refused("KEY_MALFORMED", PublicKey.load, path, words=[str(path)])
    path.write_bytes(b" " * 10_000_000)
    assert_refused("KEY_MALFORMED", PublicKey.load, path)
    KeyPair.generate().save(tmp_path / "keys.json")
    assert_refused("KEY_MALFORMED", PublicKey.load, tmp_path / "keys.json", words=["secret keys", "public.key"])
    assert_refused("KEY_MISSING", PublicKey.load, tmp_path / "no.key", words=["no.key"])
    assert_refused("KEY_MISSING", PublicKey.load, tmp_path)


def test_a_public_key_is_signed_by_its_owner(tmp_path):
    path = tmp_path / "public.key"
    path.write_text(key_with_proof(KEY))
    assert PublicKey.load(path, proven=True) == PublicKey.load(path) == KEY.public
    word, proof = path.read_text().split()
    assert word == TEXT
    signature = base64.b32decode(proof.removeprefix("dcproof1-").upper() + "=")
    signed = b"datacollab public key 1 proof\n" + KEY.public.signing + KEY.public.sealing
    Ed25519PublicKey.from_public_bytes(KEY.public.signing).verify(signature, signed)
    path.write_text(f"{TEXT}\n")
    assert PublicKey.load(path) == KEY.public
    with pytest.raises(ExchangeError, match="without its owner's signature"):
        PublicKey.load(path, proven=True)


def test_halves_of_two_people_are_no_key(tmp_path):
    """Whoever puts another's half beside one of their own cannot sign both for them."""
    path = tmp_path / "public.key"
    mixed = PublicKey(KEY.public.signing, OTHER.public.sealing)
    _, own_proof = key_with_proof(KEY).split()
    _, other_proof = key_with_proof(OTHER).split()
    damaged = (own_proof[:-1], own_proof[9:], "dcproof1-", "dcproof1-\u00e4", f"{own_proof} x")
    for proof in (own_proof, other_proof, *damaged):
        path.write_text(f"{mixed.text}\n{proof}\n", encoding="utf-8")
        assert_refused("KEY_MALFORMED", PublicKey.load, path, words=[str(path)])
    path.write_text(f"{TEXT}\n{other_proof}\n")
    assert_refused("KEY_MALFORMED", PublicKey.load, path, words=["halves may be of two people"])


@pytest.mark.parametrize("passphrase", [None, "correct horse"])
def test_keys_come_back(path, passphrase):
    before = os.umask(0)
    try:
        KEY.save(path, passphrase)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    loaded = KeyPair.load(path, passphrase)
    assert loaded.public == KeyPair.load(path, passphrase or "not needed").public == KEY.public
    KEY.public.verify(loaded.sign(b"x"), b"x")
    assert KeyFile.read(path).encrypted == (passphrase is not None)
    assert KeyFile.read(path).public == KEY.public


def test_keys_are_never_overwritten(path):
    KEY.save(path)
    assert_refused("ALREADY_THERE", OTHER.save, path, words=[str(path)])
    assert KeyPair.load(path).public == KEY.public


def test_a_passphrase_has_to_be_the_one(path):
    KEY.save(path, "Straße é")
    assert KeyPair.load(path, "Straße e\N{COMBINING ACUTE ACCENT}").public == KEY.public
    for wrong in ("strasse", "Straße", "", "Straße é "):
        assert_refused("PASSPHRASE_WRONG", KeyPair.load, path, wrong, words=[str(path)])
    assert_refused("PASSPHRASE_WRONG", KeyPair.load, path, words=["--passphrase-file", str(path)])


def test_the_secret_is_shown_nowhere(path):
    KEY.save(path, "correct horse")
    text = path.read_text()
    for secret in (b"\1" * 32, b"\2" * 32):
        for spelled in (secret.hex(), base64.b64encode(secret).decode()[:40], repr(secret)[2:-1]):
            assert spelled not in text
            assert spelled not in repr(KEY) + str(vars(KeyFile.read(path))["public"]) + repr(KeyFile.read(path))
    assert repr(KEY) == f"KeyPair({KEY.public.fingerprint})"


def test_keys_that_are_missing_or_of_a_later_version(tmp_path, path):
    assert_refused(
        "KEY_MISSING", KeyPair.load, tmp_path / "keys.json", words=["with -C", "datacollab keys new", str(tmp_path)]
    )
    assert_refused("KEY_MISSING", KeyPair.load, tmp_path)
    KEY.save(path)
    path.write_text(path.read_text().replace('"format_version":1', '"format_version":2'))
    assert_refused("FORMAT_TOO_NEW", KeyPair.load, path, words=["Upgrade"])


@pytest.mark.parametrize(
    "change",
    [
        *each(format=["datacollab.share"], format_version=[0, "2"], encrypted=[1, True], secret=["AAAA", "?", 7, "é"]),
        *each(public=[OTHER.public.text, TEXT[:-1], None]),
        *(None, [], "text"),
    ],
)
def test_a_damaged_file_of_keys(path, change):
    KEY.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change if isinstance(change, dict) else change))
    assert_refused("KEY_MALFORMED", KeyPair.load, path, "x", words=[str(path)])


@given(st.data())
def test_any_change_of_a_file_of_keys_is_noticed_or_harmless(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    KEY.save(path)
    contents = bytearray(path.read_bytes())
    contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(contents)
    try:
        loaded = KeyPair.load(path).public
    except ExchangeError as error:
        loaded = error.code
    assert loaded in (KEY.public, "KEY_MALFORMED", "FORMAT_TOO_NEW")


def test_a_short_passphrase_is_refused(path):
    assert_refused("PASSPHRASE_WEAK", KEY.save, path, "seven77", words=["8 or more"])
    assert not path.exists()
    KEY.save(path, "eight888")


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o601])
def test_keys_that_others_can_read_are_not_used(path, mode):
    KEY.save(path)
    path.chmod(mode)
    assert_refused("KEY_EXPOSED", KeyPair.load, path, words=["chmod 600", f"{mode:o}"])
    path.chmod(0o400)
    assert KeyPair.load(path).public == KEY.public


P, D = 2**255 - 19, -121665 * pow(121666, -1, 2**255 - 19) % (2**255 - 19)


def times_eight(encoded):
    """Eight times a point of Ed25519, by its own addition law; None where the bytes are no point."""
    y = (int.from_bytes(encoded, "little") & (2**255 - 1)) % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P:
        return None
    for _ in range(3):
        product = D * x * x * y * y
        x, y = 2 * x * y * pow(1 + product, -1, P) % P, (y * y + x * x) * pow(1 - product, -1, P) % P
    return x, y


OF_SMALL_ORDER = [
    *(byte + bytes(31) for byte in (b"\0", b"\1")),
    *(bytes([last]) + b"\xff" * 30 + b"\x7f" for last in (0xEC, 0xED, 0xEE)),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
]


@pytest.mark.parametrize("point", OF_SMALL_ORDER, ids=bytes.hex)
@pytest.mark.parametrize("sign", [0, 0x80])
def test_points_under_which_everybody_can_sign_are_no_keys(point, sign):
    assert times_eight(point) == (0, 1)
    signing = point[:31] + bytes([point[31] | sign])
    text = PublicKey(signing, KEY.public.sealing).text
    assert_refused("KEY_MALFORMED", PublicKey.from_text, text, words=["everybody"])


def test_an_honest_key_is_of_large_order():
    assert times_eight(KEY.public.signing) not in (None, (0, 1))
