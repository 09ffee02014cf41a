"""Commands on single files: keys, bundles, logs, and data sets."""

import json
import os
import re
import stat

import numpy as np
import pytest

from datacollab import datasets
from datacollab.bundle import KeyPair, PublicKey, arrays_to_bytes, encrypt, mask_card_in, pack, seal
from datacollab.folder.log import AuditLog
from playing import assert_one_line, assert_refused, interrupted, runs

run_keys, run_bundle, run_log, run_data = map(runs, ("keys", "bundle", "log", "data"))
KEYS, VERIFICATION, STATE = 10, 11, 14


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def no_passphrase(monkeypatch):
    monkeypatch.delenv("DATACOLLAB_PASSPHRASE", raising=False)


@pytest.fixture
def word_file(tmp_path):
    path = tmp_path / "word.txt"
    path.write_text("correct horse\r\n")
    return path


def test_new_keys_for_several_folders(tmp_path):
    folders = [tmp_path / "a", tmp_path / "deep" / "b"]
    before = os.umask(0)
    try:
        result = run_keys("new", *folders)
    finally:
        os.umask(before)
    assert result.exit_code == 0, result.output
    for folder in folders:
        pair = KeyPair.load(folder / "keys.json")
        assert PublicKey.load(folder / "public.key", proven=True) == pair.public
        assert (mode_of(folder), mode_of(folder / "keys.json")) == (0o700, 0o600)
        assert f"{folder}: keys.json (secret), public.key: {pair.public.fingerprint}\n" in result.stdout
    assert len({KeyPair.load(folder / "keys.json").public for folder in folders}) == 2


def test_a_folder_that_is_there_is_closed_to_others(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir(mode=0o755)
    (folder / "patients.csv").write_text("age\n")
    assert run_keys("new", folder).exit_code == 0
    assert mode_of(folder) == 0o700
    assert sorted(os.listdir(folder)) == [".lock", "keys.json", "mask.dcstate", "patients.csv", "public.key"]


def test_a_mask_key_comes_with_them(tmp_path, word_file):
    assert run_keys("new", tmp_path / "a", "--passphrase-file", word_file).exit_code == 0
    card = mask_card_in(tmp_path / "a" / "public.key")
    again = json.loads(run_keys("mask", "-C", tmp_path / "a", "--passphrase-file", word_file, "--json").stdout)
    assert again["mask_key"] == card, "an unused one is kept"
    assert mode_of(tmp_path / "a" / "mask.dcstate") == 0o600


@pytest.mark.parametrize("name", ["keys.json", "public.key", "mask.dcstate"])
def test_nothing_is_overwritten_and_nothing_made_besides(tmp_path, name):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).write_text("mine")
    assert_refused(run_keys("new", tmp_path / "a", tmp_path / "b"), "ALREADY_THERE", STATE, name)
    assert (tmp_path / "b" / name).read_text() == "mine"
    assert os.listdir(tmp_path) == ["b"]
    assert os.listdir(tmp_path / "b") == [name]


def test_the_secret_is_not_printed(tmp_path):
    result = run_keys("new", tmp_path / "a", "--json")
    secret = json.loads((tmp_path / "a" / "keys.json").read_text())["secret"]
    shown = run_keys("show", "-C", tmp_path / "a", "--json")
    assert secret not in result.output + shown.output
    made = json.loads(result.stdout)["keys"]
    assert made == [
        {"folder": str(tmp_path / "a"), "fingerprint": json.loads(shown.stdout)["fingerprint"], "encrypted": False}
    ]


def test_keys_under_a_passphrase_from_a_file_the_environment_or_whoever_is_asked(tmp_path, word_file, monkeypatch):
    assert run_keys("new", tmp_path / "a", "--passphrase-file", word_file).exit_code == 0
    public = KeyPair.load(tmp_path / "a" / "keys.json", "correct horse").public
    shown = json.loads(run_keys("show", "-C", tmp_path / "a", "--json").stdout)
    assert (shown["public"], shown["encrypted"]) == (public.text, True)
    env = {"DATACOLLAB_PASSPHRASE": "from outside"}
    assert run_keys("new", tmp_path / "b", "--encrypt", **env).exit_code == 0
    KeyPair.load(tmp_path / "b" / "keys.json", "from outside")
    assert run_keys("new", tmp_path / "c", **env).exit_code == 0
    KeyPair.load(tmp_path / "c" / "keys.json")
    monkeypatch.setattr("datacollab.cli._keys_commands.ask", lambda *, twice: "typed twice" if twice else "")
    monkeypatch.setattr("datacollab.cli._keys_commands.at_terminal", lambda: True)
    assert run_keys("new", tmp_path / "d", "--encrypt").exit_code == 0
    KeyPair.load(tmp_path / "d" / "keys.json", "typed twice")


def test_no_passphrase_and_nobody_to_ask(tmp_path, word_file):
    assert_refused(run_keys("new", tmp_path / "a", "--encrypt"), "PASSPHRASE_WRONG", KEYS, "--passphrase-file")
    word_file.write_text("\n")
    result = run_keys("new", tmp_path / "a", "--passphrase-file", word_file)
    assert_refused(result, "PASSPHRASE_WRONG", KEYS, str(word_file))
    assert not (tmp_path / "a").exists()


def test_the_public_key_once_more(tmp_path, word_file):
    run_keys("new", tmp_path / "a", "--passphrase-file", word_file)
    before, output = (tmp_path / "a" / "public.key").read_text(), tmp_path / "a.key"
    result = run_keys("public", "-o", output, "-C", tmp_path / "a", "--passphrase-file", word_file)
    assert result.exit_code == 0, result.output
    assert output.read_text() == before
    assert PublicKey.load(output, proven=True).fingerprint in result.stdout
    again = run_keys("public", "-o", output, "-C", tmp_path / "a", "--passphrase-file", word_file)
    assert_refused(again, "ALREADY_THERE", STATE, str(output))


def test_keys_are_shown(tmp_path):
    run_keys("new", tmp_path / "a")
    path = tmp_path / "a" / "keys.json"
    public = KeyPair.load(path).public
    result = run_keys("show", "-C", tmp_path / "a")
    assert result.exit_code == 0
    assert public.text in result.stdout
    assert public.fingerprint in result.stdout
    assert "not encrypted" in result.stdout
    assert "chmod" not in result.stdout
    path.chmod(0o640)
    assert f"chmod 600 {path}" in run_keys("show", "-C", tmp_path / "a").stdout
    assert json.loads(run_keys("show", "-C", tmp_path / "a", "--json").stdout)["open_to_others"] is True


def test_nothing_is_shown_where_there_are_no_keys(tmp_path):
    assert_refused(run_keys("show", "-C", tmp_path), "KEY_MISSING", KEYS, "datacollab keys new")
    (tmp_path / "keys.json").write_text("{}")
    assert_refused(run_keys("show", "-C", tmp_path), "KEY_MALFORMED", KEYS)
    result = run_keys("show", "-C", tmp_path, "--json")
    assert json.loads(result.stdout)["error"]["code"] == "KEY_MALFORMED"


KEY, OTHER = KeyPair(b"\1" * 32, b"\2" * 32), KeyPair(b"\3" * 32, b"\4" * 32)
FACTS = {"party": "north", "n_rows": 3, "task": {"kind": "classification", "classes": ["a", "b"]}, "supersedes": None}
ARRAYS = {"rows": np.full((3, 2), 4711.25), "n": np.array(815)}


def facts_of(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def share(facts=FACTS, members=None, key=KEY):
    members = {"share.safetensors": arrays_to_bytes(ARRAYS)} if members is None else members
    return pack("datacollab.share", facts, members, key=key)


def test_a_file_is_inspected(write):
    data = share()
    result = run_bundle("inspect", write("a.dcshare", data))
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


def test_a_file_is_inspected_as_json(write):
    found = facts_of(run_bundle("inspect", write("a.dcshare", share()), "--json"))
    assert found["facts"] == FACTS
    assert (found["kind"], found["signer"]) == ("datacollab.share", KEY.public.fingerprint)
    assert found["members"]["share.safetensors"]["arrays"]["rows"] == {"dtype": "float64", "shape": [3, 2]}


def test_what_is_visible_of_a_seal(write):
    members = {"sealed.bin": seal(b"contents", [KEY.public, OTHER.public], purpose="p")}
    path = write("a.dcshare", share(members=members))
    text = run_bundle("inspect", path).stdout
    assert f"sealed to {KEY.public.fingerprint}" in text
    assert f"sealed to {OTHER.public.fingerprint}" in text
    found = facts_of(run_bundle("inspect", path, "--json"))["members"]["sealed.bin"]
    assert found == {
        "bytes": len(members["sealed.bin"]),
        "sealed_to": [KEY.public.fingerprint, OTHER.public.fingerprint],
    }


def test_text_of_others_cannot_steer_the_terminal(write):
    facts = {"party": "\x1b[2J\x07north\nsouth\u202e", "\x1b[31m": 1, "long": "x" * 5000, "list": ["\x1b"]}
    members = {"share.safetensors": arrays_to_bytes({"\x1b[31mred": np.zeros(1)})}
    path = write("a.dcshare", share(facts, members))
    text = run_bundle("inspect", path).stdout
    assert not set("\x1b\x07\u202e") & set(text)
    assert not any(line.startswith("south") for line in text.splitlines())
    assert max(map(len, text.splitlines())) < 400


def test_a_file_under_a_passphrase(write):
    path = write("party.dcstate", encrypt(share(), "correct horse"))
    result = run_bundle("inspect", path)
    assert_refused(result, "BUNDLE_MALFORMED", VERIFICATION, str(path), "is under a passphrase;")


def test_a_file_is_verified(write, tmp_path):
    path, key = write("a.dcshare", share()), tmp_path / "public.key"
    result = run_bundle("verify", path)
    assert result.exit_code == 0
    assert KEY.public.fingerprint in result.stdout
    assert "--signed-by" in result.stdout
    key.write_text(KEY.public.text + "\n")
    result = run_bundle("verify", path, "--signed-by", key)
    assert result.exit_code == 0
    assert f"That is the key in {key}" in result.stdout
    key.write_text(OTHER.public.text + "\n")
    assert_refused(
        run_bundle("verify", path, "--signed-by", key), "SIGNATURE_INVALID", VERIFICATION, OTHER.public.fingerprint
    )
    key.write_text("no key")
    assert_refused(run_bundle("verify", path, "--signed-by", key), "KEY_MALFORMED", 10, str(key))


def test_what_is_not_signed_is_verified(write, tmp_path):
    path, key = write("a.dcshare", share(key=None)), tmp_path / "public.key"
    result = run_bundle("verify", path)
    assert result.exit_code == 0
    assert "signed by  nobody" in result.stdout
    assert facts_of(run_bundle("verify", path, "--json"))["signer"] is None
    key.write_text(KEY.public.text)
    assert_refused(run_bundle("verify", path, "--signed-by", key), "SIGNATURE_MISSING", VERIFICATION)


def test_verifying_refuses(write, tmp_path):
    data = bytearray(share())
    data[data.index(b"north")] ^= 1
    assert_refused(run_bundle("verify", write("changed.dcshare", bytes(data))), "HASH_MISMATCH", VERIFICATION)
    result = run_bundle("verify", tmp_path / "no.dcshare", "--json")
    assert json.loads(result.stdout)["error"]["code"] == "BUNDLE_MALFORMED"


@pytest.fixture
def folder(tmp_path):
    log = AuditLog(tmp_path / "log.jsonl")
    log.append("joined", project="heart")
    log.append("shared", rows=100, kept=["a"])
    log.append("predicted", rows=7)
    return tmp_path


def test_a_log_is_shown(folder):
    result = run_log("show", "-C", folder)
    assert result.exit_code == 0, result.output
    nonce = AuditLog(folder / "log.jsonl").entries()[0]["facts"]["nonce"]
    events = [line.split(maxsplit=3) for line in result.stdout.splitlines()]
    assert [(number, event, facts) for number, _, event, facts in events] == [
        ("1", "joined", f"nonce {nonce}, project heart"),
        ("2", "shared", 'kept ["a"], rows 100'),
        ("3", "predicted", "rows 7"),
    ]
    assert run_log("show", "-C", folder, "--last", 1).stdout == result.stdout.splitlines(keepends=True)[-1]
    found = json.loads(run_log("show", "-C", folder, "--last", 2, "--json").stdout)["entries"]
    assert found == AuditLog(folder / "log.jsonl").entries()[1:]


def test_a_log_is_verified(folder):
    log = AuditLog(folder / "log.jsonl")
    result = run_log("verify", "-C", folder, "--json")
    assert json.loads(result.stdout) == {"entries": 3, "head": log.head, "compared": []}
    assert f"3 entries, none changed. Head {log.head}" in run_log("verify", "-C", folder).stdout
    first = log.entries()[0]["hash"]
    assert run_log("verify", "-C", folder, "--head", first).exit_code == 0


def test_verifying_finds_what_was_changed_and_what_was_cut_off(folder):
    log = AuditLog(folder / "log.jsonl")
    head, whole = log.head, log.path.read_bytes()
    log.path.write_bytes(whole.replace(b'"rows":100', b'"rows":200'))
    assert_refused(run_log("verify", "-C", folder), "LOG_BROKEN", VERIFICATION, "Entry 2 ")
    assert_refused(run_log("export", folder / "copy.csv", "-C", folder), "LOG_BROKEN", VERIFICATION)
    log.path.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    assert run_log("verify", "-C", folder).exit_code == 0
    assert_refused(run_log("verify", "-C", folder, "--head", head), "LOG_BROKEN", VERIFICATION, "missing")


def test_a_log_is_exported_and_verified_elsewhere(folder, tmp_path):
    copy = tmp_path / "copy.jsonl"
    result = run_log("export", copy, "-C", folder, "--json")
    assert json.loads(result.stdout)["entries"] == 3
    assert run_log("verify", copy).exit_code == 0
    assert run_log("show", copy).stdout == run_log("show", "-C", folder).stdout
    assert run_log("export", tmp_path / "copy.csv", "-C", folder).exit_code == 0
    assert (tmp_path / "copy.csv").read_text().startswith("number,time,event,facts,hash\n1,")
    result = run_log("export", tmp_path / "copy.pdf", "-C", folder)
    assert_refused(result, "ValueError", 1, ".jsonl or .csv")


def test_no_log_is_told_and_one_by_somebody_else_cannot_steer_the_terminal(tmp_path):
    for command in (["show"], ["verify"], ["export", tmp_path / "x.csv"]):
        assert_refused(run_log(*command, "-C", tmp_path), "FOLDER_MISSING", STATE, str(tmp_path / "log.jsonl"))
    log = AuditLog(tmp_path / "log.jsonl")
    log.append("\x1b[2Jshared\n", **{"\x1b[31m": "\x07"})
    assert not set("\x1b\x07") & set(run_log("show", "-C", tmp_path).stdout)


DATA_SETS = ["digits", "diabetes", "mnist", "fashion-mnist", "ujiindoorloc", "slice-localization"]


@pytest.fixture
def mnist_at(tmp_path):
    """A directory with a long name, and files where those of MNIST are looked for."""
    place = tmp_path / ("long" * 30) / "mnist"
    place.mkdir(parents=True)
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            (place / f"{part}-{kind}-ubyte.gz").touch()
    return place


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_list_shows_every_name_and_place_in_one_piece(mnist_at, columns):
    result = run_data("list", "--data-dir", mnist_at.parent, COLUMNS=columns)
    assert result.exit_code == 0
    assert str(mnist_at) in result.stdout
    table = result.stdout.splitlines()
    for name in DATA_SETS:
        assert any(line.split()[:1] == [name] for line in table)
    assert "70000 x 784" in result.stdout
    assert "comes with scikit-learn" in result.stdout


def test_the_list_as_json(mnist_at):
    result = run_data("list", "--data-dir", mnist_at.parent, "--json", COLUMNS="40")
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert list(rows) == DATA_SETS
    assert rows["mnist"]["path"] == str(mnist_at)
    assert rows["digits"]["path"] is None
    assert (rows["ujiindoorloc"]["n_samples"], rows["ujiindoorloc"]["task"]) == (21048, "regression")


def test_what_is_fetched_is_said_and_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "fetch", lambda name, data_dir: asked.append((name, data_dir)) or data_dir / name)
    result = run_data("fetch", "mnist", "--data-dir", tmp_path)
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'mnist'}\n")
    assert asked == [("mnist", tmp_path)]
    monkeypatch.setattr(datasets, "fetch", interrupted)
    result = run_data("fetch", "mnist")
    assert result.exit_code == 130
    assert "Interrupted. No incomplete file was left behind" in result.stderr


@pytest.mark.parametrize(("name", "words"), [("digits", "comes with scikit-learn"), ("iris", "There is no data set")])
def test_what_cannot_be_fetched_is_one_line(name, words):
    result = run_data("fetch", name)
    assert_one_line(result, words)
