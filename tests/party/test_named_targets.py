"""Parties with times to events, effects, or no targets at all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import datacollab as dc
from datacollab.errors import AgreementError, ExchangeError, ObfuscationError, ShareError
from datacollab.party import Microaggregation
from datacollab.targets import TargetKind, effect_target, survival_target

RANDOM = np.random.default_rng(0)
X, ANCHOR = RANDOM.normal(size=(120, 5)), RANDOM.normal(size=(60, 5))
EVENT, TREATMENT = RANDOM.random(120) < 0.6, RANDOM.integers(0, 2, 120)
TIME, OUTCOME = 1.0 + RANDOM.exponential(400.0, size=120), RANDOM.normal(size=120)
TARGETS = {
    "survival": survival_target(EVENT, TIME),
    "effect": effect_target(TREATMENT, OUTCOME),
    "survival-effect": effect_target(TREATMENT, event=EVENT, time=TIME),
    "none": None,
}
NAMED = [TARGETS["survival"], TARGETS["effect"], TARGETS["survival-effect"]]


def party(**options):
    return dc.Party("a", dc.obfuscator("pca", 3), **options)


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_leave_beside_their_rows(kind):
    """Rows are shuffled; each keeps its own target."""
    y = TARGETS[kind]
    share, order = party(time_step=None).fit(X, y).share_with_order(ANCHOR)
    assert share.target_kind is TargetKind(kind)
    if y is not None:
        assert_array_equal(share.target, y[order])
    assert_allclose(share.representation, party(shuffle=False).fit(X, y).share(ANCHOR).representation[order])


@pytest.mark.parametrize("kind", TARGETS)
def test_shares_are_read_as_they_were_written(kind, tmp_path):
    y = TARGETS[kind]
    share = party().fit(X, y).share(ANCHOR, None if y is None else y[:60])
    share.save(tmp_path / "a.dcshare")
    read = dc.Share.load(tmp_path / "a.dcshare")
    assert read.target.dtype == share.target.dtype
    assert_array_equal(read.target, share.target)
    if y is not None:
        assert_array_equal(read.anchor_target, share.anchor_target)
    assert repr(read) == repr(share)
    assert kind in repr(read)


def test_times_leave_in_steps_unless_it_is_said_otherwise():
    y = TARGETS["survival"]
    for step, wanted in (("auto", None), (30.0, 30.0), (None, 0.0)):
        shown = party(time_step=step, shuffle=False).fit(X, y).share(ANCHOR).target
        assert_array_equal(shown["event"], y["event"])
        late = shown["time"] - y["time"]
        if wanted == 0.0:
            assert_array_equal(late, 0.0)
            continue
        found = np.min(np.diff(np.unique(shown["time"])))
        most = min(TIME.max() / 60, np.median(TIME[y["event"]]) / 3)
        assert most / 2 < found <= most * (1 + 1e-9) if wanted is None else found == wanted
        assert late.min() >= 0
        assert late.max() < found
    assert len(np.unique(party().fit(X, y).share(ANCHOR).target["time"])) < len(np.unique(TIME)) / 2


@pytest.mark.parametrize(("longest", "step"), [(60.0, 1.0), (179.0, 2.0), (1825.0, 30.0), (2400.0, 30.0), (0.6, 0.01)])
def test_the_automatic_step_is_round_and_goes_sixty_times_into_the_longest_time(longest, step):
    y = survival_target(np.ones(120), np.linspace(longest / 2, longest, 120))
    shown = party(shuffle=False).fit(X, y).share(ANCHOR).target["time"]
    assert_allclose(shown, np.ceil(y["time"] / step - 1e-9) * step)


@pytest.mark.parametrize("step", [0.0, -1.0, np.inf, np.nan, "month"])
def test_steps_that_are_none_are_refused(step):
    with pytest.raises(ValueError, match="time_step must be 'auto', a number above 0"):
        party(time_step=step).fit(X, TARGETS["survival"])


@pytest.mark.parametrize("kind", TARGETS)
def test_groups_are_of_one_treatment_or_of_all_rows_and_targets_stay(kind):
    y = TARGETS[kind]
    share, order = party(defences=[Microaggregation(5)]).fit(X, y).share_with_order(ANCHOR)
    _, groups, sizes = np.unique(share.representation, axis=0, return_inverse=True, return_counts=True)
    assert sizes.min() >= 5
    if y is None:
        return
    for name in set(y.dtype.names) - {"time"}:
        assert_array_equal(share.target[name], y[name][order])
    own = [groups.ravel() == g for g in range(len(sizes))]
    mixed = {name: any(len(set(share.target[name][each])) > 1 for each in own) for name in y.dtype.names}
    assert not mixed.get("treatment", False)
    assert mixed.get("event", True)


def test_groups_by_event_where_it_is_said():
    share = party(defences=[Microaggregation(4, by="event")]).fit(X, TARGETS["survival"]).share(ANCHOR)
    for row in np.unique(share.representation, axis=0):
        assert len(set(share.target["event"][(share.representation == row).all(axis=1)])) == 1


def test_groups_by_features_alone_keep_classes_apart_no_longer():
    classes = np.arange(120) % 3
    share = party(defences=[Microaggregation(5, by=None)]).fit(X, classes).share(ANCHOR)
    first = (share.representation == share.representation[0]).all(axis=1)
    assert len(set(share.target[first])) > 1
    assert sorted(share.target) == sorted(classes)


@pytest.mark.parametrize("by", ["outcome", "time"])
def test_groups_by_outcome_cannot_be_asked_for(by):
    with pytest.raises(ObfuscationError, match=f"groups by {by} would make rows of like outcomes alike"):
        party(defences=[Microaggregation(5, by=by)]).fit(X, TARGETS["effect"])


@pytest.mark.parametrize(("by", "kind"), [("treatment", "survival"), ("event", "effect"), ("target", "survival")])
def test_groups_by_what_is_not_there_are_refused(by, kind):
    with pytest.raises(ObfuscationError, match=f"of kind '{kind}' cannot be grouped by '{by}'"):
        party(defences=[Microaggregation(5, by=by)]).fit(X, TARGETS[kind])


def test_rows_are_known_again_with_their_targets():
    fitted = party().fit(X, TARGETS["survival"])
    assert fitted.was_fitted_on(X, TARGETS["survival"])
    assert not fitted.was_fitted_on(X, survival_target(EVENT, TIME + 1))


def test_an_analyst_refuses_what_no_model_is_trained_on():
    shares = {kind: dc.Party(kind, dc.obfuscator("pca", 3)).fit(X, y).share(ANCHOR) for kind, y in TARGETS.items()}
    for kind, message in (
        ("effect", "estimate_effect"),
        ("survival-effect", "estimate_effect"),
        ("none", "no targets"),
    ):
        with pytest.raises(AgreementError, match=message):
            dc.Analyst().fit([shares[kind]])
    with pytest.raises(AgreementError, match="Name both"):
        dc.Analyst().fit([shares["survival"]])
    with pytest.raises(AgreementError, match="different kinds"):
        dc.Analyst().fit([shares["survival"], shares["none"]])


def _rewritten(tmp_path, change):
    """A share of times to events, its arrays changed by somebody who can write the format."""
    from datacollab.bundle import arrays_to_bytes, bytes_to_arrays
    from datacollab.share import SHARE_KIND, share_contents

    facts, members = share_contents(party().fit(X, TARGETS["survival"]).share(ANCHOR))
    arrays = dict(bytes_to_arrays(members["share.safetensors"], what="it"))
    change(facts, arrays)
    from datacollab.bundle import pack

    path = tmp_path / "hostile.dcshare"
    path.write_bytes(pack(SHARE_KIND, facts, {"share.safetensors": arrays_to_bytes(arrays)}))
    return path


HOSTILE = {
    "kind": lambda facts, arrays: facts.update(target={"kind": "single"}),
    "kind no text": lambda facts, arrays: facts.update(target={"kind": ["survival"]}),
    "more facts": lambda facts, arrays: facts.update(target={"kind": "survival", "dtype": "int64"}),
    "another kind": lambda facts, arrays: facts.update(target={"kind": "none"}),
    "no time": lambda facts, arrays: arrays.pop("time"),
    "one more": lambda facts, arrays: arrays.update(treatment=np.zeros(120, dtype=np.int64)),
    "half an anchor": lambda facts, arrays: arrays.update(anchor_time=np.ones(60)),
    "short": lambda facts, arrays: arrays.update(time=np.ones(119)),
    "table": lambda facts, arrays: arrays.update(time=np.ones((120, 1))),
    "single precision": lambda facts, arrays: arrays.update(time=np.ones(120, dtype=np.float32)),
    "numbers for events": lambda facts, arrays: arrays.update(event=np.ones(120)),
    "not a number": lambda facts, arrays: arrays.update(time=np.full(120, np.nan)),
    "before the start": lambda facts, arrays: arrays.update(time=-np.ones(120)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_targets_are_refused(name, tmp_path):
    with pytest.raises(ExchangeError) as refused:
        dc.Share.load(_rewritten(tmp_path, HOSTILE[name]))
    assert refused.value.code == "SHARE_MALFORMED"


def test_the_unchanged_share_is_read(tmp_path):
    assert dc.Share.load(_rewritten(tmp_path, lambda facts, arrays: None)).target_kind is TargetKind.SURVIVAL


@pytest.mark.parametrize("target", NAMED, ids=["survival", "effect", "survival-effect"])
def test_a_share_refuses_entries_without_meaning(target):
    field = "time" if "time" in target.dtype.names else "treatment"
    wrong = target.copy()
    wrong[field] = -1
    with pytest.raises(ShareError, match=f"Party 'a': target: {field} must be"):
        dc.Share(party="a", representation=X, anchor_representation=ANCHOR, target=wrong)
