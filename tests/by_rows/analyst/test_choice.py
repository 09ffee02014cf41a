"""An analyst who chooses: what is kept, what each party gets of it, and that nobody else does."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier

import datacollab as dc
from datacollab.agreement import Task
from datacollab.bundle import unpack, unseal
from datacollab.by_rows.analyst._integration import training_rows_sent
from datacollab.folder.log import AuditLog
from datacollab.model import LandmarkRidgeClassifier, model_from
from datacollab.party import Microaggregation
from datacollab.steps.analyst import Integration

PARTIES = ("north", "south", "west", "east")
FOREST = RandomForestClassifier(n_estimators=20, random_state=0)
GROUPS = [Microaggregation(3, small_classes="group")]

pytestmark = pytest.mark.usefixtures("light_choices")


def inside(file, there):
    """What the party reads in its model."""
    bundle = unpack(file, signed_by=there.project.analyst)
    purpose = f"model of {file.stem} in {there.project.digest}"
    return unpack(unseal(bundle.members["sealed.bin"], there.keys[file.stem], purpose=purpose))


@pytest.fixture
def chosen(place, keys):
    """Three share their own rows, south means of groups; there is time for one candidate."""
    there = place(seal_shares=True, parties={name: keys[name].public for name in PARTIES})
    there.folder.add([there.send(name, defences=GROUPS if name == "south" else ()) for name in ("north", "south")])
    there.folder.add([there.send(name) for name in ("west", "east")])
    return there, there.folder.integrate(dc.LTI(8), n_folds=3, budget=0)


@pytest.mark.slow
def test_what_was_tried_is_told_and_kept(both):
    result = both.folder.integrate(dc.LTI(8))
    tried = result.selection.by_loss()
    assert len(tried) > 3
    assert result.selection.chosen in tried
    assert result.method == "LTI"
    facts = json.loads(json.dumps(result.facts()))
    assert facts["selection"]["chosen"]["model"] == result.selection.chosen.model
    again = Integration.from_facts(facts)
    assert str(again.selection) == str(result.selection)
    assert again.facts() == result.facts()
    logged = AuditLog(both.folder.path / "log.jsonl").entries()[-1]["facts"]
    assert logged["selection"]["chosen"] == facts["selection"]["chosen"]
    assert "candidates" not in logged["selection"]


def test_the_score_is_of_single_rows_left_out(chosen):
    there, result = chosen
    assert result.score.n_folds is None
    assert "each by itself" in result.score.sentence()
    shares = {each.party: each.share for each in there.folder.shares()}
    losses = []
    for file in there.folder.export():
        model = model_from(inside(file, there))
        if model.left_out is not None:
            target = np.searchsorted(model.estimator.classes_, shares[file.stem].target)
            losses.append(-np.log(np.maximum(model.left_out[np.arange(len(target)), target], 1e-3)))
    assert result.score.name == "log loss"
    assert result.score.value == pytest.approx(np.concatenate(losses).mean())
    assert result.score.value < 0.6 * result.score.baseline


def test_each_party_gets_its_own_and_nobody_elses(chosen):
    there, _ = chosen
    shares = [each.share for each in there.folder.shares()]
    expected = dc.Analyst(dc.LTI(8), task="classification", budget=0).fit(shares)
    files = {file.stem: file for file in there.folder.export()}
    bundles = {name: inside(file, there) for name, file in files.items()}
    rows = np.random.default_rng(0).normal(size=(9, 8))
    for name, bundle in bundles.items():
        model, wanted = model_from(bundle), expected.party_model(name)
        assert_allclose(model.predict_proba(rows), wanted.predict_proba(rows), rtol=1e-9)
        assert (model.left_out is None, model.without_party is None) == (name == "south", name != "south")
        if name == "south":
            mapped = model.transform(rows)
            assert_allclose(
                model.without_party.predict_proba(mapped), wanted.without_party.predict_proba(mapped), rtol=1e-9
            )
            assert not np.allclose(model.without_party.predict_proba(mapped), model.estimator.predict_proba(mapped))
        else:
            assert_array_equal(model.left_out, wanted.left_out)
            assert len(model.left_out) == 80
    for name in ("north", "west", "east"):
        told = expected.party_model(name).left_out.tobytes()
        assert told in b"".join(bundles[name].members.values())
        for other, file in files.items():
            assert told not in file.read_bytes()
            if other != name:
                assert told not in b"".join(bundles[other].members.values())


def test_outer_manifests_say_nothing_of_it(chosen):
    there, _ = chosen
    for file in there.folder.export():
        facts = unpack(file).facts
        assert not {"left_out", "without_party", "head", "selection"} & facts.keys()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("integrator", "estimator"), [("auto", FOREST), (dc.LTI(8), "auto")], ids=["the method", "the model"]
)
def test_a_part_can_be_left_to_the_analyst(both, integrator, estimator):
    seen = []
    result = both.folder.integrate(integrator, estimator, progress=lambda done, total, name: seen.append(name))
    assert result.selection is not None
    assert len(seen) >= len([each for each in result.selection.by_loss() if "average" not in each.model])
    tried = {each.model for each in result.selection.by_loss()}
    assert (tried == {"RandomForestClassifier"}) == (estimator is FOREST)
    assert len({each.integrator for each in result.selection.by_loss()}) == (1 if estimator == "auto" else 4)
    (file, _) = both.folder.export()
    assert model_from(inside(file, both)).left_out is not None


@pytest.mark.slow
def test_where_both_are_named_nothing_is_chosen(both):
    result = both.folder.integrate(dc.LTI(8), FOREST)
    assert result.selection is None
    assert result.score.n_folds == 5
    (file, _) = both.folder.export()
    model = model_from(inside(file, both))
    assert (model.left_out, model.without_party) == (None, None)


def test_numbers(place):
    there = place(task=Task(kind="regression", target="digit", minimum=0.0, maximum=9.0))
    target = there.digits[1].astype(float)
    there.folder.add([there.send(name, target=target) for name in ("north", "south")])
    result = there.folder.integrate(budget=0)
    assert result.selection.metric == "squared error"
    models = [model_from(inside(file, there)) for file in there.folder.export()]
    shares = [each.share for each in there.folder.shares()]
    squares = [(model.left_out - share.target) ** 2 for model, share in zip(models, shares, strict=True)]
    assert result.score.value == pytest.approx(np.sqrt(np.mean(squares)))
    assert result.score.low < result.score.value < result.score.high < result.score.baseline


def test_each_party_gets_its_own_level_and_nobody_elses(place):
    there = place(task=Task(kind="regression", target="digit", minimum=-50.0, maximum=50.0))
    target = there.digits[1].astype(float)
    target[200:300] -= 30  # north's rows, before south's
    target[300:400] += 30
    there.folder.add([there.send(name, target=target) for name in ("north", "south")])
    there.folder.integrate(budget=0)
    models = {file.stem: model_from(inside(file, there)) for file in there.folder.export()}
    levels = {name: float(model.estimator.level) for name, model in models.items()}
    assert levels["north"] < -10 < 10 < levels["south"]


def lint(there, estimator):
    received = there.folder.shares()
    return training_rows_sent(dc.Analyst(dc.LTI(8), estimator).fit(each.share for each in received), received)


def test_anchor_rows_in_a_model_are_no_training_rows_and_parties_rows_are(both):
    assert both.folder.integrate(dc.LTI(8), budget=0).row_findings == ()
    mapped = dc.Analyst(dc.LTI(8), FOREST).fit(each.share for each in both.folder.shares()).representations_["north"]
    found = lint(both, LandmarkRidgeClassifier(mapped[:30], gamma=1.0))
    assert [each.rpartition(" (")[2] for each in found if "landmarks" in each] == ["30 rows)"]
