"""Shares of times to events, effects and no targets at the analyst: checked, and what is made of them."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

import datacollab as dc
from datacollab.analyst import cluster, integrate
from datacollab.bundle import pack, unpack
from datacollab.effects import estimate_effect
from datacollab.errors import AgreementError, EffectError
from datacollab.folder.party import list_times
from datacollab.folder.step_table import score_rows
from datacollab.share import Share, share_contents, share_from
from datacollab.steps.analyst import AnalystFolder, effect_of, make_model, receive_rows
from datacollab.survival import CoxRegression, SurvivalForest, concordance_index
from datacollab.table import encode_table
from datacollab.targets import effect_target, survival_target
from named_world import TASKS, NamedWorld
from party_world import refusal as refused


@pytest.fixture(params=TASKS)
def world(request, tmp_path):
    return NamedWorld(tmp_path, request.param)


@pytest.fixture
def survival(tmp_path):
    return NamedWorld(tmp_path, "survival")


def forged(world, folder, target=None, *, anchor_target=None, **facts):
    """The share of a folder with other targets, signed by its party."""
    bundle = unpack(folder.path / "outbox" / "a.dcshare")
    share = share_from(bundle)
    target = share.target if target is None else target
    changed = Share(
        party="a",
        representation=share.representation[: len(target)],
        anchor_representation=share.anchor_representation,
        target=target,
        anchor_target=anchor_target,
        one_to_one=share.one_to_one,
    )
    own_facts, members = share_contents(changed)
    given = bundle.facts | {name: own_facts[name] for name in ("n_rows", "target")} | facts
    return pack("datacollab.share", given, members, key=world.keys["a"])


def received(world, data):
    return receive_rows(data, world.project, world.keys["analyst"], where="a.dcshare")


def test_what_was_agreed_is_taken(world):
    folders = world.shared("a"), world.shared("b")
    opened = world.analyst(*folders)
    assert [status["n_rows"] for status in opened.status()] == [120, 120]
    for each in opened.shares():
        assert each.share.target_kind is world.project.task.target_kind
    assert received(world, forged(world, folders[0])).party == "a"


def changed_field(target, name, value):
    changed = target.copy()
    changed[name][:2] = value
    return changed


@pytest.mark.parametrize(
    ("kind", "field", "value", "words"),
    [
        ("survival", "time", 31.0, "2 of 120 entries of time"),
        ("survival", "time", 1050.0, "at most 1020, multiples of 30"),
        ("survival-effect", "time", 3000.0, "entries of time"),
        ("effect", "outcome", 300.5, "from 0 to 300"),
        ("effect", "outcome", -1.0, "entries of outcome"),
    ],
)
def test_what_was_not_agreed_is_refused(tmp_path, kind, field, value, words):
    world = NamedWorld(tmp_path, kind)
    folder = world.shared("a")
    target = share_from(unpack(folder.path / "outbox" / "a.dcshare")).target
    message = refused("TARGET_INVALID", received, world, forged(world, folder, changed_field(target, field, value)))
    assert words in message


def test_the_longest_time_that_is_possible_is_taken(survival):
    folder = survival.shared("a")
    target = share_from(unpack(folder.path / "outbox" / "a.dcshare")).target
    for value in (1020.0, 30.0, 990.0):
        assert received(survival, forged(survival, folder, changed_field(target, "time", value)))


def test_another_kind_of_targets_is_refused(world):
    folder = world.shared("a")
    ones = np.ones(120)
    others = {
        "survival": survival_target(ones, 30 * ones),
        "effect": effect_target(ones, ones),
        "single": np.array(["yes"] * 120),
        "numbers": ones,
    }
    own = world.project.task.target_kind.value
    for name, target in others.items():
        if name != own:
            message = refused("TARGET_INVALID", received, world, forged(world, folder, target))
            # Names of classes are looked at before any row is.
            assert (f"agreed on {own!r}" in message) == (name != "single")
    refused("SHARE_MALFORMED", received, world, forged(world, folder, task="classification"))


def test_targets_of_the_anchor_are_refused(survival):
    folder = survival.shared("a")
    anchor_target = survival_target(np.ones(80), np.full(80, 30.0))
    data = forged(survival, folder, anchor_target=anchor_target)
    assert "anchor" in refused("TARGET_INVALID", received, survival, data)


@pytest.mark.parametrize(
    ("kind", "field"), [("survival", "event"), ("effect", "treatment"), ("survival-effect", "event")]
)
def test_few_events_and_small_arms_are_refused(tmp_path, kind, field):
    world = NamedWorld(tmp_path, kind, min_class_rows=5)
    folder = world.shared("a")
    target = share_from(unpack(folder.path / "outbox" / "a.dcshare")).target.copy()
    for n_rows, is_enough in ((4, False), (5, True), (0, True), (116, False), (120, True)):
        target[field] = np.arange(120) < n_rows
        data = forged(world, folder, target.copy())
        if is_enough:
            assert received(world, data)
        else:
            assert "wants 5" in refused("CLASS_TOO_SMALL", received, world, data)


@pytest.mark.parametrize(("model", "kind"), [("auto", CoxRegression), ("survival-forest", SurvivalForest)])
@pytest.mark.slow
def test_survival_by_files_is_survival_in_memory(survival, model, kind):
    a, b = survival.shared("a"), survival.shared("b")
    opened = survival.analyst(a, b)
    estimator = make_model(model, "survival", 0)
    assert isinstance(estimator, kind)
    if kind is SurvivalForest:
        estimator.set_params(n_estimators=20)
    result = opened.integrate("auto", "auto" if model == "auto" else estimator)
    assert result.estimator == kind.__name__
    assert 0.6 < result.score.value <= 1
    shares = [share_from(unpack(each.path / "outbox" / f"{each.name}.dcshare")) for each in (a, b)]
    oracle = dc.Analyst(dc.LTI(3, fit_intercept=True), estimator).fit(shares)
    (file, _) = opened.export()
    a.install(file)
    new = survival.tables["b"].drop(columns=["died", "days"])
    new.to_csv(survival.root / "new.csv", index=False)
    found = pd.concat(a.predict_batches(survival.root / "new.csv", keep=["ward"], batch_rows=50))
    X = encode_table(survival.project, new, where="new", with_target=False).X
    party, told = a.way.at_home().party, oracle.party_model("a")
    Z = told.transform(party.obfuscate(X))
    np.testing.assert_allclose(found["prediction"], oracle.estimator_.predict(Z), atol=1e-8)
    times = list_times(survival.project)
    assert times == [270.0, 510.0, 750.0, 1020.0]
    assert [*found] == ["ward", "prediction", *(f"survival_{time:.0f}" for time in times)]
    end = oracle.estimator_.baselines_["a"].times[-1]
    for time in times:
        column = found[f"survival_{time:.0f}"]
        if time > end:
            assert column.isna().all()
        else:
            expected = oracle.estimator_.predict_survival(Z, [time], stratum="a")[:, 0]
            np.testing.assert_allclose(column, expected, atol=1e-8)
    survival.tables["b"].to_csv(survival.root / "known.csv", index=False)
    scores = a.evaluate(survival.root / "known.csv", batch_rows=50)
    target = encode_table(survival.project, survival.tables["b"], where="b").target
    assert scores["concordance"] == pytest.approx(concordance_index(target, found["prediction"]))
    assert scores["n_events"] == target["event"].sum()
    shown = dict(score_rows(scores))
    assert shown["Events"] == f"{scores['n_events']} among {len(target)} rows"
    assert shown["Concordance"].endswith("; guessing has 0.5")


def test_a_party_gets_no_other_partys_baseline(survival):
    opened = survival.analyst(survival.shared("a"), survival.shared("b"))
    opened.integrate()
    models, _ = opened.read_integration()
    baselines = {party: model.estimator.baselines_ for party, model in models.items()}
    assert all(len(each) == 1 for each in baselines.values())
    (first,), (second,) = (each.values() for each in baselines.values())
    assert not np.array_equal(first.cumulative_hazard, second.cumulative_hazard)


def test_means_are_penalised_more(survival):
    assert make_model("cox", "survival", of_means=True).alpha > make_model("cox", "survival").alpha
    opened = survival.analyst(survival.shared("a", default=True), survival.shared("b", default=True))
    assert opened.integrate().score.value > 0.5
    with pytest.raises(ValueError, match="cox, survival-forest"):
        make_model("linear", "survival")
    with pytest.raises(ValueError, match="for regression"):
        make_model("cox", "regression")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The arms differ:datacollab.errors.EffectWarning")
@pytest.mark.parametrize(("kind", "horizon"), [("effect", None), ("survival-effect", 480.0)])
def test_an_effect_by_files_is_the_effect_in_memory(tmp_path, kind, horizon):
    world = NamedWorld(tmp_path, kind)
    a, b = world.shared("a"), world.shared("b")
    opened = world.analyst(a, b)
    found = effect_of(opened, horizon=horizon)
    shares = [share_from(unpack(each.path / "outbox" / f"{each.name}.dcshare")) for each in (a, b)]
    expected = estimate_effect(shares, dc.LTI(3, fit_intercept=True), horizon=horizon, random_state=0)
    assert found.estimate == pytest.approx(expected.estimate)
    assert found.interval == pytest.approx(expected.interval)
    if kind == "effect":
        assert abs(found.estimate + 10) < 4 * found.standard_error
    told = json.loads((opened.path / "effect.json").read_text())
    assert told["estimate"] == pytest.approx(found.estimate)
    assert told["shares"] == {each.party: each.digest for each in opened.shares()}
    assert found.sentence in (opened.path / "effect.html").read_text()
    entry = [each for each in opened.log.entries() if each["event"] == "effect"]
    assert entry[0]["facts"]["estimate"] == told["estimate"]
    assert not list((opened.path / "outbox").iterdir())


@pytest.mark.filterwarnings("ignore::datacollab.errors.EffectWarning")
def test_the_default_of_parties_serves_for_effects_and_noise_does_not(tmp_path):
    world = NamedWorld(tmp_path, "effect")
    opened = world.analyst(world.shared("a", default=True), world.shared("b", default=True))
    found = effect_of(opened)
    assert found.n_groups < found.n_rows
    assert abs(found.estimate + 10) < 4 * found.standard_error
    opened.add([world.shared("a", preset="groups", again=True).path / "outbox" / "a.dcshare"])
    with pytest.raises(EffectError):
        effect_of(opened)


def test_each_kind_is_asked_for_what_it_has(world):
    opened = world.analyst(world.shared("a"), world.shared("b"))
    kind = world.project.task.target_kind.value
    wrong = {
        "survival": [lambda: opened.integrate(n_clusters=3), lambda: effect_of(opened)],
        "effect": [opened.integrate, lambda: effect_of(opened, horizon=5.0)],
        "survival-effect": [opened.integrate, lambda: effect_of(opened)],
        "none": [opened.integrate, lambda: effect_of(opened)],
    }[kind]
    for call in wrong:
        with pytest.raises(AgreementError):
            call()


def test_clusters_by_files_are_clusters_in_memory(tmp_path):
    world = NamedWorld(tmp_path, "none")
    a, b = world.shared("a"), world.shared("b")
    opened = world.analyst(a, b)
    result = opened.integrate(n_clusters=3)
    assert (result.method, result.score) == ("AnchorScaled", None)
    with pytest.raises(AgreementError, match="classes and numbers alone"):
        opened.export(anchor_predictions=True)
    (file, _) = opened.export()
    a.install(file)
    found = pd.concat(a.predict_batches(world.root / "b.csv"))["prediction"]
    shares = [share_from(unpack(each.path / "outbox" / f"{each.name}.dcshare")) for each in (a, b)]
    oracle = cluster(integrate(shares), KMeans(3, n_init=10, random_state=0))
    X = encode_table(world.project, world.tables["b"], where="b").X
    model = oracle.party_model("a")
    expected = model.predict(a.way.at_home().party.obfuscate(X))
    assert (found.to_numpy() == expected).all()
    assert set(found) == {0, 1, 2}
    with pytest.raises(AgreementError, match="no targets"):
        a.evaluate(world.root / "b.csv")


def test_no_share_is_taken_of_another_rounding(survival):
    folder = survival.shared("a")
    task = dataclasses.replace(survival.project.task, rounding=60.0)
    survival.project = dataclasses.replace(survival.project, task=task)
    refused("PROJECT_HASH_MISMATCH", received, survival, (folder.path / "outbox" / "a.dcshare").read_bytes())
    data = forged(survival, folder, project_digest=survival.project.digest)
    assert "multiples of 60" in refused("TARGET_INVALID", received, survival, data)


def test_a_quorum_is_wanted_for_effects(tmp_path):
    world = NamedWorld(tmp_path, "effect")
    opened = world.analyst(world.shared("a"))
    assert isinstance(opened, AnalystFolder)
    refused("QUORUM_NOT_MET", effect_of, opened)
