"""A party of a project that shares sums: one message, released once, and sent again as it was."""

import json
import os
import shutil
import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from datacollab.agreement import AnchorRecipe, make_anchor, seal_anchor
from datacollab.bundle import unpack
from datacollab.by_sums.party._added_rows import project_map
from datacollab.by_sums.party._sums_summary import still_alone
from datacollab.by_sums.plan import study_table
from datacollab.cli._app import app
from datacollab.errors import AgreementError
from datacollab.linalg import gaussian_sigma
from datacollab.steps.party import PartyFolder, make_mask_key
from datacollab.sums import IsolatedRows, membership_figures, read_message
from datacollab.table import encode_table
from party_world import contents, events, refused
from sums_world import PARTIES, new_sums_world, rows_of


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    return new_sums_world(tmp_path_factory.mktemp("joined"))


@pytest.fixture
def world(joined, tmp_path):
    return joined.copied(tmp_path)


def message_of(world, path, name="north"):
    return read_message(path, world.keys["analyst"], signed_by=world.keys[name].public)


def test_a_share_is_one_sealed_message_and_the_key_is_gone(world):
    seen = []
    path = world.share("north", approve=lambda summary: seen.append(summary) or "me")
    assert path == world.root / "north" / "outbox" / "north.dcsum"
    (summary,) = seen
    message = message_of(world, path)
    assert message.words.shape == (1 + summary.n_numbers, 1)
    assert summary.n_numbers == (summary.n_components + 3) * (summary.n_components + 4) // 2
    assert abs(path.stat().st_size - summary.n_bytes) < 2000
    assert not (world.root / "north" / "mask.dcstate").exists()
    assert "dcmask1-" not in (world.root / "north" / "public.key").read_text()
    folder = world.folder("north")
    assert events(folder) == ["join", "share"]
    assert folder.share_digest() == unpack(path).digest
    facts = folder.log.entries()[-1]["facts"]
    assert (facts["context"], facts["approved_by"]) == (message.context.hex(), "me")
    for name in ("sum.dcstate", "ledger/ledger.json", "outbox/north.dcsum"):
        assert stat.S_IMODE((world.root / "north" / name).stat().st_mode) == 0o600
    assert not [each for each in os.listdir(world.root / "north") if each.endswith(".next")]


def test_an_institution_with_one_class_may_take_part_and_is_warned(world):
    """The total hides it, and a refusal would tell the others; but it may be that nobody recorded the class."""
    folder, table = world.folder("north"), pd.read_csv(world.table("north"))
    of_one = folder.prepare(table.assign(ill="no"))
    assert of_one.reasons == []
    assert "Warning: All your rows are of one class." in of_one.summary.to_text()
    assert "one class" not in folder.prepare(table).summary.to_text()
    sums = of_one.plan.ridge.figures(of_one.part)
    np.testing.assert_allclose(sums.class_counts, [len(table), 0], atol=1e-6)


def test_a_table_that_outgrows_what_the_party_said_leaves_once_the_owner_has_raised_it(world):
    """Nothing leaves before, and the refusal names the entry; fewer rows may leave at once."""
    limited = replace(world.project.sharing, most_rows=dict.fromkeys(PARTIES, 50))
    world.write_project(replace(world.project, sharing=limited, revision=2))
    with refused("TOO_MANY_ROWS", r"would add 60 rows; \[sharing.most_rows\] of project 'wards' says 50 at most"):
        world.share("north")
    assert world.folder("south").prepare(pd.read_csv(world.table("south"))[:50]).reasons == []
    raised = replace(limited, most_rows=limited.most_rows | {"north": 60})
    world.write_project(replace(world.project, sharing=raised, revision=3))
    assert world.share("north").exists()


def test_a_file_of_sums_assures_nothing_about_a_log(world):
    path = world.share("north")
    command = ["verify", "-C", str(world.root / "north"), "--against", str(path)]
    result = CliRunner().invoke(app, ["log", *command])
    assert result.exit_code == 0, result.output
    assert "Files that its entries name" not in result.stdout
    assert f"Not compared, as such a file names no entry of a log: {path}. Give a head" in result.stdout
    facts = json.loads(CliRunner().invoke(app, ["log", *command, "--json"]).stdout)
    assert (facts["compared"], facts["not_compared"]) == ([], [str(path)])


def test_the_summary_says_who_learns_what(world):
    texts = []
    world.share("north", approve=lambda summary: texts.append((summary.to_text(), summary.to_dict())) or "me")
    ((text, told),) = texts
    assert "No row leaves" in text
    assert "personal data" in text
    assert world.project.analyst.fingerprint in text
    # Those that were heard are shown, and no others: nobody is to copy them from the screen.
    shown = [key.fingerprint for key in world.project.parties.values() if key.fingerprint in text]
    assert sorted(shown) == sorted(world.heard("north"))
    assert json.dumps(told)
    assert told["way"] == "sums"


def auc(value):
    return f"{max(value, 0.5):.2f}"[1:]


def test_the_summary_says_what_was_measured_for_such_totals(joined):
    """Figures for tables, by rows together, how many rows there are at least, and the bound where one is proven."""
    summary = joined.folder("north").prepare(joined.table("north")).summary
    text, told = summary.to_text(), summary.to_dict()
    assert summary.measured == membership_figures()
    assert "your table may reveal more" in text
    people = [each for each in membership_figures() if not each.rare]
    rare = [each for each in membership_figures() if each.rare][-1:]
    for line in (
        ("Rows of all parties together:", *(f"{each.n_rows:,}" for each in people), f"{rare[0].n_rows:,}*"),
        ("the analyst alone", *(auc(each.analyst) for each in people + rare)),
        ("parties alone, from the model", *(auc(each.party) for each in people + rare)),
        ("the analyst and parties together", *(auc(each.together) for each in people + rare)),
        ("* Ten of them are of a rare class.",),
    ):
        assert " ".join(line) in " ".join(text.split())
    assert len(text.split()) <= 330, "people read it before they say yes"
    # 60 own rows, and 20 of each other party.
    assert summary.n_rows_together == 140
    assert "at least 140 rows (your 60, and 20 or more from each other party)" in " ".join(text.split())
    assert "less noise" not in text
    assert "Proven" not in text
    assert json.loads(json.dumps(told))["measured"][0]["together"] == people[0].together


def test_the_summary_says_if_a_total_tells_more_and_what_is_proven(tmp_path):
    for place, (sharing, words) in enumerate(
        [({"noise": 0.05}, "less noise or more columns"), ({"epsilon": 8.0}, "AUC of 0.88 at most")]
    ):
        root = tmp_path / str(place)
        root.mkdir()
        world = new_sums_world(root, parties=PARTIES[:3], sharing=sharing)
        text = " ".join(world.folder("north").prepare(world.table("north")).summary.to_text().split())
        assert words in text
        assert text.index("How well attackers") < text.index(words)


def test_a_second_share_sends_the_same_bytes_and_computes_nothing(world):
    first = world.share("north").read_bytes()

    def never(summary):
        raise AssertionError

    assert world.share("north", table=world.root / "nowhere.csv", approve=never).read_bytes() == first
    (world.root / "north" / "outbox" / "north.dcsum").unlink()
    assert world.share("north", approve=never).read_bytes() == first
    assert events(world.folder("north")) == ["join", "share", "share-again"]


def test_nobody_approved_and_nothing_happened(world):
    before = contents(world.folder("north"))
    with refused("NOT_APPROVED"):
        world.share("north", approve=lambda summary: None, heard=())
    assert contents(world.folder("north")) == before


@pytest.mark.parametrize(
    ("n_rows", "min_rows", "words"), [(19, 1, "20 at least"), (25, 30, "30 at least"), (29, 1, "")]
)
def test_few_rows_are_refused_whatever_the_project_says(world, tmp_path, n_rows, min_rows, words):
    project = replace(world.project, min_rows=min_rows, revision=2)
    world.write_project(project)
    table = tmp_path / "few.csv"
    rows_of(n_rows, 3).to_csv(table, index=False)
    if not words:
        assert world.share("north", table=table).exists()
        return
    with refused("TOO_FEW_ROWS", words):
        world.share("north", table=table)
    assert (world.root / "north" / "mask.dcstate").exists()


def test_own_rows_in_the_anchor_are_refused(world, tmp_path):
    table = tmp_path / "public-rows.csv"
    rows_of(200, 1).to_csv(table, index=False)
    with refused("ANCHOR_HAS_PRIVATE_ROWS"):
        world.share("north", table=table)


@pytest.mark.parametrize(("narrow", "words"), [(False, "max_anchor_rows_near"), (True, "min_anchor_spread")])
def test_an_anchor_that_was_made_for_single_rows_is_refused(world, tmp_path, narrow, words, rng):
    own = pd.read_csv(world.table("north"))
    made = own.iloc[rng.integers(len(own) if narrow else 3, size=120)].reset_index(drop=True)
    for name in ("age", "pulse"):
        made[name] = 95 + rng.normal(size=120) if narrow else made[name] + 1e-3 * rng.normal(size=120)
    made["ward"] = made["ward"] if not narrow else "day"
    owner = world.keys["north"]
    path = tmp_path / "made.dcanchor"
    anchor = make_anchor(world.project, made, where="made.csv", random_state=0)
    path.write_bytes(seal_anchor(anchor, world.project, owner))
    PartyFolder.join(world.root / "north", world.root / "project.toml", path)
    with refused("ANCHOR_UNFIT", words):
        world.share("north")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["sample", "uniform"])
def test_a_dense_anchor_is_refused_unless_the_policy_allows_it(world, tmp_path, method, rng):
    """Half of its rows lie around one person; an honest anchor of either recipe is taken."""
    project = replace(world.project, anchor=AnchorRecipe(method=method, n_rows=200), revision=2)
    world.write_project(project)
    own, path = pd.read_csv(world.table("north")), world.root / "made.dcanchor"
    honest = make_anchor(project, rows_of(200, 77), where="public.csv", random_state=0)
    rows, person = honest.rows.copy(), encode_table(project, own.nlargest(1, "age"), where="own").X
    own_deviation = encode_table(project, own, where="own").X.std(axis=0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    rows[::2] = np.clip(person + 0.3 * rng.normal(size=rows[::2].shape) * own_deviation, low, high)
    folder = world.root / "north"
    path.write_bytes(seal_anchor(replace(honest, rows=rows), project, world.keys["north"]))
    PartyFolder.join(folder, world.root / "project.toml", path)
    with refused("ANCHOR_UNFIT", "max_anchor_density"):
        world.share("north")
    path.write_bytes(seal_anchor(honest, project, world.keys["north"]))
    PartyFolder.join(folder, world.root / "project.toml", path)
    assert not world.folder("north").prepare(world.table("north")).reasons
    path.write_bytes(seal_anchor(replace(honest, rows=rows), project, world.keys["north"]))
    PartyFolder.join(folder, world.root / "project.toml", path)
    policy = folder / "policy.toml"
    policy.write_text(policy.read_text().replace("max_anchor_density = 1.2", "max_anchor_density = 50"))
    assert world.share("north").exists()


@pytest.mark.parametrize(("zero", "unit"), [(1930.0, 1.0), (-1000.0, 1.0), (-50.0, 0.01)])
def test_where_a_range_begins_and_its_unit_change_no_mapped_row(world, zero, unit):
    """Years of birth from 1930 on are mapped as years since 1930 are."""
    age, *others = world.project.columns
    moved_age = replace(age, minimum=zero, maximum=zero + 100 * unit)
    moved_project = replace(world.project, columns=(moved_age, *others))
    anchor = world.folder("north").anchor
    own = encode_table(world.project, pd.read_csv(world.table("north")), where="own").X

    def move(rows):
        moved = rows.copy()
        moved[:, 0] = zero + unit * rows[:, 0]
        return moved

    v = project_map(world.project, anchor).transform(own)
    moved_v = project_map(moved_project, replace(anchor, rows=move(anchor.rows))).transform(move(own))
    np.testing.assert_allclose(moved_v, v, atol=1e-9)


def with_one_far_row(world, name="north"):
    """The party's table with ages of one kind, but for one row."""
    table = pd.read_csv(world.table(name))
    table["age"] = 40 + table["age"] / 10
    table.loc[3, "age"] = 100.0
    return table


def test_rows_that_stand_alone_are_shortened_and_counted_unless_the_policy_says_otherwise(world):
    table = with_one_far_row(world)
    folder = world.folder("north")
    shortened = folder.prepare(table)
    policy = world.root / "north" / "policy.toml"
    policy.write_text(policy.read_text().replace("shorten_rows = true", "shorten_rows = false"))
    as_it_is = world.folder("north").prepare(table)
    encoded = encode_table(world.project, table, where="own")
    statistic = shortened.plan.ridge
    v = project_map(world.project, folder.anchor).transform(encoded.X)
    np.testing.assert_array_equal(as_it_is.part, statistic.part(v, encoded.target))
    alone = IsolatedRows(statistic, len(PARTIES))
    alone.part(v, encoded.target)
    found = alone.shorten(v)
    is_alone = (found != v).any(axis=1)
    assert is_alone[3]
    assert is_alone.mean() < 0.3
    np.testing.assert_allclose(shortened.part, statistic.part(found, encoded.target), atol=1e-10)
    assert not np.allclose(shortened.part, as_it_is.part, atol=0.01)
    # The intercept at home is of the rows as they are, as those are that are predicted.
    assert shortened.own == as_it_is.own
    text = " ".join(shortened.summary.to_text().split())
    assert f"{is_alone.sum()} of your rows stood out from your others, and were shortened" in text
    assert shortened.summary.to_dict()["n_shortened"] == is_alone.sum()
    text = " ".join(as_it_is.summary.to_text().split())
    assert f"Warning: {is_alone.sum()} of your rows stand out from your others. If nobody else" in text
    assert "policy.toml has shorten_rows = false" in text
    assert as_it_is.summary.n_shortened == 0


def test_with_epsilon_no_row_is_shortened_as_the_proof_is_of_rows_that_do_not_depend_on_each_other(tmp_path):
    world = new_sums_world(tmp_path, parties=PARTIES[:3], sharing={"epsilon": 50.0})
    table = with_one_far_row(world)
    folder = world.folder("north")
    prepared = folder.prepare(table)
    encoded = encode_table(world.project, table, where="own")
    v = project_map(world.project, folder.anchor).transform(encoded.X)
    statistic = prepared.plan.ridge
    alone = IsolatedRows(statistic, 3)
    alone.part(v, encoded.target)
    assert (alone.shorten(v) != v).any()
    np.testing.assert_array_equal(prepared.part, statistic.part(v, encoded.target))
    assert "stand" not in " ".join(prepared.summary.to_text().split()).partition("Proven")[2]


def test_a_study_alters_no_row_and_says_how_many_stand_out(tmp_path):
    sharing = {"statistics": ("least squares",), "errors": "classical"}
    world = new_sums_world(tmp_path, "regression", parties=PARTIES[:3], sharing=sharing)
    table = with_one_far_row(world)
    prepared = world.folder("north").prepare(table)
    assert prepared.summary.n_shortened == 0
    text = " ".join(prepared.summary.to_text().split())
    assert "of your rows stand out from your others. If nobody else in the total has their values, the analyst" in text
    assert "a study shortens none" in text
    assert still_alone(1, of_study=True).startswith("1 of your rows stands out")
    encoded = encode_table(world.project, table, where="own")
    columns = study_table(world.project, encoded.X, encoded.target)
    np.testing.assert_array_equal(prepared.part, prepared.plan.statistics[0].part(columns, bytes(32)))


def test_options_and_steps_of_rows_are_refused(world):
    folder = world.folder("north")
    for option in ({"preset": "none"}, {"n_components": 3}, {"epsilon": 1.0}, {"fit_on_anchor": True}):
        with pytest.raises(AgreementError, match=next(iter(option))):
            world.share("north", **option)
        with pytest.raises(AgreementError, match=next(iter(option))):
            folder.prepare(world.table("north"), **option)
    table = world.table("north")
    explain = folder.explain, table, world.root / "t.csv"
    for step, *given in ((folder.forget,), (folder.distil, table), explain):
        with pytest.raises(AgreementError, match="shares sums"):
            step(*given)


def test_without_its_mask_key_or_with_another_it_cannot(world):
    place = world.root / "north"
    (place / "mask.dcstate").unlink()
    with refused("KEY_MISSING", "keys mask"):
        world.share("north")
    make_mask_key(place)
    with refused("NOT_A_MEMBER", "third line"):
        world.share("north")


def test_a_restored_backup_shares_no_second_message(world, tmp_path):
    """The ledger lies outside of what the backup brings back, and knows the sum."""
    place = world.root / "north"
    (tmp_path / "institution").mkdir()
    text = (place / "policy.toml").read_text().replace('ledger = ""', f'ledger = "{tmp_path / "institution"}"')
    (place / "policy.toml").write_text(text)
    shutil.copytree(place, tmp_path / "backup")
    world.share("north")
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "backup", place)
    assert (place / "mask.dcstate").exists()
    with refused("ALREADY_SHARED", "no second one is made"):
        world.share("north")
    assert not list((place / "outbox").iterdir())


def test_a_ledger_beside_the_keys_that_a_link_leads_to(world, tmp_path):
    """Folders of several projects that link to one file of keys have one ledger."""
    place = world.root / "north"
    (tmp_path / "institution").mkdir()
    (place / "keys.json").rename(tmp_path / "institution" / "keys.json")
    (place / "keys.json").symlink_to(tmp_path / "institution" / "keys.json")
    world.share("north")
    assert (tmp_path / "institution" / "ledger" / "ledger.json").exists()


def test_the_partys_own_folder_is_no_place_for_a_ledger(world):
    place = world.root / "north"
    text = (place / "policy.toml").read_text()
    for folder, words in ((".", "own folder"), ("no/where", "cannot be made")):
        (place / "policy.toml").write_text(text.replace('ledger = ""', f'ledger = "{folder}"'))
        with refused("POLICY_INVALID", words):
            world.share("north")
        assert (place / "mask.dcstate").exists()
        assert not (place / ".sum.dcstate.next").exists()


def test_another_run_over_nearly_the_same_rows_is_refused_and_over_others_has_other_masks(world, tmp_path):
    first = message_of(world, world.share("north"))
    world.next_run()
    with refused("ALREADY_SHARED", "Nearly the same rows"):
        world.share("north")
    table = tmp_path / "later.csv"
    pd.concat([pd.read_csv(world.table("north")), rows_of(60, 77)]).to_csv(table, index=False)
    seen = []
    second = message_of(world, world.share("north", table=table, approve=lambda summary: seen.append(summary) or "me"))
    assert seen[0].noise_before == pytest.approx(world.project.sharing.noise)
    assert "as little noise as one total with noise of 0.071" in " ".join(seen[0].to_text().split())
    assert second.context != first.context
    assert second.tags.keys() == first.tags.keys()
    assert not set(second.tags.values()) & set(first.tags.values())
    n = min(len(first.words), len(second.words))
    assert (second.words[:n] != first.words[:n]).mean() > 0.99


def test_another_anchor_is_refused_after_a_share(world):
    world.share("north")
    anchor = make_anchor(world.project, rows_of(200, 1), where="public.csv", random_state=5)
    other = world.root / "other.dcanchor"
    other.write_bytes(seal_anchor(anchor, world.project, world.keys["north"]))
    with refused("ALREADY_THERE", "another anchor"):
        PartyFolder.join(world.root / "north", world.root / "project.toml", other)


def test_a_busy_ledger_undoes_the_share(world):
    from datacollab.folder.log import locked

    (world.root / "north" / "ledger").mkdir()
    with locked(world.root / "north" / "ledger"), refused("BUSY"):
        world.share("north")
    assert (world.root / "north" / "mask.dcstate").exists()
    assert not (world.root / "north" / ".sum.dcstate.next").exists()
    assert world.share("north").exists()


def test_an_interrupted_share_waits_for_a_ledger_that_is_away(world, tmp_path):
    """A drive that is not mounted says nothing of what is in the ledger."""
    place = world.root / "north"
    first = world.share("north").read_bytes()
    # As a command leaves it that is killed once the ledger has the sum.
    shutil.copy(place / "sum.dcstate", place / ".sum.dcstate.next")
    for name in ("sum.dcstate", "outbox/north.dcsum"):
        (place / name).unlink()
    (place / "ledger").rename(tmp_path / "away")
    with refused("STATE_DAMAGED", "Bring the folder back"):
        world.share("north")
    (tmp_path / "away").rename(place / "ledger")
    assert world.share("north").read_bytes() == first


def test_one_named_party_adds_the_labelled_public_rows(tmp_path):
    world = new_sums_world(tmp_path, sharing={"labelled_by": "south"})
    counts = {}
    for name in ("north", "south"):
        world.share(name, approve=lambda summary, name=name: counts.update({name: summary.n_public}) or "me")
    assert counts == {"north": 0, "south": 120}


def test_nothing_secret_is_in_what_can_be_read(world):
    """Neither a row, nor a target, nor a secret, in the log, the outbox, the ledger or the words of the summary."""
    place = world.root / "north"
    secret = unpack(place / "mask.dcstate").members["mask-key.bin"]
    anchor_secret = world.folder("north").anchor.secret
    texts = []
    path = world.share("north", approve=lambda told: texts.append(told.to_text() + str(told.to_dict())) or "me")
    table = pd.read_csv(world.table("north"))
    readable = (place / "log.jsonl").read_bytes() + path.read_bytes() + texts[0].encode()
    readable += (place / "ledger" / "ledger.json").read_bytes() + (place / "public.key").read_bytes()
    for number in table["age"][:20]:
        assert repr(number).encode() not in readable
        assert np.float64(number).tobytes() not in readable
    for each in (secret, anchor_secret):
        assert each not in readable
        assert each.hex().encode() not in readable
    everything = b"".join(each.read_bytes() for each in place.rglob("*") if each.is_file())
    assert secret not in everything


@pytest.mark.slow
def test_a_file_is_read_in_batches_and_gives_the_sums_of_the_whole_table(world, tmp_path):
    frame = rows_of(33_000, 3)
    frame.to_csv(tmp_path / "many.csv", index=False)
    folder = world.folder("north")
    whole, batches = folder.prepare(frame), folder.prepare(tmp_path / "many.csv")
    np.testing.assert_allclose(batches.part, whole.part, rtol=1e-9, atol=1e-6)
    assert batches.total.table.columns.keys() == whole.total.table.columns.keys() == {*frame.columns}
    for name, codes in whole.total.table.columns.items():
        np.testing.assert_array_equal(batches.total.table.columns[name], codes)
    assert batches.summary.to_dict() == whole.summary.to_dict()


def test_with_an_epsilon_there_is_as_much_noise_as_it_takes_and_the_bound_is_said(world):
    assert world.project.sharing is not None
    sharing = replace(world.project.sharing, epsilon=4.0)
    world.write_project(replace(world.project, sharing=sharing, revision=2))
    prepared = world.folder("north").prepare(world.table("north"))
    statistic = prepared.plan.ridge
    assert prepared.summary.noise == pytest.approx(gaussian_sigma(4.0, 1e-5) * statistic.sensitivity)
    assert statistic.noise_of_each.max() == prepared.summary.noise
    assert "AUC of 0.74 at most" in " ".join(prepared.summary.to_text().split())


@pytest.mark.parametrize(("n_ill", "names"), [(2, True), (30, False)])
def test_who_shares_a_model_of_classes_that_nobody_counted_reads_which_may_be_rare(world, n_ill, names):
    """Its own rows alone tell a party what may be rare, and what is not: the total has at least as many."""
    folder, table = world.folder("north"), pd.read_csv(world.table("north"))
    table["ill"] = np.where(np.arange(len(table)) < n_ill, "yes", "no")
    text = " ".join(folder.prepare(table).summary.to_text().split())
    assert ("No counts of these rows were shared before." in text) is names
    assert ("Going by your rows, yes may have fewer than 10 people" in text) is names


def test_numbers_have_no_rare_class(tmp_path):
    world = new_sums_world(tmp_path, task="regression", parties=PARTIES[:3])
    assert "rare class would" not in " ".join(
        world.folder("north").prepare(world.table("north")).summary.to_text().split()
    )


def test_who_has_counted_these_rows_reads_nothing_of_rare_classes(tmp_path):
    world = new_sums_world(tmp_path, parties=PARTIES[:3], sharing={"statistics": ("counts",)})
    world.share("north")
    sharing = replace(world.project.sharing, statistics=("ridge regression",))
    world.project = replace(world.project, sharing=sharing)
    world.next_run()
    assert "No counts" not in world.folder("north").prepare(world.table("north")).summary.to_text()
