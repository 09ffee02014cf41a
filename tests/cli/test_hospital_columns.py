"""Columns as hospitals have them, by commands: from the owner's public file to the anchor and a party's table."""

import json
import shutil

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from datacollab.agreement import load_project, open_anchor
from datacollab.bundle import KeyPair
from playing import assert_refused, run

PARTIES = ("north", "south", "east")
N = 200


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    at = tmp_path_factory.mktemp("members")
    assert run("keys", "new", *(at / name for name in (*PARTIES, "analyst"))).exit_code == 0
    return at


@pytest.fixture
def place(keys, tmp_path):
    """Writes public rows, and runs commands of the owner."""

    class Place:
        members = keys
        public, project, anchor = (tmp_path / name for name in ("public.csv", "project.toml", "anchor.dcanchor"))

        def table(self, seed=0, **columns):
            rng = np.random.default_rng(seed)
            ages, labels = rng.integers(20, 90, N), rng.choice(["no", "yes"], N)
            return pd.DataFrame({"age": ages, "dose": rng.normal(5, 1, N).round(2)} | columns | {"ill": labels})

        def new(self, table, *more, **written):
            table.to_csv(self.public, index=False, **written)
            self.project.unlink(missing_ok=True)
            members = [word for name in PARTIES for word in ("--party", f"{name}={keys / name / 'public.key'}")]
            return run(
                *("project", "new", "x", "--like", self.public, "--target", "ill", "--purpose", "x", *members),
                *("--analyst", keys / "analyst" / "public.key", "-C", keys / "north", "-o", self.project, *more),
            )

        def seal(self):
            self.anchor.unlink(missing_ok=True)
            words = ("--project", self.project, "-C", keys / "north", "-o", self.anchor)
            return run("anchor", "seal", self.public, *words)

        def column(self, name):
            return next(each for each in load_project(self.project).columns if each.name == name)

        def drafted(self, table, *more, **written):
            """Draft and seal, and return what was found, and the anchor."""
            result = self.new(table, "--json", *more, **written)
            assert result.exit_code == 0, result.output
            sealed = self.seal()
            assert sealed.exit_code == 0, sealed.output
            anchor = open_anchor(self.anchor, load_project(self.project), KeyPair.load(keys / "south" / "keys.json"))
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
