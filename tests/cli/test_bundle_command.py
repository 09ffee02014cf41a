import json
import re

import numpy as np

from datacollab.bundle import KeyPair, arrays_to_bytes, encrypt, pack, seal
from playing import assert_refused, runs

run = runs("bundle")


KEY, OTHER = KeyPair(b"\1" * 32, b"\2" * 32), KeyPair(b"\3" * 32, b"\4" * 32)
FACTS = {"party": "north", "n_rows": 3, "task": {"kind": "classification", "classes": ["a", "b"]}, "supersedes": None}
ARRAYS = {"rows": np.full((3, 2), 4711.25), "n": np.array(815)}
VERIFICATION = 11


def facts_of(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def share(facts=FACTS, members=None, key=KEY):
    members = {"share.safetensors": arrays_to_bytes(ARRAYS)} if members is None else members
    return pack("datacollab.share", facts, members, key=key)


def test_inspect(write):
    data = share()
    result = run("inspect", write("a.dcshare", data))
    assert result.exit_code == 0, result.output
    for words in (
        *(["datacollab.share", "whole"], ["signed by", KEY.public.fingerprint], ["party", "north"]),
        *(["task.classes", '["a", "b"]'], ["supersedes", "null"]),
        *(["share.safetensors", f"{len(arrays_to_bytes(ARRAYS))} bytes"], ["rows", "3 x 2", "float64"]),
        ["n:", "one number", "int64"],
    ):
        assert any(all(word in line for word in words) for line in result.stdout.splitlines()), words
    # As numbers of their own: digests and the name of the test's folder may have these digits.
    entries = set(re.findall(r"(?<![\w-])(?:4711|815)(?!\w)", result.stdout))
    assert not entries, "shapes, never entries"


def test_inspect_as_json(write):
    found = facts_of(run("inspect", write("a.dcshare", share()), "--json"))
    assert found["facts"] == FACTS
    assert (found["kind"], found["signer"]) == ("datacollab.share", KEY.public.fingerprint)
    assert found["members"]["share.safetensors"]["arrays"]["rows"] == {"dtype": "float64", "shape": [3, 2]}


def test_what_is_visible_of_a_seal(write):
    members = {"sealed.bin": seal(b"contents", [KEY.public, OTHER.public], purpose="p")}
    path = write("a.dcshare", share(members=members))
    text = run("inspect", path).stdout
    assert f"sealed to {KEY.public.fingerprint}" in text
    assert f"sealed to {OTHER.public.fingerprint}" in text
    found = facts_of(run("inspect", path, "--json"))["members"]["sealed.bin"]
    assert found == {
        "bytes": len(members["sealed.bin"]),
        "sealed_to": [KEY.public.fingerprint, OTHER.public.fingerprint],
    }


def test_text_of_others_cannot_steer_the_terminal(write):
    facts = {"party": "\x1b[2J\x07north\nsouth\u202e", "\x1b[31m": 1, "long": "x" * 5000, "list": ["\x1b"]}
    members = {"share.safetensors": arrays_to_bytes({"\x1b[31mred": np.zeros(1)})}
    path = write("a.dcshare", share(facts, members))
    text = run("inspect", path).stdout
    assert not set("\x1b\x07\u202e") & set(text)
    assert not any(line.startswith("south") for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 400


def test_a_file_under_a_passphrase(write):
    path = write("party.dcstate", encrypt(share(), "correct horse"))
    result = run("inspect", path)
    assert_refused(result, "BUNDLE_MALFORMED", VERIFICATION, str(path), "is under a passphrase;")


def test_verify(write, tmp_path):
    path, key = write("a.dcshare", share()), tmp_path / "public.key"
    result = run("verify", path)
    assert result.exit_code == 0
    assert KEY.public.fingerprint in result.stdout
    assert "--signed-by" in result.stdout
    key.write_text(KEY.public.text + "\n")
    result = run("verify", path, "--signed-by", key)
    assert result.exit_code == 0
    assert f"That is the key in {key}" in result.stdout
    key.write_text(OTHER.public.text + "\n")
    assert_refused(run("verify", path, "--signed-by", key), "SIGNATURE_INVALID", VERIFICATION, OTHER.public.fingerprint)
    key.write_text("no key")
    assert_refused(run("verify", path, "--signed-by", key), "KEY_MALFORMED", 10, str(key))


def test_verify_what_is_not_signed(write, tmp_path):
    path, key = write("a.dcshare", share(key=None)), tmp_path / "public.key"
    result = run("verify", path)
    assert result.exit_code == 0
    assert "signed by  nobody" in result.stdout
    assert facts_of(run("verify", path, "--json"))["signer"] is None
    key.write_text(KEY.public.text)
    assert_refused(run("verify", path, "--signed-by", key), "SIGNATURE_MISSING", VERIFICATION)


def test_verify_refuses(write, tmp_path):
    data = bytearray(share())
    data[data.index(b"north")] ^= 1
    assert_refused(run("verify", write("changed.dcshare", bytes(data))), "HASH_MISMATCH", VERIFICATION)
    result = run("verify", tmp_path / "no.dcshare", "--json")
    assert json.loads(result.stdout)["error"]["code"] == "BUNDLE_MALFORMED"
