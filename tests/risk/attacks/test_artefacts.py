"""What the scanner must find, and where it must stay silent."""

import bz2
import dataclasses
import functools
import gzip
import io
import json
import lzma
import time
import zlib
from collections import deque

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, KernelPCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import datacollab as dc
from datacollab.bundle import pack
from datacollab.errors import RepresentationError
from datacollab.party import UMAPObfuscator
from datacollab.risk.attacks import StoredRows, find_training_rows


@pytest.fixture(scope="module")
def table():
    """Sixty rows, seven columns of different units, and a target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 7)) * [1, 10, 0.1, 3, 1000, 2, 5] + [0, 50, 1, -7, 3000, 0, 9]
    return X, np.arange(60) % 3


def found(artefact, X, **options):
    return {entry.path: (entry.kind, entry.n_found) for entry in find_training_rows(artefact, X, **options)}


def embedded(X, metric, **options):
    umap = UMAPObfuscator(2, metric=metric, n_neighbors=5, n_epochs=1, random_state=0, **options)
    return umap.fit(X)


@pytest.mark.nightly
@pytest.mark.parametrize(("metric", "scaled"), [("euclidean", False), ("cosine", False), ("correlation", True)])
def test_umap_holds_the_rows(table, metric, scaled):
    X, _ = table
    model = embedded(StandardScaler().fit_transform(X) if scaled else X, metric)
    bare = not scaled and metric == "euclidean"
    kind = "rows" if bare else "transformed rows"
    assert found(model, X)["UMAPObfuscator._points"] == (kind, 60)


def test_kernel_pca_holds_the_rows(table):
    X, _ = table
    assert found(KernelPCA(2).fit(X), X)["KernelPCA.X_fit_"] == ("rows", 60)
    own = found(make_pipeline(StandardScaler(), dc.obfuscator("kernel-pca", n_components=2)).fit(X), X)
    assert ("transformed rows", 60) in own.values()
    own = find_training_rows(dc.obfuscator("kernel-pca", n_components=2).fit(X), X)
    assert [entry.kind for entry in own if entry.path.endswith("X_fit_")] == ["transformed rows"]


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree", "ball_tree"])
def test_neighbours_hold_the_rows_and_so_do_their_trees(table, algorithm):
    X, y = table
    model = KNeighborsClassifier(algorithm=algorithm).fit(X, y)
    assert found(model, X)["KNeighborsClassifier._fit_X"] == ("rows", 60)
    if model._tree is not None:
        assert ("rows", 60) in found(model._tree, X).values()


def test_pca_holds_the_mean_only(table):
    X, _ = table
    findings = find_training_rows(PCA(3).fit(X), X)
    assert findings == [StoredRows(path="PCA.mean_", kind="mean", form="mean of all rows", n_found=0, n_rows=60)]


@pytest.fixture(scope="module")
def collaboration(table):
    X, y = table
    rng = np.random.default_rng(1)
    anchor = X.mean(axis=0) + X.std(axis=0) * rng.normal(size=(60, 7))
    pipeline = make_pipeline(StandardScaler(), PCA(3))
    parties = [dc.Party(name, pipeline).fit(rows, target) for name, rows, target in (("a", X, y), ("b", anchor, y))]
    return parties, [party.share(anchor) for party in parties]


@pytest.mark.parametrize("estimator", [LogisticRegression(), RandomForestClassifier(5), DecisionTreeClassifier()])
@pytest.mark.parametrize("integrator", [dc.LTI(2), dc.KTI(2)], ids=["linear", "kernel"])
def test_silent_on_clean_models_and_shares(table, collaboration, estimator, integrator):
    X, _ = table
    _, shares = collaboration
    model = dc.Analyst(integrator, estimator).fit(shares).party_model("a")
    assert find_training_rows(model, X) == []
    assert find_training_rows(shares[0], X) == []


def test_a_model_that_stores_collaboration_representations_is_caught(collaboration):
    _, shares = collaboration
    fitted = dc.Analyst(dc.LTI(3), KNeighborsClassifier()).fit(shares)
    model = fitted.party_model("b")
    theirs = fitted.party_model("a").transform(shares[0].representation)
    findings = find_training_rows(model, theirs)
    assert {entry.kind for entry in findings} == {"rows"}
    assert findings[0].n_found == 60
    assert "estimator" in findings[0].path


def test_a_whole_party_is_private(table, collaboration):
    X, _ = table
    parties, _ = collaboration
    assert {entry.kind for entry in find_training_rows(parties[0], X)} == {"mean"}


FORMS = {
    "rows": lambda X: X,
    "single precision": lambda X: X.astype(np.float32),
    "other memory order": np.asfortranarray,
    "shuffled": lambda X: X[np.random.default_rng(2).permutation(len(X))],
    "some": lambda X: X[5:8],
    "one": lambda X: X[7],
    "turned": lambda X: X.T,
    "flat": np.ravel,
    "flat, by columns": lambda X: X.ravel(order="F"),
    "stacked": lambda X: X.reshape(6, 10, 7),
    "with targets": lambda X: np.column_stack([X, np.arange(len(X))]),
    "after targets": lambda X: np.column_stack([np.arange(len(X)), np.ones(len(X)), X]),
    "between others": lambda X: np.vstack([np.ones((9, 7)), X[:4], np.zeros((9, 7))]),
    "beside gaps": lambda X: np.vstack([X, np.full((3, 7), np.nan), np.full((3, 7), np.inf)]),
}
CHANGED = {
    "centred": lambda X: X - X.mean(axis=0),
    "standardised": lambda X: StandardScaler().fit_transform(X)[3:20],
    "to a range": lambda X: MinMaxScaler().fit_transform(X)[3:20],
    "unit length": lambda X: X / np.linalg.norm(X, axis=1, keepdims=True),
    "own units, shuffled": lambda X: (X * np.arange(1, 8) - 5)[::-1],
    "any affine map": lambda X: X @ np.random.default_rng(3).normal(size=(7, 9)) + 4,
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_found_however_they_lie(table, form):
    X, _ = table
    assert [entry.kind for entry in find_training_rows({"kept": FORMS[form](X)}, X)] == ["rows"]


@pytest.mark.parametrize("form", CHANGED)
def test_rows_are_found_in_other_units(table, form):
    X, _ = table
    kept = CHANGED[form](X)
    findings = find_training_rows([None, kept], X)
    assert [(entry.path, entry.kind) for entry in findings] == [("list[1]", "transformed rows")]
    assert findings[0].n_found == len(kept)


@dataclasses.dataclass(slots=True)
class Slotted:
    kept: object


class Cyclic:
    def __init__(self, kept):
        self.me, self.kept = self, [self, {"back": self}, kept]


def closure(kept):
    return lambda: kept


HOLDERS = {
    "attribute in a cycle": Cyclic,
    "slot": Slotted,
    "closure": closure,
    "default": lambda kept: lambda a=kept: a,
    "partial": lambda kept: functools.partial(print, kept),
    "method": lambda kept: Slotted(kept).__repr__,
    "deep": lambda kept: functools.reduce(lambda inner, _: [inner], range(5000), kept),
    "deque": lambda kept: deque([1, kept]),
    "key": lambda kept: {tuple(map(tuple, kept.tolist())): 1},
    "set": lambda kept: {tuple(kept[4].tolist())},
    "lists": np.ndarray.tolist,
    "list of rows": list,
    "objects": lambda kept: np.array([kept, None], dtype=object)[:1],
    "numbers as objects": lambda kept: kept.astype(object),
    "names and numbers": lambda kept: pd.DataFrame(kept).assign(name="x").iloc[:, [7, *range(7)]],
    "frame": pd.DataFrame,
    "sparse": sparse.csr_matrix,
    "records": lambda kept: np.rec.array([(kept,)], dtype=[("kept", "f8", (60, 7))]),
    "tree": lambda kept: KNeighborsClassifier(algorithm="kd_tree").fit(kept, np.arange(60) % 3)._tree,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_rows_are_found_whatever_holds_them(table, holder):
    X, _ = table
    findings = find_training_rows(HOLDERS[holder](X), X)
    assert findings
    assert {entry.kind for entry in findings} == {"rows"}


def saved(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def safetensors(tensors):
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


FILES = {
    "npy": lambda X: saved(lambda file: np.save(file, X)),
    "npz": lambda X: saved(lambda file: np.savez(file, other=np.ones(3), kept=X)),
    "compressed npz": lambda X: saved(lambda file: np.savez_compressed(file, kept=X.astype(np.float32))),
    "archive in an archive": lambda X: saved(lambda file: np.savez(file, inner=np.void(FILES["npz"](X)))),
    "safetensors": lambda X: safetensors({"other": ("F32", np.ones(3, "f4")), "kept": ("F64", X)}),
    "bundle": lambda X: pack("datacollab.model", {}, {"g.safetensors": FILES["safetensors"](X)}),
    "joblib": lambda X: saved(lambda file: joblib.dump(KernelPCA(2).fit(X), file)),
    "joblib, compressed": lambda X: saved(lambda file: joblib.dump(KernelPCA(2).fit(X), file, compress=3)),
    "joblib, by columns": lambda X: saved(lambda file: joblib.dump(np.asfortranarray(X), file)),
    "raw": lambda X: b"header" + X.tobytes(),
    "raw, single": lambda X: b"header" + X.astype("<f4").tobytes(),
    "gzip": lambda X: gzip.compress(X.tobytes()),
    "zlib": lambda X: zlib.compress(X.tobytes()),
    "bz2": lambda X: bz2.compress(FILES["npy"](X)),
    "xz": lambda X: lzma.compress(X.tobytes()),
}


@pytest.mark.parametrize("kind", FILES)
def test_rows_are_found_in_files_without_reviving_them(table, kind, tmp_path):
    X, _ = table
    blob = FILES[kind](X)
    assert "rows" in {entry.kind for entry in find_training_rows({"file": blob}, X)}
    (tmp_path / "file").write_bytes(blob)
    assert [entry.path.replace("bytes", "dict[entry 0]") for entry in find_training_rows(tmp_path / "file", X)] == [
        entry.path for entry in find_training_rows({"file": blob}, X)
    ]


def test_half_precision_of_neural_networks_is_read():
    X = np.random.default_rng(0).integers(1, 200, size=(20, 9)).astype("f4")
    upper = (X.view("<u4") >> 16).astype("<u2")
    assert found(safetensors({"kept": ("BF16", upper)}), X) == {"bytes/kept": ("rows", 20)}


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('revived')",)


def test_nothing_is_revived_and_damaged_files_are_no_trouble(table):
    X, _ = table
    assert find_training_rows(saved(lambda file: joblib.dump([Bomb()], file)), X) == []
    assert find_training_rows(saved(lambda file: np.save(file, np.array([Bomb()]), allow_pickle=True)), X) == []
    for kind in FILES:
        blob = FILES[kind](X)
        for piece in (blob[: len(blob) // 3], blob[:40], blob[:1] + blob[9:300]):
            find_training_rows(piece, X)


class Hostile:
    """Everything that can be asked of it fails."""

    __slots__ = ("missing",)

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __getstate__(self):
        raise RuntimeError


def test_objects_that_resist_are_passed_over(table):
    X, _ = table
    assert found([Hostile(), {"model": Hostile()}, X], X) == {"list[2]": ("rows", 60)}
    assert found([(number for number in range(3)), open, np, dc.KTI, object(), "text", X], X) == {
        "list[6]": ("rows", 60)
    }


def test_keys_do_not_show_in_paths(table):
    X, _ = table
    assert found({"Jane Doe": {"a secret": X}}, X) == {"dict[entry 0][entry 0]": ("rows", 60)}


def test_results_show_no_data(table):
    X, _ = table
    text = repr(find_training_rows([X], X))
    assert not any(f"{entry:.3f}" in text for entry in X.ravel())


def test_a_search_that_was_cut_short_says_so(table, monkeypatch):
    X, _ = table
    monkeypatch.setattr("datacollab.risk.attacks._artefacts.MAX_OBJECTS", 100)
    assert "unsearched" in {kind for kind, _ in found([[[]] for _ in range(200)], X).values()}
    monkeypatch.setattr("datacollab.risk.attacks._artefacts.MAX_ENTRIES", 1000)
    assert found({"kept": np.ones(1001)}, X) == {"dict[entry 0]": ("unsearched", 0)}
    for packed in (gzip.compress, bz2.compress, lambda zeros: saved(lambda file: np.savez_compressed(file, zeros))):
        assert "unsearched" in {kind for kind, _ in found(packed(bytes(10**6)), X).values()}


@pytest.mark.nightly
def test_the_work_is_bounded():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    artefact = {
        "many": [{"n": [n]} for n in range(20_000)],
        "large": rng.normal(size=(50_000, 20)),
        "blob": bytes(10**7),
    }
    start = time.process_time()
    assert find_training_rows(artefact, X) == []
    assert time.process_time() - start < 20


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 6), whole=st.booleans())
def test_chance_does_not_look_like_rows(seed, n_features, whole):
    """Small tables, of few whole numbers too, against all sorts of arrays of the right width."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(40, n_features)) if whole else rng.normal(size=(40, n_features))
    artefact = [
        rng.normal(size=(500, n_features)),
        rng.integers(3, size=(500, n_features)),
        np.eye(n_features),
        np.zeros((3, n_features)),
        np.linalg.qr(rng.normal(size=(n_features, n_features)))[0],
        np.arange(100 * n_features),
    ]
    assert find_training_rows(artefact, X) == []


def test_a_table_of_truth_values_is_found_where_it_is_whole():
    X = np.random.default_rng(0).integers(2, size=(60, 12))
    assert found(KNeighborsClassifier().fit(X, np.arange(60) % 3), X)["KNeighborsClassifier._fit_X"] == ("rows", 60)
    assert found([X[:3]], X) == {}


def test_centres_of_clusters_are_no_rows(table):
    X, _ = table
    assert found(KMeans(3, n_init=1, random_state=0).fit(X), X) == {}


def test_bad_table_is_refused():
    with pytest.raises(RepresentationError, match="private table contains NaN"):
        find_training_rows([], [[np.nan]])
