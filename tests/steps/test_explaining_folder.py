"""What columns do in the installed model, in a party's folder: against closed forms, and what is refused."""

import stat

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import RidgeClassifier

from datacollab.errors import AgreementError
from datacollab.steps.party import Explained, PartyFolder
from datacollab.table import Column, encode_table
from party_world import NAMES, contents, events, new_world, refused

# To load shap takes seconds.
pytestmark = pytest.mark.slow

PARTS = [f"contribution_{name}" for name in NAMES]


def explained(folder, world, **options):
    output = world.root / "why.csv"
    found = folder.explain(world.root / "new.csv", output, **options)
    return found, pd.read_csv(output)


@pytest.mark.slow
def test_of_a_linear_model_columns_add_what_they_differ_by_from_the_anchor(tmp_path):
    world = new_world(tmp_path, "regression")
    folder = world.installed()
    found, frame = explained(folder, world, keep=["id"])
    assert list(frame) == ["row", "id", "base_value", "answer", *PARTS]
    X = encode_table(world.project, world.table, where="new.csv").X
    side, anchor = folder.way.at_home().side("collaboration"), world.anchor.rows
    assert_allclose(frame["answer"], side.predict(X))
    assert_allclose(frame["base_value"], side.predict(anchor).mean())
    # In an additive model a column adds the same whatever the others are; a category's two columns come together.
    for part, places in zip(PARTS, [[0], [1], [2], [3, 4]], strict=True):
        mixed = np.repeat(anchor[None], len(X), axis=0)
        mixed[:, :, places] = X[:, None, places]
        answers = side.predict(mixed.reshape(-1, 5)).reshape(len(X), -1)
        assert_allclose(frame[part], (answers - side.predict(anchor)).mean(axis=1), atol=1e-8)
    assert (frame["id"] == world.table["id"]).all()
    assert (frame["row"] == np.arange(1, 81)).all()
    assert found.exact
    assert found.explanation.output_names is None


@pytest.mark.slow
def test_of_two_classes_the_sought_one_is_explained_and_its_probability_met(world):
    folder = world.installed()
    found, frame = explained(folder, world, most_rows=7)
    assert found.model == "LogisticRegression"
    assert (frame["class"] == "yes").all()
    (predicted,) = folder.predict_batches(world.root / "new.csv", using="collaboration")
    chosen = frame["row"] - 1
    assert list(chosen) == [0, 13, 26, 40, 53, 66, 79]
    assert_allclose(frame["answer"], predicted["proba_yes"].iloc[chosen])
    assert_allclose(frame["answer"], frame["base_value"] + frame[PARTS].sum(axis=1))
    _, other = explained(folder, world, most_rows=7, of_class="no")
    assert_allclose(other[PARTS], -frame[PARTS], atol=1e-12)


@pytest.mark.slow
def test_log_odds(world):
    a, b = world.shared("a"), world.shared("b")
    a.install(world.model_file(a, b))
    found, frame = explained(a, world, most_rows=3, of_class="yes", log_odds=True)
    (predicted,) = a.predict_batches(world.root / "new.csv", using="collaboration")
    p = predicted["proba_yes"].iloc[frame["row"] - 1].to_numpy()
    assert_allclose(frame["answer"], np.log(p / (1 - p)))
    assert found.explanation.output_names == ["yes"]


def test_of_three_classes_each_has_its_lines():
    shap = pytest.importorskip("shap")
    values = np.arange(12.0).reshape(2, 2, 3)
    bases = np.array([[0.2, 0.3, 0.5]] * 2)
    explanation = shap.Explanation(values, bases, feature_names=["age", "ward"], output_names=["x", "y", "z"])
    found = Explained(
        explanation=explanation, rows=np.array([4, 9]), n_rows=9, model="M", exact=True, adjusted={"columns": {}}
    )
    frame = found.frame(pd.DataFrame({"id": ["p", "q"]}))
    assert frame["row"].tolist() == [4, 4, 4, 9, 9, 9]
    assert frame["id"].tolist() == ["p"] * 3 + ["q"] * 3
    assert frame["class"].tolist() == ["x", "y", "z"] * 2
    assert frame["contribution_ward"].tolist() == [3, 4, 5, 9, 10, 11]
    assert_allclose(frame["answer"], [3.2, 5.3, 7.5, 15.2, 17.3, 19.5])
    assert found.importance() == {"ward": 7.0, "age": 4.0}


def test_the_same_explanation_as_by_shap_in_python(tmp_path):
    """Without categories the folder's figures are those of shap on the predictor, with the anchor as background."""
    shap = pytest.importorskip("shap")
    columns = [Column(name=name, kind="number", minimum=0.0, maximum=100.0) for name in NAMES[:3]]
    world = new_world(tmp_path, columns=columns, max_components=3)
    found, _ = explained(world.installed(), world, most_rows=5, n_background=len(world.anchor.rows))
    home = PartyFolder(tmp_path / "a").way.at_home()
    X = encode_table(world.project, world.table, where="new.csv").X[found.rows - 1]
    predictor = home.party.predictor(home.model)
    masker = shap.maskers.Independent(world.anchor.rows, max_samples=len(world.anchor.rows))
    expected = shap.explainers.Exact(predictor, masker)(X)
    assert_allclose(found.explanation.values[:, :, 0], expected.values[:, :, 1], rtol=0, atol=1e-8)
    assert_allclose(found.explanation.base_values[:, 0], expected.base_values[:, 1], rtol=0, atol=1e-12)


def test_of_many_columns_values_add_up_along_random_orders(tmp_path):
    names = [*NAMES[:3], *(f"x{number}" for number in range(9))]
    world = new_world(tmp_path, columns=[Column(name=n, kind="number", minimum=0.0, maximum=100.0) for n in names])
    for seed, file in enumerate(tmp_path.glob("*.csv")):
        rows = np.random.default_rng(seed).uniform(0, 100, size=(80, 9))
        pd.concat([pd.read_csv(file), pd.DataFrame(rows, columns=names[3:])], axis=1).to_csv(file, index=False)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    found, frame = explained(world.installed(), world, most_rows=3, n_background=5)
    assert not found.exact
    parts = [f"contribution_{name}" for name in names]
    assert_allclose(frame["answer"], frame["base_value"] + frame[parts].sum(axis=1), rtol=0, atol=1e-12)
    again, _ = explained(PartyFolder(tmp_path / "a"), world, most_rows=3, n_background=5)
    assert_allclose(again.explanation.values, found.explanation.values, rtol=0, atol=0)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.slow
def test_nothing_leaves_and_files_are_closed_to_others(world):
    folder = world.installed()
    before = contents(folder)
    _, figure = explained(folder, world, most_rows=4), world.root / "why.svg"
    folder.explain(world.root / "new.csv", world.root / "why.csv", most_rows=4, figure=figure)
    assert contents(folder) == before
    for path in (world.root / "why.csv", figure):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"<svg" in figure.read_bytes()
    assert events(folder)[-2:] == ["explain", "explain"]
    assert folder.log.entries()[-1]["facts"] == {"file": "new.csv", "n_rows": 4}


def test_places_where_something_would_be_lost_are_refused_before_any_work(world, tmp_path):
    folder, source = world.installed(), tmp_path / "new.csv"
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "old.png").write_bytes(b"picture")

    def never(done, n_rows):
        raise AssertionError("work was begun")

    with refused("ALREADY_THERE"):
        folder.explain(source, tmp_path / "other.csv", progress=never)
    with refused("ALREADY_THERE"):
        folder.explain(source, tmp_path / "why.csv", figure=tmp_path / "old.png", progress=never)
    for output, options, words in (
        (source, {}, "table itself"),
        (tmp_path / "why.csv", {"figure": tmp_path / "why.jpeg"}, "ends in one of"),
        (tmp_path / "why.csv", {"figure": source.with_suffix(".svg"), "most_rows": 0}, "at least 1"),
        (tmp_path / "why.csv", {"of_class": "maybe"}, "knows the classes no, yes"),
        (tmp_path / "why.csv", {"keep": ["id", "id"]}, "written twice"),
    ):
        with pytest.raises(ValueError, match=words):
            folder.explain(source, output, progress=never, **options)
    with refused("SCHEMA_MISSING_COLUMN"):
        folder.explain(source, tmp_path / "why.csv", keep=["name"], progress=never)
    for place in ({"output": tmp_path / "no" / "why.csv"}, {"figure": tmp_path / "no" / "why.png"}):
        with pytest.raises(FileNotFoundError):
            folder.explain(source, **{"output": tmp_path / "why.csv"} | place)
    assert not (tmp_path / "why.csv").exists()
    folder.explain(source, tmp_path / "other.csv", most_rows=2, force=True)
    # Explanations that are there already are replaced without being asked.
    folder.explain(source, tmp_path / "other.csv", most_rows=3)
    assert len(pd.read_csv(tmp_path / "other.csv")) == 3


def test_what_cannot_be_explained_is_refused(world, tmp_path):
    a, b = world.shared("a"), world.shared("b")
    with refused("NOT_INSTALLED"):
        a.explain(tmp_path / "new.csv", tmp_path / "why.csv")
    world.table.iloc[:0].to_csv(tmp_path / "empty.csv", index=False)
    a.install(world.model_file(a, b))
    with pytest.raises(AgreementError, match="no rows"):
        a.explain(tmp_path / "empty.csv", tmp_path / "why.csv")
    a.install(world.model_file(a, b, estimator=RidgeClassifier()))
    with pytest.raises(AgreementError, match="names classes"):
        a.explain(tmp_path / "new.csv", tmp_path / "why.csv")
    with pytest.raises(ValueError, match="no probabilities"):
        a.explain(tmp_path / "new.csv", tmp_path / "why.csv", log_odds=True)
