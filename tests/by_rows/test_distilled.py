"""Answers in a party's folder: learned from, predicted with, refused where they do not belong, and a map forgotten."""

import os
import stat

import numpy as np
import pandas as pd
import pytest
from anchor_predictions_world import predictions_file, world_of
from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab.agreement import Anchor
from datacollab.model import AnchorPredictions
from datacollab.steps.party import PartyFolder
from datacollab.table import encode_table
from party_world import contents, events, new_world, refused


@pytest.fixture
def world(tmp_path):
    return world_of(tmp_path)


def distilled(world, **options):
    a, b = world.shared("a"), world.shared("b")
    file = predictions_file(world, a, b)
    return a, a.distil(file, **options)


def predicted(folder, world, **options):
    folder.predict(world.root / "new.csv", world.root / "out.csv", force=True, **options)
    return pd.read_csv(world.root / "out.csv")


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("tree", [None, 4])
@pytest.mark.slow
def test_what_is_learned_predicts_as_in_memory(tmp_path, task, tree):
    world = world_of(tmp_path, task)
    folder, facts = distilled(world, tree=tree)
    assert facts["r2"] > 0.6
    assert 0.7 < facts["remoteness"] < 1.4
    opened = [world.open_share(PartyFolder(world.root / name))[0] for name in "ab"]
    estimator = LogisticRegression() if task == "classification" else LinearRegression()
    answers = dc.Analyst(dc.LTI(3), estimator).fit(opened).anchor_predictions("a")
    kind = None
    if tree is not None:
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        kind = (DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor)(
            max_depth=tree, random_state=0
        )
        assert any(name in facts["tree"] for name in world.project.feature_names)
    model = dc.Party("a", None).distil(world.anchor.rows, answers, kind)
    X = encode_table(world.project, world.table, where="new").X
    table = predicted(PartyFolder(folder.path), world)
    if task == "classification":
        assert (table["prediction"] == model.predict(X)).all()
        np.testing.assert_allclose(table[["proba_no", "proba_yes"]], model.predict_proba(X), atol=1e-9)
    else:
        np.testing.assert_allclose(table["prediction"], model.predict(X), rtol=1e-9)
    assert facts["r2"] == model.r2
    score = folder.evaluate(world.root / "new.csv")
    assert (score["using"], list(score["sides"])) == ("distilled", ["distilled"])
    assert score.get("accuracy", 1) > 0.7
    assert "no model is installed" in folder.sentence


def test_a_model_and_what_was_learned_stand_side_by_side(world):
    folder = world.installed()
    folder.distil(predictions_file(world, folder, PartyFolder(world.root / "b")))
    score = folder.evaluate(world.root / "new.csv")
    assert (score["using"], list(score["sides"])) == ("collaboration", ["collaboration", "distilled"])
    assert folder.evaluate(world.root / "new.csv", using="distilled")["using"] == "distilled"
    assert events(folder) == ["join", "share", "install", "learn", "evaluate", "evaluate"]


def test_the_log_tells_and_the_file_is_closed(world):
    folder, _ = distilled(world)
    assert events(folder) == ["join", "share", "learn"]
    folder.log.verify()
    path = folder.path / "learned.dcstate"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with refused("NOT_INSTALLED"):
        folder.evaluate(world.root / "new.csv", using="collaboration")
    data = path.read_bytes()
    path.write_bytes(data[:-40] + bytes(40))
    with refused("STATE_DAMAGED"):
        predicted(folder, world)


def test_nothing_was_learned_yet(world):
    with refused("NOT_SHARED"):
        world.join("a").distil(world.root / "a.csv")
    with refused("NOT_SHARED"):
        world.join("a").forget()
    folder = world.installed()
    with refused("NOT_INSTALLED"):
        folder.evaluate(world.root / "new.csv", using="distilled")


@pytest.mark.slow
def test_answers_that_do_not_belong_here_are_refused(world):
    a, b = world.shared("a"), world.shared("b")

    def values(change):
        return lambda answers: AnchorPredictions(
            party=answers.party, values=change(answers.values), classes=answers.classes
        )

    def other(**fields):
        return lambda answers: AnchorPredictions(
            **{"party": answers.party, "values": answers.values, "classes": answers.classes} | fields
        )

    before = contents(a)
    cases = [
        ("WRONG_RECIPIENT", {"party": "b"}),
        ("WRONG_SHARE", {"share_digest": "0" * 64}),
        ("PROJECT_HASH_MISMATCH", {"project_digest": "0" * 64}),
        ("SIGNATURE_INVALID", {"signer": "stranger"}),
        ("SIGNATURE_MISSING", {"signer": "nobody"}),
        ("SEAL_NOT_FOR_YOU", {"sealed_to": "b"}),
        ("ANSWERS_MALFORMED", {"bare": True}),
        ("ANSWERS_MALFORMED", {"n_anchors": 59}),
        ("ANSWERS_MALFORMED", {"n_rows": "many"}),
        ("ANSWERS_MALFORMED", {"task": "regression"}),
        ("ANSWERS_MALFORMED", {"change": other(party="b")}),
        ("ANSWERS_MALFORMED", {"change": other(classes=["no", "sometimes"])}),
        ("ANSWERS_MALFORMED", {"change": lambda answers: other(values=answers.values[1:])(answers), "n_anchors": 59}),
        ("ANSWERS_UNFIT", {"change": values(lambda p: p[np.random.default_rng(0).permutation(len(p))])}),
        ("ANSWERS_UNFIT", {"change": values(lambda p: np.full(p.shape, 0.5))}),
    ]
    for code, changes in cases:
        with refused(code):
            a.distil(predictions_file(world, a, b, **changes))
    with refused("BUNDLE_MALFORMED"):
        a.distil(world.root / "a.csv")
    with refused("WRONG_KIND"):
        a.distil(world.model_file(a, b))
    with refused("WRONG_KIND"):
        a.install(predictions_file(world, a, b))
    assert contents(a) == before


def test_a_uniform_anchor_is_refused(tmp_path):
    world = new_world(tmp_path)
    a, b = world.shared("a"), world.shared("b")
    with refused("ANSWERS_UNFIT") as found:
        a.distil(predictions_file(world, a, b))
    assert "times as far" in str(found.value)


def secrets_in(folder):
    """Bytes of the map, the rows and their order, as they lie in the folder."""
    kept = folder.read(folder.files.state).members
    return [data[start : start + 64] for data in kept.values() for start in range(256, len(data) - 64, 64)]


@pytest.mark.slow
def test_a_forgotten_map_is_in_no_file(world):
    folder = world.installed()
    file = predictions_file(world, folder, PartyFolder(world.root / "b"))
    folder.distil(file)
    expected = predicted(folder, world, using="distilled")
    secret = secrets_in(folder)
    held = b"".join(contents(folder).values())
    assert len(secret) > 20
    assert all(piece in held for piece in secret)
    folder.forget()
    left = contents(folder)
    assert set(left) == {"keys.json", "project.toml", "policy.toml", "anchor.dcstate", "learned.dcstate"}
    assert not any(
        piece in data for data in left.values() for piece in secret if any(piece) and piece not in file.read_bytes()
    )
    again = PartyFolder(folder.path)
    assert predicted(again, world).equals(expected)
    assert again.distil(file, tree=3)["remoteness"] is None
    assert events(again) == ["join", "share", "install", "learn", "predict", "forget", "predict", "learn"]
    again.log.verify()


def test_what_needs_the_map_is_refused(world):
    folder = world.installed()
    model = world.root / "a.dcmodel"
    folder.forget()
    for call in (
        lambda: world.share(folder),
        lambda: world.share(folder, again=True),
        lambda: folder.install(model),
        lambda: folder.predict(world.root / "new.csv", world.root / "out.csv"),
        lambda: folder.evaluate(world.root / "new.csv"),
        folder.forget,
    ):
        with refused("FORGOTTEN") as found:
            call()
        assert "has forgotten its map" in str(found.value)


def test_a_map_that_is_put_back_is_removed(world):
    folder = world.shared("a")
    state = (folder.path / "party.dcstate").read_bytes()
    folder.forget()
    (folder.path / "party.dcstate").write_bytes(state)
    folder.record("look")
    assert not (folder.path / "party.dcstate").exists()


def test_files_are_written_over_before_they_go(world):
    folder = world.shared("a")
    path, kept = folder.path / "party.dcstate", world.root / "kept"
    data = path.read_bytes()
    os.link(path, kept)
    folder.forget()
    after = kept.read_bytes()
    assert len(after) == len(data)
    assert sum(x == y for x, y in zip(data, after, strict=True)) < 0.05 * len(data)


def test_another_anchor_is_noticed(world):
    folder, _ = distilled(world)
    folder.forget()
    world.anchor = Anchor(rows=world.anchor.rows[::-1].copy())
    world.write_project(world.project)
    world.join("a")
    with refused("ANCHOR_MISMATCH"):
        predicted(folder, world)


def test_under_a_passphrase_it_is_encrypted(world):
    a, b = world.shared("a"), world.shared("b")
    file = predictions_file(world, a, b)
    kept = {name: a.read(a.path / name) for name in ("party.dcstate", "anchor.dcstate")}
    a._passphrase = "open sesame"
    for name, bundle in kept.items():
        a.write(a.path / name, bundle.facts, bundle.members)
    a.distil(file)
    assert b"recipe" not in (a.path / "learned.dcstate").read_bytes()
    assert a.evaluate(world.root / "new.csv")["accuracy"] > 0.8
