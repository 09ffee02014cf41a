import sys
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from datacollab import LTI, Analyst, Party
from datacollab.errors import AgreementError, DatasetError, MissingExtraError, ObfuscationError

pa = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = ["age", "weight", "height", "pulse"]
SECRET = 1234.56789


@pytest.fixture(name="X")
def rows(rng):
    return rng.normal(size=(230, 4))


def collaborate(X, f=None):
    """Party "a" and its model."""
    y = np.arange(60) % 2
    parties = [
        Party(name, PCA(3) if f is None else f).fit(X[rows], y)
        for name, rows in [("a", slice(60)), ("b", slice(60, 120))]
    ]
    collaboration = Analyst(LTI(3), LogisticRegression()).fit([party.share(X[120:180]) for party in parties])
    return parties[0], collaboration.party_model("a")


def frame(X, library=pd):
    return library.DataFrame(dict(zip(NAMES, X.T, strict=True)))


def check(party, model, source, table, batch_rows=50):
    """In batches, the result is that of one pass; `source` makes one again, since readers are read once."""
    batches = list(party.transform_batches(source(), model, batch_rows=batch_rows))
    assert all(0 < len(batch) <= batch_rows for batch in batches)
    assert_allclose(np.concatenate(batches), party.transform(table, model), rtol=0, atol=1e-12)
    predicted = np.concatenate(list(party.predict_batches(source(), model, batch_rows=batch_rows)))
    assert (predicted == party.predict(table, model)).all()
    probabilities = np.concatenate(list(party.predict_proba_batches(source(), model, batch_rows=batch_rows)))
    assert_allclose(probabilities, party.predict_proba(table, model), rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch_rows", [1, 50, 230, 1000])
def test_arrays(X, batch_rows):
    check(*collaborate(X), lambda: X, X, batch_rows)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_with_shuffled_and_further_columns(X, library):
    table = frame(X, library)
    shuffled = frame(X, library)[["pulse", "height", "age", "weight"]]
    further = library.DataFrame({"note": ["x"] * 230, **{name: shuffled[name] for name in shuffled.columns}})
    party, model = collaborate(table)
    check(party, model, lambda: shuffled, table)
    check(party, model, lambda: further, table)


def test_iterables_of_pieces(X):
    party, model = collaborate(X)
    check(party, model, lambda: (X[start : start + 100] for start in range(0, 230, 100)), X)
    check(party, model, lambda: [X[:7], X[7:7], X[7:]], X)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_parquet_by_names(X, tmp_path, library):
    table = frame(X, library)
    stored = pa.table({"note": ["x"] * 230, **{name: X[:, NAMES.index(name)] for name in reversed(NAMES)}})
    parquet.write_table(stored, tmp_path / "all.parquet", row_group_size=90)
    (tmp_path / "parts").mkdir()
    for part in range(3):
        parquet.write_table(stored.slice(part * 100, 100), tmp_path / "parts" / f"{part}.parquet")
    party, model = collaborate(table)
    for source in (tmp_path / "all.parquet", str(tmp_path / "all.parquet"), tmp_path / "parts"):
        check(party, model, lambda source=source: source, table)


def test_arrow_in_memory(X):
    stored = pa.Table.from_pandas(frame(X)[NAMES[::-1]])
    party, model = collaborate(frame(X))
    check(party, model, lambda: stored, frame(X))
    check(party, model, lambda: stored.to_reader(80), frame(X))
    check(party, model, lambda: stored.to_batches(80), frame(X))
    check(party, model, lambda: stored.combine_chunks().to_batches()[0], frame(X))
    check(party, model, lambda: datasets.dataset(stored), frame(X))


def test_arrow_without_names_in_fit_goes_by_position(X):
    party, model = collaborate(X)
    stored = pa.Table.from_pandas(frame(X))
    check(party, model, lambda: stored, X)
    check(party, model, lambda: datasets.dataset(stored), X)
    with pytest.raises(
        ObfuscationError, match="Party 'a': the table has 3 columns, but 4 in fit.*batch 0, rows 0 to 9"
    ):
        next(party.predict_batches(stored.drop_columns("age"), model, batch_rows=10))


def test_categories_and_missing_entries_survive_parquet(tmp_path, rng):
    table = pd.DataFrame({"age": rng.normal(size=200), "ward": ["north", "south", "east", "west"] * 50})
    f = make_pipeline(
        make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(sparse_output=False), ["ward"])), PCA(3)
    )
    parquet.write_table(pa.Table.from_pandas(table), tmp_path / "t.parquet")
    y = np.arange(200) % 2
    parties = [Party(name, f).fit(table, y) for name in "ab"]
    model = Analyst(LTI(3), LogisticRegression()).fit([p.share(table) for p in parties]).party_model("a")
    check(parties[0], model, lambda: tmp_path / "t.parquet", table)


def test_missing_columns_are_named_before_anything_is_read(X, tmp_path):
    party, model = collaborate(frame(X))
    parquet.write_table(pa.Table.from_pandas(frame(X)[["age", "pulse"]]), tmp_path / "t.parquet")
    with pytest.raises(ObfuscationError, match=r"Party 'a': 2 of the 4 columns.*\['weight', 'height'\]"):
        party.predict_batches(tmp_path / "t.parquet", model)


def test_a_failure_names_the_batch_and_shows_no_entry(X):
    party, model = collaborate(frame(X))
    damaged = frame(X).astype(object)
    damaged.loc[120, "age"] = f"no number {SECRET}"
    batches = party.predict_batches(damaged, model, batch_rows=50)
    assert [len(next(batches)), len(next(batches))] == [50, 50]
    with pytest.raises(ObfuscationError, match="Party 'a'.*batch 2, rows 100 to 149") as caught:
        next(batches)
    assert str(SECRET) not in str(caught.value)
    pieces = iter([frame(X)[:20], frame(X)[["age"]]])
    with pytest.raises(ObfuscationError, match="'weight'.*batch 1, rows 20 to 249"):
        list(party.predict_batches(pieces, model))


def test_files_that_cannot_be_read(X, tmp_path):
    party, model = collaborate(X)
    with pytest.raises(DatasetError, match="Party 'a': .*none.parquet' does not exist"):
        party.predict_batches(tmp_path / "none.parquet", model)
    (tmp_path / "t.parquet").write_text(f"age\n{SECRET}\n")
    with pytest.raises(DatasetError, match="is no Parquet file, or damaged") as caught:
        party.predict_batches(tmp_path / "t.parquet", model)
    assert str(SECRET) not in str(caught.value)


def test_a_stream_that_breaks_off(X):
    def broken(batches):
        yield batches[0]
        raise pa.ArrowInvalid(f"could not convert {SECRET}")

    stored = pa.Table.from_pandas(frame(X), preserve_index=False)
    party, model = collaborate(frame(X))
    reader = pa.RecordBatchReader.from_batches(stored.schema, broken(stored.to_batches(100)))
    batches = party.predict_batches(reader, model)
    assert len(next(batches)) == 100
    with pytest.raises(DatasetError, match="Party 'a': the table could not be read") as caught:
        next(batches)
    assert str(SECRET) not in str(caught.value)


def test_what_is_no_source_is_refused_at_once(X):
    party, model = collaborate(X)
    for source in (5, {"age": X}, b"x"):
        with pytest.raises(TypeError, match=f"Party 'a': rows can be read from.*got {type(source).__name__}"):
            party.predict_batches(source, model)
    with pytest.raises(TypeError, match=r"two-dimensional array.*got ndarray of shape \(4,\)"):
        list(party.predict_batches(iter(X), model))
    with pytest.raises(ValueError, match="batch_rows must be a whole number from 1 on; got 0"):
        party.predict_batches(X, model, batch_rows=0)
    with pytest.raises(AgreementError, match="given the model made for 'a'"):
        Party("b", PCA(3)).fit(X[:9], np.arange(9)).predict_batches(X, model)


def test_pyarrow_is_asked_for_by_its_extra(X, tmp_path, monkeypatch):
    party, model = collaborate(X)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"datacollab\[tables\]"):
        party.predict_batches(tmp_path, model)


def peak(consume):
    tracemalloc.start()
    consume()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_is_that_of_a_batch(X, tmp_path):
    """A table of 64 MB, ten times longer than another, takes no more."""
    party, model = collaborate(X)
    peaks = []
    for n_rows in (200_000, 2_000_000):
        table = np.memmap(tmp_path / f"{n_rows}", dtype=np.float64, mode="w+", shape=(n_rows, 4))

        def consume(source):
            for _ in party.predict_batches(source, model, batch_rows=10_000):
                pass

        peaks.append(peak(partial(consume, table)))
    assert peaks[1] < 5e6
    assert peaks[1] < 1.2 * peaks[0]
