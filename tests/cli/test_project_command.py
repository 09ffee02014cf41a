"""A project by commands: drafted, shown, verified, revised; and columns as hospitals have them."""

import json
import os
import shutil
import stat
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from datacollab.agreement import load_project, open_anchor
from datacollab.bundle import KeyPair, key_with_proof
from datacollab.sums import MaskKey, mask_card
from playing import assert_refused, run, runs

run_project = runs("project")


SECRET = "Anna Huber"
TODAY = datetime.now(UTC).date()
TOMORROW = (TODAY + timedelta(days=1)).isoformat()
PARTIES = ("a", "b", "c")
NAMES = (*PARTIES, "analyst", "stranger")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with keys for each member; all but the stranger have mask keys."""
    folder = tmp_path_factory.mktemp("keys")
    for name in NAMES:
        (folder / name).mkdir()
        pair = KeyPair.generate()
        pair.save(folder / name / "keys.json")
        card = "" if name == "stranger" else f"{mask_card(MaskKey.generate(), pair)}\n"
        (folder / name / "public.key").write_text(key_with_proof(pair) + card)
    return folder


@pytest.fixture
def public(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"{SECRET} {row}" for row in range(50)],
            "age": rng.integers(18, 97, 50),
            "ward": rng.choice(["north", "south"], 50),
            "died": rng.choice(["no", "yes"], 50),
        }
    )
    path = tmp_path / "public.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def new(keys, public, tmp_path):
    """Runs `project new` with what it needs, and more."""

    def new(*more, output="project.toml", without=("id",), parties=PARTIES, like=public):
        wanted = {"--like": like, "--target": "died", "--purpose": "Who is at risk?", "-C": keys / "a"}
        wanted |= {"--analyst": keys / "analyst" / "public.key", "-o": tmp_path / output}
        arguments = [text for pair in wanted.items() for text in pair]
        arguments += [text for name in parties for text in ("--party", f"{name}={keys / name / 'public.key'}")]
        arguments += [text for name in without for text in ("--without", name)]
        return run_project("new", "heart", *arguments, *more)

    return new


@pytest.fixture
def file(new, tmp_path):
    result = new()
    assert result.exit_code == 0, result.output
    return tmp_path / "project.toml"


def test_a_draft_is_signed_and_says_what_to_check(new, keys, tmp_path):
    rules = ["--min-rows", 30, "--max-components", 2]
    result = new("--deadline", TOMORROW, *rules, "--quorum", 2, "--anchor-rows", 40)
    assert result.exit_code == 0, result.output
    path = tmp_path / "project.toml"
    project = load_project(path)
    assert f"{path}: 2 columns (4 in the matrix), classification of died, 3 parties." in result.stdout
    assert project.digest in result.stdout
    assert f"datacollab project revise {path}" in result.stdout
    assert (project.min_rows, project.min_class_rows, project.max_components) == (30, 1, 2)
    assert (project.seal_shares, project.anchor.n_rows, project.anchor.method) == (True, 40, "sample")
    assert project.deadline.isoformat() == TOMORROW
    assert project.anchor.source == "", "the analyst reads it"
    assert project.owner == project.parties["a"]
    assert "CHECK" in path.read_text()
    assert SECRET not in path.read_text()


def test_as_many_components_as_tell_a_row_are_hinted_at(new, tmp_path):
    """An age and one of two wards are two numbers, though the matrix has a column for "other", too."""
    assert "2 numbers tell a row" in new("--rows", "--max-components", 2).stdout
    assert "tell a row" not in new(output="again.toml").stdout
    assert load_project(tmp_path / "again.toml").max_components == 1


def test_facts_as_json(new, tmp_path):
    facts = json.loads(new("--json").stdout)
    project = load_project(tmp_path / "project.toml")
    assert facts["project_digest"] == project.digest
    assert facts["fingerprints"]["parties"]["b"] == project.parties["b"].fingerprint
    task = {"kind": "classification", "target": "died", "classes": ["no", "yes"], "positive": "yes"}
    assert facts["content"]["task"] == task


def test_the_sought_class_is_said_at_the_draft_and_can_be_told(new, file, tmp_path):
    assert "the sought class is yes (it means yes); change it with --positive" in new(output="a.toml").stderr
    told = new("--positive", "no", output="b.toml")
    assert "sought" not in told.stderr
    assert load_project(tmp_path / "b.toml").task.positive == "no"
    assert_refused(new("--positive", "maybe", output="c.toml"), "SPEC_INVALID", 13, "not of no, yes")


def test_public_rows_need_no_targets(new, public, tmp_path):
    bare = tmp_path / "bare.csv"
    pd.read_csv(public).drop(columns="died").to_csv(bare, index=False)
    assert_refused(new(like=bare), "SPEC_INVALID", 13, "died", "--class")
    result = new("--class", "yes", "--class", "no", like=bare)
    assert result.exit_code == 0, result.output
    assert load_project(tmp_path / "project.toml").task.classes == ("no", "yes")
    assert "has no column 'died': compare its spelling, and that of the classes no, yes," in result.stdout
    # The ranges of two columns and the legal entities are to be checked, and not what was told.
    assert (tmp_path / "project.toml").read_text().count("CHECK") == 3
    result = new("--target-range", 0, 5, like=bare, output="numbers.toml")
    assert result.exit_code == 0, result.output
    task = load_project(tmp_path / "numbers.toml").task
    assert (task.kind, task.minimum, task.maximum) == ("regression", 0, 5)


def test_what_is_found_in_columns_is_said(new, public, tmp_path):
    table = pd.read_csv(public).assign(one=1, dose=["?", *np.linspace(1, 9, 49).round(2)])
    table.to_csv(tmp_path / "found.csv", index=False)
    result = new("--json", like=tmp_path / "found.csv")
    findings = json.loads(result.stdout)["findings"]
    assert [(each["column"], each["kind"]) for each in findings] == [
        ("one", "constant"),
        ("dose", "words"),
        ("died", "target"),
    ]
    assert result.stderr.splitlines() == [each["sentence"] for each in findings]
    dose = load_project(tmp_path / "project.toml").columns[-1]
    assert (dose.kind, dose.missing_words) == ("number", ("?",))
    words = ["--missing", "ward=south", "--missing", "?", "--keep", "ward=NA", "--as", "one=number"]
    assert new(*words, like=tmp_path / "found.csv", output="again.toml").exit_code == 0
    kinds = [(each.name, each.kind) for each in load_project(tmp_path / "again.toml").columns]
    assert kinds == [("age", "number"), ("one", "number"), ("dose", "number")], "one ward is left, which tells nothing"
    for wrong in (["--as", "one"], ["--as", "one="], ["--missing", "ward="]):
        assert new(*wrong, output="wrong.toml").exit_code == 2


def test_a_deadline_that_is_over_is_refused(new, tmp_path, monkeypatch):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 11, 21, 12, tzinfo=tz)

    monkeypatch.setattr("datacollab.cli._project_commands.datetime", Clock)
    result = new("--deadline", "2026-11-20")
    assert_refused(result, "SPEC_INVALID", 13, "2026-11-20 is over: today is 2026-11-21")
    assert not (tmp_path / "project.toml").exists()
    assert new("--deadline", "2026-11-21").exit_code == 0
    assert load_project(tmp_path / "project.toml").deadline == date(2026, 11, 21)


def test_a_project_is_not_overwritten(new, file):
    before = file.read_bytes()
    assert_refused(new("--positive", "yes"), "ALREADY_THERE", 14, "project.toml")
    assert file.read_bytes() == before


def test_keys_that_are_missing_or_none(new, keys, tmp_path, public):
    assert_refused(new(parties=("a", "b", "d")), "KEY_MISSING", 10, "d/public.key")
    assert_refused(new("-C", tmp_path), "KEY_MISSING", 10, "datacollab keys new")
    assert_refused(new("--analyst", public), "KEY_MALFORMED", 10, "public.csv")
    (tmp_path / "binary.key").write_bytes(b"\xff" * 90)
    assert_refused(new("--analyst", tmp_path / "binary.key"), "KEY_MALFORMED", 10, "binary.key")


def test_a_key_that_its_owner_has_not_signed_is_no_members(new, keys, tmp_path):
    text = (keys / "analyst" / "public.key").read_text()
    (tmp_path / "bare.key").write_text(text.splitlines()[0] + "\n")
    result = new("--analyst", tmp_path / "bare.key")
    assert_refused(result, "KEY_MALFORMED", 10, "bare.key", "datacollab keys public")
    assert not (tmp_path / "project.toml").exists()


def test_usage_errors(new, keys):
    for more in (["--party", "c"], ["--party", f"a={keys / 'b' / 'public.key'}"], ["--deadline", "31.1.2027"]):
        result = new(*more)
        assert result.exit_code == 2, result.output
        assert "Usage" in result.output
    assert run_project("show", "absent.toml").exit_code == 2


def test_show_is_for_people(file, keys):
    project = load_project(file)
    result = run_project("show", file)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Project   heart"
    assert lines[1].strip() == "Who is at risk?"
    assert "Task      classification of died: classes no, yes; yes is sought" in lines
    assert f"  owner    {project.owner.fingerprint}  party a" in lines
    assert f"  party b  {project.parties['b'].fingerprint}" in lines
    age = project.columns[0]
    shown = [" ".join(line.split()) for line in lines]
    assert f"age {age.minimum:g} to {age.maximum:g} missing: {age.fill}, outside: clip" in shown
    assert f"ward north, south missing: {project.columns[1].fill}, unknown: other" in shown
    assert lines[-1] == f"Digest    {project.digest}"
    assert f"Compare   {project.fingerprint}, by telephone: the fingerprint, the beginning of the digest" in lines
    facts = json.loads(run_project("show", file, "--json").stdout)
    assert facts["project_digest"] == project.digest


def test_show_puts_columns_that_are_alike_into_one_line(new, tmp_path):
    pixels = pd.DataFrame(np.random.default_rng(0).random((40, 64)), columns=[f"pixel{j}" for j in range(64)])
    pixels.assign(id=0, died=["no", "yes"] * 20).to_csv(tmp_path / "images.csv", index=False)
    assert new("--range", 0, 1, like=tmp_path / "images.csv").exit_code == 0
    columns = load_project(tmp_path / "project.toml").columns
    assert {(column.minimum, column.maximum) for column in columns} == {(0, 1)}
    # Each has another median to be filled in.
    shown = run_project("show", tmp_path / "project.toml").stdout
    assert "  pixel0 ... pixel63 (64 columns)  0 to 1  missing: filled in, outside: clip\n" in shown
    text = (tmp_path / "project.toml").read_text()
    assert text.count("CHECK") == 2
    assert "# CHECK: found in public rows. Are these all there are?\n[task]" in text


def test_verify_compares_the_owner(file, keys):
    result = run_project("verify", file, "--owner", keys / "a" / "public.key")
    assert result.exit_code == 0, result.output
    assert load_project(file).digest in result.stdout
    assert "telephone" not in result.stdout
    assert "telephone" in run_project("verify", file).stdout
    # The owner's key is compared with one that is known, signed or not.
    (keys / "owner.key").write_text(load_project(file).owner.text)
    assert run_project("verify", file, "--owner", keys / "owner.key").exit_code == 0
    wrong = run_project("verify", file, "--owner", keys / "b" / "public.key")
    assert_refused(wrong, "SIGNATURE_INVALID", 11, "ask the owner by another way")
    facts = json.loads(run_project("verify", file, "--json").stdout)
    assert facts == {
        "project": "heart",
        "project_digest": load_project(file).digest,
        "owner": load_project(file).owner.fingerprint,
    }


def test_an_edited_project_is_signed_again(file, keys):
    before = load_project(file).digest
    edited = file.read_text().replace("maximum = 140.0", "maximum = 110  # years")
    assert edited.count("# years") == 1
    file.write_text(edited)
    assert_refused(run_project("verify", file), "SIGNATURE_INVALID", 11, "project revise")
    assert_refused(run_project("revise", file, "-C", keys / "b"), "NOT_A_MEMBER", 10, "owner")
    assert file.read_text() == edited
    result = run_project("revise", file, "-C", keys / "a")
    assert result.exit_code == 0, result.output
    after = load_project(file)
    assert after.digest != before
    first, warning, *others = result.stdout.splitlines()
    assert "Only 3 legal entities" in warning
    assert first == f"{file}: signed, revision 2. New digest {after.digest}"
    assert others[0] == f"Send {file} to the analyst, and to a, b, c."
    assert "datacollab anchor seal" in others[1]
    assert "datacollab party join" in others[2]
    assert "# years" in file.read_text()
    assert run_project("verify", file).exit_code == 0


@pytest.mark.parametrize("edit", ["", "# a remark\r\n"])
def test_signing_what_says_the_same_changes_nothing(file, keys, edit):
    """Not even the file's time, so that nobody thinks that there is a new one."""
    text = (edit + file.read_text()).encode()
    file.write_bytes(text)
    before = file.stat()
    result = run_project("revise", file, "-C", keys / "a")
    assert result.stdout == f"{file}: unchanged, and signed already. Digest {load_project(file).digest}\n"
    assert file.read_bytes() == text
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    facts = json.loads(run_project("revise", file, "-C", keys / "a", "--json").stdout)
    assert (facts["changed"], facts["written"]) == (False, None)
    assert_refused(run_project("revise", file, "-C", keys / "b"), "NOT_A_MEMBER", 10, "owner")


def test_a_signature_that_was_lost_is_written(file, keys):
    text = file.read_text()
    file.write_text(text[: text.index("[signature]")])
    facts = json.loads(run_project("revise", file, "-C", keys / "a", "--json").stdout)
    assert (facts["changed"], facts["written"]) == (True, str(file))
    assert load_project(file).digest == facts["project_digest"]


def test_encrypted_keys_want_their_passphrase(new, keys, tmp_path, monkeypatch):
    monkeypatch.delenv("DATACOLLAB_PASSPHRASE", raising=False)
    folder = tmp_path / "owner"
    folder.mkdir()
    KeyPair.generate().save(folder / "keys.json", "open sesame")
    words = tmp_path / "words"
    words.write_text("open sesame\n")
    assert_refused(new("-C", folder), "PASSPHRASE_WRONG", 10, "--passphrase-file")
    result = new("-C", folder, "--passphrase-file", words)
    assert result.exit_code == 0, result.output
    result = run_project("revise", tmp_path / "project.toml", "-C", folder, "--passphrase-file", words)
    assert result.exit_code == 0, result.output


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_the_file_is_for_everybody(file):
    assert stat.S_IMODE(file.stat().st_mode) & 0o400
    assert not stat.S_IMODE(file.stat().st_mode) & 0o022


def test_a_rare_class_is_to_be_counted_first(new, public, tmp_path):
    assert "few rows of class" not in new().stderr
    table = pd.concat([pd.read_csv(public)] * 4, ignore_index=True)
    table.loc[:2, "died"] = "in hospital"
    table.to_csv(tmp_path / "rare.csv", index=False)
    said = new(output="rare.toml", like=tmp_path / "rare.csv").stderr
    assert "few rows of class 'in hospital' (3 times)" in said
    assert 'statistics = ["counts"]' in said


HOSPITALS = ("north", "south", "east")
N = 200


@pytest.fixture(scope="module")
def member_keys(tmp_path_factory):
    at = tmp_path_factory.mktemp("members")
    assert run("keys", "new", *(at / name for name in (*HOSPITALS, "analyst"))).exit_code == 0
    return at


@pytest.fixture
def place(member_keys, tmp_path):
    """Writes public rows, and runs commands of the owner."""

    class Place:
        members = member_keys
        public, project, anchor = (tmp_path / name for name in ("public.csv", "project.toml", "anchor.dcanchor"))

        def table(self, seed=0, **columns):
            rng = np.random.default_rng(seed)
            ages, labels = rng.integers(20, 90, N), rng.choice(["no", "yes"], N)
            return pd.DataFrame({"age": ages, "dose": rng.normal(5, 1, N).round(2)} | columns | {"ill": labels})

        def new(self, table, *more, **written):
            table.to_csv(self.public, index=False, **written)
            self.project.unlink(missing_ok=True)
            members = [
                word for name in HOSPITALS for word in ("--party", f"{name}={member_keys / name / 'public.key'}")
            ]
            return run(
                *("project", "new", "x", "--like", self.public, "--target", "ill", "--purpose", "x", *members),
                *(
                    "--analyst",
                    member_keys / "analyst" / "public.key",
                    "-C",
                    member_keys / "north",
                    "-o",
                    self.project,
                    *more,
                ),
            )

        def seal(self):
            self.anchor.unlink(missing_ok=True)
            words = ("--project", self.project, "-C", member_keys / "north", "-o", self.anchor)
            return run("anchor", "seal", self.public, *words)

        def column(self, name):
            return next(each for each in load_project(self.project).columns if each.name == name)

        def drafted(self, table, *more, **written):
            """Draft and seal, and return what was found, and the anchor."""
            result = self.new(table, "--json", *more, **written)
            assert result.exit_code == 0, result.output
            sealed = self.seal()
            assert sealed.exit_code == 0, sealed.output
            anchor = open_anchor(
                self.anchor, load_project(self.project), KeyPair.load(member_keys / "south" / "keys.json")
            )
            return {each["kind"]: each for each in json.loads(result.stdout)["findings"]}, anchor, sealed.stdout

    return Place()


@pytest.mark.parametrize("kept", [False, True])
def test_codes_and_classes_with_leading_zeros_are_read_alike_with_a_project_and_without(place, kept):
    table = place.table(ward=np.tile(["001", "010", "100", "007"], N // 4))
    table["ill"] = np.tile(["01", "02"], N // 2)
    found, anchor, said = place.drafted(table, *["--keep", "ward=001"] * kept, "--positive", "02")
    assert place.column("ward").categories == ("001", "007", "010", "100")
    assert "codes" in found
    assert load_project(place.project).task.classes == ("01", "02")
    assert "with targets" in said
    assert set(anchor.target) == {"01", "02"}


@pytest.mark.parametrize("unlabelled", ["", "NA"])
def test_public_rows_that_are_labelled_in_part_are_used(place, unlabelled):
    table = place.table()
    table.loc[np.arange(N) % 4 != 0, "ill"] = unlabelled
    answer = ["--missing", f"ill={unlabelled}"] if unlabelled else []
    if unlabelled:
        assert_refused(place.new(table), "SPEC_INVALID", 13, "it has 'NA' (150 times): --missing 'ill=NA' takes")
    found, anchor, said = place.drafted(table, *answer)
    assert "has no entry in 150 of 200 rows" in found["labels"]["sentence"]
    assert "200 rows" in said
    assert "50 of them with targets" in said
    assert (len(anchor.rows), len(anchor.target)) == (200, 50)
    project = load_project(place.project)
    assert (project.task.classes, project.sharing.labelled_by) == (("no", "yes"), "north")


@pytest.mark.parametrize("entries", [[20240101, 20240102], np.arange(N) ** 2 // 2, np.arange(N) // 2 + 5])
def test_record_numbers_and_days_are_asked_about(place, entries):
    table = place.table(number=np.resize(entries, N))
    assert_refused(place.new(table), "SPEC_INVALID", 13, "--without number leaves it out, --as number=number")
    assert place.new(table, "--as", "number=number").exit_code == 0
    assert place.column("number").kind == "number"


def test_classes_in_two_spellings_are_asked_about(place):
    table = place.table()
    table.loc[:20, "ill"] = table.loc[:20, "ill"].str.title()
    assert_refused(place.new(table), "SPEC_INVALID", 13, "write them alike, or give --keep")


def test_an_audit_takes_public_rows_that_are_labelled_in_part(place, tmp_path):
    table = place.table()
    table.iloc[:80].to_csv(tmp_path / "own.csv", index=False)
    anchor = place.table(seed=2).assign(dose=lambda found: found["dose"] + 0.005)
    anchor.loc[np.arange(N) % 2 == 0, "ill"] = None
    anchor.to_csv(tmp_path / "anchor.csv", index=False)
    words = ("--target", "ill", "--time-budget", 1, "-q", "-o", tmp_path / "audit")
    result = run("audit", tmp_path / "own.csv", tmp_path / "anchor.csv", *words)
    assert result.exit_code == 0, result.output
    assert "100 of 200 rows have a target; all rows are used without targets." in result.stderr


LABELS = {"ward": {1.0: "north", 2.0: "south", 3.0: "east"}, "ill": {0.0: "no", 1.0: "yes"}}


@pytest.mark.parametrize("suffix", ["sav", "dta"])
def test_a_draft_and_a_check_by_files_of_statistics_programs(place, tmp_path, suffix):
    """Codes with labels become categories, and entries that count as missing no numbers."""
    rng = np.random.default_rng(0)
    codes = {"ward": rng.integers(1, 4, N).astype(float), "ill": rng.integers(0, 2, N).astype(float)}
    # At the middle of the doses, where nothing but the file tells that it is a gap.
    doses = rng.choice([3.0, 4.5, 5.0, 5.5, 7.5], N)
    table = pd.DataFrame({"age": rng.integers(20, 90, N), "dose": doses} | codes)
    place.public = tmp_path / f"public.{suffix}"

    def write(path, table):
        if suffix == "sav":
            pyreadstat.write_sav(table, path, variable_value_labels=LABELS, missing_ranges={"dose": [5.0]})
        else:
            pyreadstat.write_dta(table, path, variable_value_labels=LABELS)

    table.to_csv = lambda path, **options: write(path, table)
    result = place.new(table, "--positive", "1", "--json")
    assert result.exit_code == 0, result.output
    assert place.column("ward").categories == ("1", "2", "3")
    assert load_project(place.project).task.classes == ("0", "1")
    assert "'ward' is a category of codes: 1 = north, 2 = south, 3 = east" in result.stderr
    assert place.seal().exit_code == 0
    folder = tmp_path / "member"
    run("party", "join", place.project, place.anchor, "-C", keys_of(place, folder))
    write(tmp_path / f"own.{suffix}", table.iloc[:150])
    table.iloc[:150].astype({"ward": int, "ill": int}).assign(
        dose=table["dose"].where((table["dose"] != 5) | (suffix == "dta"))
    ).to_csv(tmp_path / "own.csv", index=False)
    shown = [run("party", "check", tmp_path / f"own.{kind}", "-C", folder, "--json") for kind in (suffix, "csv")]
    summaries = [json.loads(each.stdout)["summary"] for each in shown]
    assert summaries[0] == summaries[1]


def keys_of(place, folder):
    """Copy the keys of a party of the project into a folder of its own."""
    shutil.copytree(place.members / "south", folder)
    return folder
