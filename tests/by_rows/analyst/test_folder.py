from dataclasses import replace
from datetime import date

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

import datacollab as dc
from datacollab.agreement import Anchor, Task, project_text
from datacollab.bundle import KeyPair, pack, unpack, unseal
from datacollab.folder.log import AuditLog
from datacollab.model import LandmarkRidgeClassifier, model_from
from datacollab.party import Microaggregation
from datacollab.steps.analyst import AnalystFolder
from party_world import refused

FOREST = RandomForestClassifier(n_estimators=10, random_state=0)
LTI = dc.LTI(8)


def opened(bundle, there):
    """What the party reads in its model."""
    party = bundle.facts["party"]
    purpose = f"model of {party} in {there.project.digest}"
    return unpack(unseal(bundle.members["sealed.bin"], there.keys[party], purpose=purpose))


def everything_in(path):
    return {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True])
def test_models_are_those_of_the_roles_in_memory(place, sealed):
    there = place(seal_shares=sealed)
    there.folder.add([there.send(name) for name in ("west", "north")])
    received = there.folder.shares()
    assert [each.party for each in received] == ["north", "west"]
    result = there.folder.integrate(LTI, FOREST)
    expected = dc.Analyst(LTI, FOREST).fit(each.share for each in received)
    rows = received[0].share.representation
    for file in there.folder.export():
        bundle = unpack(file, signed_by=there.project.analyst)
        model = model_from(opened(bundle, there))
        assert bundle.facts["party"] == file.stem == model.party
        assert bundle.facts["share_digest"] == result.share_digests[file.stem]
        assert_array_equal(model.predict_proba(rows), expected.party_model(file.stem).predict_proba(rows))
    assert [each["exported"] for each in there.folder.status()] == [True, False, True]
    assert not any(result.n_repeated.values())


def test_a_sealed_share_shows_no_array_and_no_other_is_taken(place):
    there = place(seal_shares=True)
    bundle = unpack(there.send("north"))
    assert list(bundle.members) == ["sealed.bin"]
    with refused("SHARE_MALFORMED", "not sealed"):
        there.folder.add([there.send("north", sealed=False)])


def test_concordance_tells_a_party_with_another_order_of_the_anchor(place):
    there = place()
    X, y = there.digits
    shuffled = Anchor(rows=X[:150][::-1], target=None, secret=b"s" * 32)
    plain = Anchor(rows=X[:150], target=None, secret=b"s" * 32)
    commitment = plain.commitment(there.project)
    files = [there.send(name, anchor=plain) for name in ("north", "south")]
    files.append(there.send("west", anchor=shuffled, said={"anchor_commitment": commitment}))
    there.folder.add(files)
    concordance = there.folder.integrate(LTI, FOREST, n_folds=None).concordance
    assert concordance["west"] < min(concordance["north"], concordance["south"]) - 0.2


def test_another_anchor_is_refused(place):
    there = place()
    X, y = there.digits
    there.folder.add([there.send("north")])
    before = everything_in(there.folder.path)
    with refused("ANCHOR_MISMATCH", "north"):
        there.folder.add([there.send("south", anchor=Anchor(rows=X[1:151], target=y[1:151], secret=b"s" * 32))])
    assert everything_in(there.folder.path) == before


@pytest.mark.parametrize(
    ("code", "match", "options"),
    [
        ("SIGNATURE_INVALID", "another way", {"signer": KeyPair.generate()}),
        ("PROJECT_HASH_MISMATCH", "version", {"said": {"project_digest": "0" * 64}}),
        ("NOT_A_MEMBER", "party", {"said": {"party": "nobody"}}),
        ("DIM_TOO_LARGE", "12 columns", {"n_components": 12}),
        ("TOO_FEW_ROWS", "12 rows", {"n_rows": 12}),
        ("SHARE_MALFORMED", "n_rows", {"said": {"n_rows": 7}}),
        ("SHARE_MALFORMED", "created", {"said": {"created": "yesterday"}}),
        ("SHARE_MALFORMED", "created", {"said": {"created": "2026-01-01\x9b12:00:00+00:00"}}),
        ("SHARE_MALFORMED", "task", {"said": {"task": "regression"}}),
        ("SHARE_MALFORMED", "approved_by", {"said": {"approved_by": "x" * 1000}}),
        ("SHARE_MALFORMED", "supersedes", {"said": {"supersedes": 7}}),
        ("SHARE_MALFORMED", "anchor_commitment", {"said": {"anchor_commitment": None}}),
    ],
)
def test_a_share_that_is_not_in_order_is_refused_and_leaves_no_trace(place, code, match, options):
    there = place()
    before = everything_in(there.folder.path)
    with refused(code, match):
        there.folder.add([there.send("north"), there.send("south", **options)])
    assert everything_in(there.folder.path) == before


def test_a_sealed_share_says_outside_whether_its_rows_are_the_partys_own(place):
    there = place(seal_shares=True)
    with refused("SHARE_MALFORMED", "one_to_one"):
        there.folder.add([there.send("north", said={"one_to_one": False})])
    (added,) = there.folder.add([there.send("north", defences=[Microaggregation(3, small_classes="group")])])
    assert not added.share.one_to_one


@pytest.mark.parametrize(
    ("code", "match", "rules"),
    [
        (
            "TARGET_INVALID",
            "of 80 targets",
            {"task": Task(kind="classification", target="digit", classes=(*range(9),))},
        ),
        ("TARGET_INVALID", "of 80 targets", {"task": Task(kind="regression", target="digit", minimum=0, maximum=8)}),
        ("CLASS_TOO_SMALL", "wants 30", {"min_class_rows": 30}),
        ("DEADLINE_PASSED", None, {"deadline": date(2020, 1, 1)}),
    ],
)
def test_a_share_that_the_project_does_not_allow_is_refused(place, code, match, rules):
    there = place(**rules)
    with refused(code, match):
        there.folder.add([there.send("north")])


def test_names_of_classes_are_compared_before_they_are_spread_over_the_rows(place):
    there = place(task=Task(kind="classification", target="digit", classes=("even", "odd"), positive="odd"))
    names = np.where(there.digits[1] % 2, "odd", "x" * 150)
    with refused("TARGET_INVALID", "have names that"):
        there.folder.add([there.send("north", target=names)])


def test_a_stray_member_is_refused(place):
    there = place(seal_shares=True)
    with refused("SHARE_MALFORMED", "members"):
        there.folder.add([there.send("north", stray={"note.txt": b"hello"})])


def test_no_carrier_reads_what_a_model_holds(place):
    """A kernel map has the party's representation of the anchor, which was sealed on its way to the analyst."""
    there = place(seal_shares=True)
    there.folder.add([there.send(name) for name in ("north", "south")])
    there.folder.integrate(dc.KTI(8), FOREST, n_folds=None)
    for file in there.folder.export():
        held = {each.party: each.share.anchor_representation for each in there.folder.shares()}[file.stem]
        data = file.read_bytes()
        assert not any(row.tobytes() in data for row in held)
        inside = opened(unpack(file), there).members["g.safetensors"]
        assert all(row.tobytes() in inside for row in held)
        other = {"north": "south", "south": "north"}[file.stem]
        with refused("SEAL_NOT_FOR_YOU"):
            unseal(unpack(file).members["sealed.bin"], there.keys[other], purpose="any")


def test_a_project_of_another_owner_is_not_taken(place, tmp_path):
    there = place()
    path, intruder = there.path / "other.toml", KeyPair.generate()
    changed = replace(there.project, owner=intruder.public)
    path.write_text(project_text(changed, intruder), encoding="utf-8")
    with refused("ALREADY_THERE", intruder.public.fingerprint):
        AnalystFolder.init(there.folder.path, path)
    with refused("SIGNATURE_INVALID", "another way"):
        AnalystFolder.init(there.folder.path, path, owner=there.keys["owner"].public)
    AnalystFolder.init(there.folder.path, there.path / "project.toml", owner=there.keys["owner"].public)


def test_a_second_share_must_say_which_it_replaces(place):
    there = place()
    there.folder.add([there.send("north")])
    first = there.folder.shares()[0].digest
    there.folder.add([there.path / "north.dcshare"])  # the same file once more changes nothing
    with refused("ALREADY_THERE", "north"):
        there.folder.add([there.send("north", file_name="again.dcshare")])
    there.folder.add([there.send("north", file_name="again.dcshare", said={"supersedes": first})])
    assert there.folder.shares()[0].digest != first


@pytest.mark.slow
def test_order_of_work(place):
    there = place()
    with refused("QUORUM_NOT_MET", "0 of 3"):
        there.folder.integrate(LTI, FOREST)
    with refused("NOT_INTEGRATED", "integrate"):
        there.folder.export()
    there.folder.add([there.send(name) for name in ("north", "south")])
    there.folder.integrate(LTI, FOREST)
    there.folder.add([there.send("west")])
    with refused("NOT_INTEGRATED", "after"):
        there.folder.export()


def on_its_own_rows():
    """A model that can be sent as numbers, some of which are training rows."""

    def fit_left_out(self, X, y, *others, **more):
        self.landmarks = np.asarray(X)[:20]
        return LandmarkRidgeClassifier.fit_left_out(self, X, y, *others, **more)

    return type("LandmarkRidgeClassifier", (LandmarkRidgeClassifier,), {"fit_left_out": fit_left_out})()


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(), on_its_own_rows()], ids=["neighbours", "landmarks"])
def test_a_model_that_carries_rows_is_not_sent(both, estimator):
    assert both.folder.integrate(LTI, estimator).row_findings
    with refused("MODEL_LEAKS_ROWS", type(estimator).__name__):
        both.folder.export()
    assert not any(both.folder.path.glob("outbox/*"))


class HomeMade(KNeighborsClassifier):
    """A type of no library."""


def test_objects_of_no_library_are_neither_kept_nor_read(both):
    with refused("MODEL_UNSUPPORTED", "HomeMade"):
        both.folder.integrate(LTI, HomeMade())
    both.folder.integrate(LTI, KNeighborsClassifier())
    (file,) = both.folder.path.glob("collaboration.*")
    kept = unpack(file)
    for data in (b"", skops.io.dumps(HomeMade().fit([[0.0], [1.0]], [0, 1]))):
        file.write_bytes(pack(kept.kind, kept.facts, kept.members | {"h.skops": data}))
        with refused("STATE_DAMAGED"):
            both.folder.export(anchor_predictions=True)


@pytest.mark.slow
def test_the_score_is_of_rows_left_out(place):
    there = place()
    there.folder.add([there.send(name) for name in ("north", "south", "west")])
    score = there.folder.integrate(LTI, FOREST).score
    assert score.low < score.value < score.high
    assert 0.4 < score.value < 0.6 * score.baseline  # a forest knows the rows it was trained on
    assert score.sentence().startswith("Log loss of the model on rows left out: ")


@pytest.mark.slow
def test_copies_of_a_row_are_left_out_together(place):
    """A row that stands for several is there several times; a forest would know it, even with targets drawn by lot."""
    there = place()
    lot = np.random.default_rng(0).integers(10, size=len(there.digits[1]))
    grouped = [Microaggregation(3, small_classes="group")]
    there.folder.add([there.send(name, target=lot, defences=grouped) for name in ("north", "south", "west")])
    score = there.folder.integrate(LTI, FOREST).score
    assert score.value > score.baseline
    assert there.folder.integrate(LTI, FOREST).n_repeated == {"north": 80, "south": 80, "west": 80}


def test_a_folder_is_for_the_analysts_key(place, tmp_path, keys):
    there = place()
    other = tmp_path / "other"
    other.mkdir()
    with refused("KEY_MISSING"):
        AnalystFolder.init(other, there.path / "project.toml")
    keys["north"].save(other / "keys.json")
    with refused("NOT_A_MEMBER", "is that of party 'north' in project .* with -C"):
        AnalystFolder.init(other, there.path / "project.toml")
    (other / "keys.json").unlink()
    KeyPair.generate().save(other / "keys.json")
    with refused("NOT_A_MEMBER", "public.key"):
        AnalystFolder.init(other, there.path / "project.toml")
    with refused("FOLDER_MISSING", "init"):
        AnalystFolder(other)


def test_the_log_names_every_step_and_holds_together(both):
    both.folder.integrate(LTI, FOREST)
    both.folder.export()
    log = AuditLog(both.folder.path / "log.jsonl")
    log.verify()
    assert [entry["event"] for entry in log.entries()] == ["init", "add", "add", "integrate", "export"]


@pytest.mark.slow
def test_folders_that_somebody_tidied_up_are_made_again(place):
    there = place()
    for name in ("shares", "outbox"):
        (there.folder.path / name).rmdir()
    there.folder.add([there.send(name) for name in ("north", "south")])
    there.folder.integrate(LTI, FOREST)
    assert all(file.is_file() for file in there.folder.export())


def test_a_damaged_collaboration_is_noticed(both):
    both.folder.integrate(LTI, FOREST)
    file = both.folder.path / "collaboration.dcstate"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with refused("STATE_DAMAGED", "integrate"):
        both.folder.export()


def test_no_model_lies_in_the_outbox_before_the_log_knows_of_it(both, monkeypatch):
    both.folder.integrate(LTI, FOREST)

    def full(self, event, **facts):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(AuditLog, "append", full)
        with pytest.raises(OSError, match="No space"):
            both.folder.export()
    assert not list((both.folder.path / "outbox").iterdir())
    assert not list(both.folder.path.glob(".export-*"))
    (both.folder.path / ".export-killed").mkdir()
    assert len(both.folder.export()) == 2
    assert not list(both.folder.path.glob(".export-*"))


@pytest.mark.parametrize("n_repeats", [1, 10, 100])
@pytest.mark.parametrize("kind", ["kti", "lti", "gep", "mpp"])
def test_a_share_that_says_everything_many_times_stops_nobody(rng, kind, n_repeats):
    """Its columns ask for as many components as it has dimensions, not as it has columns, or than anchors tell."""
    from datacollab.steps.analyst import make_integrator

    A, X = rng.normal(size=(80, 5)), rng.normal(size=(60, 5))
    shares = []
    for name, repeats in (("a", 1), ("b", n_repeats)):
        F = np.tile(rng.normal(size=(5, 4)), repeats)
        shares.append(dc.Share(party=name, representation=X @ F, anchor_representation=A @ F, target=np.arange(60) % 2))
    integrator = make_integrator(kind, shares)
    assert integrator.n_components == 4
    collaboration = dc.Analyst(integrator, FOREST).fit(shares)
    assert collaboration.representations_["b"].shape == (60, 4)


def test_components_by_default_are_fewer_than_anchors(rng):
    from datacollab.steps.analyst import make_integrator

    wide = rng.normal(size=(30, 60))
    shares = [dc.Share(party="a", representation=wide, anchor_representation=wide, target=np.arange(30) % 2)]
    assert make_integrator("kti", shares).n_components == 29
    zero = replace(shares[0], anchor_representation=0 * wide)
    assert make_integrator("kti", [zero]).n_components == 1


@pytest.mark.parametrize("kind", ["kti", "kti-cv", "lti", "gep", "mpp", "odc"])
@pytest.mark.slow
def test_methods_by_name(place, kind):
    from datacollab.steps.analyst import make_integrator

    there = place()
    there.folder.add([there.send(name) for name in ("north", "south")])
    shares = [each.share for each in there.folder.shares()]
    integrator = make_integrator(kind, shares)
    assert np.isfinite(there.folder.integrate(integrator, FOREST, n_folds=None).concordance["north"])
