"""The public names are a promise: this list changes only together with the changelog."""

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

import datacollab

PUBLIC = [
    *("Analyst", "Central", "Collaboration", "CombinedModel", "CommonSpace", "DataCollabError"),
    *("DataCollaborationClassifier", "DataCollaborationClusterer", "DataCollaborationRegressor"),
    *("DataCollaborationSurvival", "GEP", "GaussianAnchor", "GeometricGraph", "KTI", "KTICV", "LTI", "Local"),
    *("MPP", "MaskKey", "ODC", "Party", "PartyModel", "PartyStratifiedKFold", "ProgressBar", "SMOTEAnchor"),
    *("SampleAnchor", "Share", "SumsModel", "SumsPlan", "TargetDissimilarityGraph", "TargetSimilarityGraph"),
    *("UniformAnchor", "__version__", "audit", "choose", "datasets", "errors", "find_private_rows"),
    *("find_threshold", "obfuscator", "simulate_parties", "testing"),
]

ROOMS = [
    *("analyst", "anchor", "bundle", "estimators", "datasets", "linalg", "model"),
    *("own", "party", "share", "sums", "study", "survival", "table", "targets", "effects", "progress"),
    *("risk.attacks", "risk.audit", "choice", "agreement", "folder.log", "folder.ledger", "by_sums.plan"),
    *("steps.party", "steps.analyst"),
]


def test_public_names_are_pinned():
    assert sorted(datacollab.__all__) == sorted(PUBLIC)
    assert sorted(dir(datacollab)) == sorted(PUBLIC)


def test_every_public_name_loads_and_is_documented():
    for name in set(PUBLIC) - {"__version__"}:
        assert getattr(datacollab, name).__doc__.strip(), name


def test_every_name_a_room_exports_is_there_and_documented():
    for room in ROOMS:
        module = importlib.import_module(f"datacollab.{room}")
        assert module.__doc__
        for name in module.__all__:
            value = getattr(module, name)
            assert not callable(value) or value.__doc__, (room, name)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="has no attribute 'KTX'"):
        datacollab.KTX  # noqa: B018


def test_reference_page_lists_the_public_names():
    page = (Path(__file__).parents[1] / "docs" / "reference.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(?:dc\.)?(\w+)", page, flags=re.MULTILINE))
    assert set(PUBLIC) - {"__version__", "datasets", "errors", "testing"} <= listed


def test_no_two_private_modules_have_one_name():
    names = Counter(path.name for path in Path(datacollab.__file__).parent.rglob("_*.py"))
    twice = [name for name, times in names.items() if times > 1 and name != "__init__.py"]
    assert not twice, "say in each name which one it is"
