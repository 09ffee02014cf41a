"""Files that were kept are read, written the same, and docs/formats.md suffices to read them.

The readers below were written from that page alone, without the package.
"""

import base64
import hashlib
import hmac
import json
import re
import struct
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from datacollab.bundle import KeyPair, PublicKey, arrays_to_bytes, decrypt, list_recipients, pack, unpack, unseal
from datacollab.folder.log import AuditLog

HERE = Path(__file__).parent / "formats"
KEY, OTHER = KeyPair(b"\1" * 32, b"\2" * 32), KeyPair(b"\3" * 32, b"\4" * 32)
PASSPHRASE = "correct horse é"
FACTS = {"party": "north", "n_rows": 2, "risk": 0.25, "classes": ["a", "é"], "supersedes": None, "kept": True}
ARRAYS = {"rows": np.array([[1.0, -2.5], [0.1, 3.0]]), "ok": np.array([True, False])}
PURPOSE = "anchor of 12ab"


def file(name):
    return (HERE / name).read_bytes()


def test_bundles_are_still_written_the_same():
    members = {"note.bin": b"\x00\xff", "share.safetensors": arrays_to_bytes(ARRAYS)}
    assert pack("datacollab.share", FACTS, members, key=KEY) == file("signed.dcshare")
    assert pack("datacollab.model", {"party": "north"}, unpack(HERE / "unsigned.dcmodel").members) == file(
        "unsigned.dcmodel"
    )


def test_keys_seals_passphrases_and_logs(tmp_path):
    assert PublicKey.load(HERE / "public.key") == KEY.public
    for name, passphrase in (("keys.json", None), ("encrypted-keys.json", PASSPHRASE)):
        (tmp_path / name).write_bytes(file(name))
        (tmp_path / name).chmod(0o600)
        assert KeyPair.load(tmp_path / name, passphrase).public == KEY.public
    for key in (KEY, OTHER):
        assert unseal(file("seal.bin"), key, purpose=PURPOSE) == b"the anchor"
    assert list_recipients(file("seal.bin")) == [OTHER.public.fingerprint, KEY.public.fingerprint]
    assert decrypt(file("passphrase.bin"), PASSPHRASE) == b"the state"
    log = AuditLog(HERE / "log.jsonl")
    assert log.verify() == log.entries()[1]["hash"]
    assert [entry["event"] for entry in log.entries()] == ["joined", "shared"]


def documented(data):
    """The manifest's text, the signature if there is one, and the members."""
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    metadata = header.pop("__metadata__")
    members, stop = {}, 0
    for name, size in sorted(
        (name, each["bytes"]) for name, each in json.loads(metadata["manifest"])["members"].items()
    ):
        assert header.pop(name) == {"dtype": "U8", "shape": [size], "data_offsets": [stop, stop + size]}
        members[name] = body[stop : stop + size]
        stop += size
    assert (header, len(body)) == ({}, stop)
    assert metadata["digest"] == hashlib.sha256(metadata["manifest"].encode()).hexdigest()
    assert (len(data[: 8 + length]) % 8, data[8 : 8 + length].strip()[-1:]) == (0, b"}")
    return metadata["manifest"], metadata.get("signature"), members


def page():
    return (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_manifests_have_the_documented_kinds_and_keys():
    files, manifest = (
        page().partition(f"{heading}\n")[2].partition("\n#")[0] for heading in ("# File formats", "### Manifest")
    )
    with pytest.raises(ValueError, match="expected one of") as refusal:
        pack("datacollab.else", {}, {})
    kinds = set(re.findall(r"(datacollab\.[a-z-]+)[,.]", str(refusal.value)))
    assert set(re.findall(r"`(datacollab\.[a-z-]+)`", files)) == kinds
    keys = set(re.findall(r"^\| `(\w+)` \|", manifest, flags=re.MULTILINE))
    for name in ("signed.dcshare", "unsigned.dcmodel"):
        assert json.loads(documented(file(name))[0]).keys() == keys


def documented_key(text):
    assert text.startswith("dcpub1-")
    data = base64.b32decode(text[7:].upper() + "===")
    halves, checksum = data[:64], data[64:]
    assert checksum == hashlib.sha256(b"datacollab public key 1 checksum\n" + halves).digest()[:4]
    return halves[:32], halves[32:]


def documented_fingerprint(halves):
    letters = base64.b32encode(hashlib.sha256(b"datacollab public key 1 fingerprint\n" + halves).digest()[:10])
    return "-".join(letters.decode().lower()[start : start + 4] for start in (0, 4, 8, 12))


@pytest.mark.parametrize("name", ["signed.dcshare", "unsigned.dcmodel"])
def test_the_documented_container_and_manifest(name):
    text, signature, members = documented(file(name))
    manifest = json.loads(text)
    assert (signature is None) == (manifest["signer"] is None)
    if signature is not None:
        signing, _ = documented_key(manifest["signer"])
        signed = b"datacollab bundle 1\n" + text.encode()
        Ed25519PublicKey.from_public_bytes(signing).verify(bytes.fromhex(signature), signed)
    bundle = unpack(HERE / name)
    assert hashlib.sha256(text.encode()).hexdigest() == bundle.digest
    found = {key: {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()} for key, body in members.items()}
    assert found == manifest["members"]
    assert (members, manifest["facts"]) == (bundle.members, bundle.facts)


def documented_plain(data, passphrase):
    magic, log2_n, r, p, salt, nonce = struct.unpack(">8sBBB16s12s", data[:39])
    assert magic == b"dcpass01"
    secret = unicodedata.normalize("NFKC", passphrase).encode()
    key = Scrypt(salt=salt, length=32, n=2**log2_n, r=r, p=p).derive(secret)
    return ChaCha20Poly1305(key).decrypt(nonce, data[39:], data[:39])


def test_the_documented_keys():
    halves = b"".join(documented_key(file("public.key").decode().strip()))
    assert documented_fingerprint(halves) == KEY.public.fingerprint
    for name in ("keys.json", "encrypted-keys.json"):
        contents = json.loads(file(name))
        secret = base64.b64decode(contents["secret"])
        secret = documented_plain(secret, PASSPHRASE) if contents["encrypted"] else secret
        assert Ed25519PrivateKey.from_private_bytes(secret[:32]).public_key().public_bytes_raw() == halves[:32]
        assert X25519PrivateKey.from_private_bytes(secret[32:]).public_key().public_bytes_raw() == halves[32:]
    assert documented_plain(file("passphrase.bin"), PASSPHRASE) == b"the state"


def documented_unwrapped(wrapped, secret, info):
    """Open HPKE in base mode as RFC 9180, sections 4 and 5, has it."""
    kem, suite = b"KEM\x00\x20", b"HPKE\x00\x20\x00\x01\x00\x03"

    def extracted(salt, label, material, suite):
        return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + material, "sha256")

    def expanded(secret, label, info, length, suite):
        info = length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
        return HKDFExpand(hashes.SHA256(), length, info).derive(secret)

    private, encapsulated = X25519PrivateKey.from_private_bytes(secret), wrapped[:32]
    agreed = private.exchange(X25519PublicKey.from_public_bytes(encapsulated))
    context = encapsulated + private.public_key().public_bytes_raw()
    shared = expanded(extracted(b"", b"eae_prk", agreed, kem), b"shared_secret", context, 32, kem)
    schedule = b"\0" + extracted(b"", b"psk_id_hash", b"", suite) + extracted(b"", b"info_hash", info, suite)
    secret = extracted(shared, b"secret", b"", suite)
    key, nonce = (expanded(secret, label, schedule, n, suite) for label, n in ((b"key", 32), (b"base_nonce", 12)))
    return ChaCha20Poly1305(key).decrypt(nonce, wrapped[32:], b"")


def test_the_documented_seal():
    data = file("seal.bin")
    magic, n, commitment = struct.unpack(">8sH32s", data[:42])
    assert (magic, n) == (b"dcseal01", 2)
    slots = {data[42 + 90 * i : 52 + 90 * i]: data[52 + 90 * i : 132 + 90 * i] for i in range(n)}
    header, body = data[: 42 + 90 * n], data[42 + 90 * n :]
    halves = KEY.public.signing + KEY.public.sealing
    own = hashlib.sha256(b"datacollab public key 1 fingerprint\n" + halves).digest()[:10]
    secret = base64.b64decode(json.loads(file("keys.json"))["secret"])
    content_key = documented_unwrapped(slots[own], secret[32:], b"datacollab seal 1 key\n" + PURPOSE.encode())
    assert hashlib.sha256(b"datacollab seal 1 commitment\n" + content_key).digest() == commitment
    plain = ChaCha20Poly1305(content_key).decrypt(bytes(12), body, header + PURPOSE.encode())
    assert plain == b"the anchor"


def test_the_documented_log():
    previous = "0" * 64
    for number, line in enumerate(file("log.jsonl").splitlines(), start=1):
        entry = json.loads(line)
        found = entry.pop("hash")
        assert (entry["number"], entry["previous"]) == (number, previous)
        text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256(b"datacollab log 1\n" + text.encode()).hexdigest()
        assert previous == found
