import numpy as np
import pytest
from bent_views import nonlinear_views


@pytest.fixture
def views():
    return nonlinear_views(200)[0]


@pytest.fixture
def anchor_classes():
    return np.digitize(nonlinear_views(200)[1][:, 0], [-0.5, 0.5])
