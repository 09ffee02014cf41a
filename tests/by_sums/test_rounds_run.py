"""A regression by rounds, by files: the analyst asks again, the same rows answer, and nothing leaves twice."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from datacollab.agreement import Task, load_project
from datacollab.bundle import pack, seal
from datacollab.by_sums.rounds import ROUND_FILE, ROUND_KIND, NextRound, read_round, round_to_bytes
from datacollab.folder.ledger import Ledger
from datacollab.steps.analyst import STUDY_FILES
from datacollab.steps.party import Policy, assessment
from datacollab.study import RoundsSoFar
from party_world import refused
from playing import done
from sums_world import PARTIES, make_rows, new_sums_world

NAMES = PARTIES[:3]
LOGISTIC = {"statistics": ("logistic regression",), "rounds": 2}


def new_world(root, sharing=LOGISTIC, **changes):
    world = new_sums_world(root, parties=NAMES, sharing=sharing, **changes)
    for place, name in enumerate(NAMES):
        make_rows(place).to_csv(world.table(name), index=False)
    return world


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """All have shared in the first round, and the analyst asks for the second."""
    world = new_world(tmp_path_factory.mktemp("rounds"))
    world.summaries = []
    world.files = [world.share(name, approve=lambda summary: world.summaries.append(summary) or "me") for name in NAMES]
    world.said = done("analyst", "integrate", *world.files, "-C", world.root / "analyst").output
    return world


def request_of(world):
    return world.root / "analyst" / "outbox" / ROUND_FILE


def answer(world, name, **options):
    """What a party sends in a further round; nobody is asked."""
    return world.share(name, round_file=request_of(world), approve=lambda summary: pytest.fail("asked"), **options)


def test_two_rounds_by_commands_give_the_odds_ratios_of_all_rows(first, tmp_path):
    world = first.copied(tmp_path)
    assert "1 of 2" in world.said
    assert f"{ROUND_FILE}: Send it to all parties." in world.said
    assert not (world.root / "analyst" / STUDY_FILES[0]).exists()
    files = []
    for name in NAMES:
        folder = world.root / name
        said = done("party", "share", world.table(name), "--round", request_of(world), "-C", folder).output
        assert "No model comes back" in said
        assert "approved with the first round" in said
        assert "was not added" not in said
        files.append(folder / "outbox" / f"{name}.dcsum")
    assert "Ratios" not in done("analyst", "integrate", *files, "-C", world.root / "analyst").output
    text = (world.root / "analyst" / STUDY_FILES[0]).read_text(encoding="utf-8")
    lines = {line[1]: line[2:] for line in csv.reader(io.StringIO(text)) if line[0] == "logistic regression"}
    page = (world.root / "analyst" / STUDY_FILES[1]).read_text(encoding="utf-8")
    assert page.count("aria-label='interval from") == 3
    assert "the upright one is at a ratio of 1" in page
    frames = [pd.read_csv(world.table(name)).assign(party=name) for name in NAMES]
    whole = pd.concat(frames)
    X = np.column_stack([whole["age"], whole["pulse"], whole["ward"] == "night", pd.get_dummies(whole["party"])])
    pooled = sm.Logit((whole["ill"] == "yes").astype(float), X.astype(float)).fit(disp=0)
    for place, name in enumerate(("age", "pulse", "ward=night")):
        ratio, low, high, coefficient, error = map(float, lines[name][:5])
        assert low < ratio < high
        assert abs(coefficient - pooled.params.iloc[place]) < 3 * error
        assert error < 1.2 * pooled.bse.iloc[place]


def test_the_approver_reads_once_that_rounds_follow(first):
    text = " ".join(first.summaries[0].to_text().split())
    assert "There are 2 rounds, and a yes is for all of them." in text
    assert "The totals of logistic regression:" in text
    form = assessment(first.project, Policy(), first.summaries[0])
    assert "bytes), the first of 2 rounds' files, all of the same rows: logistic regression over" in form
    assert "2 rounds, with an intercept of each party" in done("project", "show", first.root / "project.toml").output


def test_the_ledger_counts_both_rounds_as_one_total_with_the_noise_that_was_stated(first, tmp_path):
    world = first.copied(tmp_path)
    answer(world, "north")
    entries = Ledger(world.root / "north" / "ledger" / "ledger.json", key=bytes(32)).entries
    assert [each.round for each in entries] == [1, 2]
    together = sum(each.noise**-2 for each in entries) ** -0.5
    assert together == pytest.approx(world.summaries[0].noise)


def test_the_mask_key_stays_until_the_last_round(first, tmp_path):
    world = first.copied(tmp_path)
    mask = world.root / "north" / "mask.dcstate"
    assert mask.exists()
    answer(world, "north")
    assert not mask.exists()


def test_the_same_answer_is_sent_again_and_a_late_table_changes_nothing(first, tmp_path):
    world = first.copied(tmp_path)
    sent = answer(world, "north").read_bytes()
    assert answer(world, "north", table=make_rows(9)).read_bytes() == sent
    assert world.share("north").read_bytes() == sent
    assert len(Ledger(world.root / "north" / "ledger" / "ledger.json", key=bytes(32)).entries) == 2


@pytest.mark.parametrize("change", ["one row less", "one entry corrected", "one outcome changed", "other rows"])
def test_other_rows_do_not_answer(first, tmp_path, change):
    world = first.copied(tmp_path)
    table = pd.read_csv(world.table("north"))
    if change == "one row less":
        table = table[1:]
    if change == "one entry corrected":
        table.loc[0, "age"] += 1
    if change == "one outcome changed":
        table.loc[0, "ill"] = {"yes": "no", "no": "yes"}[table.loc[0, "ill"]]
    if change == "other rows":
        table = make_rows(5)
    with refused("ROWS_CHANGED", "exactly the rows of round 1"):
        answer(world, "north", table=table)
    # Nothing was lost: the right table still answers.
    answer(world, "north", table=pd.read_csv(world.table("north"))[::-1])


def test_a_first_round_without_the_request_goes_on_and_a_request_without_a_first_round_is_refused(first, tmp_path):
    fresh = new_world(tmp_path)
    made = NextRound(number=2, after="00" * 32, so_far=RoundsSoFar(1, (0.0, 0.0, 0.0), 2100.0, 700.0))
    file = tmp_path / ROUND_FILE
    file.write_bytes(round_to_bytes(made, fresh.project, fresh.keys["analyst"]))
    with refused("NOT_SHARED", "Share the table without --round first"):
        fresh.share("north", round_file=file)
    # Another analyst's request is none of this project.
    with refused("SIGNATURE_INVALID"):
        fresh.share("north", round_file=request_of(first))
    assert not (fresh.root / "north" / "ledger").exists()


def test_a_second_request_of_the_same_round_is_not_answered(first, tmp_path):
    world = first.copied(tmp_path)
    analyst = world.keys["analyst"]
    asked = read_round(request_of(world).read_bytes(), world.project, analyst, where="here")
    answer(world, "north")
    for changed in (replace(asked, after="11" * 32), replace(asked, so_far=replace(asked.so_far, n_rows=2.0))):
        request_of(world).write_bytes(round_to_bytes(changed, world.project, analyst))
        if changed.after == asked.after:
            # The party's answer to the first one is sent again, and its masks cancel with no other.
            answer(world, "north")
            continue
        with refused("ROUND_UNFIT", "after another sum"):
            answer(world, "north")
    request_of(world).write_bytes(round_to_bytes(replace(asked, after="11" * 32), world.project, analyst))
    with refused("ROUND_UNFIT", "after another sum than this party's round 1"):
        answer(world, "south")


STATE = {"n_done": 1, "coefficients": [0.1, 0.2], "n_rows": 9, "n_outcomes": 3, "shares": [0.5, 0.5]}
CONTENTS = {"number": 2, "after": "00", "so_far": STATE}


@pytest.mark.parametrize(
    "changes",
    [
        {"number": 3},
        {"number": "2"},
        {"more": 1},
        {"after": 5},
        {"so_far": STATE | {"coefficients": [1e3, 0.0]}},
        {"so_far": STATE | {"coefficients": []}},
        {"so_far": STATE | {"n_done": 0}},
        {"so_far": STATE | {"n_rows": "many"}},
        {"so_far": STATE | {"shares": ["many"]}},
        {"so_far": STATE | {"shares": [float("inf")]}},
        {"so_far": {name: each for name, each in STATE.items() if name != "shares"}},
        {"so_far": [1, 2]},
    ],
)
def test_a_request_that_says_something_else_is_refused(first, changes):
    project = first.project
    key = first.keys["analyst"]
    outside = {"project_digest": project.digest, "number": 2, "created": "2030-01-01T00:00:00+00:00"}
    purpose = f"round of {project.digest}"

    def read(contents):
        # JSON has no word for infinity, which Python's own reader takes all the same.
        text = json.dumps(contents).encode()
        sealed = seal(text, [first.keys["north"].public], purpose=purpose)
        data = pack(ROUND_KIND, outside, {"sealed.bin": sealed}, key=key)
        return read_round(data, project, first.keys["north"], where="it")

    assert read(CONTENTS).so_far.shares == (0.5, 0.5)
    with refused("ROUND_UNFIT", "does not ask for a round"):
        read(CONTENTS | changes)


def test_a_request_of_somebody_else_is_refused(first):
    made = NextRound(number=2, after="00", so_far=RoundsSoFar(1, (0.0, 0.0, 0.0), 100.0, 50.0))
    data = round_to_bytes(made, first.project, first.keys["stranger"])
    with refused("SIGNATURE_INVALID"):
        read_round(data, first.project, first.keys["north"], where="it")


def test_a_file_of_the_first_round_is_none_of_the_second(first, tmp_path):
    world = first.copied(tmp_path)
    with refused("SHARE_MALFORMED", "it is not of round 2, which is being collected"):
        world.analyst.add([world.files[0]])
    file = answer(world, "north")
    world.analyst.add([file])
    assert {each["party"] for each in world.analyst.status() if each["created"] is not None} == {"north"}
    with refused("QUORUM_NOT_MET", "are missing"):
        world.analyst.integrate()


def test_a_changed_policy_is_asked_about_again(first, tmp_path):
    world = first.copied(tmp_path)
    policy = world.root / "north" / "policy.toml"
    policy.write_text(policy.read_text().replace("min_rows = 20", "min_rows = 30"))
    asked = []
    world.share("north", round_file=request_of(world), approve=lambda summary: asked.append(summary) or "me")
    assert len(asked) == 1


def test_who_has_left_answers_no_more(first, tmp_path):
    world = first.copied(tmp_path)
    world.folder("north").withdraw()
    with refused("KEY_MISSING"):
        answer(world, "north")


def test_a_request_that_was_tidied_away_is_written_again(first, tmp_path):
    world = first.copied(tmp_path)
    before = request_of(world).read_bytes()
    request_of(world).unlink()
    with refused("QUORUM_NOT_MET"):
        world.analyst.integrate()
    assert request_of(world).read_bytes() == before


def test_the_log_says_which_round_left(first, tmp_path):
    world = first.copied(tmp_path)
    answer(world, "north")
    lines = (world.root / "north" / "log.jsonl").read_text().splitlines()
    shares = [json.loads(line) for line in lines if '"share"' in line]
    assert [each["facts"]["round"] for each in shares if each["event"] == "share"] == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "ratio", "own"),
    [("poisson regression", "rate ratio", "an intercept"), ("proportional hazards", "hazard ratio", "a baseline")],
)
def test_rates_and_hazards_go_by_rounds_as_well(tmp_path, statistic, ratio, own):
    task = Task(kind="survival", event="died", time="weeks", seen=(1,), not_seen=(0,), maximum=10.0, rounding=0.0)
    sharing = {"statistics": (statistic,), "rounds": 2}
    world = new_sums_world(tmp_path, parties=NAMES, sharing=sharing, task_of_project=task)
    for place, name in enumerate(NAMES):
        random = np.random.default_rng(place)
        table = make_rows(place, 4000).drop(columns="ill")
        rate = 0.015 * np.exp(0.02 * (table["age"] - 50) + 0.5 * (table["ward"] == "night"))
        event = random.exponential(1 / rate)
        end = random.uniform(1, 10, 4000)
        table["weeks"] = np.minimum(event, end).round(2).clip(0.01)
        table["died"] = (event <= end).astype(int)
        table.to_csv(world.table(name), index=False)
    world.analyst.add(world.share_all())
    assert world.analyst.integrate().asks_again
    world.analyst.add([answer(world, name) for name in NAMES])
    total = world.analyst.integrate()
    assert not total.asks_again
    found = total.results[statistic]
    assert found.of_ratios == ratio
    assert f"{own} for each party" in found.table().note
    assert f"2 rounds, with {own} of each party" in done("project", "show", world.root / "project.toml").output
    assert dict(zip(found.names, found.params, strict=True))["age"] == pytest.approx(0.02, abs=3 * found.bse[0])


def test_a_draft_with_numbers_takes_rounds_and_one_of_categories_none(tmp_path):
    make_rows(0).to_csv(tmp_path / "public.csv", index=False)
    for name in (*NAMES, "analyst"):
        done("keys", "new", "-C", tmp_path / name)
    named = [part for name in NAMES for part in ("--party", f"{name}={tmp_path / name / 'public.key'}")]
    draft = (
        *("project", "new", "ward", "--like", tmp_path / "public.csv", "--purpose", "p", "--target", "ill", *named),
        *("--analyst", tmp_path / "analyst" / "public.key", "-C", tmp_path / NAMES[0]),
        *("--statistic", "logistic regression"),
    )
    assert "2 rounds, with an intercept" in done(*draft, "-o", tmp_path / "rounds.toml").output
    assert load_project(tmp_path / "rounds.toml").sharing.rounds == 2
    done(*draft, "--without", "age", "--without", "pulse", "-o", tmp_path / "patterns.toml")
    assert load_project(tmp_path / "patterns.toml").sharing.rounds is None


@pytest.mark.parametrize(
    ("sharing", "words"),
    [
        ({"statistics": ("counts", "logistic regression"), "rounds": 2}, "alone in its project"),
        ({"statistics": ("counts",), "rounds": 2}, "alone in its project"),
        ({"statistics": ("logistic regression",), "rounds": 1}, "rounds"),
        ({"statistics": ("logistic regression",), "factors": ("age",)}, "write rounds = 2"),
        ({"statistics": ("proportional hazards",)}, "Write rounds = 2"),
        ({"statistics": ("proportional hazards", "survival")}, "Write rounds = 2, and remove others"),
    ],
)
def test_a_project_with_rounds_that_do_not_fit_is_refused(first, sharing, words):
    with refused("SPEC_INVALID", words):
        replace(first.project, sharing=replace(first.project.sharing, **({"rounds": None} | sharing)))
