"""The table [sharing] of the project file: parsed, checked, shown, compared, drafted."""

import re
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path
from unicodedata import normalize

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.agreement import (
    STUDY,
    AnchorRecipe,
    Sharing,
    Task,
    draft_project,
    load_project,
    project_changes,
    project_content,
    project_text,
    read_project_text,
    sharing_lines,
    sharing_sentences,
    sign_project_text,
)
from datacollab.bundle import KeyPair
from datacollab.by_sums.plan import plan_of, study_statistics
from datacollab.sums import MOST_COMPONENTS, MaskKey, mask_card, recommended
from datacollab.table import Column
from party_world import refused
from playing import assert_refused, runs
from sums_world import PARTIES, cards_of, entities_of, project_of, rows_of

ROOT = Path(__file__).parents[2]

THREE = PARTIES[:3]


@pytest.fixture(scope="module")
def keys():
    return {name: KeyPair.generate() for name in (*PARTIES, "analyst", "stranger")}


@pytest.fixture(scope="module")
def project(keys):
    return project_of(keys, PARTIES, cards_of(keys, PARTIES), sharing={"labelled_by": "north"})


def changed(project, **changes):
    return replace(project, sharing=replace(project.sharing, **changes))


def test_a_file_says_all_of_it_and_is_read_back(project, keys, tmp_path):
    path = tmp_path / "project.toml"
    path.write_text(project_text(project, keys["north"]))
    again = load_project(path)
    assert again == project
    assert again.digest == project.digest
    written = tomllib.loads(path.read_text())
    del written["signature"]
    content = project_content(project)
    # Rules that only rows need are not written, and have their usual values where the file is read.
    of_rows = {name: content["rules"].pop(name) for name in ("min_class_rows", "quorum", "seal_shares")}
    assert of_rows == {"min_class_rows": 1, "quorum": 2, "seal_shares": True}
    assert written == content
    text = read_project_text(path).replace("run = 1", "run = 2")
    path.write_text(sign_project_text(text, keys["north"]))
    raised = load_project(path)
    assert (raised.sharing.run, raised.revision) == (2, 2)


def test_the_most_rows_of_each_party_are_agreed_on_and_shown_or_nobody_says_any(project, keys, tmp_path):
    """They are part of what is signed; a total has as many at most, and the labelled public rows."""
    agreed = changed(project, most_rows={name: 100 * place for place, name in enumerate(PARTIES, start=1)})
    path = tmp_path / "project.toml"
    path.write_text(project_text(agreed, keys["north"]))
    again = load_project(path)
    assert again.sharing.most_rows == agreed.sharing.most_rows
    assert again.digest == agreed.digest != project.digest
    assert agreed.most_rows == 1500 + project.anchor.n_rows
    assert changed(agreed, labelled_by=None).most_rows == 1500
    assert "south: The south hospital, at most 200 rows" in sharing_lines(agreed)
    assert (
        project_changes(project, agreed)[1:]
        == [f"[sharing] most_rows {name}: none becomes {n}" for name, n in again.sharing.most_rows.items()][1:]
    )
    assert (project.most_rows, replace(project, sharing=None).most_rows) == (None, None)
    assert "south: The south hospital" in sharing_lines(project)


def test_defaults_may_be_left_out_and_are_in_the_digest(keys, tmp_path):
    project = project_of(keys, PARTIES, cards_of(keys, PARTIES))
    text = project_text(project, keys["north"])
    for line in ("noise = 0.1\n", "n_components = 128\n", "run = 1\n"):
        assert line in text
        text = text.replace(line, "")
    path = tmp_path / "project.toml"
    path.write_text(text)
    assert load_project(path).digest == project.digest
    assert (project.sharing.noise, project.sharing.n_components, project.sharing.run) == (0.1, MOST_COMPONENTS, 1)


@pytest.mark.parametrize("name", ["way", "mask_keys", "entities"])
def test_what_has_no_default_is_wanted(project, keys, tmp_path, name):
    path = tmp_path / "project.toml"
    path.write_text(project_text(project, keys["north"]).replace(f"sharing.{name}]", "x]").replace("way = ", "wey = "))
    with refused("SPEC_INVALID"):
        load_project(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"way": "rows"}, "remove the table"),
        ({"statistics": ("means",)}, "ridge regression, counts, description"),
        ({"statistics": ("ridge regression", "counts")}, "ridge regression alone"),
        ({"statistics": ("counts", "counts")}, "each once"),
        ({"statistics": ()}, "some of"),
        ({"statistics": ("least squares",)}, "least squares needs a number"),
        ({"by": "ward"}, "none is asked for"),
        ({"outcome": "age"}, "none is asked for"),
        (
            {"statistics": ("least squares",), "outcome": "ward"},
            "'ward' is no column of numbers; numbers are in age, pulse",
        ),
        ({"statistics": ("effect",), "outcome": "age"}, "effect needs kind effect"),
        ({"statistics": ("survival",)}, "survival needs event and time"),
        ({"errors": "exact"}, "robust or classical"),
        ({"factors": ("ward",)}, "none is asked for"),
        ({"statistics": ("logistic regression",), "factors": ("age",)}, "'age' is no column of categories"),
        ({"statistics": ("logistic regression",), "factors": ()}, "no column of categories"),
        ({"statistics": ("poisson regression",)}, "needs event and time"),
        ({"statistics": ("proportional hazards",), "rounds": 2}, "needs event and time"),
        ({"cluster": "doctor"}, "for robust errors of an effect"),
        ({"statistics": ("least squares",), "errors": "classical", "cluster": "doctor"}, "for robust errors"),
        ({"statistics": ("description",), "by": "age"}, "ward"),
        ({"noise": 0.02}, "a total tells rows"),
        ({"noise": float("nan")}, "noise"),
        ({"n_components": 1}, "2 to 1000"),
        ({"run": 0}, "1 or more"),
        ({"labelled_by": "nobody"}, "none of the parties"),
        ({"entities": entities_of(THREE)}, "is missing"),
        ({"entities": entities_of(PARTIES) | {"moon": "The Moon"}}, "no member"),
        ({"entities": dict.fromkeys(entities_of(PARTIES), "Hospital")}, "at least 3 different"),
        ({"entities": entities_of(PARTIES) | {"north": "Hos\npital"}}, "invisible"),
        ({"most_rows": dict.fromkeys(THREE, 500)}, "centre, west is missing. Ask each party, or remove the table"),
        ({"most_rows": dict.fromkeys((*PARTIES, "moon"), 500)}, "'moon' is no member"),
        ({"most_rows": dict.fromkeys(PARTIES, 19)}, r"centre: expected 20 or more, got 19\. No party adds fewer than"),
    ],
)
def test_impossible_entries_are_refused_with_what_to_do(project, changes, words):
    with refused("SPEC_INVALID", words):
        changed(project, **changes)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("Hospital A", "hospital  a "),
        ("St. Mary's", "St Mary\N{RIGHT SINGLE QUOTATION MARK}s "),
        ("Straße 1", "STRASSE-1"),
    ],
)
def test_entities_count_and_not_keys(keys, name, other):
    """Two invented parties of one institution do not make three; neither case nor punctuation tells them apart."""
    invented = {"north": name, "south": other, "east": "Hospital B", "analyst": "Institute"}
    with refused("SPEC_INVALID", "at least 3 different legal entities as parties, got 2"):
        project_of(keys, THREE, cards_of(keys, THREE), sharing={"entities": invented})


LETTERS = st.characters(categories=["Ll", "Lu", "Lo"]).filter(lambda each: each.upper().casefold() == each.casefold())
PARTS = st.lists(st.text(LETTERS, min_size=1, max_size=6), min_size=1, max_size=4)
BETWEEN = st.text(st.sampled_from(" .,-/&()\N{EN DASH}"), min_size=1, max_size=3)
WITHIN = st.sampled_from(["", "'", "\N{RIGHT SINGLE QUOTATION MARK}", "\N{ACUTE ACCENT}"])
WRITTEN = st.sampled_from([str.upper, str.title, partial(normalize, "NFC"), partial(normalize, "NFD")])


@given(parts=PARTS, data=st.data())
def test_one_institution_may_be_written_in_many_ways(parts, data):
    """White space, punctuation, capitals and encodings do not make another institution; words do."""
    draw = data.draw
    words = [draw(WRITTEN)(each[:1] + draw(WITHIN) + each[1:]) for each in parts]
    other = draw(BETWEEN) + "".join(word + draw(BETWEEN) for word in words)
    entities = {"north": " ".join(parts), "south": other, "east": " ".join([*parts, "annex"])}
    sharing = Sharing(mask_keys={}, entities=entities)
    assert sharing.entity("north") == sharing.entity("south") != sharing.entity("east")


def test_fewer_than_three_parties_are_refused(keys):
    with refused("SPEC_INVALID", "at least 3 different"):
        project_of(keys, PARTIES[:2], cards_of(keys, PARTIES[:2]))


def test_what_ratios_need_is_said_with_the_way_on(project):
    number = Task(kind="regression", target="ill", minimum=0.0, maximum=1.0)
    with refused(
        "SPEC_INVALID", r'logistic regression needs classes.*write kind = "classification", classes = \[0, 1\]'
    ):
        replace(changed(project, statistics=("logistic regression",)), task=number)
    many = tuple(Column(name=f"c{place}", kind="category", categories=tuple("abcdef")) for place in range(3))
    ratios = changed(project, statistics=("logistic regression",))
    with refused("SPEC_INVALID", "c0, c1, c2 make 216 patterns.*expected 200 at most. Name fewer columns"):
        replace(ratios, columns=many)
    fewer = replace(ratios, columns=many, sharing=replace(ratios.sharing, factors=("c0", "c2")))
    (logistic,) = study_statistics(fewer, n_components=2)
    assert [each.name for each in logistic.columns] == ["c0", "c2"]
    assert logistic.outcome.levels == ("no", "yes")


def test_other_tasks_and_interpolated_anchors_are_refused(project):
    with refused("SPEC_INVALID", "ridge regression needs a class or number to predict"):
        replace(project, task=Task(kind="none"))
    with refused("SPEC_INVALID", "counts needs a target"):
        replace(changed(project, statistics=("counts",)), task=Task(kind="none"))
    for method in ("smote", "gaussian"):
        with refused("SPEC_INVALID", "sample or uniform"):
            replace(project, anchor=AnchorRecipe(method=method, n_rows=40))


def test_no_party_is_called_analyst(keys):
    named = (*THREE, "analyst")
    with refused("SPEC_INVALID", "Rename the party"):
        project_of(keys | {"north": keys["north"]}, named, cards_of(keys, named), analyst=keys["stranger"].public)


def test_a_mask_key_is_its_partys_and_nobody_elses(project, keys):
    cards = dict(project.sharing.mask_keys)
    mask_key = MaskKey.generate()
    for card, words in [
        (mask_card(MaskKey.generate(), keys["stranger"]), "SIGNATURE_INVALID"),
        (cards["south"], "SIGNATURE_INVALID"),
        (cards["north"][:-1] + ("a" if cards["north"][-1] != "a" else "b"), "north"),
        ("dcmask1-", "KEY_MALFORMED"),
    ]:
        with refused("SPEC_INVALID", words):
            changed(project, mask_keys=cards | {"north": card})
    twice = {name: mask_card(mask_key, keys[name]) for name in ("north", "south")}
    with refused("SPEC_INVALID", "same mask key"):
        changed(project, mask_keys=cards | twice)
    with refused("SPEC_INVALID", "third line"):
        changed(project, mask_keys={name: card for name, card in cards.items() if name != "north"})


def test_what_people_have_to_know(project, keys):
    assert sharing_sentences(project.sharing) == []
    few = project_of(keys, PARTIES[:4], cards_of(keys, PARTIES[:4])).sharing
    (sentence,) = sharing_sentences(few)
    assert sentence.startswith("Only 4 legal entities")
    same = changed(project, entities=entities_of(PARTIES) | {"analyst": "the NORTH hospital"})
    (sentence,) = sharing_sentences(same.sharing)
    assert "analyst and party north are one legal entity" in sentence
    assert f"warning: {sentence}" in sharing_lines(same)
    doubled = changed(project, entities=entities_of(PARTIES) | {"south": "The north hospital"})
    assert any("north, south are one legal entity" in each for each in sharing_sentences(doubled.sharing))


def test_drafts_share_sums_and_say_why_they_cannot(tmp_path):
    run, new_keys = runs("project"), runs("keys")
    for name in (*THREE, "analyst"):
        assert new_keys("new", tmp_path / name).exit_code == 0
    table = rows_of(100, 1)
    table.to_csv(tmp_path / "public.csv", index=False)
    file = tmp_path / "project.toml"

    def drafted(*options, parties=THREE, target=("--target", "ill")):
        file.unlink(missing_ok=True)
        named = [option for name in parties for option in ("--party", f"{name}={tmp_path / name / 'public.key'}")]
        return run(
            *("new", "wards", "--like", tmp_path / "public.csv", *target, "--purpose", "p", *named),
            *("--analyst", tmp_path / "analyst" / "public.key", "-C", tmp_path / THREE[0], "-o", file, *options),
        )

    result = drafted()
    assert result.exit_code == 0, result.output
    project = load_project(file)
    assert isinstance(project.sharing, Sharing)
    assert (project.anchor.method, project.sharing.labelled_by) == ("sample", THREE[0])
    assert "CHECK: these are names of keys" in file.read_text()
    assert "Only 3 legal entities" in result.output
    assert "Only 3 legal entities" in run("show", file).stdout
    file.write_text(file.read_text().replace('analyst = "analyst"', f'analyst = "{THREE[1]}"'))
    signed = run("revise", file, "-C", tmp_path / THREE[0]).stdout
    assert f"The analyst and party {THREE[1]} are one legal entity" in signed
    assert "remains personal data" in signed

    assert_refused(drafted(parties=THREE[:2]), "SPEC_INVALID", 13, "subtract its own", "--rows")
    for options, target in ((("--rows",), ("--target", "ill")), (("--task", "none"), ())):
        result = drafted(*options, parties=THREE[:2], target=target)
        assert result.exit_code == 0, result.output
        assert load_project(file).sharing is None
        assert ("sums are for a class or a number" in result.output) == (not target)
    key = tmp_path / THREE[1] / "public.key"
    key.write_text("".join(key.read_text().splitlines(keepends=True)[:2]))
    assert_refused(drafted(), "KEY_MISSING", 10, THREE[1], "datacollab keys mask", "--rows")
    assert drafted("--rows").exit_code == 0


@pytest.mark.parametrize(("options", "alike"), [({"valid_range": (0.0, 16.0)}, True), ({}, False)])
def test_a_draft_for_pixels_has_less_noise(keys, rng, options, alike):
    table = pd.DataFrame(rng.integers(17, size=(100, 64))).add_prefix("pixel ").assign(ill=["no", "yes"] * 50)
    table["pixel 0"] //= 2
    project = draft_project(
        table,
        name="wards",
        purpose="Tests.",
        target="ill",
        owner=keys["north"].public,
        analyst=keys["analyst"].public,
        parties={name: keys[name].public for name in THREE},
        mask_keys=cards_of(keys, THREE),
        **options,
    )
    usual = recommended(alike=alike)
    assert (project.sharing.noise, project.sharing.n_components) == (usual.noise, usual.n_components)
    plan = plan_of(project, anchor_commitment="0" * 64, n_components=10)
    assert (plan.noise, plan.statistics[0].least_penalty) == (usual.noise, usual.least_penalty)


OF_ROWS = re.compile(r"obfuscat|representation|smote|gaussian|quorum|seal_shares|min_class_rows|each class")


@pytest.mark.parametrize("kind", ["classification", "regression", "study"])
def test_the_file_of_a_project_that_shares_sums_speaks_of_sums(keys, kind):
    sharing = {"statistics": ("counts",)} if kind == "study" else None
    project = project_of(keys, PARTIES, cards_of(keys, PARTIES), "classification" if kind == "study" else kind, sharing)
    for drafted in (False, True):
        text = project_text(project, keys["north"], drafted=drafted)
        assert not OF_ROWS.search(text)
        assert "All parties have to share" in text
    of_rows = project_text(replace(project, sharing=None), keys["north"])
    assert {"obfuscate", "quorum", "smote", "seal_shares"} <= set(re.findall(r"\w+", of_rows))
    changed = project_text(replace(project, min_class_rows=9), keys["north"])
    assert "min_class_rows = 9" in changed


def test_sums_need_the_files_of_all_parties_whatever_the_quorum(keys):
    project = project_of(keys, PARTIES, cards_of(keys, PARTIES))
    assert project.fewest_parties == len(PARTIES) > project.quorum
    assert replace(project, sharing=None).fewest_parties == project.quorum


@pytest.mark.parametrize("name", STUDY)
def test_each_statistic_stands_where_owners_look_it_up(name):
    for page in ("docs/project-file.md", "src/datacollab/agreement/comments.toml"):
        assert name in (ROOT / page).read_text(encoding="utf-8")
