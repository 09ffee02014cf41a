"""Class sums as a message: what they may hold, and their files."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from datacollab.bundle import Bundle, KeyPair, arrays_to_bytes, bytes_to_arrays, unpack
from datacollab.errors import ShareError
from datacollab.share import SUMS_KIND, ClassSums, class_sums_from, sums_contents
from refusals import refused_with

FINITE = st.floats(-1e30, 1e30)
POSITIVE = st.floats(1e-300, 1e29)


def message(**changes):
    fields = {
        "party": "north",
        "classes": np.array(["no", "perhaps", "yes"]),
        "sums": np.arange(6.0).reshape(3, 2) / 7,
        "counts": np.array([3.5, -0.25, 8.0]),
        "anchor_representation": np.arange(8.0).reshape(4, 2) / 3,
        "clip": 1.5,
        "noise": 3.25,
        "epsilon": 4.0,
        "delta": 1e-5,
    }
    return ClassSums(**fields | changes)


def bundle_of(sums):
    facts, members = sums_contents(sums)
    return Bundle(kind=SUMS_KIND, facts=facts, members=members, signer=None, digest="")


def assert_same(loaded, saved):
    for name in ("party", "clip", "noise", "epsilon", "delta"):
        assert getattr(loaded, name) == getattr(saved, name)
    for name in ("classes", "sums", "counts", "anchor_representation"):
        assert_array_equal(getattr(loaded, name), getattr(saved, name))
    assert (loaded.anchor_target is None) == (saved.anchor_target is None)
    if saved.anchor_target is not None:
        assert_array_equal(loaded.anchor_target, saved.anchor_target)


@given(
    sums=hnp.arrays(np.float64, (3, 2), elements=FINITE),
    counts=hnp.arrays(np.float64, 3, elements=FINITE),
    anchor=hnp.arrays(np.float64, (4, 2), elements=FINITE),
    classes=st.sampled_from([np.array([-1, 0, 5]), np.array(["a", "b", "c"]), np.array([0.0, 0.5, 2.0])]),
    targets=st.none() | st.lists(st.integers(0, 2), min_size=4, max_size=4),
    clip=POSITIVE,
    noise=POSITIVE,
    promise=st.none() | st.tuples(st.floats(1e-3, 1e3), st.floats(1e-12, 0.5)),
    party=st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.integers(0, 10**6)),
)
@settings(max_examples=100)
def test_any_message_comes_back(sums, counts, anchor, classes, targets, clip, noise, promise, party):
    epsilon, delta = promise or (None, None)
    saved = ClassSums(
        party=party,
        classes=classes,
        sums=sums,
        counts=counts,
        anchor_representation=anchor,
        clip=clip,
        noise=noise,
        anchor_target=None if targets is None else classes[targets],
        epsilon=epsilon,
        delta=delta,
    )
    assert_same(class_sums_from(bundle_of(saved)), saved)


def test_save_and_load(tmp_path):
    key, file = KeyPair.generate(), tmp_path / "north.dcsums"
    saved = message(anchor_target=np.array(["no", "yes", "no", "no"]))
    saved.save(file, key=key)
    assert_same(ClassSums.load(file, signed_by=key.public), saved)
    with refused_with("SIGNATURE_INVALID"):
        ClassSums.load(file, signed_by=KeyPair.generate().public)
    facts = unpack(file).facts
    assert (facts["n_classes"], facts["n_components"], facts["n_anchors"]) == (3, 2, 4)
    assert not {"n_rows", "n_samples"} & facts.keys()


def test_it_cannot_be_changed_and_shows_shapes_alone():
    sums = message()
    with pytest.raises(FrozenInstanceError):
        sums.clip = 2.0
    for name in ("classes", "sums", "counts", "anchor_representation"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(sums, name)[0] = getattr(sums, name)[1]
    assert repr(sums) == (
        "ClassSums(party='north', classes=3, sums=(3, 2), anchor_representation=(4, 2), anchor_target=None, "
        "epsilon=4.0)"
    )
    assert sums.count_noise == 3.25 / 1.5
    assert sums.nbytes == sum(
        each.nbytes for each in (sums.classes, sums.sums, sums.counts, sums.anchor_representation)
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": ["no", "yes", "no"]}, "each once"),
        ({"classes": ["no"], "sums": [[1.0, 2.0]], "counts": [1.0]}, "at least two"),
        ({"classes": [[0, 1], [2, 3], [4, 5]]}, "several values per row|must be a list"),
        ({"classes": [0.0, 1.0, np.nan]}, "without NaN"),
        ({"counts": [1.0, 2.0]}, "one row and one entry for each of the 3 classes"),
        ({"counts": [1.0, 2.0, np.inf]}, "finite"),
        ({"counts": ["1", "2", "3"]}, "must be numbers"),
        ({"sums": np.zeros((3, 3))}, "3 columns but 2 are expected"),
        ({"sums": np.full((3, 2), 1e31)}, "beyond 1e\\+30"),
        ({"sums": np.full((3, 2), np.nan)}, "NaN or infinity"),
        ({"anchor_representation": np.zeros((0, 2))}, "empty"),
        ({"anchor_target": ["no", "yes"]}, "one entry per anchor row"),
        ({"clip": 0.0}, "clip must be a number above 0"),
        ({"clip": True}, "clip must be a number"),
        ({"noise": np.inf}, "noise must be a number"),
        ({"noise": "1"}, "noise must be a number"),
        ({"epsilon": None}, "both be stated, or neither"),
        ({"epsilon": -1.0}, "epsilon must be a number above 0"),
        ({"delta": 1.0}, "delta must be a number above 0 and below 1"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes, words):
    with pytest.raises(ShareError, match=words):
        message(**changes)


FACTS = {
    "party": [None, 1.5, "x" * 300],
    "n_classes": [2, "3", None, True],
    "n_components": [3],
    "n_anchors": [5],
    "clip": [0, -1.0, "1", None, True, 1e300],
    "noise": [0.0, None, []],
    "epsilon": [-1, "4", None, True],
    "delta": [0, 2.0, None],
    "target": [None, {"dtype": "int32"}, {"dtype": "str", "classes": ["no"]}],
}


@pytest.mark.parametrize(("fact", "value"), [(fact, value) for fact, values in FACTS.items() for value in values])
def test_a_file_that_says_otherwise_is_refused(fact, value):
    bundle = bundle_of(message())
    with refused_with("SHARE_MALFORMED"):
        class_sums_from(replace(bundle, facts={**bundle.facts, fact: value}))


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("sums"),
        lambda arrays: arrays.update(rows=np.zeros((2, 2))),
        lambda arrays: arrays.update(sums=arrays["sums"].astype(np.float32)),
        lambda arrays: arrays.update(counts=arrays["counts"][:, None]),
        lambda arrays: arrays.update(classes=np.array([0, 1, 7])),
        lambda arrays: arrays.update(classes=np.array([0, 1, 1])),
        lambda arrays: arrays.update(sums=np.full((3, 2), np.nan)),
        lambda arrays: arrays.update(anchor_representation=np.zeros((4, 3))),
    ],
)
def test_a_file_of_other_arrays_is_refused(change):
    bundle = bundle_of(message())
    arrays = bytes_to_arrays(bundle.members["sums.safetensors"], what="sums")
    change(arrays)
    with refused_with("SHARE_MALFORMED"):
        class_sums_from(replace(bundle, members={"sums.safetensors": arrays_to_bytes(arrays)}))


def test_other_bundles_and_members_are_refused():
    bundle = bundle_of(message())
    for other, code in (
        (replace(bundle, kind="datacollab.share"), "WRONG_KIND"),
        (replace(bundle, members={**bundle.members, "more.bin": b""}), "SHARE_MALFORMED"),
        (replace(bundle, members={"sums.safetensors": b"no tensors"}), "SHARE_MALFORMED"),
    ):
        with refused_with(code):
            class_sums_from(other)
