import copy
import pickle

import numpy as np
import pytest

from datacollab.datasets import Dataset, available, load
from datacollab.errors import DatasetError

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
