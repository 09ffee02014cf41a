"""A project that shares sums, by commands, from keys to predictions; and databases in place of tables' files."""

import json
import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from adbc_driver_postgresql import dbapi as postgresql

from datacollab.bundle import PublicKey
from datacollab.steps.party import PartyFolder
from playing import assert_refused, run, runs
from postgres_server import find_programs, run_server
from sums_world import new_sums_world, rows_of

PARTIES = ("north", "south", "east")
keys, project, party, analyst = map(runs, ("keys", "project", "party", "analyst"))


def done(result):
    assert result.exit_code == 0, result.output
    return result.stdout


def heard_by(place, name):
    """Options with the fingerprints of all others, as a party hears them."""
    others = [PublicKey.load(place / each / "public.key") for each in PARTIES if each != name]
    return [f"--heard={key.fingerprint}" for key in others]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """All parties have joined."""
    at = tmp_path_factory.mktemp("sums")
    rows_of(300, 1).drop(columns="ill").to_csv(at / "public.csv", index=False)
    for seed, name in enumerate(PARTIES):
        rows_of(80, 50 + seed).to_csv(at / f"{name}.csv", index=False)
    rows_of(200, 9).to_csv(at / "new.csv", index=False)
    done(keys("new", *(at / name for name in (*PARTIES, "analyst"))))
    members = [option for name in PARTIES for option in ("--party", f"{name}={at / name / 'public.key'}")]
    text = done(
        project(
            *("new", "wards", "--like", at / "public.csv", "--target", "ill", "--class", "no", "--class", "yes"),
            *("--purpose", "Who falls ill?", *members, "--analyst", at / "analyst" / "public.key"),
            *("-C", at / "north", "-o", at / "project.toml"),
        )
    )
    assert "sums under masks" in text
    assert "Only 3 legal entities" in text
    file = at / "project.toml"
    file.write_text(file.read_text().replace('south = "south"', 'south = "The southern hospital"'))
    done(project("revise", file, at / "public.csv", "-C", at / "north", "-o", at / "anchor.dcanchor"))
    assert "The southern hospital" in done(project("show", file))
    for name in PARTIES:
        done(party("join", file, at / "anchor.dcanchor", "-C", at / name))
    done(analyst("init", file, "-C", at / "analyst"))
    return at


def test_a_revision_is_one_command_and_joining_it_says_what_changed(place, tmp_path):
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    file, public, sealed = (tmp_path / name for name in ("project.toml", "public.csv", "anchor.dcanchor"))
    owner = ("-C", tmp_path / "north", "-o", sealed)
    before, first = file.read_text(), sealed.read_bytes()
    assert "unchanged" in done(project("revise", file, public, *owner))
    assert sealed.read_bytes() == first, "it is this agreement's, and parties have it"
    file.write_text(before.replace("min_rows = 20", "min_rows = 30").replace("maximum = ", "maximum = 1", 1))
    edited = file.read_text()
    assert_refused(
        project("revise", file, place / "new.csv", "-C", tmp_path / "south", "-o", sealed), "NOT_A_MEMBER", 10
    )
    pd.read_csv(public).assign(age=1e9).to_csv(tmp_path / "wrong.csv", index=False)
    assert_refused(project("revise", file, tmp_path / "wrong.csv", *owner), "SCHEMA_RANGE", 13, "wrong.csv")
    assert (file.read_text(), sealed.read_bytes()) == (edited, first)
    told = done(project("revise", file, public, *owner))
    assert f"Send {file} to the analyst, and to east, north, south." in told
    assert f"{sealed}: sealed. Send it to east, north, south, and never to the analyst." in told
    again = party("join", file, sealed, "-C", tmp_path / "south")
    assert again.exit_code == 12, again.output
    assert "The project was revised (2 to 3):\n" in again.stdout
    assert "[rules] min_rows: 20 becomes 30" in again.stdout
    assert "maximum: " in again.stdout
    assert "NOT_APPROVED" in again.stderr
    facts = json.loads(done(party("join", file, sealed, "--yes", "--json", "-C", tmp_path / "south")))
    assert len(facts["changes"]) == 2
    assert "revised" not in done(party("join", file, sealed, "-C", tmp_path / "south"))


def test_a_party_sees_its_own_levels_on_its_screen_alone(place):
    table = pd.read_csv(place / "south.csv").astype({"ward": object})
    table.loc[:9, "ward"] = "Nigth"
    table.to_csv(place / "levels.csv", index=False)
    shown = party("check", place / "levels.csv", "--show-levels", "-C", place / "south")
    assert "  ward: 'Nigth' in 10 rows; nearest: 'night'" in shown.stdout
    hidden = party("check", place / "levels.csv", "-C", place / "south")
    facts = party("check", place / "levels.csv", "--show-levels", "--json", "-C", place / "south")
    for each in (shown.stderr, hidden.output, facts.output, (place / "south" / "log.jsonl").read_text()):
        assert "Nigth" not in each
    assert "Nearest to them: night" in hidden.stderr


def draft_of(place, file, *task, **columns):
    """Words that draft a study over public rows with further columns."""
    rows_of(100, 2).drop(columns="ill").assign(**columns).to_csv(file, index=False)
    members = [option for name in PARTIES for option in ("--party", f"{name}={place / name / 'public.key'}")]
    by = ("--purpose", "How?", "--analyst", place / "analyst" / "public.key", "-C", place / "north")
    return ("new", "study", "--like", file, *task, *members, *by)


def test_a_study_of_survival_is_drafted_with_sums(place, tmp_path):
    task = ("--time", "month", "--event", "died")
    draft = draft_of(place, tmp_path / "public.csv", *task, month=[*range(1, 51)] * 2, died=["yes", "no"] * 50)
    text = done(project(*draft, "--statistic", "survival", "--statistic", "counts", "-o", tmp_path / "lives.toml"))
    assert "sums under masks: survival and counts" in text
    file = tmp_path / "lives.toml"
    drafted = file.read_text()
    assert drafted.count("\nflag_missing = true") == 3, "what is missing is no number of a study"
    assert 'unknown = "missing"' in drafted
    assert "[anchor]" not in drafted, "no anchor is needed"
    file.write_text(file.read_text().replace("noise = 0.1", 'by = "ward"\nnoise = 0.1'))
    done(project("revise", file, "-C", place / "north"))
    text = done(project("show", file))
    assert "survival: died after month" in text
    assert "rounded" not in text, "times stay"
    wrong = project(*draft, "--statistic", "survival", "--rows", "-o", tmp_path / "other.toml")
    assert_refused(wrong, "SPEC_INVALID", 13)
    file.write_text(file.read_text().replace('by = "ward"', 'by = "died"'))
    assert_refused(project("revise", file, "-C", place / "north"), "SPEC_INVALID", 13)


def test_a_study_of_an_effect_is_drafted_with_sums(place, tmp_path):
    task = ("--treatment", "drug", "--outcome", "stay")
    draft = draft_of(place, tmp_path / "public.csv", *task, drug=[0, 1] * 50, stay=[*range(50)] * 2)
    text = done(project(*draft, "--statistic", "effect", "-o", tmp_path / "drug.toml"))
    assert "sums under masks: effect" in text
    assert "Representations" not in text
    assert "effect of drug on stay" in done(project("show", tmp_path / "drug.toml"))


def test_columns_that_are_not_used_are_named(place, tmp_path):
    pytest.importorskip("openpyxl")
    table = pd.read_csv(place / "south.csv").assign(number=range(80))
    table.to_csv(tmp_path / "own.csv", index=False)
    table.to_excel(tmp_path / "own.xlsx", index=False)
    for file in ("own.csv", "own.xlsx"):
        found = party("check", tmp_path / file, "-C", place / "east")
        assert "Columns not used: number" in found.stdout
    assert "80 rows, 5 columns" in found.stderr


@pytest.mark.slow
def test_from_check_to_predictions(place):
    check = ("check", place / "north.csv", "--dpia", place / "dpia.md", "-C", place / "north")
    text = done(party(*check))
    assert "personal data" in text
    assert "This may be shared" in text
    form = (place / "dpia.md").read_text(encoding="utf-8")
    assert "The southern hospital" in form
    assert re.search(r"One file with [\d,]+ numbers", form)[0].removeprefix("One file with ") in text
    assert party(*check).exit_code == 2  # it is there already
    refused = party("share", place / "north.csv", "-C", place / "north")
    assert refused.exit_code == 12
    assert "NOT_APPROVED" in refused.stderr
    files = []
    for name in PARTIES:
        share = ("share", place / f"{name}.csv", "--approve", "--approved-by", "officer", "-C", place / name)
        refused = party(*share)
        assert refused.exit_code == 12
        assert "NOT_CONFIRMED" in refused.stderr
        text = done(party(*share, *heard_by(place, name)))
        assert "approved by officer" in text
        files.append(place / name / "outbox" / f"{name}.dcsum")
    shared = f"You shared 80 rows of north.csv on {datetime.now(UTC).date()}. new.csv was not "
    text = done(party("share", place / "new.csv", "--approve", "-C", place / "north"))
    assert f"{shared}added." in text
    assert re.search("Your own model, a (random forest|linear model) on 80 of your rows, is kept here", text)
    assert_refused(party("check", place / "new.csv", "-C", place / "north"), "ALREADY_SHARED", 14, f"{shared}read.")
    at = ("-C", place / "analyst")
    assert "north: sums of" in done(analyst("add", *files[:2], *at))
    assert "2 of 3 parties have shared; 3 are needed" in done(analyst("status", *at))
    assert_refused(analyst("integrate", *at), "QUORUM_NOT_MET", 12, "east")
    assert analyst("integrate", files[2], "--method", "kti", *at).exit_code == 2
    told = json.loads(done(analyst("integrate", "--json", *at)))
    assert abs(told["n_rows"] - 240) < 12
    assert "Parties can compare" in done(analyst("integrate", *at))
    assert "for north alone" in done(analyst("export", *at))
    assert analyst("export", "--anchor-predictions", *at).exit_code == 1
    model = place / "analyst" / "outbox" / "north.dcmodel"
    text = done(party("install", model, "-C", place / "north"))
    assert "3 parties" in text
    assert told["model_digest"] in text
    assert re.search(r"all parties' rows \(7\d%\) and your own \(2\d%\): a .* on 80 of your rows\.", text)
    told_file = place / "told.csv"
    predict = ("predict", place / "new.csv", "-o", told_file, "-C", place / "north")
    first, *rest = done(party(*predict)).splitlines()
    assert first == f"{told_file}: 200 predictions"
    assert "combine the model of all parties' rows" in " ".join(rest)
    assert "combine the model of all parties' rows" not in done(party(*predict, "--using", "collaboration"))
    assert list(pd.read_csv(told_file)) == ["prediction", "proba_no", "proba_yes"]
    scores = json.loads(done(party("evaluate", place / "new.csv", "--json", "-C", place / "north")))
    assert scores["accuracy"] > 0.85
    assert list(scores["sides"]) == ["combined", "local", "collaboration"]
    rows_of(200, 9).assign(age=1.0, pulse=90.0, number=range(200)).to_csv(place / "alike.csv", index=False)
    text = done(party("predict", place / "alike.csv", *predict[2:]))
    assert "replaced" in text
    assert "number. To copy one beside the predictions: --keep number" in text
    assert "Every row is called 'no'" in text
    kept = done(party("predict", place / "alike.csv", "--keep", "number", "--tested", place / "new.csv", *predict[2:]))
    assert "copy" not in kept
    assert "Every row" not in kept
    events = [entry["event"] for entry in PartyFolder(place / "north").log.entries()]
    assert events == ["join", "check", "share", "install", "predict", *["predict", "evaluate"] * 2, "predict"]


def test_what_is_for_rows_alone_is_kept_apart_and_says_so(place):
    policy = (place / "north" / "policy.toml").read_text()
    assert "obfuscators" not in policy
    assert "components" not in done(project("show", place / "project.toml"))
    assert "--epsilon" in done(party("share", "--help")).partition("Only if parties share rows:")[2]
    for command in (("forget", "--yes"), ("explain", place / "new.csv")):
        result = party(*command, "-C", place / "north")
        assert result.exit_code != 0
        assert "Traceback" not in result.output


def test_a_public_key_of_somebody_else_is_noticed(place, tmp_path):
    shutil.copytree(place / "east", tmp_path, dirs_exist_ok=True)
    assert "somebody else" not in party("check", place / "east.csv", "-C", tmp_path).stderr
    shutil.copy(place / "south" / "public.key", tmp_path)
    assert "public.key is the key" in party("check", place / "east.csv", "-C", tmp_path).stderr
    joined = party("join", place / "project.toml", "--owner", tmp_path / "public.key", "-C", tmp_path)
    assert "of somebody else" in joined.stderr


SELECT = ("--sql", "SELECT * FROM patients")


def write_databases(folder, rows):
    with closing(sqlite3.connect(folder / "patients.sqlite")) as connection:
        rows.to_sql("patients", connection, index=False)
    with duckdb.connect(folder / "patients.duckdb") as connection:
        connection.from_df(rows).create("patients")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """All have shared, the north by a query, and have the model."""
    world = new_sums_world(tmp_path_factory.mktemp("databases"), parties=PARTIES)
    write_databases(world.root, rows_of(400, 7))
    heard = [f"--heard={each}" for each in world.heard("north")]
    at = ("-C", world.root / "north")
    text = done(party("check", world.root / "patients.sqlite", *SELECT, *at))
    (command,) = (line.strip() for line in text.splitlines() if "party share" in line)
    assert shlex.split(command)[3:6] == [str(world.root / "patients.sqlite"), *SELECT]
    done(run(*shlex.split(command.partition(" --heard")[0])[1:], *heard))
    for name in PARTIES[1:]:
        world.share(name)
    world.analyst.add(sorted(world.root.glob("*/outbox/*.dcsum")))
    world.analyst.integrate()
    (model,) = (each for each in world.analyst.export() if each.name.startswith("north"))
    done(party("install", model, *at))
    return world


@pytest.fixture
def world(installed, tmp_path):
    return installed.copied(tmp_path)


def test_a_query_is_read_once(tmp_path, monkeypatch):
    world = new_sums_world(tmp_path, parties=PARTIES)
    write_databases(world.root, rows_of(400, 7))
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: opened.append(args) or connect(*args, **options))
    command = ("--sql", "SELECT *, 1 AS more FROM patients", "-C", world.root / "north")
    heard = [f"--heard={each}" for each in world.heard("north")]
    for name, options in {"check": (), "share": ("--approve", *heard)}.items():
        assert "Columns not used: more" in done(party(name, world.root / "patients.sqlite", *command, *options))
    assert len(opened) == 2


@pytest.mark.slow
def test_a_share_is_told_and_kept_under_the_name_of_the_file(world):
    assert "You shared 400 rows of patients.sqlite on" in PartyFolder(world.root / "north").way.describe_share()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["patients.sqlite", "patients.duckdb"])
def test_predictions_and_scores_are_those_of_the_file(world, name):
    at = ("-C", world.root / "north")
    root = world.root
    done(party("predict", root / "new.csv", "-o", root / "of_file.csv", *at))
    said = done(party("predict", root / name, *SELECT, "-o", root / "of_query.csv", *at))
    assert "400 predictions" in said
    found, expected = (pd.read_csv(root / f"of_{each}.csv") for each in ("query", "file"))
    pd.testing.assert_frame_equal(found, expected)
    scores = [
        json.loads(done(party("evaluate", *table, "--json", *at)))
        for table in ((root / name, *SELECT), (root / "new.csv",))
    ]
    assert scores[0]["accuracy"] == scores[1]["accuracy"]


def test_a_project_is_drafted_from_a_query(world):
    keys = [word for name in PARTIES for word in ("--party", f"{name}={world.root / name / 'public.key'}")]
    for like in (("public.csv",), ("patients.sqlite", *SELECT)):
        done(
            project(
                *("new", "wards", "--like", world.root / like[0], *like[1:], "--target", "ill", "--purpose", "Who?"),
                *(*keys, "--analyst", world.root / "analyst" / "public.key", "-C", world.root / "north"),
                *("-o", world.root / f"of_{like[0]}.toml", "--rows"),
            )
        )
    names = [
        [line for line in (world.root / f"of_{like}.toml").read_text().splitlines() if line.startswith("name = ")]
        for like in ("public.csv", "patients.sqlite")
    ]
    assert names[0] == names[1]


@pytest.mark.slow
def test_a_trial_reads_a_query(world):
    said = done(run("trial", world.root / "patients.duckdb", *SELECT, "--target", "ill", "--parties", "3"))
    assert "400" in said


def test_sql_and_a_database_need_one_another(world):
    at = ("-C", world.root / "north")
    refused = ("TABLE_UNREADABLE", 13)
    assert_refused(party("check", world.root / "new.csv", *SELECT, *at), *refused, "no database", ".duckdb")
    assert_refused(party("check", world.root / "patients.sqlite", *at), *refused, "--sql")
    assert_refused(party("check", "postgresql://db/x", *at), *refused, "--sql")
    assert_refused(party("evaluate", world.root / "patients.sqlite", "--sql", "DROP TABLE patients", *at), *refused)
    missing = party("check", world.root / "none.sqlite", *SELECT, *at)
    assert missing.exit_code == 2
    assert "does not exist" in missing.output


def test_the_output_is_never_the_database(world):
    file = world.root / "patients.sqlite"
    before = file.read_bytes()
    result = party("predict", file, *SELECT, "-o", file, "--force", "-C", world.root / "north")
    assert result.exit_code == 2
    assert file.read_bytes() == before


def texts_of(root):
    return b"".join(path.read_bytes() for path in Path(root).rglob("*") if path.is_file())


def test_an_address_with_a_password_is_refused_and_appears_nowhere(world):
    address = "postgresql://ann:geheim@127.0.0.1:1/x"
    for words in (("check",), ("evaluate",), ("predict", "-o", world.root / "p.csv"), ("share", "--approve")):
        result = party(words[0], address, *SELECT, *words[1:], "-C", world.root / "north")
        assert_refused(result, "TABLE_UNREADABLE", 13, ".pgpass")
        assert "geheim" not in result.output
        assert "ann" not in result.output
    assert b"geheim" not in texts_of(world.root)


@pytest.fixture(scope="module")
def server(installed):
    """Asks the user ward7 for a password."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL (initdb, postgres) is not installed here, or nobody may run it")
    with run_server(programs) as address:
        with closing(postgresql.connect(f"{address}/postgres", autocommit=True)) as made, made.cursor() as cursor:
            cursor.adbc_ingest("patients", pa.Table.from_pandas(rows_of(400, 7)))
            cursor.execute("CREATE USER ward7 PASSWORD 'geheim'")
            cursor.execute("GRANT SELECT ON patients TO ward7")
            cursor.execute("SELECT setting FROM pg_settings WHERE name = 'hba_file'")
            (file,) = cursor.fetchone()
            Path(file).write_text("host all ward7 all scram-sha-256\nhost all all all trust\nlocal all all trust\n")
            cursor.execute("SELECT pg_reload_conf()")
            cursor.fetchall()
        yield address.replace("hub@", "ward7@") + "/postgres"


@pytest.mark.slow
def test_a_password_of_the_environment_stands_nowhere(world, server, tmp_path, monkeypatch):
    at = ("-C", world.root / "north")
    refused = party("evaluate", server, *SELECT, *at)
    assert_refused(refused, "TABLE_UNREADABLE", 13, "lets nobody in", "pgpass")
    kept = tmp_path / "elsewhere" / "pgpass"
    kept.parent.mkdir()
    kept.write_text("*:*:*:ward7:geheim\n")
    kept.chmod(0o600)
    outputs = [refused.output]
    for name, value in (("PGPASSWORD", "geheim"), ("PGPASSFILE", str(kept))):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            for words in (("check",), ("evaluate",), ("predict", "-o", world.root / f"{name}.csv")):
                result = party(words[0], server, *SELECT, *words[1:], *at)
                if words[0] != "check":
                    done(result)
                outputs.append(result.output)
    shutil.rmtree(kept.parent)
    assert "geheim" not in "".join(outputs)
    assert b"geheim" not in texts_of(tmp_path)
    logged = [entry for entry in PartyFolder(world.root / "north").log.entries() if entry["event"] == "predict"]
    assert logged
    assert b"ward7" not in texts_of(world.root / "north"), "nor is the user"
    assert any("postgresql://127.0.0.1:" in json.dumps(entry) for entry in logged)
