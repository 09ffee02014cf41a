"""Balance of raw columns by files: the analyst's propensity out, the parties' sums in, once."""

import json
import stat
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from datacollab.bundle import pack, unpack
from datacollab.cli._app import app
from datacollab.effects import pooled_balance
from datacollab.errors import AgreementError, EffectWarning, ExchangeError, ObfuscationError
from datacollab.exchange.analyst_folder import balance_of, effect_of
from datacollab.exchange.party_folder import PartyFolder, _commit
from datacollab.exchange.party_folder._stored import load_party
from datacollab.exchange.project import Column
from datacollab.party._dominance import rounded_weights, truncated_weights
from datacollab.share import BALANCE_KIND, balance_contents, balance_from
from named_world import NUMBERS, NamedWorld
from party_world import contents, events, refused


class Estimated:
    """Two parties that have shared, and an analyst with an effect and propensities in the outbox."""

    def __init__(self, root, target="ATE", n_rows=120, **changes):
        self.world = NamedWorld(root, "effect", n_rows=n_rows, **changes)
        self.a, self.b = self.world.shared("a"), self.world.shared("b")
        self.analyst = self.world.analyst(self.a, self.b)
        self.found = effect_of(self.analyst, target=target, balance=True)

    def propensity(self, name):
        return self.analyst.path / "outbox" / f"{name}.dcpropensity"

    def sums(self):
        return [
            folder.balance(self.propensity(folder.name), approve=lambda release: "me") for folder in (self.a, self.b)
        ]


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory):
    return Estimated(tmp_path_factory.mktemp("balance"))


@pytest.fixture
def there(tmp_path):
    return Estimated(tmp_path)


@pytest.mark.parametrize("target", ["ATE", "ATT"])
@pytest.mark.parametrize("sealed", [False, True])
def test_differences_are_those_of_all_rows_in_one_place(tmp_path, target, sealed):
    there = Estimated(tmp_path, target, seal_shares=sealed)
    files = there.sums()
    found = balance_of(there.analyst, files)
    rows = pd.concat(there.world.tables.values())
    X, t = rows[list(NUMBERS)].to_numpy(), rows["drug"].to_numpy()
    scores = []
    for folder in (there.a, there.b):
        own = there.world.tables[folder.name][list(NUMBERS)].to_numpy()
        scores.append(folder_party(folder).predict_proba(own, there.found.party_model(folder.name))[:, 1])
    e = np.concatenate(scores).clip(0.02, 0.98)
    w = np.where(t == 1, 1 / e, 1 / (1 - e)) if target == "ATE" else np.where(t == 1, 1.0, e / (1 - e))
    owner = np.repeat(["a", "b"], [len(each) for each in there.world.tables.values()])
    for own in ((owner == name) & (t == arm) for name in "ab" for arm in (0, 1)):
        w[own] = truncated_weights(rounded_weights(w[own]), 10)
    spread = X[t == 1].var(axis=0, ddof=1)
    if target == "ATE":
        spread = (spread + X[t == 0].var(axis=0, ddof=1)) / 2
    means = [np.average(X[t == arm], axis=0, weights=w[t == arm]) for arm in (0, 1)]
    # Sums are to a thousandth of the anchor's spread per row.
    assert_allclose(found.before, (X[t == 1].mean(axis=0) - X[t == 0].mean(axis=0)) / np.sqrt(spread), atol=3e-3)
    assert_allclose(found.after, (means[1] - means[0]) / np.sqrt(spread), atol=3e-3)
    assert (found.n_untreated, found.n_treated) == ((t == 0).sum(), (t == 1).sum())
    assert found.columns == NUMBERS
    assert json.loads((there.analyst.path / "balance.json").read_bytes())["target"] == target
    # What leaves is open where the project's shares are.
    assert (unpack(files[0]).members.keys() == {"sealed.bin"}) == sealed
    assert ("columns" in unpack(files[0]).facts) != sealed


def folder_party(folder):
    return load_party(folder._files, folder._own).party


def test_what_is_shown_is_what_leaves(there):
    shown = []
    before = contents(there.a)
    file = there.a.balance(there.propensity("a"), approve=lambda release: shown.append(release) or "me")
    (release,) = shown
    sums = balance_from(unpack(file, signed_by=there.world.keys["a"].public))
    told = release.to_dict()
    for name in ("counts", "truncated", "kept", "weights", "squared_weights", "sums", "squares"):
        assert_allclose(told[name], getattr(sums, name), rtol=0)
    for number in np.ravel(sums.sums):
        assert f"{number:+.5g}" in release.to_text()
    facts = unpack(file).facts
    assert set(facts) == {
        *("party", "columns", "target", "project", "project_digest", "share_digest", "created", "approved_by"),
    }
    assert contents(there.a).keys() - before.keys() == {"outbox/a.dcbalance"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert events(there.a)[-1] == "balance"
    assert there.a.log.entries()[-1]["facts"]["digest"] == unpack(file).digest


def test_sums_are_made_once(there):
    there.a.balance(there.propensity("a"), approve=lambda release: "me")
    with refused("ALREADY_SHARED"):
        there.a.balance(there.propensity("a"), approve=lambda release: "me")
    # Also with another propensity.
    effect_of(there.analyst, target="ATT", balance=True)
    with refused("ALREADY_SHARED"):
        there.a.balance(there.propensity("a"), approve=lambda release: "me")


def test_nothing_leaves_unless_somebody_says_so(there):
    before, said = contents(there.a), events(there.a)
    with refused("NOT_APPROVED"):
        there.a.balance(there.propensity("a"), approve=lambda release: None)
    policy = there.a.path / "policy.toml"
    written = policy.read_text()
    policy.write_text('approvers = ["Ada"]\naudit = "warn"\n')
    with refused("NOT_APPROVED"):
        there.a.balance(there.propensity("a"), approve=lambda release: "me")
    policy.write_text(written)
    assert contents(there.a) == before
    assert events(there.a) == said


def test_propensities_of_others_and_models_are_refused(there):
    approve = pytest.fail
    with refused("WRONG_RECIPIENT"):
        there.a.balance(there.propensity("b"), approve=approve)
    bundle = unpack(there.propensity("a"))
    for change, code in (
        ({"share_digest": "0" * 64}, "WRONG_SHARE"),
        ({"project_digest": "0" * 64}, "PROJECT_HASH_MISMATCH"),
        ({"target": "ATC"}, "MODEL_MALFORMED"),
    ):
        forged = pack(bundle.kind, bundle.facts | change, bundle.members, key=there.world.keys["analyst"])
        there.propensity("a").write_bytes(forged)
        with refused(code):
            there.a.balance(there.propensity("a"), approve=approve)
    there.propensity("a").write_bytes(pack(bundle.kind, bundle.facts, bundle.members, key=there.world.keys["b"]))
    with refused("SIGNATURE_INVALID"):
        there.a.balance(there.propensity("a"), approve=approve)
    there.propensity("a").write_bytes(b"text")
    with refused("BUNDLE_MALFORMED"):
        there.a.balance(there.propensity("a"), approve=approve)


def test_a_propensity_is_no_model_to_install(shared_world):
    with pytest.raises(ExchangeError):
        shared_world.a.install(shared_world.propensity("a"))
    assert not (shared_world.a.path / "model.dcmodel").exists()


def test_arms_that_are_too_small_say_nothing(tmp_path):
    there = NamedWorld(tmp_path, "effect")
    few = there.tables["a"]
    few["drug"] = (np.arange(len(few)) < 9).astype(int)
    a, b = there.shared("a"), there.shared("b")
    analyst = there.analyst(a, b)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EffectWarning)
        effect_of(analyst, balance=True)
    with pytest.raises(ObfuscationError, match="fewer than 10"):
        a.balance(analyst.path / "outbox" / "a.dcpropensity", approve=pytest.fail)
    assert not (a.path / "outbox" / "a.dcbalance").exists()


@pytest.mark.parametrize("logged", [False, True])
def test_a_killed_command_leaves_the_old_or_the_new_state(there, monkeypatch, logged):
    def killed(*args, **kwargs):
        raise KeyboardInterrupt

    if logged:
        monkeypatch.setattr(_commit, "_finish_balance", killed)
    else:
        monkeypatch.setattr(_commit.AuditLog, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        there.a.balance(there.propensity("a"), approve=lambda release: "me")
    file = there.a.path / "outbox" / "a.dcbalance"
    assert not file.exists()
    monkeypatch.undo()
    again = PartyFolder(there.a.path)
    if logged:
        with refused("ALREADY_SHARED"):
            again.balance(there.propensity("a"), approve=lambda release: "me")
        assert unpack(file).digest == again.log.entries()[-1]["facts"]["digest"]
    else:
        again.balance(there.propensity("a"), approve=lambda release: "me")
        assert file.exists()
    assert not (there.a.path / ".balance.dcbalance.next").exists()


def test_forgetting_takes_the_sums_along(there):
    file = there.a.balance(there.propensity("a"), approve=lambda release: "me")
    there.a.forget()
    assert not file.exists()


def test_small_counts_are_pointed_at(tmp_path):
    columns = [Column(name=name, kind="number", minimum=0.0, maximum=100.0) for name in NUMBERS[:2]]
    columns.append(Column(name="ward", kind="category", categories=("north", "south")))
    world = NamedWorld(tmp_path, "effect", columns=tuple(columns), max_components=3)
    treated = np.flatnonzero(world.tables["a"]["drug"] == 1)
    world.tables["a"]["ward"] = "north"
    world.tables["a"].loc[[treated[0], treated[1]], "ward"] = "south"
    a, b = world.shared("a"), world.shared("b")
    analyst = world.analyst(a, b)
    effect_of(analyst, balance=True)
    shown = []
    with refused("NOT_APPROVED"):
        a.balance(analyst.path / "outbox" / "a.dcpropensity", approve=lambda release: shown.append(release))
    assert set(shown[0].few) == {("ward=south", "treated", 1, 2), ("ward=north", "treated", 0, 2)}
    assert "ward=south is 1 in 2 treated rows" in shown[0].to_text()


def test_sums_of_others_are_refused_by_the_analyst(there):
    file = there.a.balance(there.propensity("a"), approve=lambda release: "me")
    bundle = unpack(file)
    sums = balance_from(bundle)

    def written(facts, key="a", members=bundle.members):
        file.write_bytes(pack(BALANCE_KIND, facts, members, key=there.world.keys[key] if key else None))
        return [file]

    for change, key, code in (
        ({"party": "c"}, "a", "NOT_A_MEMBER"),
        ({}, None, "SIGNATURE_MISSING"),
        ({}, "b", "SIGNATURE_INVALID"),
        ({"project_digest": "0" * 64}, "a", "PROJECT_HASH_MISMATCH"),
        ({"share_digest": "0" * 64}, "a", "WRONG_SHARE"),
    ):
        with refused(code):
            balance_of(there.analyst, written(bundle.facts | change, key))
    with pytest.raises(AgreementError, match="other columns"):
        balance_of(there.analyst, written(bundle.facts | {"columns": ["age", "pulse", "height"]}))
    with pytest.raises(AgreementError, match="twice"):
        balance_of(there.analyst, written(bundle.facts) * 2)
    assert not (there.analyst.path / "balance.json").exists()
    expected = pooled_balance([sums])
    assert_allclose(balance_of(there.analyst, [file]).after, expected.after)
    assert balance_contents(sums)[1] == dict(bundle.members)


def test_projects_without_treatment_have_no_arms(tmp_path):
    folder = NamedWorld(tmp_path, "survival").joined()
    with pytest.raises(AgreementError, match="no arms"):
        folder.balance(tmp_path / "a.dcpropensity", approve=pytest.fail)


def run(*arguments, code=0):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done


def test_commands(tmp_path):
    world = NamedWorld(tmp_path, "effect")
    a, b = world.shared("a"), world.shared("b")
    world.analyst(a, b)
    analyst = tmp_path / "analyst"
    assert "Send each party" not in run("analyst", "effect", "-C", analyst).stdout
    assert list((analyst / "outbox").iterdir()) == []
    assert "a.dcpropensity" in run("analyst", "effect", "--balance", "-C", analyst).stdout
    asked = run("party", "balance", analyst / "outbox" / "a.dcpropensity", "-C", a.path, code=12)
    assert "--approve" in asked.stderr
    assert "What would leave party a, once" in asked.stdout
    assert not (a.outbox / "a.dcbalance").exists()
    for folder in (a, b):
        file = analyst / "outbox" / f"{folder.name}.dcpropensity"
        shown = run("party", "balance", file, "--approve", "--approved-by", "Ada", "-C", folder.path).stdout
        assert "Send it to the analyst" in shown
    sums = [folder.outbox / f"{folder.name}.dcbalance" for folder in (a, b)]
    shown = run("analyst", "balance", *sums, "--figure", tmp_path / "balance.svg", "-C", analyst).stdout
    assert "treated ones of a, b," in shown
    assert "<svg" in (tmp_path / "balance.svg").read_text()
    told = json.loads(run("analyst", "balance", *sums, "-C", analyst, "--json").stdout)
    # The drug was given by the pulse.
    assert max(told["columns"], key=lambda name: abs(told["columns"][name]["before"])) == "pulse"
    assert abs(told["columns"]["pulse"]["after"]) < 0.2 < abs(told["columns"]["pulse"]["before"])
    assert told["lost"] == []
    run("analyst", "balance", *sums, "--figure", tmp_path / "balance.gif", "-C", analyst, code=2)
    for folder in (a.path, analyst):
        run("log", "verify", "-C", folder)
