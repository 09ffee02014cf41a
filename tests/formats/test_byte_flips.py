"""Files that were changed on their way: a clean refusal or an equal result."""

from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from datacollab import PartyModel, Share
from datacollab.bundle import KeyPair, unpack
from datacollab.errors import ExchangeError
from datacollab.linalg import Kernel
from datacollab.model import KernelMap, LinearMap, model_from
from datacollab.share import share_from
from suite import N_CHANGES

generator = np.random.default_rng(0)
X, A = generator.normal(size=(12, 2)), generator.normal(size=(5, 2))
ROWS = generator.normal(size=(6, 2))


def _share():
    return Share(party="north", representation=X[:3], anchor_representation=A[:2], target=np.array(["no", "yes", "no"]))


def _linear_model():
    g = LinearMap("north", generator.normal(size=(2, 2)))
    return PartyModel(party="north", integration_function=g, estimator=LogisticRegression().fit(g(X), X[:, 0] > 0))


def _kernel_model():
    g = KernelMap("north", A, generator.normal(size=(5, 2)), Kernel(metric="rbf", parameters={"gamma": 0.5}))
    tree = DecisionTreeRegressor(max_depth=2).fit(g(X), X[:, 0])
    return PartyModel(party="north", integration_function=g, estimator=tree)


def _written(thing, folder, key):
    file = folder / "file"
    thing.save(file, key=key)
    return file.read_bytes()


def _answer(data, signed_by):
    """All that a reader takes from a file, or the code of the refusal."""
    try:
        bundle = unpack(data, signed_by=signed_by)
    except ExchangeError as error:
        return error.code
    return bundle.kind, bundle.facts, bundle.members, bundle.signer, bundle.digest


def _result(data):
    """What a changed file that is a bundle still says, or the code of the refusal."""
    try:
        bundle = unpack(data)
        if bundle.kind == "datacollab.share":
            share = share_from(bundle)
            return share.representation.tolist(), share.anchor_representation.tolist(), share.target.tolist()
        return model_from(bundle).predict(ROWS).tolist()
    except ExchangeError as error:
        return error.code


def _changed(data):
    """A flipped bit or byte, most often; now and then a piece left out, doubled, or cut off."""
    raw, position = bytearray(data), int(generator.integers(len(data)))
    how = generator.random()
    if how < 0.6:
        raw[position] ^= 1 << int(generator.integers(8))
    elif how < 0.9:
        raw[position] = int(generator.integers(256))
    elif how < 0.94:
        del raw[position : position + int(generator.integers(1, 20))]
    elif how < 0.98:
        raw[position:position] = raw[position : position + int(generator.integers(1, 20))]
    else:
        del raw[position:]
    return bytes(raw)


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
@pytest.mark.parametrize("make", [_share, _linear_model, _kernel_model], ids=["share", "linear model", "kernel model"])
def test_a_changed_file_is_refused_or_says_the_same(make, signed, tmp_path):
    key = KeyPair.generate() if signed else None
    data = _written(make(), tmp_path, key)
    whole, result = _answer(data, key and key.public), _result(data)
    assert not isinstance(whole, str)
    assert not isinstance(result, str)
    counts = Counter()
    for _ in range(N_CHANGES):
        changed = _changed(data)
        answer = _answer(changed, key and key.public)
        if isinstance(answer, str):
            counts[answer] += 1
        elif answer == whole:
            counts["equal"] += 1
        else:
            # Only reached where the change was not noticed; then it must be one without effect.
            assert _result(changed) == result
    assert counts["equal"] < counts.total() / 20
    assert set(counts) <= {
        *("BUNDLE_MALFORMED", "HASH_MISMATCH", "SIGNATURE_INVALID", "SIGNATURE_MISSING", "TOO_LARGE", "equal"),
        *("FORMAT_TOO_NEW", "WRONG_KIND"),
    }
    assert counts["HASH_MISMATCH"] > N_CHANGES / 20
