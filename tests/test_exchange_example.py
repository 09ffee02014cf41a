"""The example of an exchange of files: what the analyst's directory never held, and what the parties predict."""

import io
import stat
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import datacollab as dc
from datacollab.bundle import is_container, unpack
from datacollab.party import local_party
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from datacollab.table import read_table
from playing import play_here

EXAMPLE = "play_030_files_that_cross"
PARTIES = ("clinic-a", "clinic-b", "clinic-c")
SECRET = ["keys.json", "anchor.dcstate", "party.dcstate", "log.jsonl"]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    directory = tmp_path_factory.mktemp("digits") / "exchange"
    play_here(EXAMPLE, directory, "--keep-order")
    return directory


@pytest.fixture(scope="module")
def by_default(tmp_path_factory, light_choices):
    directory = tmp_path_factory.mktemp("default") / "exchange"
    play_here(EXAMPLE, directory)
    return directory


@pytest.fixture(scope="module")
def ujiindoorloc(tmp_path_factory, real_data_dir):
    directory = tmp_path_factory.mktemp("uji") / "exchange"
    play_here(EXAMPLE, directory, "ujiindoorloc", "--data-dir", real_data_dir, "--keep-order")
    return directory


def table(directory, who, name):
    read = read_table(directory / who / name)
    # In the order of memory that the program has: sums of columns depend on it in their last digit.
    return np.ascontiguousarray(read.iloc[:, :-1], dtype=np.float64), read.iloc[:, -1].to_numpy()


def anchor_of(directory):
    folder = PartyFolder(directory / "clinic-a")
    return folder.anchor


def in_memory(directory, model):
    """The same collaboration in one process."""
    tables = {party: table(directory, party, "own.csv") for party in PARTIES}
    groups = np.repeat(PARTIES, [len(y) for _, y in tables.values()])
    anchor = anchor_of(directory)
    model.fit(
        np.vstack([X for X, _ in tables.values()]),
        np.concatenate([y for _, y in tables.values()]),
        groups=groups,
        anchor=anchor.rows,
        anchor_target=anchor.target,
    )
    X_new, _ = table(directory, "outside", "new.csv")
    return {party: model.predict(X_new, groups=np.full(len(X_new), party)) for party in PARTIES}


def contents(data):
    """The bytes of a file, and of everything packed into it."""
    yield data
    if is_container(data):
        for member in unpack(data).members.values():
            yield from contents(member)
    elif zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                yield from contents(archive.read(name))


def everything_in(directory):
    """All pieces of all files, and what the analyst opens of sealed shares."""
    files = [piece for file in directory.rglob("*") if file.is_file() for piece in contents(file.read_bytes())]
    shares = [each.share for each in AnalystFolder(directory).shares()] if (directory / "shares").is_dir() else []
    return files + [
        array.tobytes() for share in shares for array in (share.representation, share.anchor_representation)
    ]


def spellings(rows):
    """How rows may stand in a file: as numbers of either precision, in either order of a matrix, or as text."""
    for kind in (np.float64, np.float32):
        given = np.ascontiguousarray(rows, dtype=kind)
        yield from (row.tobytes() for row in given)
        yield from (np.ascontiguousarray(column).tobytes() for column in given.T if len(set(column)) > 5)
    yield from (",".join(map(repr, row.tolist())).encode() for row in np.asarray(rows, dtype=np.float64))


def held(directory, rows):
    pieces = everything_in(directory)
    return any(spelling in piece for spelling in spellings(rows) for piece in pieces)


def maps(directory):
    """The directions of each party's f_k."""
    for party in PARTIES:
        X, y = table(directory, party, "own.csv")
        fitted = dc.Party(party, dc.obfuscator("pca", n_components=12, standardize=True)).fit(X, y)._obfuscator
        yield party, fitted[-1].components_


@pytest.mark.nightly
@pytest.mark.parametrize("dataset", ["digits", "ujiindoorloc"])
def test_predictions_are_those_in_memory_to_the_last_digit(dataset, request):
    directory = request.getfixturevalue(dataset)
    kind, forest = (
        (dc.DataCollaborationClassifier, RandomForestClassifier)
        if dataset == "digits"
        else (dc.DataCollaborationRegressor, RandomForestRegressor)
    )
    model = kind(
        dc.obfuscator("pca", n_components=12, standardize=True),
        dc.KTI(n_components=12, alpha=0.1, graph=dc.TargetSimilarityGraph(), center=True),
        forest(random_state=0),
        shuffle=False,
    )
    for party, expected in in_memory(directory, model).items():
        found = read_table(directory / party / "predictions.csv")["prediction"]
        assert_array_equal(found, expected)
    _, y_new = table(directory, "outside", "new.csv")
    if dataset == "digits":
        assert (found == y_new).mean() > 0.6  # chance is .1
    else:
        assert np.abs(found - y_new).mean() < np.abs(y_new - y_new.mean()).mean() / 3


@pytest.mark.nightly
@pytest.mark.parametrize("dataset", ["digits", "ujiindoorloc"])
def test_the_analysts_directory_never_held_a_row_an_anchor_row_or_a_map(dataset, request):
    directory = request.getfixturevalue(dataset)
    anchor = anchor_of(directory)
    for party, components in maps(directory):
        own, _ = table(directory, party, "own.csv")
        assert not held(directory / "analyst", own)
        assert not held(directory / "analyst", components)
        # The search finds them where they are.
        assert held(directory / party, own)
        assert held(directory / party, components)
    assert not held(directory / "analyst", anchor.rows)
    assert held(directory / "clinic-b", anchor.rows)


@pytest.mark.slow
def test_by_default_no_row_leaves_in_any_form_and_parties_predict_with_the_pool(by_default):
    """The analyst has rows of the anchor, moved, and each party what it has alone, pooled with what came back."""
    anchor = anchor_of(by_default)
    assert not held(by_default / "analyst", anchor.rows)
    for party in PARTIES:
        own, _ = table(by_default, party, "own.csv")
        assert not held(by_default / "analyst", own)
        folder = PartyFolder(by_default / party)
        state = unpack(by_default / party / "party.dcstate")
        stored = local_party(state.facts["map"], state.members)
        assert not held(by_default / "analyst", stored.obfuscate(own))
        assert held(by_default / "analyst", stored.obfuscate(anchor.rows))  # the search finds what is there
        assert "ollaboration" in folder.sentence
        found = read_table(by_default / party / "predictions.csv")["prediction"]
        expected = [frame["prediction"] for frame in folder.predict_batches(by_default / party / "new.csv")]
        assert_array_equal(found, np.concatenate(expected))
    _, y_new = table(by_default, "outside", "new.csv")
    assert (found == y_new).mean() > 0.8  # chance is .1


@pytest.mark.slow
def test_secrets_are_their_owners_alone_under_any_umask(digits):
    for who in (*PARTIES, "analyst"):
        secrets = [digits / who / name for name in SECRET if (digits / who / name).exists()]
        assert len(secrets) >= 2
        assert {stat.S_IMODE(file.stat().st_mode) for file in secrets} == {0o600}, who
        assert stat.S_IMODE((digits / who).stat().st_mode) & 0o077 == 0, who
