import os
from pathlib import Path

# Before NumPy is loaded: several processes at once run these tests, and threads of BLAS that wait for each other take
# several times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from bent_views import nonlinear_views
from hypothesis import settings

settings.register_profile("datacollab", deadline=None, max_examples=25, derandomize=True)
settings.load_profile("datacollab")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def real_data_dir():
    """Where the real data sets lie; tests that need them skip with a reason where they do not."""
    for place in (os.environ.get("DATACOLLAB_DATA"), Path(__file__).parents[2] / "shared" / "data"):
        if place and Path(place).is_dir():
            return Path(place)
    pytest.skip("real data not found: set DATACOLLAB_DATA to a directory that holds it")


@pytest.fixture
def views():
    return nonlinear_views(200)[0]


@pytest.fixture
def anchor_classes():
    return np.digitize(nonlinear_views(200)[1][:, 0], [-0.5, 0.5])
