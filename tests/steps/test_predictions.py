"""Predictions at a party, and the scores that are shown of them."""

import os
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from sklearn import metrics
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import datacollab as dc
from datacollab.bundle import Limits
from datacollab.errors import AgreementError
from datacollab.folder.step_table import ranking_rows, score_rows
from datacollab.model import LinearMap, PartyModel
from datacollab.steps.party import PartyFolder
from datacollab.steps.party._explain import ExplainOptions, choose_classes
from datacollab.steps.party._predict import figures_of
from datacollab.table import encode_table, write_table
from party_world import made_up_table, new_world, refused


def test_predictions_are_those_of_memory_to_the_last_digit(world):
    a, b = world.join("a"), world.join("b")
    for folder in (a, b):
        (folder.path / "policy.toml").write_text('shuffle = false\naudit = "warn"')
        world.share(folder)
    a.install(world.model_file(a, b, estimator=RandomForestClassifier(20, random_state=0)))
    encoded = [encode_table(world.project, pd.read_csv(world.root / f"{name}.csv"), where=name) for name in "ab"]
    new = encode_table(world.project, world.table, where="new.csv").X
    f = dc.obfuscator("pca", 3, standardize=True)
    forest = RandomForestClassifier(20, random_state=0)
    clf = dc.DataCollaborationClassifier(f, dc.LTI(3), forest, shuffle=False)
    X, y = np.vstack([each.X for each in encoded]), np.concatenate([each.target for each in encoded])
    clf.fit(X, y, groups=np.repeat(["a", "b"], 80), anchor=world.anchor.rows)
    groups = np.full(len(new), "a")
    (frame,) = a.predict_batches(world.root / "new.csv")
    assert (frame["prediction"] == clf.predict(new, groups=groups)).all()
    expected = clf.predict_proba(new, groups=groups)
    assert (frame[["proba_no", "proba_yes"]].to_numpy() == expected).all()


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet", "arrow", "feather"])
@pytest.mark.slow
def test_all_formats_come_in_and_go_out(suffix, world):
    folder = world.installed()
    source, output = world.root / f"table.{suffix}", world.root / f"out.{suffix}"
    write_table(source, [world.table.drop(columns="ill")])
    assert folder.predict(source, output, keep=["id", "age"]) == 80
    readers = {"csv": pd.read_csv, "xlsx": partial(pd.read_excel, engine="openpyxl"), "parquet": pd.read_parquet}
    frame = readers.get(suffix, pd.read_feather)(output)
    assert output.stat().st_mode & 0o077 == 0
    assert list(frame) == ["id", "age", "prediction", "proba_no", "proba_yes"]
    assert (frame["id"] == world.table["id"]).all()
    assert (frame["age"] == world.table["age"]).all()
    (expected,) = folder.predict_batches(world.root / "new.csv")
    assert (frame["prediction"] == expected["prediction"]).all()
    assert_allclose(frame["proba_no"] + frame["proba_yes"], 1)


def test_a_german_table_gets_german_predictions_and_keeps_its_ids(world):
    folder = world.installed()
    ids = ["NA", "None", "007", *map(str, range(77))]
    source, output = world.root / "neu.csv", world.root / "out.csv"
    world.table.assign(id=ids).to_csv(source, index=False, sep=";", decimal=",", encoding="cp1252")
    folder.predict(source, output, keep=["id"], batch_rows=30)
    frame = pd.read_csv(output, sep=";", decimal=",", encoding="utf-8-sig", dtype={"id": str}, keep_default_na=False)
    (expected,) = folder.predict_batches(world.root / "new.csv")
    assert frame["id"].tolist() == ids
    assert frame["prediction"].tolist() == expected["prediction"].tolist()
    assert frame["proba_no"].tolist() == expected["proba_no"].tolist()
    folder.predict(world.root / "new.csv", output, keep=["id"])
    assert output.read_text().startswith("id,prediction,proba_no,proba_yes\n")


def test_batches_change_nothing(world):
    folder = world.installed()
    (whole,) = folder.predict_batches(world.root / "new.csv")
    parts = list(folder.predict_batches(world.root / "new.csv", batch_rows=7))
    assert [len(part) for part in parts] == [7] * 11 + [3]
    joined = pd.concat(parts, ignore_index=True)
    assert (joined["prediction"] == whole["prediction"]).all()
    assert_allclose(joined["proba_no"], whole["proba_no"], rtol=1e-12)
    scores, in_parts = (folder.evaluate(world.root / "new.csv", batch_rows=n) for n in (80, 7))
    assert in_parts["confusion"] == scores["confusion"]
    assert_allclose(in_parts["ranking"]["auc"], scores["ranking"]["auc"])


def test_a_table_without_rows_has_no_predictions(world):
    folder = world.installed()
    empty, output = world.root / "empty.csv", world.root / "out.csv"
    empty.write_text("age,pulse,weight,ward,id\n")
    assert folder.predict(empty, output, keep=["id"]) == 0
    assert output.read_text() == "id,prediction,proba_no,proba_yes\n"
    empty.write_text("age,pulse,weight,ward,ill\n")
    assert folder.evaluate(empty)["n_rows"] == 0


@pytest.mark.slow
def test_what_cannot_be_predicted_leaves_no_file(world):
    folder = world.installed()
    source, output = world.root / "table.csv", world.root / "out.csv"
    table = made_up_table(40000, seed=5)
    table.loc[[38_499, 39_999], "age"] = 1e6
    table.to_csv(source, index=False)
    output.write_text("id,prediction\n1,old\n")
    for call in (lambda: folder.predict(source, output), lambda: folder.evaluate(source)):
        with refused("SCHEMA_RANGE") as found:
            call()
        assert "in 2 of the first 40000 rows (the first: row 38500)" in str(found.value)
    with refused("SCHEMA_MISSING_COLUMN"):
        folder.predict(world.root / "new.csv", output, keep=["name"])
    with pytest.raises(ValueError, match="table itself"):
        folder.predict(world.root / "new.csv", world.root / "new.csv")
    with pytest.raises(ValueError, match="twice"):
        folder.predict(world.root / "new.csv", output, keep=["id", "id"])
    assert output.read_text() == "id,prediction\n1,old\n"
    assert not list(world.root.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet", "feather"])
def test_only_predictions_are_overwritten(world, suffix):
    folder = world.installed()
    output = world.root / f"out.{suffix}"
    write_table(output, [made_up_table(5)])
    before = output.read_bytes()
    with refused("ALREADY_THERE") as found:
        folder.predict(world.root / "new.csv", output)
    assert str(output) in str(found.value)
    assert output.read_bytes() == before
    folder.predict(world.root / "new.csv", output, force=True)
    folder.predict(world.root / "new.csv", output, keep=["id"])
    for text in (b"", b"\xff\xfe", b"predictions\n1\n"):
        output.write_bytes(text)
        with refused("ALREADY_THERE"):
            folder.predict(world.root / "new.csv", output)
    output.unlink()
    output.mkdir()
    with refused("ALREADY_THERE"):
        folder.predict(world.root / "new.csv", output)


def test_the_place_is_looked_at_before_the_work(world, monkeypatch):
    folder = world.join()
    monkeypatch.setattr("datacollab.steps.party._predict.predict_batches", None)
    with pytest.raises(FileNotFoundError, match="There is no folder .*nowhere"):
        folder.predict(world.root / "new.csv", world.root / "nowhere" / "out.csv")


def test_numbers_have_no_probabilities_and_no_threshold(tmp_path):
    world = new_world(tmp_path, task="regression")
    folder = world.installed()
    (frame,) = folder.predict_batches(world.root / "new.csv")
    assert list(frame) == ["prediction"]
    with pytest.raises(AgreementError, match=r"new.csv: a threshold needs a model with probabilities of two classes"):
        folder.threshold(world.root / "new.csv")


def test_rows_from_a_threshold_on_are_flagged(world):
    folder, new = world.installed(), world.root / "new.csv"
    told = folder.threshold(new, find=0.9)
    (frame,) = folder.predict_batches(new, flag_from=told["least"], keep=["id"])
    assert list(frame) == ["id", "prediction", "proba_no", "proba_yes", "flagged"]
    ill = (world.table["ill"] == "yes").to_numpy()
    assert (told["positive"], told["n_positive"]) == ("yes", ill.sum())
    assert told["n_found"] == (frame["flagged"] & ill).sum() >= 0.9 * ill.sum()
    assert told["n_called"] == frame["flagged"].sum() < len(ill)
    assert frame["proba_yes"][frame["flagged"]].min() > frame["proba_yes"][~frame["flagged"]].max()
    assert 0.5 < told["reached"][0] < 0.9 < told["reached"][1] <= 1
    none = world.root / "none.csv"
    world.table.assign(ill="no").to_csv(none, index=False)
    with pytest.raises(AgreementError, match="rows of both"):
        folder.threshold(none)


@pytest.mark.slow
@pytest.mark.parametrize("positive", ["no", "yes"])
def test_the_class_that_the_project_seeks_is_ranked_flagged_and_named_whatever_its_name(world, positive):
    world.project = replace(world.project, task=replace(world.project.task, positive=positive))
    world.write_project(world.project)
    folder, new = world.installed(), world.root / "new.csv"
    told = folder.threshold(new, find=0.9)
    sought = (world.table["ill"] == positive).to_numpy()
    assert (told["positive"], told["n_positive"]) == (positive, sought.sum())
    (frame,) = folder.predict_batches(new, flag_from=told["least"])
    assert told["n_found"] == (frame["flagged"] & sought).sum() >= 0.9 * sought.sum()
    likely = frame[f"proba_{positive}"]
    assert likely[frame["flagged"]].min() > likely[~frame["flagged"]].max()
    scores = folder.evaluate(new)
    assert_allclose(scores["ranking"]["average_precision"], average_precision_score(sought, likely))
    named = [name for name, _ in score_rows(scores)][: len(ranking_rows(scores["ranking"]))]
    assert all(positive in f"{name} {said}" for name, said in ranking_rows(scores["ranking"]))
    assert named[0] == f"AUC of {positive}"
    side = folder.way.at_home().side("collaboration")
    (chosen,) = choose_classes(side, ExplainOptions(), world.project.task)
    assert chosen[1] == positive


def test_a_model_for_others_or_from_others_is_refused(world):
    a, b = world.shared("a"), world.shared("b")
    good = world.model_file(a, b).read_bytes()
    for code, options in {
        "WRONG_RECIPIENT": {"party": "b"},
        "PROJECT_HASH_MISMATCH": {"project_digest": "0" * 64},
        "WRONG_SHARE": {"share_digest": "0" * 64},
        "SIGNATURE_INVALID": {"signer": "b"},
        "SIGNATURE_MISSING": {"signer": None},
    }.items():
        path = world.model_file(*((b, a) if code == "WRONG_RECIPIENT" else (a, b)), **options)
        with refused(code):
            a.install(path)
        assert not (a.path / "model.dcmodel").exists(), code
    path = world.root / "a.dcmodel"
    path.write_bytes(good[:-200])
    with refused("BUNDLE_MALFORMED"):
        a.install(path)
    with refused("WRONG_KIND"):
        a.install(a.path / "outbox" / "a.dcshare")
    path.write_bytes(good)
    assert a.install(path)["party"] == "a"


def test_a_model_of_excessive_size_is_not_read(world):
    a, b = world.shared("a"), world.shared("b")
    path = world.model_file(a, b)
    os.truncate(path, Limits().total_bytes + 1)
    with refused("TOO_LARGE"):
        a.install(path)


def test_a_model_that_does_not_work_is_refused(world):
    a, b = world.shared("a"), world.shared("b")
    wide = LinearMap("a", np.ones((9, 3)))
    strange = LogisticRegression().fit(np.arange(6.0).reshape(2, 3), ["perhaps", "no"])
    for change in ({"integration_function": wide}, {"estimator": strange}):
        path = world.model_file(a, b, change=lambda model, change=change: replace(model, **change))
        with refused("MODEL_MALFORMED"):
            a.install(path)


def test_a_second_share_needs_a_second_model(world):
    folder = world.installed()
    old = (folder.path / "model.dcmodel").read_bytes()
    world.share(folder, again=True)
    with refused("WRONG_SHARE"):
        folder.evaluate(world.root / "new.csv")
    path = world.root / "old.dcmodel"
    path.write_bytes(old)
    with refused("WRONG_SHARE"):
        folder.install(path)
    folder.install(world.model_file(folder, PartyFolder(world.root / "b")))
    assert folder.evaluate(world.root / "new.csv")["n_rows"] == 80


def test_a_model_that_fails_on_rows_is_refused_without_its_words(world, monkeypatch):
    folder = world.installed()

    def fail(model, representation):
        raise ValueError(f"cannot use {representation[0]}")

    monkeypatch.setattr(PartyModel, "predict", fail)
    with refused("MODEL_MALFORMED") as found:
        folder.predict(world.root / "new.csv", world.root / "out.csv")
    assert "cannot use" not in str(found.value)
    assert not (world.root / "out.csv").exists()


def test_a_model_of_numbers_needs_no_version_of_scikit_learn(world, monkeypatch):
    a, b = world.shared("a"), world.shared("b")
    path = world.model_file(a, b, estimator=RandomForestClassifier(5, random_state=0))
    monkeypatch.setattr("datacollab.model._party_model.sklearn", SimpleNamespace(__version__="99.0"))
    assert a.install(path)["estimator"] == "RandomForestClassifier"
    assert a.predict(world.root / "new.csv", world.root / "out.csv") > 0


NUMBERS = SimpleNamespace(kind="regression", is_single=True)


def of_classes(classes):
    return SimpleNamespace(kind="classification", is_single=True, classes=list(classes))


@given(n=st.integers(1, 60), n_classes=st.integers(2, 4), texts=st.booleans(), seed=st.integers(0, 99))
def test_classification_is_scored_as_scikit_learn_does(n, n_classes, texts, seed):
    random = np.random.default_rng(seed)
    classes = np.array(list("abcd"[:n_classes])) if texts else np.arange(n_classes)
    target, predicted = random.choice(classes, n), random.choice(classes, n)
    # A class that nobody has stays in the table.
    target[target == classes[-1]] = classes[0]
    scores = figures_of(of_classes(classes.tolist()), target, predicted)
    assert scores["n_rows"] == n
    assert_allclose(scores["accuracy"], metrics.accuracy_score(target, predicted))
    assert_allclose(scores["confusion"], metrics.confusion_matrix(target, predicted, labels=classes))
    recalls = [np.mean(predicted[target == name] == name) for name in np.unique(target)]
    assert_allclose(scores["balanced_accuracy"], np.mean(recalls))
    low, high = scores["accuracy_interval"]
    assert 0 <= low <= scores["accuracy"] <= high <= 1


@given(n=st.integers(2, 60), shift=st.sampled_from([0.0, 1e6]), seed=st.integers(0, 99))
def test_regression_is_scored_as_scikit_learn_does(n, shift, seed):
    random = np.random.default_rng(seed)
    target = shift + random.normal(size=n)
    predicted = target + random.normal(size=n)
    scores = figures_of(NUMBERS, target, predicted)
    error = predicted - target
    assert scores["n_rows"] == n
    assert_allclose(scores["rmse"], np.sqrt(metrics.mean_squared_error(target, predicted)))
    assert_allclose(scores["mae"], metrics.mean_absolute_error(target, predicted))
    assert_allclose(scores["r2"], metrics.r2_score(target, predicted), rtol=1e-6)
    assert_allclose(scores["median_error"], np.median(abs(error)))
    interval = stats.quantile_test(abs(error), q=np.median(abs(error)), p=0.5).confidence_interval(0.95)
    found = scores["median_error_interval"]
    assert (found is None) == (n < 6)
    if found is not None:
        assert_allclose(found, [interval.low, interval.high])


def test_the_interval_of_the_median_error_covers_whatever_the_tails():
    random, hits = np.random.default_rng(0), 0
    for _ in range(200):
        error = np.exp(1.5 * random.normal(size=20))
        low, high = figures_of(NUMBERS, np.zeros(20), error)["median_error_interval"]
        hits += low <= 1.0 <= high
    assert hits >= 185


def test_too_few_rows_have_no_figures():
    nobody = np.zeros(0)
    empty = figures_of(of_classes("ab"), nobody, nobody)
    assert (empty["n_rows"], empty["accuracy"], empty["accuracy_interval"]) == (0, None, None)
    assert figures_of(NUMBERS, nobody, nobody)["rmse"] is None
    alone = figures_of(NUMBERS, np.array([1.0]), np.array([3.0]))
    assert (alone["rmse"], alone["mae"], alone["median_error_interval"], alone["r2"]) == (2.0, 2.0, None, None)
    assert figures_of(SimpleNamespace(kind="survival", is_single=False), nobody, nobody) == {
        "n_rows": 0,
        "n_events": 0,
        "concordance": None,
    }
