"""What a party has alone and what the others brought, pooled at home: installed, stored, and predicted with."""

import json
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss
from typer.testing import CliRunner

import datacollab as dc
from datacollab.agreement import AnchorRecipe
from datacollab.by_rows.party import _row_model
from datacollab.cli._app import app
from datacollab.errors import AgreementError
from datacollab.folder.party._folder import recover
from datacollab.party import personalise
from datacollab.steps.party import PartyFolder
from party_world import contents, events, made_up_table, new_world, refused

pytestmark = pytest.mark.usefixtures("light_choices")


def run(world, *words):
    result = CliRunner().invoke(app, ["party", *map(str, words), "-C", str(world.root / "a")])
    assert result.exit_code == 0, result.output
    return result.stdout


def model_of(world, folders, **besides):
    """The file that an analyst who chose would send to the first party."""
    opened = [world.open_share(folder)[0] for folder in folders]
    chosen = dc.Analyst(dc.LTI(3), budget=0, task=world.task).fit(opened).party_model("a")
    return world.model_file(*folders, change=lambda model: replace(chosen, **besides))


@pytest.fixture(scope="module")
def both_shared(tmp_path_factory, light_choices):
    world = new_world(tmp_path_factory.mktemp("shared"))
    for name in "ab":
        world.shared(name)
    return world


@pytest.fixture(scope="module")
def installed(tmp_path_factory, both_shared):
    world = both_shared.copied(tmp_path_factory.mktemp("combined"))
    a = world.folder("a")
    return world, a.install(model_of(world, (a, world.folder("b"))), random_state=0)


@pytest.fixture
def shared(tmp_path, both_shared):
    world = both_shared.copied(tmp_path)
    return world, [world.folder(name) for name in "ab"]


@pytest.fixture
def pooled(tmp_path, installed):
    world, told = installed
    world = world.copied(tmp_path)
    return world, world.folder("a"), told


@pytest.mark.slow
def test_the_pool_is_that_of_the_rows_and_the_model_in_memory(pooled):
    """Left-out predictions are matched to the table by the order that was kept at home."""
    world, a, told = pooled
    stored, model = a.way.at_home().party, a.way.at_home().model
    encoded = a.encode(world.root / "a.csv")
    share, _ = world.open_share(a)
    own = _row_model.load_party(a).own
    np.testing.assert_array_equal(own.X, encoded.X)
    np.testing.assert_array_equal(own.target, encoded.target)
    # The row that was shared in each place is the one that the order says.
    np.testing.assert_allclose(stored.obfuscate(own.X[own.order]), share.representation)
    np.testing.assert_array_equal(own.target[own.order], share.target)
    expected = personalise(
        stored, model, encoded.X, encoded.target, order=own.order, public=a.anchor.rows, random_state=0
    )
    assert told["sentence"] == expected.benefit_.sentence
    assert told["benefit"] == expected.benefit_.to_dict()
    new = a.encode(world.root / "new.csv").X
    for using in ("combined", "local", "own"):
        frames = list(a.predict_batches(world.root / "new.csv", using=using))
        found = pd.concat(frames)
        np.testing.assert_array_equal(found["prediction"], expected.predict(new, using))
        np.testing.assert_allclose(found.iloc[:, 1:], expected.predict_proba(new, using), rtol=1e-12)
    common = pd.concat(a.predict_batches(world.root / "new.csv", using="collaboration"))["prediction"]
    np.testing.assert_array_equal(common, model.predict(stored.obfuscate(new)))
    default = pd.concat(a.predict_batches(world.root / "new.csv"))["prediction"]
    np.testing.assert_array_equal(default, expected.predict(new))


@pytest.mark.slow
def test_evaluate_holds_all_sides_against_the_targets(pooled):
    world, a, told = pooled
    known = made_up_table(60, seed=7)
    known.to_csv(world.root / "known.csv", index=False)
    scores = a.evaluate(world.root / "known.csv")
    assert list(scores["sides"]) == ["combined", "local", "own", "collaboration"]
    for using, each in scores["sides"].items():
        predicted = pd.concat(a.predict_batches(world.root / "known.csv", using=using))["prediction"]
        assert each["accuracy"] == pytest.approx((predicted.to_numpy() == known["ill"].to_numpy()).mean())
        probabilities = pd.concat(a.predict_batches(world.root / "known.csv", using=using))
        assert each["log_loss"] == pytest.approx(log_loss(known["ill"], probabilities.filter(like="proba_")), rel=1e-5)
        shares = known["ill"].value_counts(normalize=True)
        assert each["log_loss_baseline"] == pytest.approx(-(shares * np.log(shares)).sum())
        assert each["accuracy_baseline"] == shares.max()
    assert scores["using"] == "combined"
    assert scores["accuracy"] == scores["sides"]["combined"]["accuracy"]
    assert a.evaluate(world.root / "known.csv", using="local")["accuracy"] == scores["sides"]["local"]["accuracy"]
    told = run(world, "evaluate", world.root / "known.csv")
    for using, words in {"own": "you alone", "local": "you and the public rows"}.items():
        (line,) = [line for line in told.splitlines() if f"AUC of yes, {words}  " in line]
        assert f" {scores['sides'][using]['ranking']['auc']:.3f} " in line


@pytest.mark.slow
def test_a_pool_without_public_rows_has_no_models_of_own_rows_alone(pooled):
    _, a, _ = pooled
    at_home = a.way.at_home()
    without = replace(at_home, sides={name: side for name, side in at_home.sides.items() if name != "own"})
    with refused("NOT_POOLED"):
        without.side("own")
    assert at_home.side("own").name == "PersonalModel"


@pytest.mark.slow
def test_the_commands_say_it(pooled):
    world, a, told = pooled
    shown = run(world, "install", world.root / "a.dcmodel", "--seed", 0)
    assert told["sentence"] in shown
    facts = json.loads(run(world, "install", world.root / "a.dcmodel", "--seed", 0, "--json"))
    assert facts["sentence"] == told["sentence"]
    assert facts["benefit"]["basis"] == "left out"
    for name in ("combined", "local", "collaboration"):
        run(world, "predict", world.root / "new.csv", "-o", world.root / f"{name}.csv", "--using", name)
        expected = pd.concat(a.predict_batches(world.root / "new.csv", using=name))["prediction"]
        assert pd.read_csv(world.root / f"{name}.csv")["prediction"].tolist() == expected.tolist()
    both = ["predict", world.root / "new.csv", "-o", world.root / "x.csv", "--using", "both", "-C", a.path]
    assert CliRunner().invoke(app, ["party", *map(str, both)]).exit_code == 2


def test_a_model_of_the_one_other_party_is_not_sent_so_nothing_is_said_where_rows_are_not_its_own(tmp_path):
    world = new_world(tmp_path)
    a, b = world.shared("a", group_size=4), world.shared("b")
    told = a.install(model_of(world, (a, b)), random_state=0)
    assert told["benefit"] is None


@pytest.mark.slow
def test_numbers(tmp_path):
    world = new_world(tmp_path, task="regression")
    a, b = world.shared("a"), world.shared("b")
    told = a.install(model_of(world, (a, b)), random_state=0)
    assert told["benefit"]["metric"] == "RMSE"
    scores = a.evaluate(world.root / "new.csv")
    assert scores["sides"]["combined"]["rmse"] == scores["rmse"]
    assert "Root mean squared error, you alone  " in run(world, "evaluate", world.root / "new.csv")


def test_an_older_model_says_nothing_of_what_it_brought(shared):
    world, (a, b) = shared
    told = a.install(world.model_file(a, b))
    assert told["benefit"] is None
    assert "Nothing can be said" in told["sentence"]
    # An analyst who takes all defaults has none, either, from so few parties that share means or noise.
    assert "If defences changed rows, that takes more than 3 parties" in told["sentence"]
    assert list(a.evaluate(world.root / "new.csv")["sides"]) == ["collaboration"]
    for using in ("combined", "local"):
        with refused("NOT_POOLED"):
            a.predict_batches(world.root / "new.csv", using=using)
    assert "accuracy" in run(world, "evaluate", world.root / "new.csv")


def test_a_state_without_its_rows_is_damaged(shared):
    world, (a, b) = shared
    kept = a.read(a.files.state)
    a.write(a.files.state, kept.facts, {name: data for name, data in kept.members.items() if "rows" not in name})
    with refused("STATE_DAMAGED"):
        a.install(model_of(world, (a, b)))


def test_predictions_for_other_rows_than_were_shared_are_refused(shared):
    world, (a, b) = shared
    before = contents(a)
    for left_out in (np.full((79, 2), 0.5), np.full((81, 2), 0.5)):
        with refused("MODEL_MALFORMED"):
            a.install(model_of(world, (a, b), left_out=left_out))
    assert contents(a) == before


def test_a_model_without_the_party_that_predicts_something_else_is_refused(shared):
    """Its classes are among the model's, and the model's are not the project's."""
    world, (a, b) = shared
    model = model_of(world, (a, b))
    before = contents(a)

    class Numbers:
        classes_ = np.array(["no", "yes"])

        def predict(self, rows):
            return np.full(len(rows), "perhaps")

    def tampered(*arguments, **options):
        found, bundle = _predictions_open(*arguments, **options)
        return replace(found, left_out=None, without_party=Numbers()), bundle

    _predictions_open = _row_model.open_model
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_row_model, "open_model", tampered)
        with refused("MODEL_MALFORMED"):
            a.install(model)
    assert contents(a) == before


@pytest.mark.parametrize("method", ["smote", "sample"])
def test_targets_of_generated_rows_train_no_own_models(tmp_path, monkeypatch, method):
    """A generated anchor has as many rows of each class, whatever the prevalence; own models would learn that."""
    world = new_world(tmp_path, anchor=AnchorRecipe(method=method, n_rows=60, source="none"))
    target = np.repeat(["no", "yes"], 30)
    world.anchor = replace(world.anchor, target=target)
    world.write_project(world.project)
    folders, given = [world.shared(name) for name in "ab"], []

    def personalise(*_, public, public_target, **options):
        given.append(public_target)
        raise AgreementError("enough")

    monkeypatch.setattr(_row_model, "personalise", personalise)
    with pytest.raises(AgreementError, match="enough"):
        folders[0].install(model_of(world, folders))
    assert (given[0] is None) if method == "smote" else (given[0] == target).all()


@pytest.mark.nightly
def test_public_rows_of_ones_own_count_as_what_one_has_alone(shared):
    world, (a, b) = shared
    made_up_table(300, seed=5).to_csv(world.root / "public.csv", index=False)
    made_up_table(300, seed=5).drop(columns="ill").to_csv(world.root / "unlabelled.csv", index=False)
    model = model_of(world, (a, b))
    labelled = a.install(model, public=world.root / "public.csv", random_state=0)["benefit"]
    assert any("public" in name for name in labelled["own_models"])
    unlabelled = a.install(model, public=world.root / "unlabelled.csv", random_state=0)["benefit"]
    assert not any("own and public" in name for name in unlabelled["own_models"])


@pytest.mark.slow
def test_what_is_stored_is_the_owners_alone_and_encrypted_where_f_is(tmp_path):
    world = new_world(tmp_path)
    (world.root / "a" / "keys.json").unlink()
    world.keys["a"].save(world.root / "a" / "keys.json", "open sesame")
    a = world.join("a", passphrase="open sesame")
    world.share(a)
    b = world.shared("b")
    umask = os.umask(0)
    try:
        a.install(model_of(world, (a, b)))
    finally:
        os.umask(umask)
    for file in (a.path / "party.dcstate", a.path / "personal.dcstate"):
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"skops" not in file.read_bytes()
    rows = a.encode(world.root / "a.csv").X
    for name, data in contents(a).items():
        assert not any(row.tobytes() in data for row in rows), name
    with refused("PASSPHRASE_WRONG"):
        PartyFolder(a.path).predict_batches(world.root / "new.csv")


def test_nothing_of_the_own_rows_is_in_what_may_be_sent_or_in_the_log(pooled):
    world, a, told = pooled
    rows = a.encode(world.root / "a.csv").X
    assert any(row.tobytes() in (a.path / "party.dcstate").read_bytes() for row in rows)
    for data in [*(file.read_bytes() for file in (a.path / "outbox").iterdir()), (a.path / "log.jsonl").read_bytes()]:
        assert not any(row.tobytes() in data for row in rows)
    last = a.log.entries()[-1]
    assert (last["event"], last["facts"]["pooled"]) == ("install", True)
    assert "benefit" not in last["facts"]
    assert events(a) == ["join", "share", "install"]


def test_a_pool_of_another_model_is_not_used(pooled):
    world, a, _ = pooled
    kept = a.read(a.files.personal)
    a.write(a.files.personal, dict(kept.facts) | {"model_digest": "0" * 64}, kept.members)
    assert "install` again" in a.sentence
    with refused("NOT_POOLED"):
        a.predict_batches(world.root / "new.csv", using="local")
    a.files.personal.unlink()
    assert list(a.evaluate(world.root / "new.csv")["sides"]) == ["collaboration"]


def test_a_damaged_pool_is_noticed(pooled):
    world, a, _ = pooled
    kept = a.read(a.files.personal)
    for members in (
        {"personal.skops": b""},
        {"other.bin": b"x"},
        {"personal.skops": kept.members["personal.skops"][:-9]},
    ):
        a.write(a.files.personal, kept.facts, members)
        with refused("STATE_DAMAGED"):
            a.predict_batches(world.root / "new.csv")
    data = bytearray(a.files.personal.read_bytes())
    data[len(data) // 2] ^= 1
    a.files.personal.write_bytes(data)
    with refused("STATE_DAMAGED"):
        a.predict_batches(world.root / "new.csv")


def test_what_a_killed_installation_left_is_put_in_order(pooled):
    world, a, _ = pooled
    before = contents(a)
    a.files.next_personal.write_bytes(b"half")
    recover(a)
    assert contents(a) == before
    # Killed when the pool had its final name and the model had not: the log says that it is installed.
    a.files.model.rename(a.files.next_model)
    recover(a)
    assert contents(a) == before


@pytest.mark.slow
def test_a_share_made_meanwhile_is_not_overtaken(shared, monkeypatch):
    world, (a, b) = shared
    model = model_of(world, (a, b))
    real = _row_model.personalise

    def slow(*arguments, **options):
        world.share(PartyFolder(a.path), again=True)
        return real(*arguments, **options)

    monkeypatch.setattr(_row_model, "personalise", slow)
    with refused("BUSY"):
        a.install(model)
    assert not a.files.model.exists()
