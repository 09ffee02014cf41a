"""What a swapped file, a dishonest analyst or a careless hand may not do to a party."""

import os
import stat
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab.agreement import Anchor, Task, project_text, seal_anchor
from datacollab.bundle import KeyPair, bytes_to_arrays, pack, seal, unpack
from datacollab.model import PartyModel
from datacollab.steps.party import PartyFolder
from party_world import contents, events, new_world, refused

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and links as POSIX has them")


@pytest.fixture
def pair(world):
    return world.shared("a"), world.shared("b")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def rewritten(world, path, *, facts=None, members=None, key="analyst"):
    """The same model with other facts or members, signed by the analyst."""
    bundle = unpack(path)
    changed = bundle.members if members is None else members
    path.write_bytes(pack(bundle.kind, bundle.facts | (facts or {}), changed, key=world.keys[key]))
    return path


def resealed(world, path, change_facts=None, *, purpose=None, kind="datacollab.model", n_bytes=None):
    """The same model with something else inside, sealed to the first party."""
    a = world.keys["a"]
    opened = unpack(world.unsealed(path))
    inner = pack(kind, opened.facts | (change_facts or {}), opened.members)[:n_bytes]
    purpose = f"model of a in {world.project.digest}" if purpose is None else purpose
    return rewritten(world, path, members={"sealed.bin": seal(inner, [a.public], purpose=purpose)})


# Models


def test_a_model_shows_nothing_of_the_anchors_representation(world, pair):
    path = world.model_file(*pair, integrator=dc.KTI(3))
    inner = unpack(world.unsealed(path))
    arrays = bytes_to_arrays(inner.members["g.safetensors"], what="g")
    assert "anchor_representation" in arrays
    representation = world.open_share(pair[0])[0].anchor_representation
    told = np.sort(arrays["anchor_representation"].ravel())
    np.testing.assert_array_equal(told, np.sort(representation.ravel()))
    installed = pair[0].path / "model.dcmodel"
    pair[0].install(path)
    for data in (path.read_bytes(), installed.read_bytes()):
        assert not any(row.tobytes() in data for row in (*representation, *representation.T))
    assert unpack(installed).members.keys() == {"sealed.bin"}
    assert pair[0].evaluate(world.root / "new.csv")["n_rows"] == 80


def test_a_model_that_is_not_sealed_is_refused(world, pair):
    inner = unpack(world.unsealed(world.model_file(*pair)))
    sealed = unpack(world.root / "a.dcmodel").members
    for members in (inner.members, inner.members | sealed, {}):
        with refused("MODEL_MALFORMED") as found:
            pair[0].install(rewritten(world, world.model_file(*pair), members=members))
        assert "not sealed" in str(found.value)
    assert not (pair[0].path / "model.dcmodel").exists()


def test_a_model_sealed_to_others_or_for_something_else_is_refused(world, pair):
    with refused("SEAL_NOT_FOR_YOU") as found:
        pair[0].install(world.model_file(*pair, sealed_to="b"))
    assert "a.dcmodel" in str(found.value)
    for purpose in ("", f"share of a in {world.project.digest}", f"model of b in {world.project.digest}"):
        with refused("SEAL_DAMAGED"):
            pair[0].install(resealed(world, world.model_file(*pair), purpose=purpose))


def test_what_is_sealed_has_to_be_a_model(world, pair):
    with refused("WRONG_KIND"):
        pair[0].install(resealed(world, world.model_file(*pair), kind="datacollab.share"))
    with refused("BUNDLE_MALFORMED"):
        pair[0].install(resealed(world, world.model_file(*pair), n_bytes=500))


@pytest.mark.slow
@pytest.mark.parametrize(
    "facts", [{"task": "regression"}, {"n_components": 2}, {"estimator": "Ridge"}, {"party": "b"}, {"task": None}]
)
def test_what_is_said_outside_is_what_is_inside(facts, world, pair):
    if "party" not in facts:
        with refused("MODEL_MALFORMED"):
            pair[0].install(rewritten(world, world.model_file(*pair), facts=facts))
    with refused("MODEL_MALFORMED"):
        pair[0].install(resealed(world, world.model_file(*pair), facts))


def classes_of_numbers(root):
    world = new_world(root)
    world.project = replace(world.project, task=Task(kind="classification", target="ill", classes=(0, 1)))
    world.table["ill"] = (world.table["ill"] == "yes").astype(int)
    for name in "ab":
        path = world.root / f"{name}.csv"
        path.write_text(path.read_text().replace(",no\n", ",0\n").replace(",yes\n", ",1\n"))
    world.table.to_csv(world.root / "new.csv", index=False)
    world.write_project(world.project)
    return world


def test_a_regression_is_not_installed_for_a_classification(tmp_path):
    world = classes_of_numbers(tmp_path)
    pair = world.shared("a"), world.shared("b")
    # It says "0" for every row of the anchor, as a class would be.
    always_zero = LinearRegression().fit(np.eye(3), np.zeros(3))
    path = world.model_file(*pair, change=lambda model: replace(model, estimator=always_zero))
    with refused("MODEL_MALFORMED") as found:
        pair[0].install(path)
    assert "classification" in str(found.value)
    pair[0].install(world.model_file(*pair))


def test_a_classification_is_not_installed_for_a_regression(tmp_path):
    world = new_world(tmp_path, task="regression")
    pair = world.shared("a"), world.shared("b")
    numbers = LogisticRegression().fit(np.eye(3), [1, 2, 3])
    with refused("MODEL_MALFORMED"):
        pair[0].install(world.model_file(*pair, change=lambda model: replace(model, estimator=numbers)))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_prediction_is_a_target_of_the_project(task, tmp_path, monkeypatch):
    world = new_world(tmp_path, task=task)
    folder, output = world.installed(), world.root / "out.csv"
    real = PartyModel.predict
    strange = ["maybe"] if task == "classification" else [np.nan, np.inf, "north"]
    for value in strange:

        def predict(model, rows, value=value):
            answers = real(model, rows).astype(object if isinstance(value, str) else float)
            answers[-1] = value
            return answers

        monkeypatch.setattr(PartyModel, "predict", predict)
        with refused("MODEL_MALFORMED") as found:
            folder.predict(world.root / "new.csv", output)
        assert str(value) not in str(found.value).replace("finite", "")
        with refused("MODEL_MALFORMED"):
            folder.evaluate(world.root / "new.csv")
    monkeypatch.setattr(PartyModel, "predict", lambda model, rows: real(model, rows)[:-1])
    with refused("MODEL_MALFORMED"):
        folder.predict(world.root / "new.csv", output)
    assert not output.exists()


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda p: p + 1, lambda p: p * np.nan, lambda p: -p, lambda p: p[:, :1]])
def test_probabilities_are_some(change, world, monkeypatch):
    folder = world.installed()
    real = PartyModel.predict_proba
    monkeypatch.setattr(PartyModel, "predict_proba", lambda model, rows: change(real(model, rows)))
    with refused("MODEL_MALFORMED"):
        folder.predict(world.root / "new.csv", world.root / "out.csv")


def test_an_older_model_does_not_take_the_place_of_a_later_one(world, pair):
    folder = pair[0]
    times = ["2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"]
    old, new = (
        world.model_file(*pair, created=time).rename(world.root / f"{number}.dcmodel")
        for number, time in enumerate(times)
    )
    folder.install(old)
    folder.install(new)
    folder.install(new)
    before = contents(folder)
    with refused("ALREADY_THERE") as found:
        folder.install(old)
    assert all(time in str(found.value) for time in times)
    assert contents(folder) == before
    folder.install(old, older=True)
    assert (folder.path / "model.dcmodel").read_bytes() == old.read_bytes()
    installed = [entry["facts"]["created"] for entry in folder.log.entries() if entry["event"] == "install"]
    assert installed == [times[0], times[1], times[1], times[0]]
    # The model of a newer share is another one's successor, whatever the clocks say.
    folder.install(new)
    world.share(folder, again=True)
    folder.install(world.model_file(*pair, created=times[0]))


@pytest.mark.parametrize("created", [None, "yesterday", 5])
def test_a_model_says_when_it_was_made(created, world, pair):
    with refused("MODEL_MALFORMED"):
        pair[0].install(world.model_file(*pair, created=created))


# Joining


def swapped(world, *roles):
    """The project as somebody on its way would have it, signed by the owner that it names."""
    keys = {"owner": world.keys["a"]} | {role: KeyPair.generate() for role in roles}
    project = replace(world.project, **{role: key.public for role, key in keys.items()})
    (world.root / "project.toml").write_text(project_text(project, keys["owner"]))
    (world.root / "anchor.dcanchor").write_bytes(seal_anchor(world.anchor, project, keys["owner"]))
    return project


def test_a_project_of_another_owner_is_refused_where_the_owner_is_known(world):
    owner = world.keys["a"].public
    swapped(world, "owner", "analyst")
    with refused("SIGNATURE_INVALID"):
        world.join(owner=owner)
    assert {path.name for path in (world.root / "a").iterdir()} == {"keys.json"}
    world.write_project(world.project)
    assert world.join(owner=owner).project.owner == owner


@pytest.mark.parametrize("roles", [["owner"], ["analyst"], ["owner", "analyst"]])
def test_nobody_else_takes_a_project_over(roles, world):
    folder = world.join()
    before = contents(folder)
    project = swapped(world, *roles)
    with refused("ALREADY_THERE") as found:
        world.join()
    assert getattr(project, roles[0]).fingerprint in str(found.value)
    assert contents(folder) == before
    (folder.path / "project.toml").unlink()
    assert world.join().project.digest == project.digest


def test_whoever_approves_sees_who_would_get_it(world):
    shown = []
    world.share(world.join(), approve=lambda summary: shown.append(summary) or "me")
    fingerprint = world.keys["analyst"].public.fingerprint
    assert shown[0].to_text().splitlines()[0].endswith(f"for the analyst of project 'wards' ({fingerprint})")
    assert shown[0].to_dict()["analyst"] == fingerprint


# Sharing once


def test_another_project_joined_while_a_share_waits_stops_it(world):
    folder = world.join()

    def approve(summary):
        world.write_project(replace(world.project, purpose="Another."))
        world.join()
        return "me"

    with refused("PROJECT_HASH_MISMATCH"):
        world.share(folder, approve=approve)
    assert not list((folder.path / "outbox").iterdir())
    assert not (folder.path / "party.dcstate").exists()
    world.share(PartyFolder(folder.path))


def test_another_anchor_opened_while_a_share_waits_stops_it(world):
    folder = world.join()

    def approve(summary):
        world.anchor = Anchor(rows=world.anchor.rows[::-1])
        world.write_project(world.project)
        world.join()
        return "me"

    with refused("BUSY"):
        world.share(folder, approve=approve)
    assert not list((folder.path / "outbox").iterdir())
    world.share(folder)


@pytest.mark.parametrize("passphrase", [None, "open sesame"])
def test_a_lost_log_is_no_licence_to_share_again(passphrase, world):
    folder = world.join(passphrase=passphrase)
    world.share(folder)
    first = world.open_share(folder)[1].digest
    (folder.path / "log.jsonl").unlink()
    with refused("ALREADY_SHARED"):
        world.share(folder)
    assert events(folder) == ["share"]
    world.share(folder, again=True)
    assert world.open_share(folder)[1].facts["supersedes"] == first
    folder.log.verify()


# What lies about


def test_neither_passphrase_nor_order_is_shown(world):
    folder = world.join(passphrase="open sesame")
    assert "open sesame" not in repr(folder)
    prepared = folder.prepare(world.root / "a.csv", audit=False, preset="none")
    assert repr(prepared.order) not in repr(prepared)
    assert " order=" not in repr(prepared)


@posix
def test_files_for_few_eyes_are_closed_to_others(world):
    before = os.umask(0)
    try:
        folder = world.installed()
        folder.predict(world.root / "new.csv", world.root / "out.csv")
        folder.predict(world.root / "new.csv", world.root / "out.parquet")
    finally:
        os.umask(before)
    files = [world.root / "out.csv", world.root / "out.parquet", *(folder.path / "outbox").iterdir()]
    assert {file.name: mode(file) for file in files} == dict.fromkeys(["out.csv", "out.parquet", "a.dcshare"], 0o600)
    assert mode(folder.path / "model.dcmodel") == 0o600


@posix
@pytest.mark.parametrize(("name", "code"), [("log.jsonl", "LOG_BROKEN"), (".lock", "STATE_DAMAGED")])
def test_links_are_not_followed(name, code, world):
    folder = world.join()
    target = world.root / "precious.txt"
    (folder.path / name).unlink()
    (folder.path / name).symlink_to(target)
    with refused(code):
        world.join()
    assert not target.exists()
    target.touch(0o644)
    with refused(code):
        world.join()
    assert (target.read_bytes(), mode(target)) == (b"", 0o644)


def test_heads_that_the_analyst_sees_tell_nothing_of_the_entries(world):
    """Whoever knows all but the random numbers cannot compute one head from what is known of the other."""
    folder = world.shared()
    world.share(folder, again=True)
    first, *rest = folder.log.entries()
    nonces = [entry["facts"]["nonce"] for entry in (first, *(each for each in rest if each["event"] == "share"))]
    assert len(set(nonces)) == 3
    assert all(len(bytes.fromhex(nonce)) == 16 for nonce in nonces)
