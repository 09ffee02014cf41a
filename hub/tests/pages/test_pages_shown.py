"""What the hub's pages tell, to whom, and of two revisions; nobody's words become markup."""

import html
import re
from dataclasses import replace
from datetime import date

import pytest
from sqlalchemy import text

from datacollab.agreement import Sharing
from datacollab.bundle import KeyPair, digest
from datacollab.sums import MaskKey, mask_card
from datacollab.table import Column
from datacollab_hub.pages import compare_projects
from datacollab_hub.rules import KINDS
from hub_world import FINGERPRINTS, KEYS, PROJECT, World, agreed_world, bundle, make_project

SECOND = make_project(revision=2, min_rows=30, deadline=date(2027, 2, 28))
SHARES = {name: bundle("share", name, party=name) for name in ("north", "south")}
MODEL = bundle("model", "analyst", party="north")
ANCHOR = bundle("anchor", "owner")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A project in the middle of its life: anchor, one share, a model; the other share is missing."""
    with agreed_world(tmp_path_factory.mktemp("hub")) as world:
        world.admit("auditor")
        world.join("other", world.invite("party", "Newcomer"))
        for who, kind, data, to in (
            ("owner", "anchor", ANCHOR, None),
            ("north", "share", SHARES["north"], None),
            ("analyst", "model", MODEL, "north"),
        ):
            assert world.send(who, kind, data, to).status_code == 201
        world.now += 3600
        world.ask("analyst", "GET", f"/v1/projects/{{p}}/files/{digest(SHARES['north'])}")
        world.browsers = {who: world.browser(who) for who in ("owner", "north", "south", "analyst", "auditor")}
        yield world


def words(world, who, path=""):
    """The words of a page's main part, in one line."""
    answer = world.browsers[who].get(f"/projects/{world.project}{path}")
    assert answer.status_code == 200, answer.text
    main = re.search(r"<main.*?</main>", answer.text, re.DOTALL)[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", main)).split())


@pytest.mark.slow
def test_the_overview_says_how_it_stands(world):
    told = words(world, "auditor")
    assert "1 of 2" in told
    assert "Missing: south" in told
    assert "16 days from now, until midnight in UTC" in told
    assert "By the hub's clock it is 15 January 2027, 09:00 UTC" in told
    assert "They lie here for north" in told
    for who in ("owner", "north", "south", "analyst", "auditor"):
        assert FINGERPRINTS[who] in told
    assert PROJECT.fingerprint in told
    assert PROJECT.digest in told
    assert world.log()[-1]["digest"] in told


@pytest.mark.parametrize(
    ("who", "command"),
    [
        *(
            ("owner", "datacollab remote requests"),
            ("north", "datacollab remote pull"),
            ("south", "datacollab party share"),
        ),
        *(("analyst", None), ("auditor", None)),
    ],
)
def test_each_is_told_what_waits_for_them(world, who, command):
    told = words(world, who)
    assert ("What waits for you" in told) == (command is not None)
    assert command is None or command in told


def test_the_owner_sees_who_asks_and_the_command_to_let_them_in(world):
    told = words(world, "owner", "/requests")
    assert "Newcomer" in told
    assert f"datacollab remote approve {FINGERPRINTS['other']}" in told
    for who in ("north", "analyst", "auditor"):
        answer = world.browsers[who].get(f"/projects/{world.project}/requests")
        assert answer.status_code == 403
        assert "Newcomer" not in answer.text


@pytest.mark.parametrize(
    ("who", "kinds"),
    [
        *((who, {"Anchor", "Share", "Model"}) for who in ("owner", "auditor", "north")),
        *(("south", {"Anchor"}), ("analyst", {"Share", "Model"})),
    ],
)
def test_files_and_sizes_are_shown_as_the_api_tells_them(world, who, kinds):
    """Of an anchor the analyst is not even told the size."""
    told = words(world, who, "/files")
    assert {kind for kind in ("Anchor", "Share", "Model") if re.search(rf"{kind} [0-9a-f]{{8}}", told)} == kinds
    allowed = {each["sha256"] for each in world.files(who)}
    for data in (ANCHOR, SHARES["north"], MODEL):
        answer = world.browsers[who].get(f"/projects/{world.project}/files/{digest(data)}")
        assert answer.status_code == (200 if digest(data) in allowed else 404)
        assert (f"{len(data):,} bytes" in answer.text) == (digest(data) in allowed)


def test_a_file_says_what_was_checked_and_who_fetched_it(world):
    told = words(world, "owner", f"/files/{digest(SHARES['north'])}")
    assert "Share from north" in told
    assert f"The signature is that of the key {FINGERPRINTS['north']} , north" in told
    assert f"names the digest of the project file that held then, {PROJECT.digest} , which holds now" in told
    assert f"analyst {FINGERPRINTS['analyst']} 15 January 2027, 09:00 UTC" in told
    assert "datacollab remote withdraw" not in told
    assert f"datacollab remote withdraw {digest(SHARES['north'])[:16]}" in words(
        world, "north", f"/files/{digest(SHARES['north'])}"
    )


OF_KIND = {"anchor": "Anchor", "share": "Share", "sums": "Sums under masks", "model": "Model"}
OF_KIND |= {"sums-model": "Model of sums", "answers": "Anchor predictions", "round": "Request for a round"}


@pytest.mark.slow
def test_a_file_of_each_kind_has_a_page(tmp_path):
    with agreed_world(tmp_path / "hub") as world:
        world.browsers = {"owner": world.browser("owner")}
        for kind, facts in KINDS.items():
            by = "owner" if kind == "anchor" else "north" if kind in ("share", "sums") else "analyst"
            sender = {"owner": "the owner", "north": "a party", "analyst": "the analyst"}[by]
            data = bundle(kind, by, party=None if facts.to_all else "north")
            assert world.send(by, kind, data, "north" if facts.names_recipient else None).status_code == 201
            receiver = "north" if facts.names_recipient else "all parties" if facts.to_all else "analyst"
            assert f"{OF_KIND[kind]} {digest(data)[:8]} {by} {receiver} " in words(world, "owner", "/files")
            told = words(world, "owner", f"/files/{digest(data)}")
            assert f"{OF_KIND[kind]} from {by}" in told
            assert f"which only {sender} may send" in told
            about = {"north": ["the party that sent it"], "analyst": ["the party that it is for"]}.get(by, [])
            about = [] if facts.to_all else about
            assert re.findall("the party that (?:sent it|it is for)", told) == about


def test_the_log_says_who_did_what_and_that_its_chain_holds(world):
    told = words(world, "south", "/log")
    n_entries, head = len(world.log()), world.log()[-1]["digest"]
    assert f"All {n_entries} entries follow from one another" in told
    assert head in told
    assert "owner opened the project heart" in told
    assert "north sent a file: share" in told
    assert "analyst fetched a file" in told
    assert f"let in auditor as auditor, key {FINGERPRINTS['auditor']}" in told
    assert not re.search(r"\d+ (bytes|KiB)", told)


def test_the_agreement_is_said_in_words(world):
    told = words(world, "north", "/agreement")
    for said in (
        "age 0 to 120 years",
        "ill",
        "classes no, yes",
        "at least 20 rows",
        "31 January 2027",
        "sealed: the ana",
    ):
        assert said in told
    for who in ("owner", "analyst", "north", "south"):
        assert FINGERPRINTS[who] in told


@pytest.mark.slow
def test_revisions_are_kept_and_compared(tmp_path):
    with World(tmp_path / "hub") as world:
        world.open_project()
        world.browsers = {"south": world.browser("owner")}
        assert world.browsers["south"].get(f"/projects/{world.project}/agreement").status_code == 404
        world.put_agreement()
        assert "one revision alone" in words(world, "south", "/agreement/changes")
        world.now += 60
        world.put_agreement(SECOND)
        world.put_agreement(make_project(revision=5))
        told = words(world, "south", "/agreement/changes?before=1&after=2")
        assert "Fewest rows of a party 20 30" in told
        assert "Last day for shares 2027-01-31 2027-02-28" in told
        assert "-min_rows = 20" in told
        assert "+min_rows = 30" in told
        assert "From revision 2 to revision 5" in words(world, "south", "/agreement/changes")
        assert "Both say the same" in words(world, "south", "/agreement/changes?before=1&after=5")
        assert "an earlier one, which holds no more" in words(world, "south", "/agreement?revision=1")
        page = words(world, "south", "/agreement")
        assert "Revision 2 15 January 2027, 08:01 UTC" in page
        for wrong in ("?revision=4", "?revision=0", "/changes?before=1&after=77"):
            assert world.browsers["south"].get(f"/projects/{world.project}/agreement{wrong}").status_code == 404
        for wrong in ("?revision=x", "?revision=-1", "?revision=99999999999", "/changes?before=1'"):
            answer = world.browsers["south"].get(f"/projects/{world.project}/agreement{wrong}")
            assert answer.status_code == 400
            assert "REQUEST_MALFORMED" in answer.text


@pytest.mark.slow
def test_a_long_log_is_shown_by_pages_and_checked_as_a_whole(tmp_path):
    with World(tmp_path / "hub") as world:
        world.open_project()
        for number in range(120):
            world.invite("party", f"guest-{number}")
        world.browsers = {"owner": world.browser("owner")}
        assert "All 121 entries" in words(world, "owner", "/log")
        pages = [words(world, "owner", f"/log{query}") for query in ("", "?after=21", "?after=0", "?after=100000")]
        shown = [set(re.findall(r"guest-\d+", page)) for page in pages]
        assert [len(each) for each in shown[:3]] == [50, 50, 49]
        assert shown[0] | shown[1] | shown[2] == {f"guest-{number}" for number in range(120)}
        with world.store.writing() as connection:
            connection.execute(text("UPDATE log SET action = 'asked' WHERE seq = 3"))
        told = words(world, "owner", "/log")
        assert "LOG_BROKEN" in told
        assert "Entry 3 of the hub's log does not follow" in told
        assert "follow from one another, from the first" not in told
        with world.store.writing() as connection:
            connection.execute(text("UPDATE log SET time = 'x', facts = '[]' WHERE seq > 100"))
        assert "LOG_BROKEN" in words(world, "owner", "/log")


NASTY = "<script>alert(1)</script>\"'&{{7*7}}"


@pytest.mark.slow
def test_no_name_becomes_markup(tmp_path):
    with World(tmp_path / "hub") as world:
        world.open_project(NASTY)
        project = make_project(name=NASTY, purpose=f"{NASTY}\nSet-Cookie: a=b")
        world.put_agreement(project)
        world.put_agreement(make_project(name=NASTY, purpose="x", revision=2))
        world.admit("auditor")
        world.join("other", world.invite("party", NASTY))
        share = bundle("share", "north", party="north", project=make_project(name=NASTY, purpose="x", revision=2))
        assert world.send("north", "share", share).status_code == 201
        browser = world.browser("owner")
        at = f"/projects/{world.project}"
        paths = ["", "/requests", "/files", f"/files/{digest(share)}", "/agreement", "/agreement?revision=1", "/log"]
        shown = 0
        for path in ("/", *(at + each for each in paths), f"{at}/agreement/changes"):
            answer = browser.get(path)
            assert answer.status_code == 200, path
            assert "<script" not in answer.text
            assert "{{7*7}}" in answer.text or "{{" not in answer.text
            assert set(answer.cookies) == set()
            shown += "&lt;script&gt;" in answer.text
        assert shown >= 7


@pytest.mark.parametrize(
    "path",
    [
        *("/projects/%3Cscript%3E", "/projects/../../etc/passwd", "/projects/%2e%2e%2f", "/projects/"),
        *("/projects/{p}/files/%3Cb%3E", "/projects/{p}/files/..%2f..%2fhub.sqlite"),
        *("/projects/{p}%0d%0aSet-Cookie:%20a=b", "/static/..%2f_visit.py", "/static/../templates/base.html"),
        "/session/%0d%0aSet-Cookie:%20a=b",
    ],
)
def test_no_path_is_repeated_or_followed(world, path):
    answer = world.browsers["north"].get(path.replace("{p}", world.project))
    assert answer.status_code in (403, 404)
    assert "a=b" not in str(answer.headers)
    for part in ("<script>", "<b>", "sqlite", "root:", "Set-Cookie"):
        assert part not in answer.text


def test_an_address_that_is_none_is_a_page_for_people_and_json_for_programs(world):
    browser = world.browsers["north"]
    for path in ("/nothing", f"/projects/{world.project}/nothing"):
        page = browser.get(path, headers={"Accept": "text/html,application/xhtml+xml"})
        assert page.status_code == 404
        assert "<code>NOT_FOUND</code>" in page.text
        assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
        assert browser.get(path).json()["code"] == "NOT_FOUND"


@pytest.mark.slow
def test_a_share_of_an_earlier_revision_and_one_taken_back_say_so(tmp_path):
    with agreed_world(tmp_path / "hub") as world:
        world.send("north", "share", SHARES["north"])
        world.send("south", "share", SHARES["south"])
        world.ask("south", "DELETE", f"/v1/projects/{{p}}/files/{digest(SHARES['south'])}")
        world.put_agreement(SECOND)
        world.browsers = {"owner": world.browser("owner")}
        told = words(world, "owner", "/files")
        assert "earlier revision" in told
        assert "taken back" in told
        assert "earlier revision of the project file" in words(world, "owner", f"/files/{digest(SHARES['north'])}")
        assert "Its sender took it back" in words(world, "owner", f"/files/{digest(SHARES['south'])}")
        assert "0 of 2" in words(world, "owner")


def test_a_project_without_an_agreement_has_pages_too(tmp_path):
    with World(tmp_path / "hub") as world:
        world.open_project()
        world.browsers = {"owner": world.browser("owner")}
        assert "has not sent the project file yet" in words(world, "owner")
        assert "datacollab remote push" in words(world, "owner")
        for path in ("/agreement", "/agreement/changes"):
            answer = world.browsers["owner"].get(f"/projects/{world.project}{path}")
            assert answer.status_code == 404
            assert "AGREEMENT_MISSING" in answer.text
        assert "There are none" in words(world, "owner", "/files")
        assert "Nobody has asked" in words(world, "owner", "/requests")


def test_facts_of_a_file_that_somebody_made_up_are_no_markup(world):
    """What a bundle says of itself is shown nowhere."""
    data = bundle("share", "south", party="south", more={"note": NASTY})
    assert world.send("south", "share", data).status_code == 201
    assert "alert" not in words(world, "owner", f"/files/{digest(data)}")
    world.ask("south", "DELETE", f"/v1/projects/{{p}}/files/{digest(data)}")


PARTIES = ("north", "south", "other")


def test_entries_are_named_with_what_they_were_and_are_and_nothing_where_nothing_differs():
    assert compare_projects(PROJECT, replace(PROJECT, revision=7)) == []
    after = replace(PROJECT, deadline=date(2031, 2, 3), seal_shares=not PROJECT.seal_shares, purpose="Another.")
    changes = {change.where: (change.before, change.after) for change in compare_projects(PROJECT, after)}
    words = {True: "yes", False: "no"}
    assert changes == {
        "Purpose": (PROJECT.purpose, "Another."),
        "Last day for shares": (None if PROJECT.deadline is None else PROJECT.deadline.isoformat(), "2031-02-03"),
        "Shares are sealed to the analyst": (words[PROJECT.seal_shares], words[not PROJECT.seal_shares]),
    }


def test_columns_come_go_change_and_move():
    first, *others = PROJECT.columns
    new = Column(name="new", kind="category", categories=("a", "b"))
    changed = replace(others[0], missing="fill", fill=others[0].minimum)
    found = compare_projects(PROJECT, replace(PROJECT, columns=(new, changed, *others[1:])))
    by_where = {change.where: change for change in found}
    assert by_where[f"Column {first.name}"].after is None
    assert (by_where["Column new"].before, by_where["Column new"].after) == (None, "category, a, b")
    assert "missing:" in by_where[f"Column {changed.name}"].after
    moved = compare_projects(PROJECT, replace(PROJECT, columns=(*others, first)))
    assert [change.where for change in moved] == ["Order of the columns"]


def test_members_are_compared_by_their_keys():
    name, *_ = PROJECT.parties
    new = KeyPair.generate().public
    parties = {**PROJECT.parties, name: new, "newcomer": KeyPair.generate().public}
    changes = compare_projects(PROJECT, replace(PROJECT, parties=parties))
    assert [change.where for change in changes] == [f"Party {name}", "Party newcomer"]
    assert (changes[0].before, changes[0].after) == (PROJECT.parties[name].fingerprint, new.fingerprint)
    assert changes[1].before is None


def test_changes_of_sharing_are_named():
    cards = {name: mask_card(MaskKey.generate(), KEYS[name]) for name in PARTIES}
    entities = {name: f"The {name} hospital" for name in (*PARTIES, "analyst")}
    parties = {name: KEYS[name].public for name in PARTIES}
    sums = {"anchor": replace(PROJECT.anchor, method="sample"), "parties": parties}
    before = make_project(**sums, sharing=Sharing(mask_keys=cards, entities=entities))
    changed = {
        "mask_keys": cards | {"south": mask_card(MaskKey.generate(), KEYS["south"])},
        "entities": entities | {"north": "Elsewhere"},
    }
    after = make_project(**sums, sharing=Sharing(**changed, run=2, noise=0.3))
    assert [change.where for change in compare_projects(before, after)] == [
        "Sharing: noise",
        "Sharing: run",
        "Mask key of south",
        "Legal entity of north",
    ]
    assert compare_projects(before, before) == []
