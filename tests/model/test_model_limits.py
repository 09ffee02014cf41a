"""A model that would take the party's memory, its time or its process is refused before it does."""

import json
from dataclasses import replace

import numpy as np
import pytest
from model_examples import bundle_of, bundle_of_objects
from sklearn.ensemble import RandomForestClassifier
from tampering import MODELS, archive_of, nodes_of, outcome, with_archive

from datacollab.errors import ExchangeError
from datacollab.model import model_from, plain_facts
from datacollab.model._skops_archive import MOST_OUTLINE_BYTES, read_archive
from datacollab.model._skops_file import estimator_to_bytes

N_COMPONENTS = 4
ROWS = np.random.default_rng(0).normal(size=(50, N_COMPONENTS))
LOADERS = ("DictNode", "JsonNode", "ListNode", "NdArrayNode", "ObjectNode", "TreeNode", "TupleNode", "TypeNode")
CLASSES = np.arange(50) % 2


def repeated(n_times, *, numbered=None):
    """An outline that names one array again and again."""

    def change(outline, arrays):
        content = outline["content"]
        node = next(value for value in content["content"].values() if value["__loader__"] == "NdArrayNode")
        node = {key: value for key, value in node.items() if key != "__id__"} | (numbered or {})
        listed = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": [node] * n_times}
        content["content"]["more"] = listed
        kind = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}
        content["key_types"]["content"].append(kind)
        arrays[node["file"]] = np.zeros(10**6)

    outline, arrays = archive_of(bundle_of_objects(MODELS["logistic"]()))
    change(outline, arrays)
    return outline, arrays


@pytest.mark.parametrize(
    ("n_times", "numbered", "wanted"),
    [
        (200, {}, {"MODEL_MALFORMED", "TOO_LARGE"}),
        (200, {"__id__": 10**6}, {"loaded", "MODEL_MALFORMED", "TOO_LARGE"}),
    ],
    ids=["each anew", "one of them"],
)
def test_a_small_file_that_would_take_much_memory_is_refused(n_times, numbered, wanted):
    """Skops makes an array anew for each of its names, unless they have one number."""
    outline, arrays = repeated(n_times, numbered=numbered)
    bundle = with_archive(bundle_of_objects(MODELS["logistic"]()), outline, arrays)
    assert len(bundle.members["h.skops"]) < 50_000
    assert outcome(bundle) in wanted


def test_the_limits_leave_room_for_a_forest_of_a_thousand_trees():
    forest = RandomForestClassifier(50, max_leaf_nodes=51, random_state=0).fit(
        np.tile(ROWS, (20, 1)), CLASSES.repeat(20)
    )
    archive = read_archive(estimator_to_bytes(forest))
    assert 20 * len(json.dumps(archive.outline)) < MOST_OUTLINE_BYTES
    assert 20 * sum(1 for kind in LOADERS for _ in nodes_of(archive.outline, kind)) < 0.8 * 10**5


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        ("n_rows", True),
        ("n_rows", -1),
        ("n_rows", 10**30),
        ("n_rows", "300\x1b[2J"),
        ("n_parties", 2.0),
        ("method", ["KTIIntegrator"]),
        ("method", "x" * 201),
        ("method", "a\nb"),
        ("parameters", {"a": [1]}),
        ("parameters", {str(number): 1 for number in range(51)}),
        ("estimator", "RandomForestClassifier"),
        ("estimator", "a b"),
        ("created", "yesterday"),
        ("created", "2026-11-21T18:00:00"),
        ("row_lint", {"found": 1, "overridden_by": None}),
        ("row_lint", {"found": True, "overridden_by": "a\x1bb"}),
        ("task", "magic"),
        ("party", "x" * 201),
    ],
)
def test_facts_that_are_shown_are_of_their_types_and_short(fact, value):
    bundle = bundle_of(MODELS["logistic"]())
    with pytest.raises(ExchangeError) as caught:
        model_from(replace(bundle, facts=bundle.facts | {fact: value}))
    assert caught.value.code == "MODEL_MALFORMED"
    assert json.dumps(value).strip('"') not in str(caught.value)


def test_the_facts_of_a_project_are_taken():
    bundle = bundle_of(MODELS["logistic"]())
    of_project = {
        "n_rows": 300,
        "n_parties": 2,
        "method": "KTIIntegrator",
        "parameters": {"n_components": 3, "gamma": None, "metric": "rbf", "ridge": 1e-9},
        "row_lint": {"found": True, "overridden_by": "Dr. Müller"},
    }
    bundle = replace(bundle, facts=bundle.facts | of_project)
    assert plain_facts(bundle) == bundle.facts
    model_from(bundle)
