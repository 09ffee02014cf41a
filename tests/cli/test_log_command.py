import json

import pytest

from datacollab.folder.log import AuditLog
from playing import assert_refused, runs

run = runs("log")


VERIFICATION, STATE = 11, 14


@pytest.fixture
def folder(tmp_path):
    log = AuditLog(tmp_path / "log.jsonl")
    log.append("joined", project="heart")
    log.append("shared", rows=100, kept=["a"])
    log.append("predicted", rows=7)
    return tmp_path


def test_show(folder):
    result = run("show", "-C", folder)
    assert result.exit_code == 0, result.output
    nonce = AuditLog(folder / "log.jsonl").entries()[0]["facts"]["nonce"]
    events = [line.split(maxsplit=3) for line in result.stdout.splitlines()]
    assert [(number, event, facts) for number, _, event, facts in events] == [
        ("1", "joined", f"nonce {nonce}, project heart"),
        ("2", "shared", 'kept ["a"], rows 100'),
        ("3", "predicted", "rows 7"),
    ]
    assert run("show", "-C", folder, "--last", 1).stdout == result.stdout.splitlines(keepends=True)[-1]
    found = json.loads(run("show", "-C", folder, "--last", 2, "--json").stdout)["entries"]
    assert found == AuditLog(folder / "log.jsonl").entries()[1:]


def test_verify(folder):
    log = AuditLog(folder / "log.jsonl")
    result = run("verify", "-C", folder, "--json")
    assert json.loads(result.stdout) == {"entries": 3, "head": log.head, "compared": []}
    assert f"3 entries, none changed. Head {log.head}" in run("verify", "-C", folder).stdout
    first = log.entries()[0]["hash"]
    assert run("verify", "-C", folder, "--head", first).exit_code == 0


def test_verify_finds_what_was_changed_and_what_was_cut_off(folder):
    log = AuditLog(folder / "log.jsonl")
    head, whole = log.head, log.path.read_bytes()
    log.path.write_bytes(whole.replace(b'"rows":100', b'"rows":200'))
    assert_refused(run("verify", "-C", folder), "LOG_BROKEN", VERIFICATION, "Entry 2 ")
    assert_refused(run("export", folder / "copy.csv", "-C", folder), "LOG_BROKEN", VERIFICATION)
    log.path.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    assert run("verify", "-C", folder).exit_code == 0
    assert_refused(run("verify", "-C", folder, "--head", head), "LOG_BROKEN", VERIFICATION, "missing")


def test_export_and_verify_elsewhere(folder, tmp_path):
    copy = tmp_path / "copy.jsonl"
    result = run("export", copy, "-C", folder, "--json")
    assert json.loads(result.stdout)["entries"] == 3
    assert run("verify", copy).exit_code == 0
    assert run("show", copy).stdout == run("show", "-C", folder).stdout
    assert run("export", tmp_path / "copy.csv", "-C", folder).exit_code == 0
    assert (tmp_path / "copy.csv").read_text().startswith("number,time,event,facts,hash\n1,")
    result = run("export", tmp_path / "copy.pdf", "-C", folder)
    assert_refused(result, "ValueError", 1, ".jsonl or .csv")


def test_no_log_is_told_and_one_by_somebody_else_cannot_steer_the_terminal(tmp_path):
    for command in (["show"], ["verify"], ["export", tmp_path / "x.csv"]):
        assert_refused(run(*command, "-C", tmp_path), "FOLDER_MISSING", STATE, str(tmp_path / "log.jsonl"))
    log = AuditLog(tmp_path / "log.jsonl")
    log.append("\x1b[2Jshared\n", **{"\x1b[31m": "\x07"})
    assert not set("\x1b\x07") & set(run("show", "-C", tmp_path).stdout)
