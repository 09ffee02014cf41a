"""A second total over mostly the same rows is refused, or its approver reads of the first, whatever the owner edits."""

from dataclasses import dataclass, fields, replace
from datetime import date
from functools import reduce
from itertools import count

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datacollab.agreement import AnchorRecipe, Project, Sharing, Task, make_anchor, project_text, seal_anchor
from datacollab.bundle import KeyPair
from datacollab.errors import DataCollabError
from datacollab.steps.party import PartyFolder, make_mask_key
from datacollab.sums import MaskKey, mask_card
from datacollab.table import Column
from party_world import refused
from sums_world import cards_of, entities_of, new_sums_world, rows_of

THREE = ("north", "south", "east")
DESCRIPTION = {"statistics": ("description",), "by": "ward"}


@pytest.fixture(scope="module", params=[None, DESCRIPTION], ids=["model", "study"])
def shared(request, tmp_path_factory):
    """Three parties have shared, for a model or a study."""
    world = new_sums_world(tmp_path_factory.mktemp("shared"), parties=THREE, sharing=request.param)
    world.share_all()
    return world


def read(world, name="north"):
    return pd.read_csv(world.table(name))


def with_newcomer(table):
    return pd.concat([table, rows_of(1, 999)])


def flipped(table):
    return table.assign(ill=table["ill"].map({"yes": "no", "no": "yes"}))


FILLED = {"missing": "fill", "fill": 50.0, "flag_missing": True}
STEPS = {
    "one patient more": ({}, with_newcomer),
    "all targets changed": ({}, flipped),
    "a flag on, one patient more": ({"age": FILLED}, with_newcomer),
    "two flags on": ({"age": FILLED, "pulse": FILLED}, lambda table: table),
    "filled without a flag, one patient more": ({"age": FILLED | {"flag_missing": False}}, with_newcomer),
    "a category that nobody has": ({"ward": {"categories": ("day", "night", "unused")}}, with_newcomer),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.slow
def test_an_edited_project_takes_no_second_total_of_one_kind(shared, tmp_path, step):
    world, (changed, edit) = shared.copied(tmp_path), STEPS[step]
    columns = tuple(replace(each, **changed.get(each.name, {})) for each in world.project.columns)
    world.project = replace(world.project, columns=columns)
    world.next_run()
    for name in THREE:
        table = read(world, name)
        with refused("ALREADY_SHARED", "Nearly the same rows"):
            world.share(name, table=edit(table) if name == "north" else table)


@pytest.mark.slow
def test_another_statistic_of_exactly_the_same_rows_is_shared_and_reads_of_the_first(tmp_path):
    world = new_sums_world(tmp_path, parties=THREE, sharing={"statistics": ("counts",)})
    world.share_all()
    for number, statistic in enumerate(("description", "survival", "ridge regression")):
        if statistic == "survival":
            continue
        sharing = replace(world.project.sharing, statistics=(statistic,))
        # Merging what is rare, or a new flag, changes nothing of what the rows are.
        ward = replace(world.project.columns[2], categories=("day", "night", f"unused {number}"))
        world.project = replace(world.project, sharing=sharing, columns=(*world.project.columns[:2], ward))
        world.next_run()
        with refused("ALREADY_SHARED"):
            world.share("north", table=with_newcomer(read(world)))
        seen = []
        world.share("north", approve=lambda summary, seen=seen: seen.append(summary) or "me")
    today = date.today().isoformat()
    said = " ".join(seen[0].to_text().split())
    assert f"left before: 2, the last of them wards, run 1 (counts, {today}); wards, run 2 (description" in said
    assert seen[0].to_dict()["earlier"] == list(seen[0].earlier)


def test_the_last_three_of_many_totals_are_named():
    from test_party_folder import SUMS

    earlier = tuple(f"wards, run {run}" for run in range(1, 6))
    text = replace(SUMS, noise_before=0.1, earlier=earlier, adjusted={"columns": {}}).to_text()
    assert "left before: 5, the last of them wards, run 3; wards, run 4; wards, run 5." in " ".join(text.split())


@pytest.mark.parametrize("n_new", [1, 10, 59])
def test_newcomers_at_two_parties_leave_at_neither(shared, tmp_path, n_new):
    """The other parties may bring what they brought before, so each has to hide its newcomers by itself."""
    world = shared.copied(tmp_path)
    world.next_run()
    for number, name in enumerate(("north", "south")):
        with refused("ALREADY_SHARED", "fewer than 60 differ"):
            world.share(name, table=pd.concat([read(world, name), rows_of(n_new, 900 + number)]))


def test_as_many_newcomers_as_a_total_needs_and_other_people_leave(shared, tmp_path):
    seen = []
    for number, table in enumerate((pd.concat([read(shared), rows_of(60, 901)]), rows_of(60, 902))):
        world = shared.copied(tmp_path / str(number))
        world.next_run()
        world.share("north", table=table, approve=lambda summary: seen.append(summary) or "me")
    assert [len(each.earlier) for each in seen] == [1, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "least"), [("min_rows = 50", 60), ("min_rows = 75", 75)])
def test_a_partys_own_rule_may_ask_for_more(tmp_path, rules, least):
    world = new_sums_world(tmp_path, parties=THREE)
    table = rows_of(100, 5)
    world.share("north", table=table)
    world.next_run()
    policy = world.root / "north" / "policy.toml"
    policy.write_text(policy.read_text().replace("min_rows = 20", rules))
    assert rules in policy.read_text()
    with refused("ALREADY_SHARED", f"fewer than {least} differ"):
        world.share("north", table=pd.concat([table, rows_of(least - 1, 901)]))


@dataclass
class Draft:
    """What an owner asks for: a project, and the columns that a party's file then has to have."""

    project: Project
    table: pd.DataFrame
    keys: dict

    def edited(self, **changes):
        return replace(self, project=replace(self.project, **changes))

    def column(self, place, **changes):
        columns = list(self.project.columns)
        columns[place] = replace(columns[place], **changes)
        return self.edited(columns=tuple(columns))

    def sharing(self, **changes):
        return self.edited(sharing=replace(self.project.sharing, **changes))

    def task(self, task, columns=None, **sharing):
        rest = self.project.columns if columns is None else columns
        return self.edited(task=task, columns=tuple(rest), sharing=replace(self.project.sharing, **sharing))

    def anchor(self, **changes):
        return self.edited(anchor=replace(self.project.anchor, **changes))


def renamed(draft):
    table = draft.table.rename(columns={"age": "years", "pulse": "rate"})
    return replace(draft, table=table).column(0, name="years").column(1, name="rate")


def made_categories(draft):
    pulse = Column(name="pulse", kind="category", categories=tuple(map(repr, draft.table["pulse"].unique().tolist())))
    return draft.edited(columns=(draft.project.columns[0], pulse, draft.project.columns[2]))


def of_pulse(draft, **options):
    task = Task(kind="regression", target="pulse", **{"minimum": 0.0, "maximum": 100.0, "unit": "1/min"} | options)
    ill = Column(name="ill", kind="category", categories=("no", "yes"))
    return draft.task(task, [draft.project.columns[0], draft.project.columns[2], ill])


def of_times(draft, **options):
    times = {"event": "ill", "seen": ("yes",), "not_seen": ("no",), "time": "pulse", "maximum": 200.0, "rounding": 1.0}
    task = Task(kind="survival", **times | {"unit": "days"} | options)
    columns = [draft.project.columns[0], draft.project.columns[2]]
    return draft.task(task, columns, statistics=("survival",), by="ward")


def of_an_effect(draft, **options):
    arms = {"treatment": "ill", "treated": ("yes",), "untreated": ("no",)}
    task = Task(kind="effect", **arms | {"outcome": "pulse", "minimum": 0.0, "maximum": 100.0} | options)
    columns = [draft.project.columns[0], draft.project.columns[2]]
    return draft.task(task, columns, statistics=("effect",))


def with_another_mask(draft):
    cards = draft.project.sharing.mask_keys
    return draft.sharing(mask_keys=cards | {"south": mask_card(MaskKey.generate(), draft.keys["south"])})


MODEL = {"intercept": -1.0, "age": 0.1, "pulse": 0.0, "ward=night": 0.5}


def of_classes(draft, **options):
    return draft.edited(task=replace(draft.project.task, **options))


def regressed(draft, **options):
    return draft.sharing(**{"statistics": ("least squares",), "outcome": "age"} | options)


STRANGER = KeyPair.generate().public
# At each entry of the agreement what an owner might make of it.
EDITS = {
    (Column, "name"): renamed,
    (Column, "kind"): made_categories,
    (Column, "unit"): lambda draft: draft.column(0, unit="years"),
    (Column, "minimum"): lambda draft: draft.column(0, minimum=-20.0),
    (Column, "maximum"): lambda draft: draft.column(1, maximum=300.0),
    (Column, "categories"): lambda draft: draft.column(2, categories=("night", "day", "unused")),
    (Column, "missing"): lambda draft: draft.column(0, missing="fill", fill=10.0),
    (Column, "missing_words"): lambda draft: draft.column(1, missing_words=("999",)),
    (Column, "fill"): lambda draft: draft.column(2, missing="fill", fill="night"),
    (Column, "flag_missing"): lambda draft: draft.column(1, missing="fill", fill=20.0, flag_missing=True),
    (Column, "outside"): lambda draft: draft.column(0, outside="clip"),
    (Column, "unknown"): lambda draft: draft.column(2, unknown="other"),
    (Column, "most_unknown"): lambda draft: draft.column(2, unknown="other", most_unknown=0.5),
    (Project, "name"): lambda draft: draft.edited(name="elsewhere"),
    (Project, "purpose"): lambda draft: draft.edited(purpose="Something else."),
    (Project, "columns"): lambda draft: draft.edited(columns=draft.project.columns[1::-1], max_components=1),
    (Project, "task"): of_pulse,
    (Project, "anchor"): lambda draft: draft.edited(anchor=AnchorRecipe(method="uniform", n_rows=90)),
    (Project, "max_components"): lambda draft: draft.edited(max_components=2),
    (Project, "min_rows"): lambda draft: draft.edited(min_rows=1),
    (Project, "min_class_rows"): lambda draft: draft.edited(min_class_rows=2),
    (Project, "quorum"): lambda draft: draft.edited(quorum=3),
    (Project, "deadline"): lambda draft: draft.edited(deadline=date(2999, 1, 1)),
    (Project, "seal_shares"): lambda draft: draft.edited(seal_shares=False),
    (Project, "revision"): lambda draft: draft.edited(revision=draft.project.revision + 1),
    (Project, "owner"): lambda draft: draft.edited(owner=draft.project.parties["south"]),
    (Project, "analyst"): lambda draft: draft.edited(analyst=STRANGER),
    (Project, "parties"): lambda draft: draft.edited(parties=dict(reversed(draft.project.parties.items()))),
    (Project, "sharing"): lambda draft: draft.sharing(statistics=("counts",)),
    (Sharing, "mask_keys"): with_another_mask,
    (Sharing, "entities"): lambda draft: draft.sharing(entities=entities_of(THREE) | {"south": "A clinic"}),
    (Sharing, "way"): lambda draft: draft.sharing(way="sums"),
    (Sharing, "statistics"): lambda draft: draft.sharing(statistics=("counts", "description")),
    (Sharing, "by"): lambda draft: draft.sharing(statistics=("description",), by="ill"),
    (Sharing, "outcome"): regressed,
    (Sharing, "errors"): lambda draft: regressed(draft, errors="classical"),
    (Sharing, "cluster"): lambda draft: regressed(draft, cluster="pulse"),
    (Sharing, "noise"): lambda draft: draft.sharing(noise=0.4),
    (Sharing, "n_components"): lambda draft: draft.sharing(n_components=20),
    (Sharing, "run"): lambda draft: draft.sharing(run=9),
    (Sharing, "labelled_by"): lambda draft: draft.sharing(labelled_by="south"),
    (Sharing, "epsilon"): lambda draft: draft.sharing(epsilon=3.0),
    (Sharing, "rounds"): lambda draft: draft.sharing(statistics=("logistic regression",), rounds=2),
    (Sharing, "factors"): lambda draft: draft.sharing(statistics=("logistic regression",), factors=("ward",)),
    (Sharing, "logistic_model"): lambda draft: draft.sharing(statistics=("validation",), logistic_model=MODEL),
    (Sharing, "most_rows"): lambda draft: draft.sharing(most_rows=dict.fromkeys(THREE, 999)),
    (Task, "kind"): of_pulse,
    (Task, "target"): lambda draft: of_pulse(draft, maximum=150.0),
    (Task, "missing_words"): lambda draft: of_pulse(draft, missing_words=("UNK",)),
    (Task, "classes"): lambda draft: of_classes(draft, classes=("yes", "no", "perhaps"), positive=None),
    (Task, "positive"): lambda draft: of_classes(draft, positive="no"),
    (Task, "treatment"): of_an_effect,
    (Task, "treated"): lambda draft: of_an_effect(draft, treated=("yes", "both")),
    (Task, "untreated"): lambda draft: of_an_effect(draft, untreated=("no", "none")),
    (Task, "outcome"): lambda draft: of_an_effect(draft, unit="beats"),
    (Task, "event"): of_times,
    (Task, "seen"): lambda draft: of_times(draft, seen=("yes", "surely")),
    (Task, "not_seen"): lambda draft: of_times(draft, not_seen=("no", "never")),
    (Task, "time"): lambda draft: of_times(draft, maximum=101.0),
    (Task, "unit"): lambda draft: of_pulse(draft, unit="1/h"),
    (Task, "minimum"): lambda draft: of_pulse(draft, minimum=-5.0),
    (Task, "maximum"): lambda draft: of_times(draft, maximum=150.0),
    (Task, "rounding"): lambda draft: of_times(draft, rounding=5.0),
    (Task, "scale"): lambda draft: of_pulse(draft, scale="log"),
    (Task, "merged"): lambda draft: of_classes(draft, merged={"perhaps": "no"}),
    (AnchorRecipe, "method"): lambda draft: draft.anchor(method="uniform"),
    (AnchorRecipe, "n_rows"): lambda draft: draft.anchor(n_rows=80),
    (AnchorRecipe, "source"): lambda draft: draft.anchor(source="another register"),
}


def test_each_entry_of_an_agreement_is_edited():
    """A new entry needs an edit here, too."""
    entries = {(kind, each.name) for kind in (Column, Project, Sharing, Task, AnchorRecipe) for each in fields(kind)}
    assert entries == EDITS.keys()


@pytest.fixture(scope="module")
def second(tmp_path_factory):
    """North has shared for a model, and has a new mask key: a second total can be prepared any number of times."""
    world = new_sums_world(tmp_path_factory.mktemp("second"), parties=THREE)
    world.share("north")
    cards = cards_of(world.keys, THREE) | {"north": make_mask_key(world.root / "north")}
    world.project = replace(world.project, sharing=replace(world.project.sharing, run=2, mask_keys=cards))
    return world


REVISIONS = count(100)


def prepared(world, draft):
    """Sign the draft, have north join, and prepare its sum; what speaks against it, and the totals that it reads of."""
    project = replace(draft.project, revision=next(REVISIONS))
    owner = world.keys[next(name for name, key in project.parties.items() if key == project.owner)]
    (world.root / "project.toml").write_text(project_text(project, owner))
    file = None
    if project.has_anchor:
        public = rows_of(200, 1).rename(columns=dict(zip(("age", "pulse"), draft.table.columns[:2], strict=True)))
        if project.columns[1].categories and project.columns[1].name == "pulse":
            public["pulse"] = np.resize(draft.table["pulse"], len(public))
        anchor = make_anchor(project, public, where="public.csv", random_state=0)
        file = world.root / "anchor.dcanchor"
        file.write_bytes(seal_anchor(anchor, project, owner))
    place = world.root / "north"
    for old in place.glob("anchor.dcstate"):
        old.unlink()
    (place / "project.toml").unlink()
    PartyFolder.join(place, world.root / "project.toml", file)
    draft.table.to_csv(world.root / "second.csv", index=False)
    found = PartyFolder(place).prepare(world.root / "second.csv")
    return [each.code for each in found.reasons], found.summary.earlier


EXACT = {"same": lambda table: table, "one more": with_newcomer, "one less": lambda table: table[1:]}


@pytest.mark.parametrize("entry", EDITS, ids=lambda entry: f"{entry[0].__name__}.{entry[1]}")
@pytest.mark.slow
def test_no_edit_of_one_entry_leaves_a_second_total_unsaid(second, entry):
    table = read(second)
    draft = EDITS[entry](Draft(second.project, with_newcomer(table), second.keys))
    codes, earlier = prepared(second, draft)
    assert len(earlier) == 1
    assert "ALREADY_SHARED" in codes


def combined(draft, entry):
    """One more edit of a draft, if it does not contradict those before."""
    try:
        return EDITS[entry](draft)
    except (DataCollabError, IndexError, KeyError):
        return draft


some = st.lists(st.sampled_from(list(EDITS)), min_size=2, max_size=6, unique=True)


@pytest.mark.slow
@given(edits=some, rows=st.sampled_from(list(EXACT)))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_edit_of_a_project_leaves_a_second_total_unsaid(second, edits, rows):
    draft = reduce(combined, edits, Draft(second.project, EXACT[rows](read(second)), second.keys))
    try:
        codes, earlier = prepared(second, draft)
    except DataCollabError:
        # The table does not suit the edits, and nothing leaves.
        return
    assert len(earlier) == 1
    assert "ALREADY_SHARED" in codes or rows == "same"
