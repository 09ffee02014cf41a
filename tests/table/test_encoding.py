"""The matrix against a naive one, made row by row."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from datacollab.agreement import Task, load_project, project_text
from datacollab.table import Column, encode_table
from party_world import refused


def naive_row(project, entries):
    """One row of the matrix, from a dict of plain values."""
    row = []
    for column in project.columns:
        entry = entries[column.name]
        absent = entry is None
        if absent:
            entry = column.fill
        if column.kind == "number":
            row.append(float(entry))
        else:
            row += [1.0 if str(entry) == category else 0.0 for category in column.categories]
        if column.flag_missing:
            row.append(1.0 if absent else 0.0)
    return row


WHOLE = ("1", "2", "30", "-4")
TEXT = ("f", "m", "not known", "NA", "é")


@st.composite
def columns(draw):
    made = []
    for position in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["number", "text", "whole"]))
        options = {"name": f"c{position}"}
        if kind == "number":
            options |= {"kind": "number", "minimum": -100, "maximum": 100}
            fill = draw(st.floats(-100, 100))
        else:
            labels = TEXT if kind == "text" else WHOLE
            chosen = draw(st.lists(st.sampled_from(labels), min_size=2, unique=True))
            options |= {"kind": "category", "categories": tuple(chosen)}
            fill = draw(st.sampled_from(chosen))
        if draw(st.booleans()):
            options |= {"missing": "fill", "fill": fill, "flag_missing": draw(st.booleans())}
        made.append(Column(**options))
    return tuple(made)


@st.composite
def entries_of(draw, column, n_rows):
    """Plain values that the column allows."""
    if column.kind == "number":
        kind = draw(st.sampled_from(["whole", "float", "bool"]))
        values = {"whole": st.integers(-100, 100), "float": st.floats(-100, 100), "bool": st.booleans()}[kind]
    else:
        values = st.sampled_from(column.categories)
    if column.missing == "fill":
        values = st.none() | values
    return draw(st.lists(values, min_size=n_rows, max_size=n_rows))


@st.composite
def as_stored(draw, column, entries):
    """The same values as some file or program might hold them."""
    series = [pd.Series(entries, dtype=object)]
    if column.kind == "number":
        series.append(pd.Series(np.array([math.nan if e is None else float(e) for e in entries], dtype=np.float64)))
        if all(type(e) is int for e in entries):
            series += [pd.Series(np.array(entries, dtype=np.int8)), pd.Series(pd.array(entries, dtype="Int64"))]
        if all(e is None or type(e) is bool for e in entries):
            series.append(pd.Series(pd.array(entries, dtype="boolean")))
    else:
        series.append(pd.Series(entries, dtype="string"))
        series.append(pd.Series(entries, dtype="category"))
        series.append(pd.Series(["" if e is None else e for e in entries], dtype=object))
        if set(column.categories) <= set(WHOLE):
            whole = [None if e is None else int(e) for e in entries]
            series.append(pd.Series(pd.array(whole, dtype="Int64")))
            series.append(pd.Series([math.nan if e is None else float(e) for e in whole], dtype=np.float64))
            series.append(pd.Series([e if e is None else f"{e}.0" for e in entries], dtype=object))
    return draw(st.sampled_from(series))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_equals_the_naive_matrix(make_project, data):
    made = data.draw(columns())
    project = make_project(columns=made, max_components=1)
    n_rows = data.draw(st.integers(0, 6))
    plain = {column.name: data.draw(entries_of(column, n_rows)) for column in made}
    stored = {column.name: data.draw(as_stored(column, plain[column.name])) for column in made}
    stored = {name: stored[name] for name in data.draw(st.permutations(list(stored)))}
    table = pd.DataFrame({"not wanted": ["x"] * n_rows, **stored})
    encoded = encode_table(project, table, where="table", with_target=False)
    expected = [naive_row(project, {name: plain[name][row] for name in plain}) for row in range(n_rows)]
    assert encoded.X.dtype == np.float64
    assert encoded.X.shape == (n_rows, project.n_features) == (n_rows, len(project.feature_names))
    assert_array_equal(encoded.X, np.array(expected).reshape(n_rows, project.n_features))
    assert encoded.target is None
    assert encoded.n_rows == n_rows


@pytest.mark.parametrize(
    ("classes", "stored", "expected"),
    [
        ((0, 1, 2), [2, 0, 0], [2, 0, 0]),
        ((0, 1, 2), [2.0, 0.0, 0.0], [2, 0, 0]),
        ((0, 1, 2), ["2", "0", "0.0"], [2, 0, 0]),
        ((0, 1), [True, False, False], [1, 0, 0]),
        ((0, 1), ["True", "false", "FALSE"], [1, 0, 0]),
        (("no", "yes"), ["yes", "yes", "yes"], ["yes", "yes", "yes"]),
        (("1", "2"), [2, 1, 1], ["2", "1", "1"]),
        (("01", "1"), ["1", "01", "01"], ["1", "01", "01"]),
        (("-1", "1"), [-1, 1, 1], ["-1", "1", "1"]),
    ],
)
def test_classes_come_as_declared(make_project, classes, stored, expected):
    """Text or whole numbers, of one type at every party, with one class alone too."""
    positive = classes[-1] if len(classes) == 2 else None
    project = make_project(
        columns=(Column(name="x", kind="number", minimum=0, maximum=1),),
        task=Task(kind="classification", target="y", classes=classes, positive=positive),
        max_components=1,
    )
    target = encode_table(project, pd.DataFrame({"x": [0, 1, 0], "y": stored}), where="table").target
    assert target.tolist() == expected
    assert target.dtype == project.task.class_array.dtype
    assert target.dtype.kind == ("i" if isinstance(classes[0], int) else "U")


@pytest.mark.parametrize(
    ("classes", "merged", "entries", "expected"),
    [
        (("no", "yes"), {"fatal": "yes", "?": "no"}, ["fatal", "yes", "?"], ["yes", "yes", "no"]),
        ((0, 1), {"2": 1}, [2, 1, 0], [1, 1, 0]),
    ],
)
def test_merged_entries_are_taken_for_their_class(make_project, keys, write, classes, merged, entries, expected):
    task = Task(kind="classification", target="y", classes=classes, merged=merged)
    columns = (Column(name="x", kind="number", minimum=0, maximum=1),)
    project = make_project(columns=columns, task=task, max_components=1)
    assert load_project(write("project.toml", project_text(project, keys["a"]))) == project
    table = pd.DataFrame({"x": [0, 1, 0], "y": entries})
    assert encode_table(project, table, where="t").target.tolist() == expected
    without = dataclasses.replace(project, task=dataclasses.replace(project.task, merged=None))
    assert without.digest != project.digest
    with refused("TARGET_INVALID"):
        encode_table(without, table, where="t")


@pytest.mark.parametrize(
    ("merged", "words"),
    [({"fatal": "severe"}, "none of the classes"), ({"yes": "no"}, "twice"), ({"\n": "no"}, "invisible")],
)
def test_merges_that_make_no_sense_are_refused(merged, words):
    with refused("SPEC_INVALID", words):
        Task(kind="classification", target="ill", classes=("no", "yes"), merged=merged)


def test_columns_may_be_numbered(make_project):
    """Names in a data frame may be numbers; in the project they are text."""
    made = tuple(Column(name=str(j), kind="number", minimum=0, maximum=9) for j in range(3))
    project = make_project(columns=made, max_components=1)
    X = encode_table(project, pd.DataFrame(np.eye(3)), where="table", with_target=False).X
    assert_array_equal(X, np.eye(3))
