"""A relay that asks and members that answer, by messages as a framework would carry them."""

import datacollab_relay
import pytest
from datacollab_relay import Mailbox, answer, relay
from mail import Mail

from datacollab.bundle import digest
from datacollab.remote import MemberFolder
from party_world import refused

MEMBERS = ("a", "b")


@pytest.fixture
def mail(tmp_path):
    return Mail(tmp_path)


@pytest.fixture
def lines(mail):
    return Lines(mail)


class Lines:
    """Carries messages between the analyst's folder and those of parties; keeps what was said."""

    def __init__(self, mail):
        self.mail, self.said, self.cut = mail, [], {}
        self.change = lambda member, message, told: told

    def __call__(self, messages):
        answers = {}
        for member, message in messages.items():
            self.said.append((member, message["act"]))
            if self.cut.get(member, 1) <= 0:
                continue
            self.cut[member] = self.cut.get(member, 10**6) - 1
            answers[member] = self.change(member, message, answer(self.mail.root / member, message))
        return answers

    def round(self):
        return relay(self.mail.root / "analyst", MEMBERS, self)


def name_of(mail, kind, data, suffix):
    return f"{mail.project.digest}/{kind}/{digest(data)}{suffix}"


def test_one_round_brings_shares_and_the_next_models(mail, lines):
    for name in MEMBERS:
        mail.put("share", name)
    done = lines.round()
    assert (done.answered, done.silent) == (MEMBERS, ())
    assert done.came == {"": 2, "a": 1, "b": 1}
    assert not any(done.refused.values())
    assert mail.inbox("analyst") == ["a.dcshare", "b.dcshare"]
    assert mail.inbox("a") == mail.inbox("b") == ["anchor.dcanchor"]
    for name in MEMBERS:
        mail.put("model", name)
    done = lines.round()
    assert done.came == {"": 0, "a": 1, "b": 1}
    for name in MEMBERS:
        came, made = (
            mail.root / who / where / f"{name}.dcmodel" for who, where in ((name, "inbox"), ("analyst", "outbox"))
        )
        assert came.read_bytes() == made.read_bytes()
    assert lines.round().came == {"": 0, "a": 0, "b": 0}


def test_members_who_have_keys_alone_get_project_and_anchor(mail, lines):
    for name in ("b", "analyst"):
        (mail.root / name / "project.toml").unlink()
    lines.round()
    assert mail.inbox("b") == ["anchor.dcanchor", "project.toml"]
    assert mail.inbox("analyst") == ["project.toml"]


def test_a_relay_may_be_nobodys_folder(mail, lines, tmp_path):
    mail.put("share", "b")
    done = relay(tmp_path / "between", (*MEMBERS, "analyst"), lines)
    assert done.came == {"a": 1, "b": 1, "analyst": 1}
    assert mail.inbox("analyst") == ["b.dcshare"]


@pytest.mark.slow
def test_large_files_go_in_pieces_and_on_where_they_ended(mail, lines, monkeypatch):
    monkeypatch.setattr(datacollab_relay, "PIECE", 1000)
    path = mail.put("share", "b", size=20_000)
    lines.round()
    assert (mail.root / "analyst" / "inbox" / "b.dcshare").read_bytes() == path.read_bytes()
    assert lines.said.count(("b", "give")) == -(-path.stat().st_size // 1000)
    sent = mail.put("model", "b", size=20_000)
    pieces = -(-sent.stat().st_size // 1000)
    lines.said.clear()
    lines.cut["b"] = 8
    assert lines.round().silent == ("b",)
    assert mail.inbox("b") == ["anchor.dcanchor"]
    del lines.cut["b"]
    lines.round()
    assert (mail.root / "b" / "inbox" / "b.dcmodel").read_bytes() == sent.read_bytes()
    # Once for each piece; in each of the two rounds once to ask how far it is, and once in vain.
    assert lines.said.count(("b", "take")) == pieces + 3


def test_who_does_not_answer_stops_nobody(mail, lines):
    mail.put("share", "b")
    lines.cut["a"] = 0
    done = lines.round()
    assert (done.answered, done.silent) == (("b",), ("a",))
    assert mail.inbox("analyst") == ["b.dcshare"]


def test_what_came_before_its_project_file_comes_next_time(mail, lines):
    mail.put("share", "b")
    (mail.root / "analyst" / "project.toml").unlink()
    lines.cut["a"] = 0
    assert lines.round().refused["b"] == ["PROJECT_MISSING"]
    del lines.cut["a"]
    lines.round()
    assert mail.inbox("analyst") == ["b.dcshare", "project.toml"]


def test_what_may_not_leave_does_not_and_is_told_by_its_code(mail, lines):
    wrong = mail.root / "b" / "outbox" / "b.dcshare"
    wrong.write_bytes(mail.made("share", "a"))
    done = lines.round()
    assert done.refused["b"] == ["NOT_A_MEMBER"]
    assert mail.inbox("analyst") == []


def test_what_is_not_sealed_is_not_relayed(mail, lines):
    """A member who says that the analyst's key is theirs, which is public, would be handed it."""
    data = mail.put("share", "b", sealed=False).read_bytes()
    done = lines.round()
    assert done.refused["b"] == ["RELAY_REFUSED"]
    assert list(mail.root.rglob("mailbox/*/share/*")) == []
    name = name_of(mail, "share", data, ".dcshare")
    with refused("RELAY_REFUSED") as refusal:
        Mailbox(mail.root / "analyst" / "mailbox").take(name, 0, len(data), data, source="b")
    assert "seal_shares" in str(refusal.value)
    assert list(mail.root.rglob("mailbox/*/share/*")) == []


def test_nothing_is_read_but_what_the_folder_has_sent(mail, lines):
    mail.put("model", "b")
    lines.round()
    b = mail.root / "b"
    came = next(name for name in map(str, (b / "mailbox").rglob("*.dcmodel")))
    outside = ("../keys.json", "keys.json", "/etc/passwd", f"{'0' * 64}/share/../../keys.json", came)
    for name in (*outside, came.split("mailbox/")[1]):
        assert answer(b, {"act": "give", "name": name, "start": 0})["error"] in ("NOT_FOUND", "RELAY_REFUSED")


@pytest.mark.parametrize(
    "name",
    [
        "../b.dcmodel",
        "x",
        "{0}/model/../{1}.dcmodel",
        "{0}/model/{1}.toml",
        "{0}/keys/{1}.json",
        "{0}/model/{1}.dcmodel\n",
    ],
)
def test_nothing_is_written_under_other_names(mail, name):
    before = sorted(mail.root.rglob("*"))
    name = name.format(mail.project.digest, "0" * 64)
    told = answer(mail.root / "b", {"act": "take", "name": name, "start": 0, "size": 3, "piece": b"abc"})
    assert told == {"error": "RELAY_REFUSED"}
    assert set(mail.root.rglob("*")) - set(before) <= {mail.root / "b" / "mailbox"}


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"act": "run"},
        {"act": 1},
        {"act": "give"},
        {"act": "give", "name": b"x", "start": 0},
        {"act": "take", "name": "x", "start": -1, "size": 3, "piece": b""},
        {"act": "take", "name": "x", "start": True, "size": 3, "piece": b""},
        {"act": "take", "name": "x", "start": 0, "size": 3, "piece": "text"},
    ],
)
def test_messages_of_another_form_are_refused(mail, message):
    assert answer(mail.root / "b", message) == {"error": "RELAY_REFUSED"}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"signer": "stranger"}, "SIGNATURE_INVALID"),
        ({"signer": "a"}, "SIGNATURE_INVALID"),
        ({"project_digest": "0" * 64}, "PROJECT_HASH_MISMATCH"),
    ],
)
def test_what_a_lying_relay_hands_over_does_not_come(mail, lines, options, code):
    lines.round()
    data = mail.made("model", "b", **options)
    name = name_of(mail, "model", data, ".dcmodel")
    told = answer(mail.root / "b", {"act": "take", "name": name, "start": 0, "size": len(data), "piece": data})
    assert told == {"error": code}
    assert answer(mail.root / "b", {"act": "deliver"})["came"] == 0
    assert not list((mail.root / "b" / "mailbox").rglob("*.dcmodel*"))


def test_a_model_for_somebody_else_stays_in_the_mailbox(mail, lines):
    lines.round()
    data = mail.made("model", "a")
    name = name_of(mail, "model", data, ".dcmodel")
    answer(mail.root / "b", {"act": "take", "name": name, "start": 0, "size": len(data), "piece": data})
    assert answer(mail.root / "b", {"act": "deliver"})["came"] == 0
    assert mail.inbox("b") == ["anchor.dcanchor"]


@pytest.mark.slow
def test_what_a_lying_member_gives_does_not_come(mail, lines):
    mail.put("share", "a")
    mail.put("share", "b")

    def change(member, message, told):
        if member == "b" and "piece" in told:
            told["piece"] = bytes(len(told["piece"]))
        return told

    lines.change = change
    done = lines.round()
    assert done.refused["b"] == ["HASH_MISMATCH"]
    assert mail.inbox("analyst") == ["a.dcshare"]
    lines.change = lambda member, message, told: told
    lines.round()
    assert mail.inbox("analyst") == ["a.dcshare", "b.dcshare"]


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"key": 1, "names": [], "sizes": []},
        {"key": "no key", "names": ["../x"], "sizes": [1]},
        {"key": "no key", "names": [1], "sizes": ["x"]},
        {"error": "<b>" * 1000},
        {"error": 7},
        {"refused": "text"},
    ],
)
def test_a_member_that_answers_nonsense_stops_nobody(mail, lines, told):
    mail.put("share", "a")
    lines.change = lambda member, message, right: told if member == "b" else right
    done = lines.round()
    assert done.refused["b"]
    assert mail.inbox("analyst") == ["a.dcshare"]
    assert mail.inbox("a") == ["anchor.dcanchor"]


def test_a_member_that_gives_less_or_more_than_it_announced(mail, lines):
    mail.put("share", "b")
    for size in (1, 10**6, 3 * 2**30, 0):

        def change(member, message, told, size=size):
            return told | {"sizes": [size] * len(told["sizes"])} if member == "b" and "sizes" in told else told

        lines.change = change
        (code,) = lines.round().refused["b"]
        assert code in ("TOO_LARGE", "RELAY_REFUSED")
        assert mail.inbox("analyst") == []


def test_a_full_mailbox_takes_nothing_more(mail, lines, monkeypatch):
    monkeypatch.setattr(datacollab_relay, "MOST_FILES", 2)
    mail.put("share", "b")
    assert lines.round().refused["b"][0] == "MAILBOX_FULL"
    assert mail.inbox("analyst") == []


def test_one_does_not_spoil_what_comes_from_another(mail):
    mail.put("share", "b")
    data = (mail.root / "b" / "outbox" / "b.dcshare").read_bytes()
    box = Mailbox(mail.root / "box")
    box.agree(mail.project, (mail.root / "project.toml").read_bytes())
    name = name_of(mail, "share", data, ".dcshare")
    assert box.take(name, 0, len(data), b"garbage", source="a") == 7
    assert box.take(name, 0, len(data), data[:100], source="b") == 100
    assert box.take(name, 0, len(data), data, source="b") == 100
    assert box.take(name, 100, len(data), data[100:], source="b") == len(data)
    assert box.has(name)


def test_of_a_project_that_is_not_here_nothing_is_written(mail):
    data = mail.made("share", "b")
    box = Mailbox(mail.root / "box")
    for size in (len(data), 2**30):
        with refused("PROJECT_MISSING"):
            box.take(name_of(mail, "share", data, ".dcshare"), 0, size, data, source="b")
    assert list(box.path.rglob("*")) == []


def test_of_each_source_one_file_is_half_there(mail):
    """Whoever begins many fills no disk; and nobody loses what comes from somebody else."""
    box = Mailbox(mail.root / "box")
    box.agree(mail.project, (mail.root / "project.toml").read_bytes())
    names = [f"{mail.project.digest}/share/{number:064x}.dcshare" for number in range(3)]
    box.take(names[0], 0, 100, b"other", source="b")
    for name in names:
        box.take(name, 0, 100, b"half", source="a")
        box.take(name, 4, 100, b"more", source="a")
    assert [box.begun(name, 100, source="a") for name in names] == [0, 0, 8]
    assert box.begun(names[0], 100, source="b") == 5
    assert len(list(box.path.rglob("*.part"))) == 2


@pytest.mark.parametrize("past", [0, 1, 10**30])
def test_nothing_is_read_past_a_files_end(mail, past):
    path = mail.put("share", "b")
    (name,) = answer(mail.root / "b", {"act": "look"})["names"]
    message = {"act": "give", "name": name, "start": path.stat().st_size + past}
    assert answer(mail.root / "b", message) == {"error": "RELAY_REFUSED"}
    assert answer(mail.root / "b", message | {"start": path.stat().st_size - 1})["piece"] == path.read_bytes()[-1:]


def test_what_waits_in_a_mailbox_is_seen_by_nobody_else(mail, lines):
    mail.put("share", "b")
    lines.round()
    for path in (mail.root / "b" / "mailbox", mail.root / "analyst" / "mailbox"):
        assert path.stat().st_mode & 0o077 == 0
    assert Mailbox(mail.root / "analyst" / "mailbox").from_folder(MemberFolder.at(mail.root / "analyst")) == {}
