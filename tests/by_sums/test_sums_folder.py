"""Sums by files: five parties and an analyst from end to end, and what is refused on the way."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr

from datacollab.agreement import project_text
from datacollab.bundle import KeyPair, digest, pack, seal, unpack, unseal
from datacollab.by_sums.analyst._messages import check_sums_fit
from datacollab.by_sums.analyst._total import solve_sums
from datacollab.by_sums.plan import plan_of
from datacollab.errors import AgreementError
from datacollab.steps.analyst import AnalystFolder, model_to_bytes, receive_sums
from datacollab.steps.party import PartyFolder, make_mask_key
from datacollab.sums import CommonMap, MaskKey, SumsModel, mask_card, message_to_bytes, read_message
from datacollab.table import encode_table
from party_world import events, refused
from sums_world import PARTIES, ROWS, new_sums_world, project_of, rows_of


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """All have shared, the analyst has integrated and exported, all have installed."""
    world = new_sums_world(tmp_path_factory.mktemp("played"))
    files = world.share_all()
    world.analyst.add(files)
    world.result = world.analyst.integrate()
    world.exported = world.analyst.export()
    for name in PARTIES:
        world.folder(name).install(world.root / "analyst" / "outbox" / f"{name}.dcmodel")
    return world


@pytest.fixture
def world(played, tmp_path):
    """The same before the analyst has any file, with the parties' files in their outboxes."""
    copied = played.copied(tmp_path)
    for path in [*(tmp_path / "analyst" / "shares").iterdir(), *(tmp_path / "analyst" / "outbox").iterdir()]:
        path.unlink()
    (tmp_path / "analyst" / "sums-model.dcstate").unlink()
    return copied


def sent(world, name):
    return world.root / name / "outbox" / f"{name}.dcsum"


def told_in(path):
    """What a message of a project says on its outside, beside whose it is."""
    names = ("project_digest", "anchor_commitment", "n_components", "created")
    return {name: unpack(path).facts[name] for name in names}


def all_sent(world):
    return [sent(world, name) for name in PARTIES]


@pytest.mark.slow
def test_five_parties_by_files(played):
    result = played.result
    assert result.n_parties == 5
    assert abs(result.n_rows - 300) <= 10
    truth = pd.concat([pd.read_csv(played.table(name)) for name in PARTIES])["ill"].value_counts()
    for name in ("no", "yes"):
        assert abs(result.class_counts[name] - truth[name]) <= 10
    assert result.rare == ()
    scores = played.folder("west").evaluate(played.root / "new.csv")
    assert scores["accuracy"] > 0.88
    assert scores["ranking"]["auc"] > 0.95
    assert [each["exported"] for each in played.analyst.status()] == [True] * 5
    assert [each.stem for each in played.exported] == list(played.project.parties)


@pytest.mark.slow
def test_the_model_is_that_of_all_rows_in_one_place(tmp_path):
    """With the same penalty, and little noise for a total of so many rows."""
    world = new_sums_world(tmp_path, parties=PARTIES[:3], sharing={"noise": 0.03, "n_components": 10})
    for seed, name in enumerate(PARTIES[:3]):
        rows_of(3000, 200 + seed).to_csv(world.table(name), index=False)
    world.analyst.add(world.share_all())
    world.analyst.integrate()
    model = world.analyst.way.model()
    table = pd.concat([pd.read_csv(world.table(name)) for name in PARTIES[:3]])
    encoded = encode_table(world.project, table, where="all")
    anchor = world.folder("north").anchor
    units = np.array([25.0, 25.0, 1.0, 1.0])
    common = CommonMap.from_anchor(anchor.rows / units, anchor.secret, n_components=10)
    v = common.transform(encoded.X / units)
    t = (encoded.target[:, None] == np.array(["no", "yes"])) - 0.5
    centred = v - v.mean(axis=0)
    W = np.linalg.solve(centred.T @ centred + model.fit.alpha * np.eye(10), centred.T @ t)
    expected = centred @ W + t.mean(axis=0)
    assert np.sqrt(np.mean((model.fit.predict(v) - expected) ** 2)) < 0.02
    assert np.corrcoef(model.fit.predict(v)[:, 0], expected[:, 0])[0, 1] > 0.999


@pytest.mark.slow
def test_every_party_gets_the_same_model_sealed_to_it(played):
    digests = {unpack(file).facts["model_digest"] for file in played.exported}
    assert digests == {played.result.model_digest}
    inner = set()
    for name, file in zip(played.project.parties, played.exported, strict=True):
        purpose = f"model of {name} in {played.project.digest}"
        sealed = unpack(file, signed_by=played.project.analyst).members["sealed.bin"]
        inner.add(unseal(sealed, played.keys[name], purpose=purpose))
        with refused("SEAL_NOT_FOR_YOU"):
            unseal(sealed, played.keys["stranger"], purpose=purpose)
    (data,) = inner
    assert digest(data) == played.result.model_digest


def test_parties_see_by_the_digest_if_the_analyst_lies_to_one(played, tmp_path):
    """The same total gives everybody the same digest; another model, though it can be installed, has another."""
    world = played.copied(tmp_path)
    outbox = tmp_path / "analyst" / "outbox"
    honest = {name: world.folder(name).install(outbox / f"{name}.dcmodel", older=True) for name in PARTIES}
    assert {facts["model_digest"] for facts in honest.values()} == {played.result.model_digest}
    # Made anew from the same total, as for a party whose file was lost.
    assert {unpack(file).facts["model_digest"] for file in world.analyst.export()} == {played.result.model_digest}
    turned = of_fit(coefficients=lambda fit: -fit.coefficients)
    lie = world.folder("south").install(model_file(world, turned, party="south"), older=True)
    assert lie["model_digest"] != played.result.model_digest
    assert events(world.folder("south"))[-1] == "install"
    for name, facts in (("north", honest["north"]), ("south", lie)):
        logged = world.folder(name).log.entries()[-1]["facts"]
        assert logged["model_digest"] == facts["model_digest"]


def test_parties_predict_alike_but_for_an_intercept_of_their_own_rows(played, tmp_path):
    """By the formula: n / (n + 30) of the mean residual of n own rows, without public rows that a party adds."""
    predicted, model = [], played.analyst.way.model()
    for name in ("north", "centre"):
        folder = played.folder(name)
        given = {"using": "collaboration"}
        assert folder.predict(played.root / "new.csv", tmp_path / f"{name}.csv", **given) == 400
        predicted.append(pd.read_csv(tmp_path / f"{name}.csv"))
        own, side = folder.encode(played.table(name)), folder.way.at_home().side("collaboration")
        v, t = side.map(own.X), np.eye(2)[(own.target == "yes").astype(int)] - 0.5
        residual = (t - model.fit.predict(v)).mean(axis=0)
        assert_allclose(side.model.fit.intercept, model.fit.intercept + ROWS / (ROWS + 30) * residual)
        assert_array_equal(side.model.fit.coefficients, model.fit.coefficients)
        assert np.abs((t - side.model.fit.predict(v)).mean(axis=0)).max() < np.abs(residual).max()
    assert list(predicted[0]) == ["prediction", "proba_no", "proba_yes"]
    assert spearmanr(*(each["proba_yes"] for each in predicted)).statistic > 0.99
    assert events(played.folder("centre"))[:3] == ["join", "share", "install"]
    batches = list(played.folder("north").predict_batches(played.root / "new.csv", batch_rows=150, **given))
    assert [len(each) for each in batches] == [150, 150, 100]
    assert_array_equal(pd.concat(batches)["prediction"], predicted[0]["prediction"])
    assert "the model of all parties' rows" in played.folder("north").sentence
    with refused("NOT_POOLED"):
        played.folder("north").evaluate(played.root / "new.csv", using="own")


@pytest.mark.slow
def test_numbers(tmp_path):
    world = new_sums_world(tmp_path, task="regression", parties=("north", "south", "east"))
    world.analyst.add(world.share_all())
    result = world.analyst.integrate()
    assert result.class_counts == {}
    world.analyst.export()
    folder = world.folder("north")
    folder.install(tmp_path / "analyst" / "outbox" / "north.dcmodel")
    scores = folder.evaluate(tmp_path / "new.csv")
    assert scores["r2"] > 0.7


def test_the_analyst_holds_neither_anchor_nor_map(played):
    files = b"".join(path.read_bytes() for path in (played.root / "analyst").rglob("*") if path.is_file())
    anchor = played.folder("north").anchor
    assert anchor.secret not in files
    assert not any(row.tobytes() in files for row in anchor.rows[:20])


def test_who_is_missing_is_named(world):
    analyst = world.analyst
    with refused("QUORUM_NOT_MET", "north"):
        analyst.integrate()
    analyst.add([sent(world, name) for name in ("north", "south", "west")])
    with refused("QUORUM_NOT_MET", "sums of centre, east are"):
        analyst.integrate()
    with refused("NOT_INTEGRATED"):
        analyst.export()
    assert [each["created"] is not None for each in analyst.status()] == [False, False, True, True, True]


def test_the_same_file_again_changes_nothing(world):
    assert len(world.analyst.add(all_sent(world))) == 5
    assert world.analyst.add(all_sent(world)) == []


def test_steps_of_the_other_way_are_refused(world):
    rows = world.root / "rows.dcshare"
    rows.write_bytes(pack("datacollab.share", {"party": "north"}, {}, key=world.keys["north"]))
    with refused("WRONG_KIND", "rows.dcshare"):
        world.analyst.add([rows])
    with pytest.raises(AgreementError, match="Predictions"):
        world.analyst.export(anchor_predictions=True)


def test_a_second_file_of_a_party_is_refused_by_name(world, tmp_path):
    """As one from a restored backup of a folder whose ledger was restored, too."""
    kept = read_message(sent(world, "north"), world.keys["analyst"], signed_by=world.keys["north"].public)
    told = told_in(sent(world, "north"))
    words = kept.words.copy()
    words[3] += np.uint64(1)
    second = tmp_path / "second.dcsum"
    second.write_bytes(
        message_to_bytes(replace(kept, words=words), world.keys["north"], world.project.analyst, outside=told)
    )
    world.analyst.add([sent(world, "north")])
    with refused("ALREADY_THERE", "'north' has sent its sums already"):
        world.analyst.add([second])


def test_files_of_nobody_of_others_and_cut_ones(world, tmp_path):
    message = read_message(sent(world, "north"), world.keys["analyst"], signed_by=world.keys["north"].public)
    told = told_in(sent(world, "north"))
    analyst, odd = world.project.analyst, tmp_path / "odd.dcsum"

    def added(data):
        odd.write_bytes(data)
        world.analyst.add([sent(world, "south"), odd])

    own, strange = world.keys["north"], world.keys["stranger"]
    unsaid = {"n_components": 0}, {"anchor_commitment": "x"}, {"created": "yesterday"}
    cases = [
        ("SIGNATURE_INVALID", "'north'", message, strange, analyst, told),
        ("SIGNATURE_INVALID", "'north'", message, world.keys["south"], analyst, told),
        ("NOT_A_MEMBER", "not in project", replace(message, party="moon"), strange, analyst, told),
        ("SHARE_MALFORMED", "'north'", message, own, analyst, None),
        ("SEAL_NOT_FOR_YOU", "'north'", message, own, strange.public, told),
        ("SHARE_MALFORMED", "another sum", replace(message, context=bytes(32)), own, analyst, told),
        ("SHARE_MALFORMED", "words", replace(message, words=message.words[:-1]), own, analyst, told),
        *(("SHARE_MALFORMED", "does not say", message, own, analyst, told | wrong) for wrong in unsaid),
        ("SHARE_MALFORMED", "other facts", message, own, analyst, told | {"more": 1}),
        ("PROJECT_HASH_MISMATCH", "'north'", message, own, analyst, told | {"project_digest": "00" * 32}),
    ]
    for code, words, content, key, reader, said in cases:
        with refused(code, words):
            added(message_to_bytes(content, key, reader, outside=said))
    data = sent(world, "north").read_bytes()
    for cut in (0, 1, len(data) // 2, len(data) - 1):
        with pytest.raises(Exception, match=r"odd\.dcsum") as found:
            added(data[:cut])
        assert found.value.code in ("BUNDLE_MALFORMED", "HASH_MISMATCH", "WRONG_KIND")
    # None is kept unless all are in order.
    assert world.analyst.shares() == []


def test_a_file_of_an_earlier_run_is_refused(world, tmp_path):
    old = sent(world, "north").read_bytes()
    world.next_run()
    AnalystFolder.init(world.root / "analyst", world.root / "project.toml")
    replayed = tmp_path / "replayed.dcsum"
    replayed.write_bytes(old)
    with refused("PROJECT_HASH_MISMATCH", "another run"):
        world.analyst.add([replayed])


def test_another_anchor_or_number_of_columns_is_refused_by_name(world, tmp_path):
    told = told_in(sent(world, "north"))
    for wrong, code in (
        ({"anchor_commitment": "ab" * 32}, "ANCHOR_MISMATCH"),
        ({"n_components": 7}, "SHARE_MALFORMED"),
    ):
        key = MaskKey.generate()
        cards = world.project.sharing.mask_keys | {"north": mask_card(key, world.keys["north"])}
        project = replace(world.project, sharing=replace(world.project.sharing, mask_keys=cards))
        facts = told | wrong | {"project_digest": project.digest}
        plan = plan_of(project, anchor_commitment=facts["anchor_commitment"], n_components=facts["n_components"])
        message = plan.agreed.mask("north", np.zeros(plan.ridge.n_numbers), key)
        data = message_to_bytes(message, world.keys["north"], project.analyst, outside=facts)
        received = receive_sums(data, project, world.keys["analyst"], where="odd.dcsum")
        other = receive_sums(sent(world, "south").read_bytes(), world.project, world.keys["analyst"], where="x")
        with refused(code, "'north'"):
            check_sums_fit(received, {"south": other}, where="odd.dcsum")


def three_parties(values_of, noise=0.1):
    """A total of three parties who add what they like, and its project."""
    names = PARTIES[:3]
    keys = {name: KeyPair.generate() for name in (*names, "analyst")}
    mask_keys = {name: MaskKey.generate() for name in names}
    project = project_of(
        keys, names, {name: mask_card(key, keys[name]) for name, key in mask_keys.items()}, sharing={"noise": noise}
    )
    told = {"project_digest": project.digest, "anchor_commitment": "ab" * 32, "n_components": 5}
    told["created"] = "2026-01-01T00:00:00+00:00"
    plan = plan_of(project, anchor_commitment="ab" * 32, n_components=5)
    received = []
    for name in names:
        message = plan.agreed.mask(name, values_of(plan, name), mask_keys[name])
        data = message_to_bytes(message, keys[name], project.analyst, outside=told)
        received.append(receive_sums(data, project, keys["analyst"], where=f"{name}.dcsum"))
    return received, project, keys["analyst"]


def honest(plan, name):
    random = np.random.default_rng(len(name))
    v = random.normal(size=(30, 5))
    v /= 2 * np.linalg.norm(v, axis=1, keepdims=True)
    return plan.ridge.part(v, np.where(v[:, 0] > 0, "yes", "no"))


def test_honest_parts_make_a_model():
    _, result = solve_sums(*three_parties(honest))
    assert abs(result.n_rows - 90) < 10


@pytest.mark.parametrize(("factor", "words"), [(0.0, "at least 60"), (-5.0, "at least 60")])
def test_a_total_of_too_few_rows_is_refused(factor, words):
    with refused("SHARE_MALFORMED", words):
        solve_sums(*three_parties(lambda plan, name: factor * honest(plan, name)))


def test_totals_that_no_rows_give_are_refused():
    def with_long_rows(plan, name):
        part = honest(plan, name)
        part[0] += 1e4
        return part

    def with_far_targets(plan, name):
        size = plan.ridge.size
        M = np.zeros((size, size))
        M[np.triu_indices(size)] = honest(plan, name)
        M[5, 5] += 1e3
        return M[np.triu_indices(size)]

    for values, words in ((with_long_rows, "longer than 1"), (with_far_targets, "beyond their range")):
        with refused("SHARE_MALFORMED", words):
            solve_sums(*three_parties(values))


def test_a_damaged_model_of_the_analysts_own_is_noticed(played, tmp_path):
    world = played.copied(tmp_path)
    path = tmp_path / "analyst" / "sums-model.dcstate"
    path.write_bytes(path.read_bytes()[:-3])
    with refused("STATE_DAMAGED"):
        world.analyst.export()


# The party again: models that the analyst may have made wrongly, or that others made.


@pytest.fixture
def party(played, tmp_path):
    world = played.copied(tmp_path)
    (tmp_path / "north" / "model.dcmodel").unlink()
    return world


def model_file(world, change=lambda model: model, party="north", key=None, name="odd.dcmodel"):
    model = change(world.analyst.way.model())
    path = world.root / name
    path.write_bytes(model_to_bytes(model, world.project, party, key or world.keys["analyst"]))
    return path


def of_fit(**changes):
    def change(model):
        fit = replace(model.fit, **{name: value(model.fit) for name, value in changes.items()})
        return replace(model, fit=fit)

    return change


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda model: replace(model, context=bytes(32)), "WRONG_SHARE", "another sum"),
        (lambda model: replace(model, classes=("no", "maybe")), "MODEL_MALFORMED", "other classes"),
        (of_fit(coefficients=lambda fit: fit.coefficients[:-1]), "MODEL_MALFORMED", "columns"),
        (of_fit(coefficients=lambda fit: fit.coefficients * 1e6), "MODEL_MALFORMED", "larger coefficients"),
        (of_fit(intercept=lambda fit: fit.intercept + 1e3), "MODEL_MALFORMED", "no target can be"),
        (of_fit(alpha=lambda fit: 1e-6), "MODEL_MALFORMED", "smaller penalty"),
        (of_fit(n_rows=lambda fit: 3.0), "MODEL_MALFORMED", "there are 3 rows"),
        (of_fit(coefficients=lambda fit: fit.coefficients * np.nan), "MODEL_MALFORMED", "finite"),
    ],
)
def test_models_that_cannot_be_are_not_installed(party, change, code, words):
    folder = party.folder("north")
    with refused(code, words):
        folder.install(model_file(party, change))
    with refused("NOT_INSTALLED"):
        folder.evaluate(party.root / "new.csv")


def test_models_of_others_and_for_others_are_not_installed(party):
    folder = party.folder("north")
    with refused("WRONG_RECIPIENT"):
        folder.install(model_file(party, party="south"))
    with refused("SIGNATURE_INVALID"):
        folder.install(model_file(party, key=party.keys["stranger"]))
    good = model_file(party)
    data = good.read_bytes()
    good.write_bytes(data[: len(data) // 2])
    with refused("BUNDLE_MALFORMED"):
        folder.install(good)
    inner = SumsModel.from_bytes(party.analyst.way.model().to_bytes(key=party.keys["analyst"]))
    forged = inner.to_bytes(key=party.keys["stranger"])
    facts = unpack(data).facts | {"model_digest": digest(forged)}
    purpose = f"model of north in {party.project.digest}"
    sealed = seal(forged, [party.project.parties["north"]], purpose=purpose)
    good.write_bytes(pack("datacollab.sums-model", facts, {"sealed.bin": sealed}, key=party.keys["analyst"]))
    with refused("SIGNATURE_INVALID"):
        folder.install(good)
    facts["model_digest"] = "00" * 32
    good.write_bytes(pack("datacollab.sums-model", facts, {"sealed.bin": sealed}, key=party.keys["analyst"]))
    with refused("MODEL_MALFORMED", "another model than it says"):
        folder.install(good)


def test_an_older_model_takes_no_later_ones_place(party):
    folder = party.folder("north")
    older = model_file(party)
    bundle = unpack(older)
    facts = bundle.facts | {"created": "2020-01-01T00:00:00+00:00"}
    folder.install(older)
    older.write_bytes(pack(bundle.kind, facts, bundle.members, key=party.keys["analyst"]))
    with refused("ALREADY_THERE", "--older"):
        folder.install(older)
    folder.install(older, older=True)
    assert folder.evaluate(party.root / "new.csv")["n_rows"] == 400


def test_who_has_not_shared_installs_nothing(party):
    (party.root / "north" / "sum.dcstate").unlink()
    with refused("NOT_SHARED"):
        party.folder("north").install(model_file(party))


def test_a_changed_project_needs_its_own_model(party):
    old = model_file(party)
    party.next_run()
    folder = party.folder("north")
    with refused("NOT_SHARED"):
        folder.install(old)
    table = party.root / "later.csv"
    rows_of(60, 999).to_csv(table, index=False)
    party.share("north", table=table)
    with refused("PROJECT_HASH_MISMATCH", "another run"):
        folder.install(old)


def test_an_encrypted_folder_plays_as_well(played, tmp_path):
    words = "correct horse"
    world = played.copied(tmp_path)
    place = tmp_path / "locked"
    place.mkdir()
    world.keys["north"].save(place / "keys.json", words)
    cards = world.project.sharing.mask_keys | {"north": make_mask_key(place, passphrase=words)}
    project = replace(world.project, sharing=replace(world.project.sharing, mask_keys=cards), revision=2)
    world.write_project(project)
    assert (world.root / "project.toml").read_text() == project_text(project, world.keys["north"])
    files = world.root / "project.toml", world.root / "anchor.dcanchor"
    folder = PartyFolder.join(place, *files, passphrase=words)
    path = folder.share(world.table("north"), approve=lambda summary: "me", heard=world.heard("north"))
    assert path.exists()
    kept = (place / "sum.dcstate").read_bytes()
    assert path.read_bytes() not in kept
    assert not (place / "mask.dcstate").exists()
