"""The anchor: by the recipe, to the parties alone, and a commitment that tells one bit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from datacollab.agreement import (
    Anchor,
    AnchorRecipe,
    Task,
    anchor_from_bytes,
    anchor_of_rows,
    anchor_to_bytes,
    make_anchor,
    open_anchor,
    seal_anchor,
)
from datacollab.anchor import SMOTEAnchor
from datacollab.bundle import pack, seal, unpack
from datacollab.errors import AnchorError, ExchangeError
from datacollab.table import Column, encode_table
from party_world import refusal as refused


@pytest.fixture
def anchor(project, table):
    return make_anchor(project, table, where="public.csv", random_state=0)


@pytest.fixture
def sealed(anchor, project, keys, write):
    return write("anchor.dcanchor", seal_anchor(anchor, project, keys["a"]))


def assert_equal(found, expected):
    assert found.rows.tobytes() == expected.rows.tobytes()
    assert found.rows.shape == expected.rows.shape
    if expected.target is None:
        assert found.target is None
    else:
        assert_array_equal(found.target, expected.target, strict=True)
    assert found.secret == expected.secret


def test_smote_works_in_the_matrix_with_numbers_in_units_of_their_range(project, table, anchor):
    """As the sampler itself on scaled columns: neighbours in age do not outweigh those in ward."""
    encoded = encode_table(project, table, where="x")
    scale = np.array([120, 1, 1, 1, 10.5, 1, 1, 1])
    rows, target = SMOTEAnchor(40, task="classification").sample(encoded.X / scale, encoded.target, random_state=0)
    assert_allclose(anchor.rows, rows * scale, rtol=1e-14)
    assert_array_equal(anchor.target, target)
    assert anchor.rows.shape == (40, 8)
    wards = anchor.rows[:, 1:4]
    assert_allclose(wards.sum(axis=1), 1)
    assert ((wards > 0) & (wards < 1)).any(), "rows between two wards"


@pytest.mark.parametrize("method", ["uniform", "gaussian", "sample"])
def test_other_methods(make_project, table, method):
    project = make_project(anchor=AnchorRecipe(method=method, n_rows=30))
    anchor = make_anchor(project, table, where="public.csv")
    assert anchor.rows.shape == (30, 8)
    assert (anchor.target is None) == (method != "sample")
    if method == "sample":
        rows = {row.tobytes() for row in encode_table(project, table, where="x").X}
        assert {row.tobytes() for row in anchor.rows} <= rows


def test_uniform_rows_are_drawn_from_declared_ranges(make_project, table):
    """Ages are from 0 to 120, whatever the public rows' are."""
    project = make_project(anchor=AnchorRecipe(method="uniform", n_rows=400))
    ages = make_anchor(project, table.assign(age=50), where="public.csv", random_state=0).rows[:, 0]
    assert 0 <= ages.min() < 10
    assert 110 < ages.max() <= 120


@pytest.mark.parametrize("method", ["sample", "smote", "uniform"])
@pytest.mark.parametrize("kind", ["ill", "stay"])
def test_public_rows_may_lack_targets_in_part(make_project, regression, table, keys, write, method, kind):
    """All are anchor rows; those with a target come first, with theirs."""
    task = {"ill": make_project().task, "stay": regression.task}[kind]
    project = make_project(task=task, anchor=AnchorRecipe(method=method, n_rows=40))
    known = np.arange(len(table)) % 4 == 1
    partly = table.astype({kind: object}).where(pd.Series(known), table.assign(**{kind: None}))
    partly = partly.astype(table.dtypes.drop(kind).to_dict())
    anchor = make_anchor(project, partly, where="public.csv", random_state=0)
    assert anchor.rows.shape == (40, 8)
    if method == "uniform":
        assert anchor.target is None
        return
    n_labelled = len(anchor.target)
    assert 4 <= n_labelled <= 15
    assert len(anchor.labelled_rows) == n_labelled
    assert anchor.full_target is None
    opened = open_anchor(write("a.dcanchor", seal_anchor(anchor, project, keys["a"])), project, keys["b"])
    assert_array_equal(opened.target, anchor.target, strict=True)
    whole = encode_table(project, table, where="x")
    if method == "sample":
        target_of = {row.tobytes(): value for row, value in zip(whole.X, whole.target, strict=True)}
        unlabelled = {row.tobytes() for row in whole.X[~known]}
        assert [target_of[row.tobytes()] for row in anchor.labelled_rows] == list(anchor.target)
        assert {row.tobytes() for row in anchor.rows[n_labelled:]} <= unlabelled
    encoded = encode_table(project, partly, where="x", partly=True)
    assert_array_equal(encoded.target, whole.target[known])
    assert_array_equal(encoded.labelled, known)
    refused("TARGET_INVALID", encode_table, project, partly, where="x")
    sixty = make_project(task=task, anchor=AnchorRecipe(method=method, n_rows=60))
    taken = anchor_of_rows(sixty, partly, where="rows.csv")
    assert_array_equal(taken.rows, np.vstack([whole.X[known], whole.X[~known]]))
    assert_array_equal(taken.target, whole.target[known])
    bare = make_anchor(project, partly.assign(**{kind: None}), where="public.csv")
    assert bare.target is None


def test_public_rows_have_to_fit_the_project_as_well(project, table, make_project):
    refused("SCHEMA_RANGE", make_anchor, project, table.assign(age=300), where="public.csv")
    few = make_project(anchor=AnchorRecipe(method="sample", n_rows=1000))
    with pytest.raises(AnchorError):
        make_anchor(few, table, where="public.csv")


def test_rows_are_taken_as_they_are(project, make_project, table, anchor):
    """In the columns of the matrix, in any order; or else in the project's own."""
    frame = pd.DataFrame(anchor.rows, columns=project.feature_names).assign(ill=anchor.target, more=1)
    taken = anchor_of_rows(project, frame.iloc[:, ::-1], where="anchor.csv")
    assert taken.rows.tobytes() == anchor.rows.tobytes()
    assert_array_equal(taken.target, anchor.target, strict=True)
    assert taken.secret != anchor.secret
    sixty = make_project(anchor=AnchorRecipe(n_rows=60))
    taken = anchor_of_rows(sixty, table, where="anchor.csv")
    assert_array_equal(taken.rows, encode_table(project, table, where="x").X)


def test_rows_that_do_not_fit_are_refused(project, regression, table, anchor):
    frame = pd.DataFrame(anchor.rows, columns=project.feature_names)
    message = refused("ANCHOR_UNFIT", anchor_of_rows, project, frame.iloc[:39], where="anchor.csv")
    assert "39 rows in 8 columns; the project wants 40 rows in 8" in message
    refused("ANCHOR_UNFIT", anchor_of_rows, project, frame.assign(age="old"), where="anchor.csv")
    refused("ANCHOR_UNFIT", anchor_of_rows, project, frame.assign(age=np.nan), where="anchor.csv")
    refused("TARGET_INVALID", anchor_of_rows, project, frame.assign(ill="maybe"), where="anchor.csv")
    refused("SCHEMA_MISSING_COLUMN", anchor_of_rows, project, frame.drop(columns="age"), where="anchor.csv")


def test_every_party_opens_the_same_anchor_and_no_one_else(project, anchor, sealed, keys):
    for name in ("a", "b"):
        assert_equal(open_anchor(sealed, project, keys[name]), anchor)
    for name in ("analyst", "stranger"):
        refused("SEAL_NOT_FOR_YOU", open_anchor, sealed, project, keys[name])


def test_the_file_holds_nothing_of_the_anchor(anchor, sealed):
    data = sealed.read_bytes()
    contents = b"".join(unpack(data).members.values())
    for secret in [anchor.secret, *(row.tobytes() for row in anchor.rows), *(v.tobytes() for v in anchor.rows[:, 0])]:
        assert secret not in data
        assert secret not in contents


def test_an_owner_who_is_no_party_cannot_open_it(make_project, keys, table, write):
    """The owner has made it; the file is for parties."""
    project = make_project(owner=keys["stranger"].public)
    anchor = make_anchor(project, table, where="public.csv")
    path = write("anchor.dcanchor", seal_anchor(anchor, project, keys["stranger"]))
    refused("SEAL_NOT_FOR_YOU", open_anchor, path, project, keys["stranger"])
    assert_equal(open_anchor(path, project, keys["a"]), anchor)


def test_an_anchor_of_another_version_of_the_project(make_project, project, sealed, keys):
    other = make_project(min_rows=21)
    assert "anchor.dcanchor" in refused("PROJECT_HASH_MISMATCH", open_anchor, sealed, other, keys["b"])


def test_a_seal_is_of_no_use_in_another_project(make_project, project, anchor, keys, write):
    """Sealed for one version of the project, and passed off as another's: the seal itself is bound."""
    other = make_project(min_rows=21)
    sealed = unpack(seal_anchor(anchor, project, keys["a"]))
    forged = pack("datacollab.anchor", sealed.facts | {"project_digest": other.digest}, sealed.members, key=keys["a"])
    refused("SEAL_DAMAGED", open_anchor, write("x.dcanchor", forged), other, keys["b"])


def test_an_anchor_comes_from_the_owner(project, anchor, keys, write, sealed):
    """A party knows all that an anchor needs, but does not sign as the owner."""
    bundle = unpack(sealed)
    for key, code in [(keys["b"], "SIGNATURE_INVALID"), (None, "SIGNATURE_MISSING")]:
        forged = write("x.dcanchor", pack("datacollab.anchor", bundle.facts, bundle.members, key=key))
        refused(code, open_anchor, forged, project, keys["a"])
    other_kind = write("x.dcanchor", pack("datacollab.share", bundle.facts, bundle.members, key=keys["a"]))
    refused("WRONG_KIND", open_anchor, other_kind, project, keys["b"])
    open_one = pack("datacollab.anchor", bundle.facts, unpack(anchor_to_bytes(anchor)).members, key=keys["a"])
    refused("BUNDLE_MALFORMED", open_anchor, write("x.dcanchor", open_one), project, keys["b"])


def test_an_owner_cannot_slip_in_what_does_not_fit(project, make_project, regression, anchor, keys):
    wrong_classes = Anchor(rows=anchor.rows, target=np.array(["maybe"] * 40))
    for wrong in (
        Anchor(rows=anchor.rows[:5], target=anchor.target),
        Anchor(rows=anchor.rows[:, :5], target=anchor.target),
        Anchor(rows=anchor.rows, target=np.append(anchor.target, anchor.target[:5])),
        Anchor(rows=anchor.rows, target=anchor.target[:0]),
        Anchor(rows=np.where(anchor.rows == 0, np.nan, anchor.rows)),
        Anchor(rows=anchor.rows, target=np.arange(40)),
        wrong_classes,
    ):
        refused("ANCHOR_UNFIT", seal_anchor, wrong, project, keys["a"])
    refused("ANCHOR_UNFIT", seal_anchor, anchor, regression, keys["a"])


def test_what_was_sealed_past_the_checks_is_refused_on_opening(project, anchor, keys, write):
    """An owner with another program."""
    from datacollab.bundle import arrays_to_bytes

    rows, secret = anchor.rows, np.zeros(8, dtype=np.int32)
    malformed = [
        {"secret": secret[:4]},
        {"rows": rows.astype(np.float32)},
        {"rows": np.full((40, 8), np.inf)},
        {"f_k": secret},
        *({"target": wrong} for wrong in (np.zeros(41), np.float64(1), np.full(40, np.nan))),
        *({"target_text": np.full((40, 2), letter, np.int32)} for letter in (-1, 0xD800, 2**21)),
        {"target_text": np.zeros((40, 0), np.int32)},
    ]
    unfit = [{"rows": rows[:5]}, {"target_text": np.zeros((40, 2), np.int32)}]
    cases = [({"rows": rows}, "BUNDLE_MALFORMED")]
    cases += [({"rows": rows, "secret": secret} | wrong, "BUNDLE_MALFORMED") for wrong in malformed]
    cases += [({"rows": rows, "secret": secret} | wrong, "ANCHOR_UNFIT") for wrong in unfit]
    facts = {"project_digest": project.digest, "sealed_at": "2026-01-01T00:00:00+00:00"}
    recipients = list(project.parties.values())
    for arrays, code in cases:
        arrays = {name: np.asarray(array) for name, array in arrays.items()}
        member = seal(arrays_to_bytes(arrays), recipients, purpose=f"datacollab anchor of project {project.digest}")
        path = write("x.dcanchor", pack("datacollab.anchor", facts, {"sealed.bin": member}, key=keys["a"]))
        refused(code, open_anchor, path, project, keys["b"])


def test_flipped_bytes_never_open(project, sealed, keys, rng):
    data = sealed.read_bytes()
    for place in rng.choice(len(data), 150, replace=False):
        forged = bytearray(data)
        forged[place] ^= 1 << int(rng.integers(8))
        sealed.write_bytes(forged)
        with pytest.raises(ExchangeError):
            open_anchor(sealed, project, keys["b"])


@given(row=st.integers(0, 39), column=st.integers(0, 7), bit=st.integers(0, 63))
def test_one_bit_of_one_row_is_another_anchor(project, row, column, bit):
    rows = np.arange(320, dtype=np.float64).reshape(40, 8)
    anchor = Anchor(rows=rows, secret=b"s" * 32)
    other = rows.copy()
    other.view(np.uint64)[row, column] ^= np.uint64(1 << bit)
    assert anchor.commitment(project) == Anchor(rows=rows.copy(), secret=b"s" * 32).commitment(project)
    assert anchor.commitment(project) != Anchor(rows=other, secret=b"s" * 32).commitment(project)


def test_what_else_the_commitment_tells_apart(project, make_project, anchor):
    base = anchor.commitment(project)
    swapped = np.arange(40)
    swapped[[3, 4]] = [4, 3]
    targets = anchor.target.copy()
    targets[0] = "unclear"
    others = [
        Anchor(rows=anchor.rows[swapped], target=anchor.target, secret=anchor.secret).commitment(project),
        Anchor(rows=anchor.rows[:, ::-1], target=anchor.target, secret=anchor.secret).commitment(project),
        Anchor(rows=anchor.rows.reshape(8, 40), target=anchor.target, secret=anchor.secret).commitment(project),
        Anchor(rows=anchor.rows, target=targets, secret=anchor.secret).commitment(project),
        Anchor(rows=anchor.rows, secret=anchor.secret).commitment(project),
        Anchor(rows=anchor.rows, target=anchor.target).commitment(project),
        anchor.commitment(make_project(min_rows=21)),
    ]
    assert len({base, *others}) == 8
    assert len(base) == 64
    fortran = Anchor(rows=np.asfortranarray(anchor.rows), target=anchor.target, secret=anchor.secret)
    assert fortran.commitment(project) == base


def test_secrets_are_fresh_and_not_shown(project, table, anchor):
    again = make_anchor(project, table, where="public.csv", random_state=0)
    assert again.rows.tobytes() == anchor.rows.tobytes()
    assert again.secret != anchor.secret
    assert again.commitment(project) != anchor.commitment(project)
    assert repr(anchor) == "Anchor(40 rows, 8 columns, with targets)"


def test_a_damaged_disk_is_noticed(anchor, sealed, rng):
    data = anchor_to_bytes(anchor)
    for place in rng.choice(len(data), 150, replace=False):
        damaged = bytearray(data)
        damaged[place] ^= 1 << int(rng.integers(8))
        with pytest.raises(ExchangeError) as caught:
            anchor_from_bytes(bytes(damaged))
        assert caught.value.code in ("STATE_DAMAGED", "FORMAT_TOO_NEW")
    assert "party join" in refused("STATE_DAMAGED", anchor_from_bytes, data[:-1])
    refused("STATE_DAMAGED", anchor_from_bytes, sealed.read_bytes())


@pytest.mark.parametrize(("column", "value"), [(0, 1e9), (0, -1.0), (0, 120.5), (1, 1.2), (7, -0.2)])
def test_rows_outside_of_the_declared_ranges_are_refused_by_the_owner_and_by_the_party(
    project, anchor, keys, write, monkeypatch, column, value
):
    rows = anchor.rows.copy()
    rows[7, column] = value
    crafted = Anchor(rows=rows, target=anchor.target)
    said = refused("ANCHOR_UNFIT", seal_anchor, crafted, project, keys["a"])
    assert repr(project.feature_names[column]) in said
    assert "1 of 40 rows" in said
    assert str(value) not in said
    monkeypatch.setattr("datacollab.agreement._sealed_anchor._check_ranges", lambda *_: None)
    file = write("crafted.dcanchor", seal_anchor(crafted, project, keys["a"]))
    monkeypatch.undo()
    refused("ANCHOR_UNFIT", open_anchor, file, project, keys["b"])


def test_rules_hold_for_public_rows_whose_columns_are_numbers_alone(project):
    """A code for missing entries is none, and what lies outside of a range is clipped, as at the parties."""
    columns = (
        Column(name="visits", kind="number", minimum=0, maximum=6, missing="fill", fill=1.0, missing_words=("99",)),
        Column(name="age", kind="number", minimum=0, maximum=90, outside="clip"),
    )
    numbers = replace(
        project,
        columns=columns,
        task=Task(kind="none"),
        anchor=AnchorRecipe(method="sample", n_rows=40),
        max_components=1,
    )
    table = pd.DataFrame({"visits": [99.0, *[2.0] * 39], "age": [91.0, *[50.0] * 39]})
    rows = anchor_of_rows(numbers, table, where="public.csv").rows
    assert_array_equal(rows, [[1.0, 90.0], *[[2.0, 50.0]] * 39])
