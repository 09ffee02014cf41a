import json
import os
import stat

import pytest

from datacollab.bundle import KeyPair, PublicKey, mask_card_in
from playing import assert_refused, runs

run = runs("keys")


KEYS, STATE = 10, 14


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
        result = run("new", *folders)
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
    assert run("new", folder).exit_code == 0
    assert mode_of(folder) == 0o700
    assert sorted(os.listdir(folder)) == [".lock", "keys.json", "mask.dcstate", "patients.csv", "public.key"]


def test_a_mask_key_comes_with_them(tmp_path, word_file):
    assert run("new", tmp_path / "a", "--passphrase-file", word_file).exit_code == 0
    card = mask_card_in(tmp_path / "a" / "public.key")
    again = json.loads(run("mask", "-C", tmp_path / "a", "--passphrase-file", word_file, "--json").stdout)
    assert again["mask_key"] == card, "an unused one is kept"
    assert mode_of(tmp_path / "a" / "mask.dcstate") == 0o600


@pytest.mark.parametrize("name", ["keys.json", "public.key", "mask.dcstate"])
def test_nothing_is_overwritten_and_nothing_made_besides(tmp_path, name):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).write_text("mine")
    assert_refused(run("new", tmp_path / "a", tmp_path / "b"), "ALREADY_THERE", STATE, name)
    assert (tmp_path / "b" / name).read_text() == "mine"
    assert os.listdir(tmp_path) == ["b"]
    assert os.listdir(tmp_path / "b") == [name]


def test_the_secret_is_not_printed(tmp_path):
    result = run("new", tmp_path / "a", "--json")
    secret = json.loads((tmp_path / "a" / "keys.json").read_text())["secret"]
    shown = run("show", "-C", tmp_path / "a", "--json")
    assert secret not in result.output + shown.output
    made = json.loads(result.stdout)["keys"]
    assert made == [
        {"folder": str(tmp_path / "a"), "fingerprint": json.loads(shown.stdout)["fingerprint"], "encrypted": False}
    ]


def test_keys_under_a_passphrase_from_a_file_the_environment_or_whoever_is_asked(tmp_path, word_file, monkeypatch):
    assert run("new", tmp_path / "a", "--passphrase-file", word_file).exit_code == 0
    public = KeyPair.load(tmp_path / "a" / "keys.json", "correct horse").public
    shown = json.loads(run("show", "-C", tmp_path / "a", "--json").stdout)
    assert (shown["public"], shown["encrypted"]) == (public.text, True)
    env = {"DATACOLLAB_PASSPHRASE": "from outside"}
    assert run("new", tmp_path / "b", "--encrypt", **env).exit_code == 0
    KeyPair.load(tmp_path / "b" / "keys.json", "from outside")
    assert run("new", tmp_path / "c", **env).exit_code == 0
    KeyPair.load(tmp_path / "c" / "keys.json")
    monkeypatch.setattr("datacollab.cli._keys_commands.ask", lambda *, twice: "typed twice" if twice else "")
    monkeypatch.setattr("datacollab.cli._keys_commands.at_terminal", lambda: True)
    assert run("new", tmp_path / "d", "--encrypt").exit_code == 0
    KeyPair.load(tmp_path / "d" / "keys.json", "typed twice")


def test_no_passphrase_and_nobody_to_ask(tmp_path, word_file):
    assert_refused(run("new", tmp_path / "a", "--encrypt"), "PASSPHRASE_WRONG", KEYS, "--passphrase-file")
    word_file.write_text("\n")
    result = run("new", tmp_path / "a", "--passphrase-file", word_file)
    assert_refused(result, "PASSPHRASE_WRONG", KEYS, str(word_file))
    assert not (tmp_path / "a").exists()


def test_the_public_key_once_more(tmp_path, word_file):
    run("new", tmp_path / "a", "--passphrase-file", word_file)
    before, output = (tmp_path / "a" / "public.key").read_text(), tmp_path / "a.key"
    result = run("public", "-o", output, "-C", tmp_path / "a", "--passphrase-file", word_file)
    assert result.exit_code == 0, result.output
    assert output.read_text() == before
    assert PublicKey.load(output, proven=True).fingerprint in result.stdout
    again = run("public", "-o", output, "-C", tmp_path / "a", "--passphrase-file", word_file)
    assert_refused(again, "ALREADY_THERE", STATE, str(output))


def test_show(tmp_path):
    run("new", tmp_path / "a")
    path = tmp_path / "a" / "keys.json"
    public = KeyPair.load(path).public
    result = run("show", "-C", tmp_path / "a")
    assert result.exit_code == 0
    assert public.text in result.stdout
    assert public.fingerprint in result.stdout
    assert "not encrypted" in result.stdout
    assert "chmod" not in result.stdout
    path.chmod(0o640)
    assert f"chmod 600 {path}" in run("show", "-C", tmp_path / "a").stdout
    assert json.loads(run("show", "-C", tmp_path / "a", "--json").stdout)["open_to_others"] is True


def test_show_where_there_are_no_keys(tmp_path):
    assert_refused(run("show", "-C", tmp_path), "KEY_MISSING", KEYS, "datacollab keys new")
    (tmp_path / "keys.json").write_text("{}")
    assert_refused(run("show", "-C", tmp_path), "KEY_MALFORMED", KEYS)
    result = run("show", "-C", tmp_path, "--json")
    assert json.loads(result.stdout)["error"]["code"] == "KEY_MALFORMED"
