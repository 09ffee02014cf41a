"""A plan, the roles that play it, the model that goes back, and the card that a mask key travels on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.linear_model import Ridge

from datacollab.bundle import Bundle, KeyPair, arrays_to_bytes, pack
from datacollab.errors import AgreementError
from datacollab.linalg import gaussian_sigma
from datacollab.study import MAPPED, TARGET, CategoryColumn, Counts, RidgeRegression, StudyPlan
from datacollab.sums import SUMS_MODEL_KIND, MaskKey, RidgeSums, SumsModel, SumsPlan, mask_card, read_mask_card
from party_world import refusal

NAMES = ("north", "south", "west", "east")
KEY = KeyPair(b"\1" * 32, b"\2" * 32)


class World:
    """Four parties with rows in a common map."""

    def __init__(self, **options):
        rng = np.random.default_rng(0)
        self.v = {name: rng.normal(size=(100, 12)) for name in NAMES}
        self.v = {name: v / np.linalg.norm(v, axis=1).max() for name, v in self.v.items()}
        self.secrets = {name: bytes([place]) * 32 for place, name in enumerate(NAMES, 1)}
        roster = {name: MaskKey(secret).public for name, secret in self.secrets.items()}
        self.plan = SumsPlan(roster, n_components=12, **options)

    def target(self, name):
        score = self.v[name] @ np.linspace(-1, 1, 12)
        return score if self.plan.classes is None else np.where(score > 0, "yes", "no")

    def play(self):
        keys = {name: MaskKey(secret) for name, secret in self.secrets.items()}
        messages = [self.plan.message(name, v, self.target(name), keys[name]) for name, v in self.v.items()]
        return self.plan.solve(messages)


@pytest.fixture(scope="module")
def classes():
    world = World(classes=["no", "yes"], noise=1e-6, facts={"project": "wards"})
    return world, world.play()


@pytest.fixture(scope="module")
def numbers():
    world = World(limits=(-2.0, 2.0), noise=1e-6)
    return world, world.play()


def test_the_model_is_ridge_regression_on_all_rows(numbers):
    world, model = numbers
    v, y = np.vstack(list(world.v.values())), np.concatenate([world.target(name) for name in NAMES])
    expected = Ridge(model.fit.alpha).fit(v, y)
    # But for the noise that a model of few rows has.
    S = (v - v.mean(axis=0)).T @ (v - v.mean(axis=0)) + model.fit.alpha * np.eye(v.shape[1])
    deviation = np.sqrt(model.fit.spread * np.einsum("ij,ij->i", v - v.mean(axis=0), np.linalg.solve(S, v.T).T))
    scale = np.ptp(world.plan.limits) / 2
    assert (np.abs(model.predict(v) - expected.predict(v)) < 5 * scale * deviation + 1e-3).all()
    assert model.fit.n_rows == pytest.approx(400, abs=0.01)


@pytest.mark.parametrize("which", ["classes", "numbers"])
def test_a_model_is_a_file(which, request, tmp_path):
    world, model = request.getfixturevalue(which)
    model.save(tmp_path / "north.dcmodel", key=KEY)
    again = SumsModel.load(tmp_path / "north.dcmodel", signed_by=KEY.public)
    assert (again.classes, again.limits, again.context) == (model.classes, model.limits, model.context)
    assert_array_equal(again.predict(world.v["south"]), model.predict(world.v["south"]))
    assert b"north" not in (tmp_path / "north.dcmodel").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"classes": ["no", "yes", "maybe"]},
        {"classes": None},
        {"limits": [0.0, 1.0]},
        {"limits": "ab", "classes": None},
        {"context": "00"},
        {"alpha": "large"},
        {"more": 1},
        {"coefficients": np.full((12, 2), np.nan)},
        {"coefficients": np.zeros((12, 2), dtype=np.float32)},
        {"intercept": np.zeros(3)},
        {"extra": np.zeros(3)},
    ],
    ids=lambda change: " ".join(change),
)
def test_models_that_make_no_sense_are_refused(classes, change):
    _, model = classes
    facts, _ = model._contents()
    arrays = {"coefficients": model.fit.coefficients, "intercept": model.fit.intercept}
    for name, value in change.items():
        (arrays if isinstance(value, np.ndarray) else facts)[name] = value
    members = {"model.safetensors": arrays_to_bytes(arrays)}
    refusal("MODEL_MALFORMED", SumsModel._from_bundle, Bundle(SUMS_MODEL_KIND, facts, members, None, ""))


def test_whatever_is_agreed_on_is_in_the_context():
    plan = World(classes=["no", "yes"], facts={"project": "wards", "run": 1}).plan
    others = [
        {"classes": ("yes", "no")},
        {"classes": None, "limits": (0.0, 1.0)},
        {"noise": 0.2},
        {"facts": {"project": "wards", "run": 2}},
        {"n_components": 11},
        {"n_colluding": 1},
        {"least_penalty": 0.5},
        {"roster": dict(list(plan.roster.items())[:3])},
    ]
    contexts = {replace(plan, **other).agreed.context for other in others}
    assert len(contexts | {plan.agreed.context}) == len(others) + 1


def test_messages_of_another_plan_are_refused_by_name():
    world, other = World(classes=["no", "yes"]), World(classes=["no", "yes"], facts={"run": 2})
    keys = {name: MaskKey(secret) for name, secret in world.secrets.items()}
    messages = [
        (other if name == "west" else world).plan.message(name, v, world.target(name), keys[name])
        for name, v in world.v.items()
    ]
    with pytest.raises(AgreementError, match="'west'.*another sum"):
        world.plan.solve(messages)


def test_a_plan_without_sense_is_refused_when_it_is_made():
    roster = World(classes=["no", "yes"]).plan.roster
    for wrong in ({}, {"classes": ["a"]}, {"limits": (1.0, 0.0)}, {"classes": ["a", "b"], "limits": (0.0, 1.0)}):
        with pytest.raises(AgreementError):
            SumsPlan(roster, n_components=5, **wrong)
    with pytest.raises(AgreementError, match="at least 3"):
        SumsPlan(dict(list(roster.items())[:2]), n_components=5, classes=["a", "b"])


def test_a_card_is_its_partys():
    mask_key, other = MaskKey.generate(), KeyPair.generate()
    word = mask_card(mask_key, KEY)
    assert read_mask_card(word, KEY.public) == mask_key.public
    refusal("SIGNATURE_INVALID", read_mask_card, word, other.public)
    changed = word[:20] + ("a" if word[20] != "a" else "b") + word[21:]
    assert refusal("SIGNATURE_INVALID", read_mask_card, changed, KEY.public)
    for wrong in ("", word[:-2], word[8:], word.upper(), word + "aaaaaaaa", "dcmask1-1"):
        refusal("KEY_MALFORMED", read_mask_card, wrong, KEY.public)


def test_a_model_of_another_kind_is_no_model(tmp_path):
    (tmp_path / "a.dcmodel").write_bytes(pack("datacollab.model", {}, {}, key=KEY))
    refusal("WRONG_KIND", SumsModel.load, tmp_path / "a.dcmodel")


def test_the_penalty_knows_the_noise_of_colluding_parties_too():
    world = World(limits=(-2.0, 2.0), noise=0.1)
    least = 0.1 * np.sqrt(2 * 12) * np.sqrt(4 / 2)  # of four parties, two may collude
    assert world.plan.agreed.excess == pytest.approx(np.sqrt(2))
    # Linear targets want less, in most draws of the noise.
    assert min(world.play().fit.alpha for _ in range(8)) >= least * (1 - 1e-12)
    assert world.plan.statistic.noise * np.sqrt(2 * 12) < 0.8 * least


@pytest.mark.parametrize("shorten", [True, False])
def test_a_row_that_stands_alone_is_shortened_unless_a_proof_needs_it_as_it_is(shorten):
    """A proof needs that replacing one row moves the sums of no other."""
    world = World(classes=["no", "yes"], noise=1e-6)
    world.v["north"][:, 0], world.v["north"][0] = 0.0, np.eye(12)[0]
    messages = [
        world.plan.message(name, v, world.target(name), MaskKey(world.secrets[name]), shorten=shorten)
        for name, v in world.v.items()
    ]
    whole = sum(world.plan.statistic.part(v, world.target(name)) for name, v in world.v.items())
    assert np.allclose(world.plan.agreed.total(messages), whole, atol=1e-4) == (not shorten)


# One plan: ridge regression is one statistic among the others.


@pytest.mark.parametrize(
    ("options", "context"),
    [
        (
            {"classes": ["no", "yes"], "facts": {"run": 1}},
            "cc914a089acb04ab495e633aed1eead40581c6506c9b78b0f91a42f3df836a4a",
        ),
        (
            {"limits": (0.0, 9.0), "scale": "log", "noise": 0.2, "least_penalty": 0.5},
            "8f596947475724adb0c78b04135eea4799a8ed9fe454e602e4673d0cf5230bf3",
        ),
    ],
)
def test_the_agreement_on_a_model_is_written_as_ever(options, context):
    """Parties with programs of different age agree on one sum: the bytes behind its digest may not change."""
    assert World(**options).plan.agreed.context.hex() == context


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from([{"classes": ["no", "yes"]}, {"limits": (-2.0, 2.0)}, {"limits": (0.0, 9.0), "scale": "log"}]),
    st.floats(0.01, 100),
    st.floats(0.03, 10),
)
def test_one_rule_makes_noise_of_epsilon(target, epsilon, noise):
    plan = World(**target, noise=noise, epsilon=epsilon).plan
    sums = RidgeSums(12, **target, noise=noise)
    assert plan.statistic.noise == max(noise, sums.noise_for(epsilon))
    assert plan.study.noise_of_sums == plan.statistic.noise
    assert plan.study.loss <= (1 + 1e-12) / gaussian_sigma(epsilon, 1e-5)
    assert_array_equal(plan.agreed.noise, plan.statistic.noise_of_each)
    assert replace(plan, epsilon=None, noise=plan.statistic.noise).agreed.context == plan.agreed.context


def test_a_study_of_ridge_regression_makes_the_model_of_a_plan_of_one():
    world = World(classes=["no", "yes"], facts={"project": "wards"})
    plan = world.plan
    study = StudyPlan(plan.roster, [RidgeRegression(RidgeSums(12, ["no", "yes"]))], {"project": "wards"})
    messages, by_study = [], []
    for name, v in world.v.items():
        keys = [MaskKey(world.secrets[name]) for _ in range(2)]
        noise_key = world.secrets[name][::-1]
        table = {MAPPED: v, TARGET: world.target(name)}
        messages.append(plan.message(name, v, table[TARGET], keys[0], noise_key=noise_key, shorten=False))
        by_study.append(study.message(name, table, keys[1], noise_key=noise_key))
        assert_array_equal(messages[-1].words, by_study[-1].words)
    (result,) = study.results(by_study)
    assert result.model(study.agreed.context).to_bytes(key=KEY) == plan.solve(messages).to_bytes(key=KEY)
    n_rows, noise = result.size
    assert abs(n_rows - 400) < 6 * noise
    assert list(result.class_counts) == ["no", "yes"]
    assert sum(result.class_counts.values()) == pytest.approx(n_rows, abs=4 * noise)
    assert [row[0] for row in result.table().rows] == ["all", "no", "yes"]


def test_ridge_regression_goes_by_itself():
    """Beside counts it would tell them with a fifth of their noise."""
    roster = World(classes=["no", "yes"]).plan.roster
    counts = Counts([CategoryColumn("ward", ["day", "night"])])
    with pytest.raises(AgreementError, match="Ridge regression needs a message of its own"):
        StudyPlan(roster, [counts, RidgeRegression(RidgeSums(12, ["no", "yes"]))])


def test_no_row_is_shortened_for_an_epsilon():
    """Its proof takes rows as they are, whatever the caller asks for."""
    world = World(classes=["no", "yes"], noise=1e-6, epsilon=1e6)
    world.v = {name: np.vstack([0.01 * v, np.eye(12)[:1]]) for name, v in world.v.items()}
    for plan, is_whole in ((world.plan, True), (replace(world.plan, epsilon=None), False)):
        keys = {name: MaskKey(secret) for name, secret in world.secrets.items()}
        messages = [plan.message(name, v, world.target(name), keys[name]) for name, v in world.v.items()]
        whole = sum(plan.statistic.part(v, world.target(name)) for name, v in world.v.items())
        apart = np.abs(plan.agreed.total(messages) - whole).max()
        assert (apart < 30 * plan.statistic.noise) == is_whole
