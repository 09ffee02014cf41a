"""The message of a party that shares rows, and its file."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from datacollab import Share
from datacollab.bundle import Bundle, KeyPair, arrays_to_bytes, bytes_to_arrays, unpack
from datacollab.errors import ExchangeError, ShareError
from datacollab.share import SHARE_KIND, share_contents, share_from
from refusals import each, refused_with


def arrays(**changes):
    fields = {
        "party": "a",
        "representation": np.ones((4, 2)),
        "anchor_representation": np.ones((3, 2)),
        "target": np.array([0, 1, 0, 1]),
        "anchor_target": np.array([0, 1, 0]),
    }
    return {**fields, **changes}


def test_fields_are_frozen_copies():
    given = arrays()
    share = Share(**given)
    given["representation"][0, 0] = 7.0
    assert share.representation[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        share.representation[0, 0] = 7.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        share.target = None
    held = [getattr(share, field.name) for field in dataclasses.fields(share)]
    assert share.nbytes == sum(array.nbytes for array in held if isinstance(array, np.ndarray))


def test_nothing_but_the_documented_fields_crosses():
    names = {field.name for field in dataclasses.fields(Share)}
    arrays_sent = {"representation", "anchor_representation", "target", "anchor_target"}
    assert names == {"party", "one_to_one", *arrays_sent}
    assert set(vars(Share(**arrays()))) == names


def test_repr_shows_shapes_only():
    text = repr(Share(**arrays(representation=np.full((4, 2), 0.123456))))
    assert "0.123456" not in text
    assert "representation=(4, 2)" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"anchor_representation": np.ones((3, 5))}, r"rows have 2 columns but its anchor has 5"),
        ({"target": np.zeros(3)}, r"target must have one entry per row, shape \(4,\); got \(3,\)"),
        ({"anchor_target": np.zeros((3, 1))}, r"anchor_target must have one entry per row, shape \(3,\); got \(3, 1\)"),
        ({"target": np.array([0.0, np.nan, 0, 1])}, r"target contains NaN, None or infinity"),
        ({"target": np.array(["well", None, "ill", "ill"], dtype=object)}, r"target contains NaN, None or infinity"),
        ({"representation": np.array([[np.inf, 1.0]] * 4)}, r"representation contains NaN or infinity in 4 of 4 rows"),
        ({"anchor_representation": np.ones((0, 2))}, r"anchor representation is empty"),
        ({"representation": [["Smith", "x"]] * 4}, r"representation must be an array of real numbers"),
    ],
)
def test_malformed_shares_are_refused(changes, message):
    with pytest.raises(ShareError, match=f"Party 'a'.*{message}") as caught:
        Share(**arrays(**changes))
    assert "Smith" not in str(caught.value)


@pytest.mark.parametrize("name", ["representation", "anchor_representation"])
@pytest.mark.parametrize("entry", [1.1e30, -1e308])
def test_entries_that_would_drown_everybody_are_refused_by_name(name, entry):
    changed = arrays()
    changed[name] = changed[name].copy()
    changed[name][1, 0] = entry
    with pytest.raises(ShareError, match=r"Party 'a'.*1e\+30") as caught:
        Share(**changed)
    assert "308" not in str(caught.value)
    changed[name][1, 0] = -1e30
    Share(**changed)


FINITE = st.floats(-1e30, 1e30)
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64"]


def share(target=("no", "yes", "no"), **changes):
    fields = {
        "party": "north",
        "representation": np.arange(6.0).reshape(3, 2) / 7,
        "anchor_representation": np.arange(8.0).reshape(4, 2) / 3,
        "target": np.asarray(target),
    }
    return Share(**fields | changes)


def bundle_of(shared):
    facts, members = share_contents(shared)
    return Bundle(kind=SHARE_KIND, facts=facts, members=members, signer=None, digest="")


def with_arrays(bundle, change):
    arrays = bytes_to_arrays(bundle.members["share.safetensors"], what="share")
    change(arrays)
    return replace(bundle, members={"share.safetensors": arrays_to_bytes(arrays)})


def assert_same(loaded, saved):
    assert (loaded.party, loaded.one_to_one) == (saved.party, saved.one_to_one)
    for name in ("representation", "anchor_representation", "target", "anchor_target"):
        first, second = getattr(loaded, name), getattr(saved, name)
        assert (first is None) == (second is None)
        if first is not None:
            # Texts may be given more room.
            assert first.dtype == second.dtype or first.dtype.kind == second.dtype.kind == "U"
            np.testing.assert_array_equal(first, second)


@pytest.mark.slow
@given(
    representation=hnp.arrays(np.float64, (3, 2), elements=FINITE),
    anchor=hnp.arrays(np.float64, (4, 2), elements=FINITE),
    target=st.one_of(
        *[
            hnp.arrays(
                dtype, 7, elements={} if np.dtype(dtype).kind != "f" else {"allow_nan": False, "allow_infinity": False}
            )
            for dtype in DTYPES
        ],
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
            min_size=7,
            max_size=7,
        ).map(lambda names: np.array(names, dtype=object)),
    ),
    as_text=st.booleans(),
    with_anchor_target=st.booleans(),
    one_to_one=st.booleans(),
    party=st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.integers(0, 10**6)),
)
@settings(deadline=None, max_examples=200)
def test_any_share_comes_back(representation, anchor, target, as_text, with_anchor_target, one_to_one, party):
    if target.dtype == object and as_text:
        target = target.astype(str)
    saved = Share(
        party=party,
        representation=representation,
        anchor_representation=anchor,
        target=target[:3],
        anchor_target=target[3:] if with_anchor_target else None,
        one_to_one=one_to_one,
    )
    assert_same(share_from(bundle_of(saved)), saved)


def test_save_and_load(tmp_path):
    key, file = KeyPair.generate(), tmp_path / "north.dcshare"
    saved = share(anchor_target=np.array(["no", "perhaps", "no", "no"]))
    saved.save(file, key=key)
    assert_same(Share.load(file, signed_by=key.public), saved)
    assert_same(Share.load(str(file)), saved)
    with refused_with("SIGNATURE_INVALID"):
        Share.load(file, signed_by=KeyPair.generate().public)
    facts = unpack(file).facts
    assert (facts["party"], facts["n_rows"], facts["n_components"], facts["n_anchors"]) == ("north", 3, 2, 4)
    assert facts["target"] == {"dtype": "str", "classes": ["no", "perhaps", "yes"]}


def test_a_model_is_no_share():
    with refused_with("WRONG_KIND"):
        share_from(replace(bundle_of(share()), kind="datacollab.model"))


@pytest.mark.parametrize(
    ("target", "anchor_target"),
    [
        (np.array(["a", 1, 2], dtype=object), None),
        (np.array([1, 2, 3], dtype=complex), None),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[D]"), None),
        (np.array(["a", "b", "c"]), np.array([1, 2, 3, 4])),
        (np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0, 4.0])),
    ],
    ids=["mixed", "complex", "dates", "text and numbers", "integers and fractions"],
)
def test_targets_of_other_kinds_are_not_sent(target, anchor_target):
    with refused_with("SHARE_MALFORMED", match="'north'"):
        share_contents(share(target, anchor_target=anchor_target))


def refused(bundle):
    with pytest.raises(ExchangeError) as caught:
        share_from(bundle)
    return caught.value.code


@pytest.mark.parametrize(
    "change",
    each(
        party=[None, True, "x" * 201],
        n_rows=[4, 3.0],
        n_components=["2"],
        n_anchors=[None],
        target=[
            *(None, {"dtype": "no such type"}, {"dtype": ["str"]}, {"dtype": "float64"}),
            *({"dtype": "str", "classes": classes} for classes in ([], *(["no", *more] for more in ([], ["no"], [3])))),
            *({"dtype": dtype, "classes": ["no", "x" * 201]} for dtype in ("str", "object")),
        ],
        one_to_one=[None, 1, "yes"],
    ),
)
def test_a_manifest_that_contradicts_the_arrays_is_refused(change):
    bundle = bundle_of(share())
    assert refused(replace(bundle, facts=bundle.facts | change)) == "SHARE_MALFORMED"


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("target"),
        lambda arrays: arrays.update(raw=np.zeros(3)),
        lambda arrays: arrays.update(target=arrays["target"][:2]),
        lambda arrays: arrays.update(target=arrays["target"] - 1),
        lambda arrays: arrays.update(target=arrays["target"].astype(np.float64)),
        lambda arrays: arrays.update(representation=arrays["representation"][:, :1]),
        lambda arrays: arrays.update(representation=arrays["representation"].astype(np.float32)),
        lambda arrays: arrays["representation"].__setitem__((0, 0), np.nan),
        lambda arrays: arrays["anchor_representation"].__setitem__((0, 0), np.inf),
        lambda arrays: arrays.update(anchor_target=np.zeros(1, dtype=np.int64)),
    ],
    ids=["missing", "more", "rows", "codes", "type", "columns", "precision", "NaN", "infinity", "anchor target"],
)
def test_arrays_that_do_not_fit_together_are_refused(change):
    assert refused(with_arrays(bundle_of(share()), change)) == "SHARE_MALFORMED"


def test_numbers_beyond_the_range_of_their_type_are_refused():
    bundle = bundle_of(share(np.array([1, 2, 3], dtype=np.uint8)))
    assert refused(with_arrays(bundle, lambda arrays: arrays["target"].__setitem__(0, 300))) == "SHARE_MALFORMED"


@pytest.mark.slow
@given(data=st.binary(max_size=200))
@settings(deadline=None, max_examples=100)
def test_any_bytes_in_place_of_the_arrays_are_refused(data):
    assert refused(replace(bundle_of(share()), members={"share.safetensors": data})) == "SHARE_MALFORMED"


def test_sealed_or_further_members_are_refused():
    bundle = bundle_of(share())
    assert refused(replace(bundle, members={"sealed.bin": b""})) == "SHARE_MALFORMED"
    assert refused(replace(bundle, members=bundle.members | {"more.bin": b""})) == "SHARE_MALFORMED"


@pytest.mark.parametrize("dtype", ["str", "object"])
def test_a_small_file_whose_targets_would_take_much_memory_is_refused(dtype):
    """Each row has room for the longest class, so 2 million take 1.6 GB."""
    n_rows = 2 * 10**6
    arrays = {
        "representation": np.zeros((n_rows, 1)),
        "anchor_representation": np.zeros((3, 1)),
        "target": np.zeros(n_rows, dtype=np.int64),
    }
    facts = {"n_rows": n_rows, "n_components": 1, "n_anchors": 3, "target": {"dtype": dtype, "classes": ["x" * 200]}}
    bundle = bundle_of(share())
    members = {"share.safetensors": arrays_to_bytes(arrays)}
    assert refused(replace(bundle, facts=bundle.facts | facts, members=members)) == "TOO_LARGE"


def test_a_lack_of_memory_is_a_refusal(monkeypatch):
    def no_memory(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("datacollab.share._share.decode_targets", no_memory)
    assert refused(bundle_of(share())) == "TOO_LARGE"


def test_a_class_of_a_long_name_is_not_sent():
    assert share_from(bundle_of(share(["a", "b", "x" * 200]))).target[2] == "x" * 200
    with refused_with("SHARE_MALFORMED", match="'north'.*200 characters"):
        share_contents(share(["a", "b", "x" * 201]))


def test_no_error_shows_a_class():
    bundle = bundle_of(share(["cured", "dead", "cured"]))
    with pytest.raises(ExchangeError) as caught:
        share_from(replace(bundle, facts=bundle.facts | {"target": {"dtype": "str", "classes": ["dead", "dead"]}}))
    assert "dead" not in str(caught.value)
