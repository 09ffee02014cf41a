"""The analyst's commands, on two made-up parties."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from party_world import allow_without_audit
from playing import done, run


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Two parties have shared; the second in groups."""
    root = tmp_path_factory.mktemp("exchange")
    random = np.random.default_rng(0)

    def table(n_rows):
        rows = pd.DataFrame(random.normal(size=(n_rows, 4)), columns=list("abcd"))
        return rows.assign(ill=np.where(rows["a"] + rows["b"] > 0, "yes", "no"))

    for name, n_rows in {"north": 80, "south": 80, "public": 200}.items():
        table(n_rows).to_csv(root / f"{name}.csv", index=False)
    done("keys", "new", *(root / name for name in ("north", "south", "west", "analyst")))
    members = [f"--party={name}={root / name / 'public.key'}" for name in ("north", "south", "west")]
    agreed = ["--like", root / "public.csv", "--target", "ill", "--purpose", "Tests.", "--anchor-rows", 60]
    keys = ["--analyst", root / "analyst" / "public.key", "-C", root / "north"]
    done("project", "new", "p", *agreed, *members, *keys, "--range", -9, 9, "--rows", "-o", root / "project.toml")
    seal = ["--project", root / "project.toml", "-C", root / "north", "-o", root / "anchor.dcanchor"]
    done("anchor", "seal", root / "public.csv", *seal)
    for name, options in {"north": ["--preset", "none", "--undefended"], "south": ["--group-size", 4]}.items():
        done("party", "join", root / "project.toml", root / "anchor.dcanchor", "-C", root / name)
        allow_without_audit(root / name / "policy.toml")
        done("party", "share", root / f"{name}.csv", "--no-audit", "--approve", "-C", root / name, *options)
    return root


def shares(root):
    return [root / name / "outbox" / f"{name}.dcshare" for name in ("north", "south")]


def test_integrating_says_what_a_person_should_know(shared):
    named = ["--method", "kti", "--model", "linear", "--seed", 0]
    given = ["--project", shared / "project.toml", "-C", shared / "analyst", *named]
    told = done("analyst", "integrate", *shares(shared), *given).stdout
    assert "StandardScaler + LogisticRegression on 160 rows of 2 parties" in told
    assert "80 of south" in told  # rows of groups, and what that means for the score
    assert "Not among them: west" in told
    status = json.loads(done("analyst", "status", "-C", shared / "analyst", "--json").stdout)
    assert (status["n_shares"], [each["n_rows"] for each in status["parties"]]) == (2, [80, 80, None])
    models = json.loads(done("analyst", "export", "-C", shared / "analyst", "--json").stdout)["models"]
    assert [model.rpartition("/")[2] for model in models] == ["north.dcmodel", "south.dcmodel"]


def test_by_default_methods_and_models_are_tried_and_told(shared):
    given = ["--project", shared / "project.toml", "-C", shared / "analyst", "--budget", 0]
    told = done("analyst", "integrate", *shares(shared), *given).stdout
    assert "Chosen by log loss on 80 rows: the parties' rows, each left out" in told
    assert " * " in told
    facts = json.loads(done("analyst", "integrate", *given, "--json").stdout)
    assert facts["selection"]["chosen"]["chosen"]
    assert re.search(rf"AUC of yes +{facts['score']['ranking']['auc']:.3f}", told)
    assert facts["method"].lower() in facts["selection"]["chosen"]["integrator"].lower()
    assert any(each["failure"] for each in facts["selection"]["candidates"])  # there was no time for more
    for wrong in (["--components", 2], ["--alpha", 1]):
        assert run("analyst", "integrate", *given, *wrong).exit_code != 0


def test_a_replacement_is_said_to_be_one(shared):
    given = ["--project", shared / "project.toml", "-C", shared / "analyst"]
    done("analyst", "integrate", *shares(shared), *given, "--folds", 0, "--budget", 0)
    again = ["--no-audit", "--preset", "none", "--undefended", "--approve", "--again", "-C", shared / "north"]
    done("party", "share", shared / "north.csv", *again)
    assert "takes the place" in done("analyst", "add", shares(shared)[0], "-C", shared / "analyst").stdout


@pytest.mark.parametrize("option", ["--method", "--model"])
def test_an_unknown_name_is_a_wrong_usage(shared, option):
    result = run("analyst", "integrate", option, "magic", "-C", shared / "analyst")
    assert result.exit_code == 2
    assert "magic" in result.output
