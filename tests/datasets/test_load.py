"""Data sets: loading, fetching and checking files."""

import copy
import gzip
import hashlib
import http.server
import io
import pickle
import sys
import threading
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest

from datacollab.datasets import Dataset, available, fetch, load
from datacollab.datasets._catalogue import DatasetSpec, FileSpec, IdxContent, TableContent
from datacollab.datasets._load import fetch_spec, load_spec
from datacollab.errors import DatasetError, MissingExtraError

NAMES = ["digits", "diabetes", "mnist", "fashion-mnist", "ujiindoorloc", "slice-localization"]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No place of this machine has data sets."""
    monkeypatch.delenv("DATACOLLAB_DATA", raising=False)
    monkeypatch.setattr("datacollab.datasets._load.SYSTEM_DIRECTORY", str(tmp_path / "system"))
    monkeypatch.setattr("datacollab.datasets._load.cache_directory", lambda: tmp_path / "cache")
    return tmp_path


@pytest.fixture
def real(real_data_dir):
    """Load a real data set from this machine, or skip."""

    def load_or_skip(name):
        if next(info for info in available(data_dir=real_data_dir) if info.name == name).path is None:
            pytest.skip(f"{name} is not on this machine; set DATACOLLAB_DATA to the directory that has it")
        return load(name, data_dir=real_data_dir, download=False)

    return load_or_skip


def test_dataset_is_a_mapping_that_unpacks_as_rows_and_targets():
    dataset = load("digits")
    X, y = dataset
    assert X is dataset.X is dataset["X"] is dataset.data
    assert y is dataset.y is dataset.target
    assert {"X", "y", "DESCR", "target_names"} <= set(dataset.keys())
    assert dict(dataset.items()).keys() == dict(dataset).keys() == dict(**dataset).keys()
    assert "X" in dataset
    assert len(dataset.target_names) == 10
    assert len(dataset.feature_names) == X.shape[1]


@pytest.mark.parametrize("remake", [copy.copy, copy.deepcopy, lambda dataset: pickle.loads(pickle.dumps(dataset))])
def test_dataset_survives_copying(remake):
    dataset = load("digits")
    again = remake(dataset)
    assert type(again) is Dataset
    assert again.keys() == dataset.keys()
    np.testing.assert_array_equal(again.X, dataset.X)


def test_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'iris'.*'digits', 'diabetes', 'mnist'"):
        load("iris")


def test_available_lists_everything_and_finds_nothing(nowhere):
    listed = available(data_dir=nowhere)
    assert [info.name for info in listed] == NAMES
    assert [info.where for info in listed] == ["comes with scikit-learn"] * 2 + ["absent"] * 4
    assert all(info.licence and info.description for info in listed)
    with pytest.raises(AttributeError):
        listed[0].name = "other"


def test_error_lists_the_places_and_the_ways(nowhere, monkeypatch):
    monkeypatch.setenv("DATACOLLAB_DATA", str(nowhere / "variable"))
    (nowhere / "given").mkdir()
    with pytest.raises(DatasetError) as caught:
        load("fashion-mnist", data_dir=nowhere / "given", download=False)
    message = str(caught.value)
    places = [str(nowhere / place) for place in ("given", "variable", "cache", "system")]
    assert sorted(places, key=message.index) == places
    for text in ("download=False", "train-images-idx3-ubyte.gz", "dataset-fashion-mnist", "DATACOLLAB_DATA", "http://"):
        assert text in message


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", pytest.param("fashion-mnist", marks=pytest.mark.nightly)])
def test_real_images(real, name):
    dataset = real(name)
    assert dataset.X.shape == (70_000, 784)
    assert dataset.X.dtype == np.float64
    assert (dataset.X.min(), dataset.X.max()) == (0, 1)
    assert dataset.n_train == 60_000
    assert len(dataset.target_names) == 10
    mean = {"mnist": 0.1307, "fashion-mnist": 0.2860}[name]  # of the training part, as widely published
    assert dataset.X[: dataset.n_train].mean() == pytest.approx(mean, abs=1e-4)
    counts = np.bincount(dataset.y[dataset.n_train :])
    expected = {"mnist": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009], "fashion-mnist": [1000] * 10}[name]
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.nightly
def test_real_ujiindoorloc(real):
    dataset = real("ujiindoorloc")
    assert dataset.X.shape == (21_048, 520)
    assert (dataset.X.min(), dataset.X.max()) == (-104, 100)
    assert dataset.task == "regression"
    assert dataset.n_train == 19_937
    assert 4_864_700 < dataset.y.min() < dataset.y.max() < 4_865_050
    assert dataset.feature_names[-1] == "WAP520"
    assert {name: values.shape for name, values in dataset.extra.items()} == {
        "LONGITUDE": (21_048,),
        "FLOOR": (21_048,),
        "BUILDINGID": (21_048,),
    }
    np.testing.assert_array_equal(np.unique(dataset.extra["FLOOR"]), range(5))
    np.testing.assert_array_equal(np.unique(dataset.extra["BUILDINGID"]), range(3))


@pytest.mark.slow
def test_real_slice_localization(real):
    dataset = real("slice-localization")
    assert dataset.X.shape == (682 if dataset.excerpt else 53_500, 384)
    assert ("EXCERPT" in dataset.DESCR) is dataset.excerpt
    assert dataset.y[0] == 21.803851
    assert dataset.X[0].max() < 1
    np.testing.assert_array_equal(np.unique(dataset.groups[:682]), [0, 1])


PIXELS = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, *range(12)])
TABLE = np.array([[1.5, 2.0, -3.25], [4.0, 5.5, 6.0], [7.0, 8.0, 9.0]])
CSV = b"a,b,reference\n1.5,2,-3.25\n4,5.5,6\n7,8,9\n"
EXCERPT = CSV.rpartition(b"7,8")[0]


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def table_content(n_rows=3):
    sha256 = hashlib.sha256(TABLE[:2].tobytes()).hexdigest()
    return TableContent(("a", "b", "reference"), "table.csv", n_rows, sha256, n_hashed=2)


def build(arrays):
    return {"X": arrays[-1][:, :-1], "y": arrays[-1][:, -1], "images": arrays[0]}


def make_spec(url="http://127.0.0.1:9/", excerpt=False):
    image = IdxContent("image-idx", hashlib.sha256(PIXELS).hexdigest())
    files = (
        FileSpec(names=("image-idx.gz", "image-idx"), url=f"{url}image-idx.gz", contents=(image,)),
        FileSpec(names=("table.zip", "table.csv"), url=f"{url}table.zip", contents=(table_content(),)),
    )
    small = FileSpec(names=("excerpt.csv",), url="", contents=(table_content(2),))
    return DatasetSpec(
        name="tiny",
        title="A tiny set",
        task="regression",
        n_samples=3,
        n_features=2,
        megabytes=0.1,
        licence="none",
        origin="here",
        columns="X: a, b.",
        citation="nobody",
        build=build,
        files=files,
        excerpt=small if excerpt else None,
    )


@contextmanager
def serving(bodies, declared=None):
    """Loopback server of some bodies by path; `declared` overstates a Content-Length."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            if self.path not in bodies:
                self.send_error(404)
                return
            body = bodies[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str((declared or {}).get(self.path, len(body))))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", requests
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No data on this machine, and no proxy before the loopback server."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("DATACOLLAB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setattr("datacollab.datasets._load.SYSTEM_DIRECTORY", str(tmp_path / "system"))


@pytest.fixture
def good():
    return {"/image-idx.gz": gzip.compress(PIXELS), "/table.zip": zipped({"folder/table.csv": CSV})}


def files_below(directory):
    return sorted(path.name for path in directory.rglob("*") if path.is_file())


def test_download_goes_to_the_cache_and_is_not_repeated(good, tmp_path):
    with serving(good) as (url, requests):
        first = load_spec(make_spec(url))
        second = load_spec(make_spec(url))
    assert requests == ["/image-idx.gz", "/table.zip"]
    assert files_below(tmp_path / "cache" / "datacollab" / "tiny") == ["image-idx.gz", "table.zip"]
    for dataset in (first, second):
        np.testing.assert_array_equal(dataset.X, TABLE[:, :2])
        np.testing.assert_array_equal(dataset.images, np.arange(12).reshape(2, 2, 3))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body[: len(body) // 2],
        lambda body: body[:-30] + bytes(20) + body[-10:],
        lambda body: b"",
        lambda body: b"<html>Please log in</html>",
        lambda body: zipped({"table.csv": CSV.replace(b"5.5", b"5.6")}),
        lambda body: zipped({"table.csv": EXCERPT}),
        lambda body: zipped({"table.csv": b"a,b,reference\n"}),
        lambda body: zipped({"table.csv": CSV.replace(b"b,", b"c,")}),
        lambda body: zipped({"table.csv": CSV.replace(b"5.5", b"secret")}),
        lambda body: zipped({"other.csv": CSV}),
    ],
    ids=["truncated", "flipped", "empty", "login", "value", "rows", "header-only", "header", "text", "member"],
)
def test_bad_download_leaves_nothing_and_a_later_one_succeeds(good, tmp_path, spoil):
    with serving(good | {"/table.zip": spoil(good["/table.zip"])}) as (url, _):
        with pytest.raises(DatasetError, match=r"(?s)was not found.*table\.zip sent is not table\.zip") as caught:
            load_spec(make_spec(url))
        assert files_below(tmp_path) == ["image-idx.gz"]
        with pytest.raises(DatasetError, match="download=False"):
            load_spec(make_spec(url), download=False)
    assert "secret" not in str(caught.value)
    with serving(good) as (url, requests):
        assert load_spec(make_spec(url)).X.shape == (3, 2)
    assert requests == ["/table.zip"]


def test_connection_that_breaks_off_leaves_nothing(good, tmp_path):
    with serving(good, declared={"/image-idx.gz": 10_000}) as (url, _), pytest.raises(DatasetError, match="image-idx"):
        fetch_spec(make_spec(url), progressbar=False)
    assert files_below(tmp_path) == []


def test_keyboard_interrupt_leaves_nothing(good, tmp_path, monkeypatch):
    def interrupted(self, url, output_file, pooch):
        with open(output_file, "wb") as stream:
            stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_spec(make_spec())
    assert files_below(tmp_path) == []


def test_missing_page_is_named(tmp_path):
    with serving({}) as (url, _), pytest.raises(DatasetError, match=r"image-idx\.gz could not be downloaded.*404"):
        fetch_spec(make_spec(url))
    assert files_below(tmp_path) == []


def test_no_network_is_answered_with_places_and_ways():
    with pytest.raises(DatasetError, match=r"(?s)Looked at:.*Not downloaded: http.*Ways to get it:.*DATACOLLAB_DATA"):
        load_spec(make_spec())
    with pytest.raises(DatasetError, match=rf"(?s)datacollab data fetch {make_spec().name}\b.*--data-dir"):
        load_spec(make_spec())


def test_without_pooch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"datacollab\[data\]"):
        fetch("mnist")
    with pytest.raises(DatasetError, match=r"(?s)Looked at:.*datacollab\[data\]"):
        load_spec(make_spec())
    assert [info.where for info in available()][2:] == ["absent"] * 4


@pytest.mark.parametrize("place", ["data_dir", "variable", "cache", "system"])
@pytest.mark.parametrize("folder", ["tiny", "."])
def test_every_place_is_looked_at_with_and_without_a_folder(tmp_path, monkeypatch, place, folder):
    directory = {"cache": tmp_path / "cache" / "datacollab"}.get(place, tmp_path / place)
    (directory / folder).mkdir(parents=True)
    (directory / folder / "image-idx").write_bytes(PIXELS)
    (directory / folder / "table.csv").write_bytes(CSV.replace(b"\n", b"\r\n"))
    monkeypatch.setenv("DATACOLLAB_DATA", str(tmp_path / "variable"))
    dataset = load_spec(make_spec(), data_dir=tmp_path / "data_dir", download=False)
    np.testing.assert_array_equal(dataset.X, TABLE[:, :2])


@pytest.mark.parametrize(
    "packed",
    [
        CSV,
        gzip.compress(CSV),
        zipped({"table.csv": CSV}),
        zipped({"folder/TABLE.csv": CSV, "notes.txt": b"x", "__MACOSX/folder/._TABLE.csv": b"x"}),
        zipped({"inner.zip": zipped({"a/b/table.csv": CSV})}),
    ],
    ids=["plain", "gzip", "zip", "folders", "nested"],
)
def test_packing_does_not_matter(tmp_path, packed):
    (tmp_path / "table.zip").write_bytes(packed)
    (tmp_path / "image-idx").write_bytes(PIXELS)
    np.testing.assert_array_equal(load_spec(make_spec(), data_dir=tmp_path, download=False).y, TABLE[:, 2])


def test_damaged_local_file_is_named_and_fetch_repairs_it(good, tmp_path):
    for name, body in good.items():
        (tmp_path / name[1:]).write_bytes(body)
    (tmp_path / "image-idx.gz").write_bytes(good["/image-idx.gz"][:-12])
    with pytest.raises(DatasetError, match=r"image-idx\.gz cannot be used.*Delete it"):
        load_spec(make_spec(), data_dir=tmp_path)
    with serving(good) as (url, requests):
        assert fetch_spec(make_spec(url), tmp_path) == tmp_path
    assert requests == ["/image-idx.gz"]
    assert load_spec(make_spec(), data_dir=tmp_path, download=False).X.shape == (3, 2)


def test_excerpt_stands_in_until_the_whole_is_there(good, tmp_path):
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "excerpt.csv").write_bytes(EXCERPT)
    spec = make_spec(excerpt=True)
    dataset = load_spec(spec, data_dir=tmp_path / "early")
    assert dataset.excerpt is True
    assert "EXCERPT: only the first 2 of 3 rows" in dataset.DESCR
    with serving(good) as (url, _):
        fetch_spec(make_spec(url))
    whole = load_spec(spec, data_dir=tmp_path / "early")
    assert whole.excerpt is False
    assert whole.X.shape == (3, 2)
    assert "EXCERPT" not in whole.DESCR
