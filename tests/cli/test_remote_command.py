"""`datacollab remote` in folders: what is printed, which codes it ends with, and the next command that it names."""

import shlex
from contextlib import ExitStack

import pytest
from mail import Mail

import playing
from datacollab.errors import ExchangeError
from datacollab.folder.log import locked
from datacollab.remote import Kept, Pulled, StoreRemote
from playing import done as run
from playing import told
from sums_world import new_sums_world


@pytest.fixture
def mail(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return Mail(tmp_path)


@pytest.fixture
def at_store(mail):
    for name in ("a", "b", "analyst"):
        run("remote", "add", "store", mail.root / "store", "-C", mail.root / name)
    return mail


@pytest.mark.parametrize(("name", "verb"), [("b", "party join"), ("analyst", "analyst init")])
def test_a_newcomer_is_told_to_compare_before_joining(mail, at_store, name, verb):
    run("remote", "push", "-C", mail.root / "a")
    (mail.root / name / "project.toml").unlink()
    out = run("remote", "pull", "-C", mail.root / name).stdout
    for words in (mail.project.owner.fingerprint, mail.project.fingerprint, "by telephone"):
        assert words in out
    (command,) = [line.removeprefix("Next: ") for line in out.splitlines() if line.startswith("Next: ")]
    assert command.startswith(f"datacollab {verb} ")
    run(*shlex.split(command)[1:])
    assert "nothing new came" in run("remote", "pull", "-C", mail.root / name).stdout


def test_the_outbox_of_a_shared_folder_says_how_to_send(mail, at_store):
    mail.world.join("b")
    words = ("party", "share", mail.root / "b.csv", "--approve", "--preset", "none", "--undefended", "--no-audit")
    out = run(*words, "-C", mail.root / "b").stdout
    (command,) = [line.partition("Send it: ")[2] for line in out.splitlines() if "Send it: " in line]
    assert set(told(*shlex.split(command)[1:])["sent"].values()) == {"share"}
    status = told("remote", "status", "-C", mail.root / "b")
    assert (status["shared"], status["missing"], status["quorum"]) == (["b"], ["a"], 2)
    assert "missing: a" in run("remote", "status", "-C", mail.root / "b").stdout
    events = told("log", "show", "-C", mail.root / "b")["entries"]
    assert events[-1]["event"] == "push"
    assert events[-1]["facts"] == {"remote": "store", "files": {"b.dcshare": "share"}}
    run("log", "verify", "-C", mail.root / "b")


def test_what_is_refused_ends_with_its_code_after_the_rest_was_sent(mail, at_store):
    mail.put("sums", "b")
    wrong = mail.put("share", "b", signer="stranger")
    done = told("remote", "push", "-C", mail.root / "b", code=11)
    assert list(done["sent"].values()) == ["sums"]
    assert done["refused"][str(wrong)]["code"] == "SIGNATURE_INVALID"


def test_what_came_before_an_interruption_is_told_and_in_the_log(at_store, monkeypatch):
    mail, fetch, asked = at_store, StoreRemote.fetch, []
    b = mail.root / "b"
    mail.world.join("b")
    for kind in ("model", "answers"):
        mail.put(kind, "b")
    for name in ("analyst", "a"):
        run("remote", "push", "-C", mail.root / name)

    def cut(self, entry, *args, **options):
        asked.append(entry.kind)
        if len(asked) in (2, 4):
            raise ExchangeError("REMOTE_UNREACHABLE", "cut")
        fetch(self, entry, *args, **options)

    monkeypatch.setattr(StoreRemote, "fetch", cut)
    assert "signature in order" in run("remote", "pull", "-C", b, code=17).stdout
    last = told("log", "show", "-C", b)["entries"][-1]
    assert last["event"] == "pull"
    assert list(last["facts"]["files"].values()) == asked[:1]
    assert list(told("log", "show", "-C", b)["entries"][-1]["facts"]["files"].values()) == asked[:1]
    run("remote", "pull", "-C", b, code=17)
    assert list(told("remote", "pull", "-C", b)["came"].values()) == asked[4:]


def test_who_works_in_the_folder_for_a_moment_is_waited_for(at_store, monkeypatch):
    b = at_store.root / "b"
    at_store.world.join("b")
    for kind in ("model", "answers"):
        at_store.put(kind, "b")
        run("remote", "push", "-C", at_store.root / "analyst")
        with ExitStack() as other:
            other.enter_context(locked(b))
            if kind == "model":
                monkeypatch.setattr("datacollab.folder.log.time.sleep", lambda seconds: other.close())
                assert told("remote", "pull", "-C", b)["came"]
            else:
                monkeypatch.setattr("datacollab.cli._remote_commands._PATIENCE", 0.0)
                assert told("remote", "pull", "-C", b, code=14)["error"]["code"] == "BUSY"
    assert told("log", "show", "-C", b)["entries"][-1]["event"] == "pull"


def test_taking_back(mail, at_store):
    path = mail.put("share", "b")
    run("remote", "push", "-C", mail.root / "b")
    refused = told("remote", "withdraw", "0" * 16, "-C", mail.root / "b", code=14)
    assert refused["error"]["code"] == "NOT_SENT"
    assert told("remote", "withdraw", path, "-C", mail.root / "b")["kind"] == "share"
    assert told("remote", "pull", "-C", mail.root / "analyst")["came"] == {}
    again = told("remote", "push", "-C", mail.root / "b")
    assert (again["sent"], again["withdrawn"]) == ({}, [str(path)])
    assert told("remote", "push", path, "-C", mail.root / "b")["sent"] == {str(path): "share"}
    assert Kept.read(mail.root / "b", "store").withdrawn == ()


def test_remotes_are_added_once_and_forgotten(at_store):
    folder = at_store.root / "b"
    again = told("remote", "add", "store", "/elsewhere", "-C", folder, code=14)
    assert again["error"]["code"] == "ALREADY_THERE"
    run("remote", "pull", "-C", folder)
    run("remote", "remove", "store", "-C", folder)
    assert told("remote", "push", "-C", folder, code=14)["error"]["code"] == "REMOTE_UNKNOWN"
    assert not list((folder / ".remotes").glob("*.json"))


def test_a_path_is_noted_whole(at_store, monkeypatch):
    monkeypatch.chdir(at_store.root)
    done = told("remote", "add", "other", "exchange", "-C", at_store.root / "b")
    assert done["url"] == str(at_store.root / "exchange")


def test_one_command_at_a_time_carries_files(at_store):
    folder = at_store.root / "b"
    (folder / ".remotes").mkdir(exist_ok=True)
    with locked(folder / ".remotes"):
        assert told("remote", "pull", "-C", folder, code=14)["error"]["code"] == "BUSY"


def test_what_others_wrote_steers_no_terminal(at_store, monkeypatch):
    """Errors name what lies in files and systems elsewhere."""

    def lost(*_, **__):
        raise ExchangeError("REMOTE_UNREACHABLE", "gone\x1b[2J\u202e")

    def refused_all(*_, **__):
        return Pulled(refused={"1" * 64: ExchangeError("WRONG_KIND", "wrong\x1b[2J\u202e")}), Kept()

    folder = at_store.root / "analyst"
    for fault, words in ((lost, ("pull",)), (refused_all, ("pull",))):
        monkeypatch.setattr("datacollab.remote.pull", fault)
        done = playing.run("remote", *words, "-C", folder)
        assert "\N{REPLACEMENT CHARACTER}[2J" in done.stderr
        assert not {"\x1b", "\u202e"} & set(done.output)


PARTIES = ("north", "south", "east")


def came(world, name):
    """What a pull brings but for the project file, and the command that it names for this."""
    pulled = told("remote", "pull", "-C", world.root / name)
    came = {path: kind for path, kind in pulled["came"].items() if kind != "agreement"}
    return came, next(each for each in pulled["next"] if next(iter(came)) in each)


@pytest.mark.slow
def test_sums_go_to_the_analyst_and_models_come_back(tmp_path):
    world = new_sums_world(tmp_path, parties=PARTIES)
    world.share_all()
    for name in (*PARTIES, "analyst"):
        run("remote", "add", "store", tmp_path / "store", "-C", world.root / name)
    for name in PARTIES:
        # The owner sends the project file, too.
        assert set(told("remote", "push", "-C", world.root / name)["sent"].values()) - {"agreement"} == {"sums"}
    lying, command = came(world, "analyst")
    assert sorted(lying.values()) == ["sums"] * 3
    assert command.startswith("datacollab analyst integrate")
    world.analyst.add(sorted(lying))
    world.analyst.integrate()
    world.analyst.export()
    assert set(told("remote", "push", "-C", world.root / "analyst")["sent"].values()) == {"sums-model"}
    # Each party gets its own alone.
    lying, command = came(world, "south")
    ((path, kind),) = lying.items()
    assert kind == "sums-model"
    assert command.startswith("datacollab party install")
    world.folder("south").install(path)
    assert world.folder("south").evaluate(world.root / "new.csv")["n_rows"] == 400
