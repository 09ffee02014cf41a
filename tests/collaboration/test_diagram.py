"""The diagram that a notebook shows."""

import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_html_repr

from datacollab import LTI, DataCollaborationClassifier


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"obfuscator": PCA(3), "integrator": LTI(3), "estimator": DecisionTreeClassifier()},
            ["PCA", "LTI", "DecisionTreeClassifier"],
        ),
        ({}, ["PCA", "KTI", "StandardScaler", "RandomForestClassifier"]),
        ({"obfuscator": make_pipeline(StandardScaler(), PCA(3))}, ["StandardScaler", "PCA", "KTI"]),
        ({"integrator": "auto"}, ["PCA"]),
        ({"obfuscator": {"a": PCA()}, "integrator": LTI(3)}, ["LTI", "RandomForestClassifier"]),
    ],
)
def test_f_g_and_h_come_in_their_order(given, expected):
    page = estimator_html_repr(DataCollaborationClassifier(**given))
    body = page[page.index("</style>") :]
    names = [name for name in ("obfuscator", "integrator", "estimator") if f"{name}: " in body]
    assert [body.index(f"{name}: ") for name in names] == sorted(body.index(f"{name}: ") for name in names)
    after = 0
    for name in expected:
        after = body.index(name, after) + len(name)
