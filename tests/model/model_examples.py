"""Small fitted models of many kinds, for the tests of model files."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from datacollab.bundle import Bundle, arrays_to_bytes, bytes_to_arrays
from datacollab.errors import ExchangeError
from datacollab.linalg import Kernel
from datacollab.model import MODEL_KIND, KernelMap, LinearMap, PartyModel, model_contents, model_from

N_INTERMEDIATE, N_COMPONENTS = 3, 4

_generator = np.random.default_rng(0)
ANCHOR = _generator.normal(size=(20, N_INTERMEDIATE))
COEFFICIENTS = _generator.normal(size=(20, N_COMPONENTS))
ROWS = _generator.normal(size=(60, N_INTERMEDIATE))

MAPS = {
    "linear": LinearMap("north", _generator.normal(size=(N_INTERMEDIATE, N_COMPONENTS))),
    "rbf": KernelMap("north", ANCHOR, COEFFICIENTS, Kernel(metric="rbf", parameters={"gamma": 0.3})),
    "poly": KernelMap(
        "north",
        ANCHOR,
        0.01 * COEFFICIENTS,
        Kernel(metric="poly", parameters={"gamma": 0.5, "degree": 2, "coef0": 1.0}),
    ),
    "laplacian": KernelMap("north", ANCHOR, COEFFICIENTS, Kernel(metric="laplacian", parameters={"gamma": 0.2})),
    "linear-kernel": KernelMap("north", ANCHOR, COEFFICIENTS, Kernel(metric="linear"), "float64"),
    "column by column": KernelMap(
        "north",
        np.asfortranarray(ANCHOR),
        np.asfortranarray(COEFFICIENTS),
        Kernel(metric="rbf", parameters={"gamma": 1}),
    ),
    "affine": LinearMap(
        "north",
        np.random.default_rng(1).normal(size=(N_INTERMEDIATE, N_COMPONENTS)),
        np.random.default_rng(2).normal(size=N_COMPONENTS),
    ),
}


def targets(*, regression=False, dtype="U1", n_classes=3):
    """Targets of ROWS that depend on them."""
    score = ROWS @ [1.0, -0.5, 0.3]
    if regression:
        return np.exp(0.3 * score)
    codes = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    return np.array(["x", "y", "z"])[codes].astype(dtype) if dtype in ("U1", object) else codes.astype(dtype)


def fitted(estimator, g=None, y=None):
    """The model of a party, with the estimator fitted in the common space."""
    g = MAPS["rbf"] if g is None else g
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = estimator.fit(g(ROWS), targets() if y is None else y)
    return PartyModel(party="north", integration_function=g, estimator=estimator)


def bundle_of(model):
    """What a party would unpack."""
    facts, members = model_contents(model)
    return Bundle(kind=MODEL_KIND, facts=facts, members=members, signer=None, digest="")


def changed_arrays(bundle, change, member="h.safetensors"):
    """A bundle whose arrays somebody changed."""
    arrays = bytes_to_arrays(bundle.members[member], what=member)
    change(arrays)
    return replace(bundle, members=bundle.members | {member: arrays_to_bytes(arrays)})


def refused(bundle):
    """The code with which a party refuses it."""
    with pytest.raises(ExchangeError) as caught:
        model_from(bundle)
    return caught.value.code
