"""What crosses between groups, in files: what is saved is what is loaded, and what no sum can be is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from datacollab.bundle import Bundle, KeyPair, arrays_to_bytes, bytes_to_arrays, unpack
from datacollab.errors import ExchangeError, ShareError
from datacollab.share import (
    GROUP_KIND,
    MOMENTS_KIND,
    TARGET_KIND,
    GroupMessage,
    GroupMoments,
    GroupTarget,
    from_triangle,
    group_message_contents,
    group_message_from,
    group_moments_contents,
    group_moments_from,
    group_target_contents,
    group_target_from,
    share_from,
    to_triangle,
)

N = 7
LTI = {"method": "LTI", "n_components": 2, "fit_intercept": True}
KTI = {
    "method": "KTI",
    "n_components": 2,
    "kernel": "rbf",
    "gamma": "median",
    "gamma_factor": 1.0,
    "alpha": 0.1,
    "degree": 3.0,
    "coef0": 1.0,
    "center": True,
    "graph": {"kind": "TargetSimilarityGraph", "n_neighbors": 3, "approximate": False, "scale": 1.0, "task": "auto"},
    "graph_weight": 1.0,
    "anchor_target": "0" * 64,
}


def linear_message(**changes):
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(N, 3)))
    centred = basis - basis.mean(axis=0)
    fields = {
        "group": "north",
        "settings": LTI,
        "n_anchors": N,
        "n_parties": 2,
        "n_rows": 40,
        "arrays": {"factor": centred},
    }
    return GroupMessage(**fields | changes)


def kernel_message(**changes):
    Q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(N, N)))
    fields = {
        "group": "south",
        "settings": KTI,
        "n_anchors": N,
        "n_parties": 2,
        "n_rows": 40,
        "arrays": {
            "triangle": to_triangle(np.asfortranarray((Q * np.linspace(0, 2, N)) @ Q.T)),
            "edges": np.array([[1, 0], [3, 0], [6, 2]]),
            "edge_weights": np.array([0.5, 2.0, 1.0]),
        },
    }
    return GroupMessage(**fields | changes)


def target(**changes):
    Z = np.random.default_rng(2).normal(size=(N, 2))
    Z, _ = np.linalg.qr(Z - Z.mean(axis=0))
    fields = {
        "settings": LTI,
        "groups": ("north", "south"),
        "n_parties": 4,
        "target": Z,
        "eigenvalues": np.array([3.9, 2.5]),
    }
    return GroupTarget(**fields | changes)


def moments(classes=("no", "yes"), **changes):
    rows = np.random.default_rng(3).normal(size=(8, 2))
    T = np.repeat(np.eye(2), 4, axis=0) if classes is not None else np.column_stack([np.ones(8), rows[:, 0]])
    joined = np.column_stack([T, rows])
    gram = joined.T @ joined
    fields = {
        "group": "north",
        "space": "a" * 64,
        "classes": None if classes is None else np.asarray(classes),
        "gram": (gram + gram.T) / 2,
    }
    return GroupMoments(**fields | changes)


KINDS = {
    "linear": (GROUP_KIND, linear_message, group_message_contents, group_message_from),
    "kernel": (GROUP_KIND, kernel_message, group_message_contents, group_message_from),
    "target": (TARGET_KIND, target, group_target_contents, group_target_from),
    "moments": (MOMENTS_KIND, moments, group_moments_contents, group_moments_from),
}


def bundle_of(name):
    kind, make, contents, _ = KINDS[name]
    facts, members = contents(make())
    return Bundle(kind=kind, version=1, facts=facts, members=members, signer=None, digest="")


def with_arrays(bundle, change):
    (member,) = bundle.members
    arrays = bytes_to_arrays(bundle.members[member], what="group")
    change(arrays)
    return replace(bundle, members={member: arrays_to_bytes(arrays)})


def refused(name, bundle):
    with pytest.raises(ExchangeError, match=r"\. ") as caught:
        KINDS[name][3](bundle)
    return caught.value.code


def assert_same(first, second):
    assert vars(first).keys() == vars(second).keys()
    for field, value in vars(first).items():
        if isinstance(value, dict):
            assert value.keys() == vars(second)[field].keys()
            for name, each in value.items():
                assert_array_equal(each, vars(second)[field][name])
        else:
            assert_array_equal(value, vars(second)[field])


@pytest.mark.parametrize("name", KINDS)
def test_what_is_saved_is_loaded_and_signed(name, tmp_path):
    kind, make, _, _ = KINDS[name]
    made, key, file = make(), KeyPair.generate(), tmp_path / "file"
    made.save(file, key=key)
    assert file.stat().st_mode & 0o777 == 0o600
    assert unpack(file).kind == kind
    assert_same(type(made).load(file, signed_by=key.public), made)
    with pytest.raises(ExchangeError) as caught:
        type(made).load(file, signed_by=KeyPair.generate().public)
    assert caught.value.code == "SIGNATURE_INVALID"


@pytest.mark.parametrize(
    "classes", [None, [0, 1], np.array([-3, 7], dtype=np.int16), [False, True], np.array(["a", "bb"], dtype=object)]
)
def test_moments_of_any_targets_come_back(classes, tmp_path):
    saved = moments(classes)
    saved.save(tmp_path / "file")
    loaded = GroupMoments.load(tmp_path / "file")
    assert_same(loaded, saved)
    assert loaded.n_rows == 8
    assert classes is None or loaded.classes.dtype == saved.classes.dtype


def test_arrays_are_copies_that_cannot_be_written_to():
    Z = target().target.copy()
    made = target(target=Z)
    Z[0, 0] = 9
    assert made.target[0, 0] != 9
    with pytest.raises(ValueError, match="read-only"):
        made.target[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        linear_message().arrays["factor"][0, 0] = 1


@given(seed=st.integers(0, 1000), n=st.integers(2, 12))
@settings(deadline=None)
def test_a_triangle_is_the_lower_one_column_by_column(seed, n):
    M = np.random.default_rng(seed).normal(size=(n, n))
    packed = to_triangle(np.asfortranarray(M))
    assert_array_equal(packed, np.concatenate([M[j:, j] for j in range(n)]))
    assert_array_equal(from_triangle(packed, n), np.tril(M))


def entry(name, place, value):
    return lambda arrays: arrays[name].__setitem__(place, value)


def put(name, make):
    return lambda arrays: arrays.update({name: make(arrays[name])})


HOSTILE = {
    "a NaN": ("linear", entry("factor", (0, 0), np.nan)),
    "an infinity": ("kernel", entry("triangle", 0, np.inf)),
    "a huge number": ("linear", entry("factor", (0, 0), 1e200)),
    "more than its parties": ("linear", put("factor", lambda F: F * 2)),
    "columns that do not sum to zero": ("linear", put("factor", lambda F: F + 0.05)),
    "other rows": ("linear", put("factor", lambda F: F[1:])),
    "too many columns": ("linear", put("factor", lambda F: np.tile(F / 10, 3))),
    "no columns": ("linear", put("factor", lambda F: F[:, :0])),
    "single precision": ("linear", put("factor", lambda F: F.astype(np.float32))),
    "a vector": ("linear", put("factor", np.ravel)),
    "a negative eigenvalue": ("kernel", put("triangle", lambda packed: packed - 0.2 * np.eye(N)[np.tril_indices(N)])),
    "an eigenvalue beyond the parties": ("kernel", put("triangle", lambda packed: 1.01 * packed)),
    "a shorter triangle": ("kernel", put("triangle", lambda packed: packed[:-1])),
    "a square": ("kernel", put("triangle", lambda packed: from_triangle(packed, N))),
    "an edge to itself": ("kernel", entry("edges", (0, 0), 0)),
    "an edge beyond the anchor": ("kernel", entry("edges", (2, 0), N)),
    "a negative row": ("kernel", entry("edges", (0, 1), -1)),
    "an edge twice": ("kernel", put("edges", lambda edges: edges[[0, 0, 1]])),
    "an edge without weight": ("kernel", entry("edge_weights", 0, 0.0)),
    "an edge of much weight": ("kernel", entry("edge_weights", 0, 2.5)),
    "fewer weights": ("kernel", put("edge_weights", lambda weights: weights[1:])),
    "no edges": ("kernel", lambda arrays: arrays.update(edges=np.zeros((0, 2), int), edge_weights=np.zeros(0))),
    "no graph": ("kernel", lambda arrays: arrays.pop("edges")),
    "another array": ("kernel", lambda arrays: arrays.update(factor=np.zeros((N, 2)))),
    "a longer column": ("target", put("target", lambda Z: Z * [1.0, 1.001])),
    "equal columns": ("target", put("target", lambda Z: Z[:, [0, 0]])),
    "a shift": ("target", put("target", lambda Z: np.linalg.qr(Z + 0.1)[0])),
    "more components": ("target", put("target", lambda Z: np.linalg.qr(np.hstack([Z, np.eye(N)[:, :1]]))[0])),
    "one component": ("target", put("target", lambda Z: Z[:, :1])),
    "a flat target": ("target", put("target", np.ravel)),
    "a negative eigenvalue of the target": ("target", entry("eigenvalues", 1, -1.0)),
    "eigenvalues out of order": ("target", put("eigenvalues", lambda values: values[::-1].copy())),
    "fewer eigenvalues": ("target", put("eigenvalues", lambda values: values[:1])),
    "an asymmetry": ("moments", entry("gram", (0, 3), 9.0)),
    "half a row": ("moments", entry("gram", (0, 0), 4.5)),
    "a row in two classes": ("moments", put("gram", lambda S: S + np.pad([[0, 1], [1, 0]], ((0, 2), (0, 2))))),
    "an empty class": ("moments", entry("gram", (0, 0), 0.0)),
    "what no table has": ("moments", put("gram", lambda S: S - np.diag([0, 0, 0, S[3, 3]]))),
    "moments of nothing": ("moments", put("gram", lambda S: S[:2, :2])),
    "one class": ("moments", put("classes", lambda codes: codes[:1])),
    "a class twice": ("moments", entry("classes", 1, 0)),
    "moments that are not finite": ("moments", entry("gram", (2, 2), np.inf)),
}


@pytest.mark.parametrize("change", HOSTILE)
def test_arrays_that_no_group_can_have_are_refused(change):
    name, changed = HOSTILE[change]
    assert refused(name, with_arrays(bundle_of(name), changed)) == "GROUP_MALFORMED"


def facts(name, **changes):
    return name, lambda bundle: replace(bundle, facts=bundle.facts | changes)


def without(name, fact):
    return name, lambda bundle: replace(bundle, facts={key: v for key, v in bundle.facts.items() if key != fact})


LIES = {
    "no name": facts("linear", group=""),
    "a long name": facts("linear", group="x" * 201),
    "a number for a name": facts("linear", group=3),
    "no parties": facts("linear", n_parties=0),
    "true parties": facts("linear", n_parties=True),
    "fewer parties": facts("kernel", n_parties=1),
    "more anchor rows": facts("linear", n_anchors=N + 1),
    "so many rows": facts("linear", n_rows=10**30),
    "another method": facts("linear", settings=LTI | {"method": "ODC"}),
    "no settings": facts("linear", settings=None),
    "a setting more": facts("linear", settings=LTI | {"alpha": 1.0}),
    "a setting less": facts("linear", settings={"method": "LTI", "n_components": 2}),
    "an impossible setting": facts("kernel", settings=KTI | {"alpha": -1.0}),
    "an unknown kernel": facts("kernel", settings=KTI | {"kernel": "os.system"}),
    "an unknown graph": facts("kernel", settings=KTI | {"graph": {"kind": "Any"}}),
    "no graph in the settings": facts("kernel", settings=KTI | {"graph": None}),
    "a fact more": facts("linear", rows=[1, 2]),
    "a fact less": without("linear", "n_rows"),
    "groups out of order": facts("target", groups=["south", "north"]),
    "a group twice": facts("target", groups=["north", "north"]),
    "no groups": facts("target", groups=[]),
    "groups as text": facts("target", groups="ab"),
    "more groups than parties": facts("target", n_parties=1),
    "a gap of text": facts("target", gap="1"),
    "another space": facts("moments", space="b"),
    "classes of numbers": facts("moments", classes={"dtype": "float64"}),
    "no classes": facts("moments", classes=None),
    "strange classes": facts("moments", classes={"dtype": "complex128"}),
}


@pytest.mark.parametrize("lie", LIES)
def test_manifests_that_say_something_else_are_refused(lie):
    name, change = LIES[lie]
    assert refused(name, change(bundle_of(name))) == "GROUP_MALFORMED"


@pytest.mark.parametrize("name", KINDS)
def test_members_of_other_names_or_kinds_are_refused(name):
    bundle = bundle_of(name)
    assert refused(name, replace(bundle, members=bundle.members | {"more.bin": b""})) == "GROUP_MALFORMED"
    assert refused(name, replace(bundle, members=dict.fromkeys(bundle.members, b"no arrays"))) == "GROUP_MALFORMED"
    assert refused(name, replace(bundle, kind="datacollab.share")) == "WRONG_KIND"
    with pytest.raises(ExchangeError) as caught:
        share_from(bundle)
    assert caught.value.code == "WRONG_KIND"


@pytest.mark.parametrize("name", KINDS)
def test_a_lack_of_memory_is_a_refusal(name, monkeypatch):
    def no_memory(*args, **kwargs):
        raise MemoryError

    modules = {"linear": "message", "kernel": "message", "target": "target", "moments": "moments"}
    monkeypatch.setattr(f"datacollab.share._group_{modules[name]}.arrays_of", no_memory)
    assert refused(name, bundle_of(name)) == "TOO_LARGE"


def test_no_refusal_shows_an_entry():
    F = linear_message().arrays["factor"]
    with pytest.raises(ShareError) as caught:
        linear_message(arrays={"factor": F * 3})
    assert str(caught.value).startswith("Group 'north': factor is larger than a sum over 2 projectors can be")
    assert not re.search(r"0\.\d{3}", str(caught.value))


def test_a_targets_digest_is_of_its_space(tmp_path):
    assert target().digest == target().digest
    target().save(tmp_path / "file")
    assert GroupTarget.load(tmp_path / "file").digest == target().digest
    Z = target().target
    for changed in (
        target(target=Z[:, ::-1]),
        target(eigenvalues=np.array([3.8, 2.5])),
        target(groups=("north", "west")),
        target(settings=LTI | {"fit_intercept": False}),
    ):
        assert changed.digest != target().digest
