"""A party's steps on its desk: the same as by commands, with the same files and refusals."""

import re
import stat

import pandas as pd
import pytest
from desk_world import QUICK_FORM as QUICK
from desk_world import decide, finished, opened, party_desk, plain, send, worked

from datacollab.steps.party import PartyFolder
from datacollab.table import Column
from party_world import allow_without_audit, events, made_up_table, new_world


def looked(place, world, **options):
    """A desk whose table was looked at."""
    assert send(place, "/table", {"path": str(world.root / "a.csv")}).status_code == 200
    assert "80 rows fit the project" in plain(finished(place))
    assert send(place, "/release", QUICK | options).status_code == 200
    return finished(place)


def asked(place, world, **options):
    """A desk that waits for approval."""
    looked(place, world, **options)
    send(place, "/approve")
    return finished(place)


def refused_page(answer, code):
    assert f"<code>{code}</code>" in answer.text, plain(answer)
    return plain(answer)


def test_every_page_is_there_before_anything_was_done(place):
    for path in ("/", "/table", "/outbox", "/model", "/predict"):
        assert place.client.get(path).status_code == 200, path
    for path in ("/wrong", "/release", "/approve"):
        answer = place.client.get(path)
        assert answer.status_code == 422
        assert "No table was chosen yet" in plain(answer)
    assert place.client.get("/nowhere").status_code == 404
    assert "Nothing was shared" in plain(place.client.get("/forget"))


@pytest.mark.slow
def test_from_a_table_to_predictions(world, place):
    page = plain(looked(place, world, preset="none"))
    assert "This may be shared, if somebody approves it." in page
    assert f"datacollab party check {world.root / 'a.csv'} --obfuscator pca --components 3" in page
    question = worked(place, "/approve")
    assert "This is what would leave" in question
    assert not list((world.root / "a" / "outbox").iterdir())
    decide(place, "yes", name="Officer", undefended="yes")
    assert "a.dcshare" in plain(finished(place))
    folder = PartyFolder(world.root / "a")
    assert events(folder)[-2:] == ["check", "share"]
    share = world.root / "a" / "outbox" / "a.dcshare"
    assert place.client.get("/outbox/a.dcshare").content == share.read_bytes()
    assert folder.log.entries()[-1]["facts"]["approved_by"] == "Officer"
    model = world.model_file(folder, world.shared("b", preset="none"))
    with model.open("rb") as file:
        send(place, "/model", files={"upload": ("whatever.dcmodel", file)})
    assert "A model is installed." in plain(finished(place))
    assert list((world.root / "a" / "desk").iterdir()) == []
    chosen = {"path": str(world.root / "new.csv"), "keep": "id"}
    assert "80 predictions: no " in worked(place, "/predict", chosen)
    downloaded = place.client.get("/predict/predictions.csv")
    assert "attachment" in downloaded.headers["content-disposition"]
    kept = world.root / "a" / "desk" / "predictions.csv"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    folder.predict(world.root / "new.csv", world.root / "by-command.csv", keep=["id"])
    assert downloaded.content == (world.root / "by-command.csv").read_bytes()
    assert list(pd.read_csv(kept)) == ["id", "prediction", "proba_no", "proba_yes"]
    # Another desk does not know them, but how to remove them.
    later = opened(world.root / "a")
    assert "Earlier predictions are kept" in plain(later.client.get("/predict"))
    worked(later, "/predict/remove")
    assert not kept.exists()


def test_a_table_may_be_uploaded_and_its_copy_removed(world, place):
    with (world.root / "a.csv").open("rb") as file:
        send(place, "/table", files={"upload": ("my patients.csv", file)})
    assert "80 rows fit the project" in plain(finished(place))
    kept = world.root / "a" / "desk" / "table.csv"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_bytes() == (world.root / "a.csv").read_bytes()
    # The next desk finds it.
    assert opened(world.root / "a").desk.table == kept
    worked(place, "/table/remove")
    assert (kept.exists(), place.desk.table) == (False, None)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({}, "No table with your rows was given"),
        ({"path": "/nowhere/at/all.csv"}, "There is no file /nowhere/at/all.csv on this machine"),
        ({"path": "a\x00b"}, "There is no file"),
        ({"path": "~nobodyatall/x.csv"}, "There is no file"),
        ({"path": "x" * 5000}, "5000 letters are more"),
    ],
)
def test_what_is_no_table_is_refused(place, form, words):
    answer = send(place, "/table", form)
    assert answer.status_code == 422
    assert words in plain(answer)
    assert place.desk.table is None


def test_what_was_adjusted_is_listed(tmp_path):
    columns = [
        Column(name="age", kind="number", minimum=0.0, maximum=100.0, outside="clip", missing="fill", fill=50.0),
        Column(name="ward", kind="category", categories=("north", "south"), unknown="other"),
    ]
    world = new_world(tmp_path, columns=columns)
    world.join()
    table = made_up_table(80, seed=5)
    table.loc[3, "age"], table.loc[4, "age"], table.loc[5, "ward"] = 120.0, None, "west"
    table.to_csv(tmp_path / "a.csv", index=False)
    place = opened(tmp_path / "a")
    told = worked(place, "/table", {"path": str(tmp_path / "a.csv")})
    assert "1 number clipped, 1 counted as other; 1 missing entry filled in" in told.replace("  ", " ")
    assert "no 3" in told or "yes" in told


def test_all_reasons_are_shown_and_sharing_is_refused(world, place):
    policy = world.root / "a" / "policy.toml"
    policy.write_text(policy.read_text().replace("min_rows = 20", "min_rows = 200").replace('"warn"', '"required"'))
    page = looked(place, world)
    assert "This may not be shared." in plain(page)
    for code in ("TOO_FEW_ROWS", "RISK_UNKNOWN"):
        refused_page(page, code)
    send(place, "/approve")
    refused_page(finished(place), "TOO_FEW_ROWS")
    assert not list((world.root / "a" / "outbox").iterdir())


@pytest.mark.slow
def test_nothing_leaves_without_a_yes(world, place):
    asked(place, world)
    decide(place, "no", name="Officer")
    assert "You said no. Nothing was written, and nothing leaves." in plain(finished(place))
    assert place.desk.jobs.last.refusal is None
    assert not list((world.root / "a" / "outbox").iterdir())
    assert "share" not in events(PartyFolder(world.root / "a"))
    answer = decide(place, "yes", name="Officer")
    refused_page(answer, "NOT_APPROVED")


def test_the_command_beside_the_button_does_what_the_button_does(world, place, monkeypatch):
    taken = []
    monkeypatch.setattr(PartyFolder, "share", lambda folder, table, **options: taken.append(options))

    def button():
        worked(place, "/approve")
        return taken[-1].get("prepared")

    looked(place, world, preset="none")
    assert "--preset none --no-audit -C" in plain(place.client.get("/approve"))
    prepared = place.desk.looked.prepared
    assert button() is prepared
    assert "--preset none" in prepared.plan.options
    # What was looked at in vain is not taken.
    assert "leave it out, or the noise" in plain(looked(place, world, preset="none", epsilon="4", noise="1"))
    assert f"datacollab party share {world.root / 'a.csv'} -C" in plain(place.client.get("/approve"))
    assert button() is None


def test_back_from_a_form_leads_to_its_page_and_back_from_a_page_elsewhere(place):
    for path, page in (("/approve/decide", "/approve"), ("/join/accept", "/join"), ("/table", "/table")):
        assert re.findall(r'<a href="([^"]+)">Back', send(place, path).text) == [page]
        assert place.client.get(page).status_code in (200, 422)
    for path, page in (("/approve", "/"), ("/wrong", "/"), ("/release", "/"), ("/outbox/none.dcshare", "/outbox")):
        assert re.findall(r'<a href="([^"]+)">Back', place.client.get(path).text) == [page]


@pytest.mark.slow
def test_a_page_that_is_out_of_date_approves_no_other_release(world, place):
    first = asked(place, world)
    old = re.search(r'name="question" value="(\w+)"', first.text)[1]
    decide(place, "no")
    finished(place)
    place.desk.choose(world.root / "new.csv")
    assert "Your decision" in worked(place, "/approve")
    for stale in (old, ""):
        for decision in ("yes", "no"):
            form = {"question": stale, "decision": decision, "name": "Officer", "undefended": "yes"}
            refused_page(send(place, "/approve/decide", form), "NOT_APPROVED")
    assert not list((world.root / "a" / "outbox").iterdir())
    # What was shown last may still be approved.
    decide(place, "yes", name="Officer")
    assert "a.dcshare" in plain(finished(place))


def test_an_approval_needs_a_name_and_one_that_the_policy_knows(world, place):
    policy = world.root / "a" / "policy.toml"
    policy.write_text(policy.read_text().replace("approvers = []", 'approvers = ["Officer"]'))
    assert "One of: Officer." in plain(asked(place, world))
    assert "Write the name" in plain(decide(place, "yes", name="  "))
    refused_page(decide(place, "yes", name="Somebody"), "NOT_APPROVED")
    # The question is still there.
    decide(place, "yes", name="Officer")
    assert "approved by" in plain(finished(place)).lower()


def test_undefended_rows_need_a_second_word(world, place):
    assert "your rows themselves leave" in plain(asked(place, world, preset="none"))
    refused_page(decide(place, "yes", name="me"), "UNDEFENDED")
    assert not list((world.root / "a" / "outbox").iterdir())


@pytest.mark.slow
def test_a_second_share_is_refused_unless_it_is_meant(world, place):
    asked(place, world)
    decide(place, "yes", name="me")
    finished(place)
    send(place, "/approve")
    refused_page(finished(place), "ALREADY_SHARED")
    assert "Earlier share" in worked(place, "/approve", {"again": "yes"})


def test_while_one_thing_is_at_work_another_is_refused(world, place):
    asked(place, world)
    for path in ("/release", "/wrong", "/approve"):
        refused_page(send(place, path), "BUSY")
    assert "Waiting for your answer" in plain(place.client.get("/table"))


def test_a_record_is_shown_before_and_after(world, place):
    table = pd.read_csv(world.root / "a.csv")
    looked(place, world, preset="none")
    page = plain(place.client.get("/release?row=17"))
    assert "Row 17 of your table" in page
    for name in ("age", "pulse", "weight"):
        assert f"{name} {table[name][16]:.10g}" in page
    assert f"ward {table['ward'][16]}" in page
    assert f"Target: {table['ill'][16]}" in page
    assert "it stands for it alone" in page
    for strange in ("0", "99999", "-1", "x", "9" * 30, "²"):
        assert place.client.get("/release", params={"row": strange}).status_code == 200


@pytest.mark.parametrize(
    ("form", "words"),
    [
        *(({"preset": "best"}, "expected one of groups, none"), ({"epsilon": "four"}, "expected a number")),
        *(({"epsilon": "nan"}, "is not allowed"), ({"components": "2.5"}, "no whole number")),
        ({"group_size": "1"}, "a number from 2 on"),
    ],
)
def test_a_strange_option_is_refused(world, place, form, words):
    place.desk.choose(world.root / "a.csv")
    answer = send(place, "/release", form)
    assert answer.status_code == 422
    assert words in plain(answer)


@pytest.mark.parametrize("name", ["../keys.json", "..%2Fkeys.json", "%2e%2e/keys.json", ".lock", "nothing.dcshare"])
def test_only_the_outbox_is_handed_out(world, place, name):
    (world.root / "a" / "outbox" / ".lock").write_text("x")
    answer = place.client.get(f"/outbox/{name}")
    assert answer.status_code in (404, 422)
    assert (world.root / "a" / "keys.json").read_text()[:20] not in answer.text


def test_whoever_left_the_work_sees_why_it_came_to_nothing(world, place):
    send(place, "/predict", {"path": str(world.root / "new.csv")})
    assert place.desk.jobs.last.wait(30)
    refused_page(place.client.get("/predict"), "NOT_SHARED")
    assert "NOT_SHARED" not in place.client.get("/model").text
    place.desk.choose(world.root / "a.csv")
    send(place, "/wrong")
    assert "Read as a.csv: 80 rows, " in finished(place).text
    assert "NOT_SHARED" not in place.client.get("/predict").text


@pytest.mark.parametrize("form", [{}, {"using": "nobody"}, {"using": "local"}])
def test_no_row_of_a_prediction_that_failed_stays(world, place, form):
    folder = world.root / "a" / "desk"
    folder.mkdir()
    (folder / "predictions.csv").write_text("of the last time")
    send(place, "/predict", form, files={"upload": ("new.csv", (world.root / "new.csv").read_bytes())})
    assert 'class="code"' in finished(place).text or form == {"using": "nobody"}
    left = [path for path in folder.rglob("*") if path.is_file()]
    assert left == ([folder / "predictions.csv"] if form == {"using": "nobody"} else [])
    assert not list(folder.glob("upload-*"))


def test_an_upload_changes_nothing_while_another_thing_is_at_work(world, place):
    data = (world.root / "a.csv").read_bytes()
    worked(place, "/table", files={"upload": ("a.csv", data)})
    worked(place, "/release", QUICK)
    looked_at = place.desk.looked
    worked(place, "/approve")
    other = {"upload": ("b.csv", (world.root / "b.csv").read_bytes())}
    refused_page(send(place, "/table", files=other), "BUSY")
    refused_page(send(place, "/release", {"preset": "none"}), "BUSY")
    refused_page(send(place, "/table/remove"), "BUSY")
    kept = world.root / "a" / "desk" / "table.csv"
    assert (place.desk.table, place.desk.looked) == (kept, looked_at)
    assert kept.read_bytes() == data
    assert list(kept.parent.iterdir()) == [kept]
    assert place.desk.options == {"n_components": 3, "audit": False}
    decide(place, "no")
    finished(place)


def test_a_defect_shows_no_words_of_its_own(world, place, monkeypatch):
    def broken(*given, **options):
        raise KeyError("patient-00017")

    monkeypatch.setattr(PartyFolder, "encode", broken)
    send(place, "/table", {"path": str(world.root / "a.csv")})
    page = finished(place)
    refused_page(page, "BUG")
    assert "patient-00017" not in page.text
    monkeypatch.setattr(type(place.desk), "last_share_entry", broken)
    answer = place.client.get("/outbox")
    assert answer.status_code == 500
    assert answer.text == "BUG: A KeyError that should not happen. Nothing was sent."


def test_texts_of_others_are_escaped_and_turn_nothing_around(tmp_path):
    world = new_world(tmp_path)
    hostile = tmp_path / "<script>alert(1)\u202e.csv"
    pd.read_csv(tmp_path / "a.csv").to_csv(hostile, index=False)
    world.join()
    place = opened(tmp_path / "a")
    send(place, "/table", {"path": str(hostile)})
    page = finished(place).text
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "\u202e" not in page


def test_where_the_anchor_is_missing_the_desk_says_so(world, place):
    (world.root / "a" / "anchor.dcstate").unlink()
    refused_page(place.client.get("/"), "ANCHOR_MISSING")
    place.desk.choose(world.root / "a.csv")
    send(place, "/release", QUICK)
    refused_page(finished(place), "ANCHOR_MISSING")


def test_a_desk_under_a_passphrase(tmp_path, monkeypatch):
    world = new_world(tmp_path)
    (tmp_path / "a" / "keys.json").unlink()
    world.keys["a"].save(tmp_path / "a" / "keys.json", passphrase="four words that hold")
    PartyFolder.join(
        tmp_path / "a", tmp_path / "project.toml", tmp_path / "anchor.dcanchor", passphrase="four words that hold"
    )
    allow_without_audit(tmp_path / "a" / "policy.toml")
    desk = party_desk(tmp_path / "a", passphrase="four words that hold")
    assert desk.open_folder().anchor.rows.shape == (60, 5)


OPTIONS = [
    *({}, {"epsilon": 2.0}, {"preset": "groups"}, {"preset": "none"}, {"preset": "none", "fit_on_anchor": True}),
    *({"fit_on_anchor": True, "group_size": 5}, {"noise": 1.0, "obfuscator": "kernel-pca", "standardize": False}),
    {"group_size": 3, "noise": 0.5, "n_components": 2},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_form_shows_what_was_chosen(world, place, options):
    place.desk.choose(world.root / "a.csv")
    place.desk.options = options
    form = place.client.get("/release").text
    fields = {"components": "n_components", "epsilon": "epsilon", "group_size": "group_size", "noise": "noise"}
    for field, name in fields.items():
        assert re.search(rf'<input id="{field}" [^>]*value="{options.get(name, "")}"', form), field
    ticked = re.findall(r'<input id="(\w+)" [^>]*type="checkbox" value="yes" checked>', form)
    wanted = {"no_standardize": "standardize", "fit_on_anchor": "fit_on_anchor"}
    assert ticked == [field for field in ("fit_on_anchor", "no_standardize") if wanted[field] in options]


def test_what_leaves_is_what_was_looked_at(world, place):
    """No secret is drawn between, so no figure changes; a policy that was changed since asks for another look."""
    asked(place, world)
    prepared = place.desk.looked.prepared
    decide(place, "yes", name="Officer")
    finished(place)
    left, _ = world.open_share(PartyFolder(world.root / "a"))
    assert (left.representation == prepared.share.representation).all()
    assert place.desk.looked is None
    looked(place, world)
    policy = world.root / "a" / "policy.toml"
    policy.write_text(policy.read_text().replace("min_rows = 20", "min_rows = 21"))
    send(place, "/approve", {"again": "yes"})
    refused_page(finished(place), "NOT_APPROVED")
