"""Groups of parties: what they find with a centre is what one analyst finds with all shares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import subspace_angles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.svm import SVC

import datacollab as dc
from datacollab.analyst import Engine
from datacollab.errors import AgreementError, NotEnoughMemoryError, SinglePartyWarning
from datacollab.model import SENDABLE, AveragedClassifier, PartyModel
from datacollab_experiments.groups import Centre, GroupAnalyst, GroupMessage, GroupMoments, from_triangle, sum_factor

N_ANCHORS, N_ROWS = 60, 24
COLUMNS = {"a": 4, "b": 6, "c": 3, "d": 5, "e": 4}
METHODS = {
    "LTI": dc.LTI(3),
    "affine LTI": dc.LTI(3, fit_intercept=True),
    "GEP": dc.GEP(3),
    "MPP": dc.MPP(3),
    "scaled MPP": dc.MPP(3, basis="singular_values"),
    "KTI": dc.KTI(3),
    "centred KTI": dc.KTI(3, center=True, alpha=0.01, gamma_factor=0.5),
    "KTI, laplacian kernel": dc.KTI(3, kernel="laplacian", gamma="scale", solver="exact"),
    "KTI, linear kernel": dc.KTI(3, kernel="linear"),
    "KTI with GL": dc.KTI(3, graph=dc.GeometricGraph(4), center=True),
    "KTI with TSL": dc.KTI(3, graph=dc.TargetSimilarityGraph(5), graph_weight=0.5),
}
KERNEL_METHODS = [name for name in METHODS if "KTI" in name]


def shares(seed=0, columns=COLUMNS, regression=False):
    """Bent and shifted views of one table with two blobs and a bit."""
    generator = np.random.default_rng(seed)

    def latent(n):
        y = generator.integers(3, size=n)
        return generator.normal(size=(n, 4)) + 2.5 * np.eye(3, 4)[y], y

    anchor, anchor_target = latent(N_ANCHORS)
    found = []
    for party, d in columns.items():
        X, y = latent(N_ROWS)
        W, shift = generator.normal(size=(4, d)), generator.normal(size=d)

        def f(rows, W=W, shift=shift):
            return np.tanh(rows @ W / 4) + shift

        found.append(
            dc.Share(
                party=party,
                representation=f(X),
                anchor_representation=f(anchor),
                target=X[:, 0] + 0.1 * generator.normal(size=N_ROWS) if regression else y,
                anchor_target=None if regression else anchor_target,
            )
        )
    return found


def split(every, groups, integrator, estimator=None):
    """Each group's analyst with its message."""
    analysts = {}
    for name, members in groups.items():
        analyst = GroupAnalyst(name, integrator, estimator or LogisticRegression(max_iter=2000))
        analysts[name] = analyst, analyst.message([share for share in every if share.party in members])
    return analysts


def flat_fit(every, integrator):
    anchors = {share.party: share.anchor_representation for share in every}
    return integrator.fit(anchors, every[0].anchor_target)


def sine(Z, W):
    return np.sin(subspace_angles(Z, W)).max()


TWO = {"north": "abc", "south": "de"}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(2))
def test_the_target_is_that_of_all_parties_in_one_place(method, seed):
    every, integrator = shares(seed), METHODS[method]
    analysts = split(every, TWO, integrator)
    target = Centre().target([message for _, message in analysts.values()])
    flat = flat_fit(every, integrator)
    # GEP's directions are those of LTI, whose target it does not keep.
    wanted = flat_fit(every, dc.LTI(3)).target_ if method == "GEP" else flat.target_
    assert sine(wanted, target.target) < (1e-5 if method in KERNEL_METHODS else 1e-8)
    assert_allclose(target.eigenvalues, flat.eigenvalues_, rtol=1e-7)
    assert target.n_parties == 5
    assert target.groups == ("north", "south")


@pytest.mark.parametrize("method", METHODS)
def test_the_maps_are_those_of_all_parties_in_one_place(method):
    every, integrator = shares(3), METHODS[method]
    analysts = split(every, TWO, integrator)
    target = Centre(["north", "south"]).target([message for _, message in analysts.values()])
    flat = flat_fit(every, integrator)
    rows = {share.party: share.representation for share in every}
    for name, (analyst, _) in analysts.items():
        fitted = analyst.finish(target).integrator_
        own = {party: rows[party] for party in TWO[name]}
        assert list(fitted.integration_functions_) == list(TWO[name])
        for party, mapped in fitted.transform(own).items():
            assert_allclose(mapped, flat.transform(own)[party], atol=1e-7 * np.abs(mapped).max())
        if hasattr(flat, "target_"):
            assert_allclose(fitted.target_, flat.target_, atol=1e-7 * np.abs(flat.target_).max())
    assert type(analyst.integrator) is type(fitted)
    assert analyst.integrator is not fitted


@given(
    seed=st.integers(0, 50),
    owners=st.lists(st.integers(0, 3), min_size=5, max_size=5),
    order=st.randoms(use_true_random=False),
    method=st.sampled_from(sorted(METHODS)),
)
@settings(deadline=None, max_examples=25)
@pytest.mark.filterwarnings("ignore::datacollab.errors.SinglePartyWarning")
def test_any_grouping_in_any_order_finds_the_same(seed, owners, order, method):
    every, integrator = shares(seed), METHODS[method]
    groups = {f"group {g}": [p for p, o in zip(COLUMNS, owners, strict=True) if o == g] for g in set(owners)}
    messages = [message for _, message in split(every, groups, integrator).values()]
    target = Centre().target(messages)
    assert (
        sine(
            flat_fit(every, integrator).target_
            if hasattr(integrator, "alpha")
            else naive_linear_target(every, integrator),
            target.target,
        )
        < 1e-6
    )
    order.shuffle(messages)
    again = Centre().target(messages)
    assert_array_equal(again.target, target.target)
    assert again.digest == target.digest


def naive_linear_target(every, integrator):
    """Leading eigenvectors of the sum, written down."""
    total = 0
    for share in every:
        A = share.anchor_representation
        A = A - A.mean(axis=0) if getattr(integrator, "fit_intercept", False) else A
        total = total + (A @ A.T if isinstance(integrator, dc.MPP) else A @ np.linalg.pinv(A))
    return np.linalg.eigh(total)[1][:, -integrator.n_components :]


@pytest.mark.parametrize("method", METHODS)
def test_one_group_of_all_is_the_analyst_without_groups(method):
    every, integrator = shares(1), METHODS[method]
    analysts = split(every, {"all": "abcde"}, integrator)
    (analyst, message) = analysts["all"]
    hierarchical = analyst.finish(Centre().target([message]))
    flat = dc.Analyst(integrator, LogisticRegression(max_iter=2000)).fit(every)
    for party in COLUMNS:
        assert_allclose(
            hierarchical.representations_[party],
            flat.representations_[party],
            atol=1e-7 * np.abs(flat.representations_[party]).max(),
        )
    assert_allclose(hierarchical.estimator_.coef_, flat.estimator_.coef_, rtol=1e-3, atol=1e-6)
    assert_allclose(hierarchical.integrator_.objective_, flat.integrator_.objective_, rtol=1e-6)


@given(seed=st.integers(0, 1000), rank=st.integers(1, 6), n=st.integers(2, 12), m=st.integers(1, 15))
@settings(deadline=None)
def test_a_factor_depends_on_the_product_alone(seed, rank, n, m):
    generator = np.random.default_rng(seed)
    W = generator.normal(size=(n, rank)) @ generator.normal(size=(rank, m))
    F = sum_factor(W)
    assert F.shape == (n, np.linalg.matrix_rank(W))
    assert_allclose(F @ F.T, W @ W.T, atol=1e-10 * np.abs(W @ W.T).max())
    rotation, _ = np.linalg.qr(generator.normal(size=(m + 2, m + 2)))
    turned = np.hstack([W, np.zeros((n, 2))]) @ rotation
    assert_allclose(sum_factor(turned), F, atol=1e-6 * np.abs(F).max())


@pytest.mark.parametrize("method", ["LTI", "MPP", "KTI"])
def test_a_message_is_the_sum_of_its_parties_terms_and_nothing_else(method):
    """Written down from the formulas; rotations and orders of the parties' columns do not enter."""
    every, integrator = shares(2)[:3], METHODS[method]
    message = GroupAnalyst("north", integrator, LinearRegression()).message(every)
    A = [share.anchor_representation for share in every]
    if method == "KTI":
        wanted = 0
        for each in A:
            squares = ((each[:, None] - each[None]) ** 2).sum(axis=2)
            gamma = 1 / np.median(squares[np.triu_indices(len(each), 1)])
            wanted = wanted + 0.1 * np.linalg.inv(np.exp(-gamma * squares) + 0.1 * np.eye(len(each)))
        lower = np.tril(from_triangle(message.arrays["triangle"], N_ANCHORS))
        assert_allclose(lower, np.tril(wanted), atol=1e-9)
    else:
        wanted = sum(each @ (np.linalg.pinv(each) if method == "LTI" else each.T) for each in A)
        F = message.arrays["factor"]
        assert_allclose(F @ F.T, wanted, atol=1e-9 * np.abs(wanted).max())
    assert (message.n_anchors, message.n_parties, message.n_rows) == (N_ANCHORS, 3, 3 * N_ROWS)


def test_nothing_of_own_rows_is_in_a_message():
    """Other rows and targets, the same message."""
    every = shares(4)
    others = [
        dc.Share(
            party=share.party,
            representation=share.representation[::-1] * 2 + 1,
            anchor_representation=share.anchor_representation,
            target=1 - (share.target > 0),
            anchor_target=share.anchor_target,
        )
        for share in every
    ]
    for integrator in (METHODS["LTI"], METHODS["KTI with TSL"]):
        first = GroupAnalyst("north", integrator, LinearRegression()).message(every)
        second = GroupAnalyst("north", integrator, LinearRegression()).message(others)
        assert first.settings == second.settings
        for name, array in first.arrays.items():
            assert_array_equal(array, second.arrays[name])


@pytest.mark.filterwarnings("ignore::datacollab.errors.SinglePartyWarning")
def test_a_message_of_one_party_tells_what_it_made_of_the_anchor():
    """As the page on groups says: its column space, and by KTI all distances, so the rows but for a rigid motion."""
    share = shares()[0]
    A = share.anchor_representation
    F = GroupAnalyst("alone", dc.LTI(2), Ridge()).message([share]).arrays["factor"]
    assert sine(F, A) < 1e-10
    packed = GroupAnalyst("alone", dc.KTI(2, gamma=0.3), Ridge()).message([share]).arrays["triangle"]
    M = from_triangle(packed, N_ANCHORS)
    M = M + np.tril(M, -1).T
    kernel = 0.1 * (np.linalg.inv(M) - np.eye(N_ANCHORS))
    assert_allclose(-np.log(kernel) / 0.3, ((A[:, None] - A[None]) ** 2).sum(axis=2), atol=1e-6)


def test_a_sum_over_two_parties_can_be_taken_apart():
    """One column each: the eigenvectors of the sum are sum and difference of what went in."""
    generator = np.random.default_rng(0)
    A = generator.normal(size=(2, N_ANCHORS, 1))
    parts = [
        dc.Share(party=k, representation=A[k][:5], anchor_representation=A[k], target=np.arange(5.0)) for k in range(2)
    ]
    F = GroupAnalyst("pair", dc.LTI(1), Ridge()).message(parts).arrays["factor"]
    values, vectors = np.linalg.eigh(F @ F.T)
    minus, plus = (vectors[:, -j] * np.sqrt(values[-j] / 2) for j in (2, 1))
    found = np.array([plus + minus, plus - minus])
    inner = np.abs(found @ np.hstack([a / np.linalg.norm(a) for a in A]))
    assert_allclose(np.sort(inner.ravel())[-2:], 1, atol=1e-9)


def test_a_group_of_one_party_is_warned_of():
    analyst = GroupAnalyst("north", dc.LTI(2), LogisticRegression())
    with pytest.warns(SinglePartyWarning, match="about its anchor representation alone"):
        analyst.message(shares()[:1])


@pytest.mark.parametrize(
    ("integrator", "match"),
    [
        (dc.ODC(), "ODC cannot be split between groups: it turns"),
        (dc.KTICV(3), "KTICV cannot be split between groups: it scores"),
        (dc.MPP(2, basis=np.eye(2)), "this basis"),
        (dc.KTI(3, solver="nystroem"), "this solver"),
        (dc.KTI(3, n_landmarks=20), "this n_landmarks"),
        (dc.KTI(3, gamma=lambda A: 1.0), "this gamma"),
        (dc.KTI(3, gamma={"a": lambda A: 1.0}), "this gamma"),
        (dc.KTI(3, kernel=lambda x, y: x @ y), "this kernel"),
        (dc.KTI(3, penalty_graph=dc.TargetDissimilarityGraph()), "this penalty_graph"),
        (dc.KTI(3, graph=dc.TargetDissimilarityGraph()), "this graph"),
        (dc.KTI(3, engine=Engine()), "this engine"),
        (dc.KTI(100), "n_components=100 is more than the data allow"),
    ],
)
def test_what_is_no_sum_over_parties_is_refused_by_name(integrator, match):
    with pytest.raises(ValueError, match=match):
        GroupAnalyst("north", integrator, LogisticRegression()).message(shares())


def test_own_methods_are_refused():
    class Mine(dc.LTI):
        pass

    with pytest.raises(ValueError, match="Mine cannot be split"):
        GroupAnalyst("north", Mine(2), LogisticRegression()).message(shares())
    with pytest.raises(TypeError, match="got str"):
        GroupAnalyst("north", "auto", LogisticRegression()).message(shares())


def test_too_little_memory_is_said_before():
    with pytest.raises(NotEnoughMemoryError, match="raise memory_limit"):
        GroupAnalyst("north", dc.KTI(3, memory_limit=1000), LogisticRegression()).message(shares())


def message_of(members, integrator, name="north", every=None):
    return GroupAnalyst(name, integrator, LogisticRegression()).message(
        [share for share in every or shares() if share.party in members]
    )


@pytest.mark.parametrize(
    ("first", "second", "differing"),
    [
        (dc.LTI(3), dc.LTI(2), "n_components"),
        (dc.LTI(3), dc.LTI(3, fit_intercept=True), "fit_intercept"),
        (dc.LTI(3), dc.GEP(3), "method"),
        (dc.KTI(3), dc.KTI(3, alpha=0.2), "alpha"),
        (dc.KTI(3), dc.KTI(3, gamma=1.0), "gamma"),
        (dc.KTI(3), dc.KTI(3, gamma=dict.fromkeys("abcde", 1.0)), "gamma"),
        (dc.KTI(3), dc.KTI(3, gamma_factor=2.0), "gamma_factor"),
        (dc.KTI(3), dc.KTI(3, graph=dc.GeometricGraph()), "graph"),
        (dc.KTI(3, graph=dc.GeometricGraph(4)), dc.KTI(3, graph=dc.GeometricGraph(5)), "graph"),
    ],
)
def test_groups_with_other_settings_are_refused(first, second, differing):
    messages = [message_of("ab", first), message_of("cd", second, "south")]
    with pytest.raises(AgreementError, match=rf"'north' and 'south'.*'{differing}'"):
        Centre().target(messages)
    # And a group that gets a target of others' settings.
    analyst = GroupAnalyst("north", first, LogisticRegression())
    analyst.message(shares()[:2])
    with pytest.raises(AgreementError, match=f"'{differing}'"):
        analyst.finish(Centre().target([message_of("ab", second), message_of("cd", second, "south")]))


def test_groups_with_another_anchor_are_refused():
    shorter = [
        dc.Share(
            party=share.party,
            representation=share.representation,
            anchor_representation=share.anchor_representation[:50],
            target=share.target,
        )
        for share in shares()
    ]
    with pytest.raises(AgreementError, match=r"'n_anchors': \[60, 50\]"):
        Centre().target([message_of("ab", dc.LTI(2)), message_of("cd", dc.LTI(2), "south", shorter)])


def test_groups_whose_anchor_targets_differ_are_refused_where_a_graph_looks_at_them():
    def turned(share):
        fields = ("party", "representation", "anchor_representation", "target")
        return dc.Share(
            **{name: getattr(share, name) for name in fields}, anchor_target=np.roll(share.anchor_target, 1)
        )

    other = [turned(share) for share in shares()]
    with_graph = METHODS["KTI with TSL"]
    with pytest.raises(AgreementError, match="anchor_target"):
        Centre().target([message_of("ab", with_graph), message_of("cd", with_graph, "south", other)])
    Centre().target([message_of("ab", dc.KTI(3)), message_of("cd", dc.KTI(3), "south", other)])


def test_the_centre_knows_who_takes_part():
    north, south = message_of("ab", dc.LTI(2)), message_of("cd", dc.LTI(2), "south")
    with pytest.raises(AgreementError, match=r"missing from the groups \['south'\]"):
        Centre(["north", "south"]).target([north])
    with pytest.raises(AgreementError, match=r"groups \['south'\] take no part"):
        Centre(["north"]).target([north, south])
    with pytest.raises(AgreementError, match=r"carry the names \['north'\]"):
        Centre().target([north, north])
    with pytest.raises(AgreementError, match="No group"):
        Centre().target([])
    with pytest.raises(TypeError, match="GroupMessage"):
        Centre().target([shares()[0]])


def test_a_group_takes_its_own_target_alone():
    target = Centre().target([message_of("ab", dc.LTI(2)), message_of("cd", dc.LTI(2), "south")])
    with pytest.raises(AgreementError, match="call message"):
        GroupAnalyst("north", dc.LTI(2), LogisticRegression()).finish(target)
    west = GroupAnalyst("west", dc.LTI(2), LogisticRegression())
    west.message(shares()[:2])
    with pytest.raises(AgreementError, match=r"of the groups \['north', 'south'\]"):
        west.finish(target)


def test_more_components_than_all_groups_span_are_refused():
    flat = dict.fromkeys("abcd", 2)
    every = shares(0, flat)
    messages = [message_of("ab", dc.LTI(9), "north", every), message_of("cd", dc.LTI(9), "south", every)]
    with pytest.raises(ValueError, match="n_components=9 is more than the data allow: at most 8"):
        Centre().target(messages)


# --- one model for all groups


def finished(every, groups, integrator, estimator):
    analysts = split(every, groups, integrator, estimator)
    messages = [message for _, message in analysts.values()]
    target = Centre().target(messages)
    return {name: (analyst, analyst.finish(target)) for name, (analyst, _) in analysts.items()}, messages, target


def pooled(collaborations, every):
    rows = {p: Z for _, each in collaborations.values() for p, Z in each.representations_.items()}
    return np.vstack([rows[share.party] for share in every]), np.concatenate([share.target for share in every])


def test_a_vote_is_the_mean_by_rows(tmp_path):
    every = shares(5)
    found, messages, _ = finished(every, TWO, METHODS["centred KTI"], LogisticRegression(max_iter=2000))
    heads = [analyst.head(each) for analyst, each in found.values()]
    # Models cross as files, and so does the vote.
    for number, head in enumerate(heads):
        head.save(tmp_path / f"{number}.dcmodel")
    crossed = [PartyModel.load(tmp_path / f"{number}.dcmodel") for number in range(2)]
    for given_heads in (heads, crossed):
        vote = Centre().vote(given_heads, messages)
        assert isinstance(vote["north"].estimator, AveragedClassifier)
        vote["north"].save(tmp_path / "vote.dcmodel")
        analyst, own = found["north"]
        together = analyst.adopt(own, PartyModel.load(tmp_path / "vote.dcmodel"))
        share = every[0]
        rows = own.representations_["a"]
        said = [head.estimator.predict_proba(rows) for head in heads]
        wanted = (72 * said[0] + 48 * said[1]) / 120
        assert_allclose(together.party_model("a").predict_proba(share.representation), wanted, rtol=1e-7)
    assert "AveragedClassifier" in SENDABLE


def test_a_vote_of_numbers():
    every = shares(6, regression=True)
    found, messages, _ = finished(every, TWO, METHODS["affine LTI"], Ridge(0.01))
    vote = Centre().vote([analyst.head(each) for analyst, each in found.values()], messages)
    rows, _ = pooled(found, every)
    means = [each.estimator_.predict(rows) for _, each in found.values()]
    assert_allclose(vote["south"].estimator.predict(rows), 0.6 * means[0] + 0.4 * means[1])


def test_votes_that_make_no_sense_are_refused():
    every = shares(5)
    found, messages, _ = finished(every, TWO, dc.LTI(3), LogisticRegression(max_iter=2000))
    heads = [analyst.head(each) for analyst, each in found.values()]
    with pytest.raises(AgreementError, match="one of each is wanted"):
        Centre().vote(heads[:1], messages)
    silent, _, _ = finished(every, TWO, dc.LTI(3), SVC())
    with pytest.raises(AgreementError, match=r"\['south'\] give no probabilities"):
        Centre().vote([heads[0], silent["south"][0].head(silent["south"][1])], messages)
    numbers, _, _ = finished(every, TWO, dc.LTI(3), Ridge())
    with pytest.raises(AgreementError, match="one task"):
        Centre().vote([heads[0], numbers["south"][0].head(numbers["south"][1])], messages)
    narrow, _, _ = finished(every, TWO, dc.LTI(2), LogisticRegression(max_iter=2000))
    with pytest.raises(AgreementError, match="different widths"):
        Centre().vote([heads[0], narrow["south"][0].head(narrow["south"][1])], messages)
    analyst, own = found["north"]
    with pytest.raises(AgreementError, match="for 'south'"):
        analyst.adopt(own, heads[1])
    with pytest.raises(AgreementError, match="of 2 columns, where 3"):
        analyst.adopt(own, narrow["north"][0].head(narrow["north"][1]))


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("two_classes", [False, True])
def test_a_discriminant_from_sums_is_that_of_all_rows(shrinkage, two_classes):
    every = shares(7)
    if two_classes:
        fields = ("party", "representation", "anchor_representation")
        every = [
            dc.Share(**{n: getattr(s, n) for n in fields}, target=np.where(s.target > 0, "ill", "well")) for s in every
        ]
    found, _, _ = finished(every, TWO, dc.KTI(3), LogisticRegression(max_iter=2000))
    moments = [analyst.moments(each) for analyst, each in found.values()]
    model = Centre().linear_model(moments, shrinkage=shrinkage)["north"].estimator
    rows, y = pooled(found, every)
    oracle = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage or None).fit(rows, y)
    assert_allclose(model.coef_, oracle.coef_, rtol=1e-6)
    assert_allclose(model.intercept_, oracle.intercept_, rtol=1e-6, atol=1e-9)
    assert_allclose(model.predict_proba(rows), oracle.predict_proba(rows), atol=1e-8)
    assert_array_equal(model.predict(rows), oracle.predict(rows))


def test_a_group_without_some_classes_adds_to_the_others():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(90, 3)), np.repeat([0, 1, 2], 30)
    X += 2 * np.eye(3)[y]
    parts = [slice(0, 60), slice(30, 90)]
    moments = []
    for name, part in zip("ab", parts, strict=True):
        joined = np.hstack([np.eye(3)[y[part]][:, np.unique(y[part])], X[part]])
        classes = np.unique(y[part])
        moments.append(GroupMoments(group=name, space="0" * 64, classes=classes, gram=joined.T @ joined))
    model = Centre().linear_model(moments, shrinkage=0.2)["a"].estimator
    both = np.concatenate([np.arange(90)[part] for part in parts])
    oracle = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2).fit(X[both], y[both])
    assert_allclose(model.predict_proba(X), oracle.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_ridge_regression_from_sums_is_that_of_all_rows(seed, tmp_path):
    every = shares(seed, regression=True)
    found, _, _ = finished(every, TWO, METHODS["affine LTI"], Ridge())
    moments = [analyst.moments(each) for analyst, each in found.values()]
    sent = Centre().linear_model(moments)["north"]
    model = sent.estimator
    rows, y = pooled(found, every)
    oracle = Ridge(model.alpha).fit(rows, y)
    assert_allclose(model.coef_, oracle.coef_, rtol=1e-7)
    assert_allclose(model.predict(rows), oracle.predict(rows), rtol=1e-7)

    def gcv(alpha):
        centred = rows - rows.mean(axis=0)
        H = centred @ np.linalg.solve(centred.T @ centred + alpha * np.eye(3), centred.T) + 1 / len(rows)
        return np.sum((y - H @ y) ** 2) / (len(y) - np.trace(H)) ** 2

    centred = rows - rows.mean(axis=0)
    grid = np.trace(centred.T @ centred) / 3 * 10.0 ** np.arange(-6, 2)
    assert_allclose(model.alpha, min(grid, key=gcv))
    sent.save(tmp_path / "model.dcmodel")
    assert_allclose(PartyModel.load(tmp_path / "model.dcmodel").predict(rows), model.predict(rows))


def test_sums_over_few_rows_stay_at_home():
    every = shares(7)
    found, _, _ = finished(every, TWO, dc.KTI(3), LogisticRegression(max_iter=2000))
    analyst, own = found["south"]
    with pytest.raises(AgreementError, match="'south': a class has .* rows, and at least 40 are wanted"):
        analyst.moments(own, least=40)


def test_moments_of_other_targets_or_kinds_do_not_add_up():
    every = shares(7)
    found, _, _ = finished(every, TWO, dc.KTI(3), LogisticRegression(max_iter=2000))
    elsewhere, _, _ = finished(every, TWO, dc.KTI(3, alpha=0.2), LogisticRegression(max_iter=2000))
    first = found["north"][0].moments(found["north"][1])
    second = elsewhere["south"][0].moments(elsewhere["south"][1])
    with pytest.raises(AgreementError, match="'south': the collaboration is not from the last call"):
        found["south"][0].moments(elsewhere["south"][1])
    with pytest.raises(AgreementError, match=r"\['south'\] are in another space"):
        Centre().linear_model([first, second])
    numbers = GroupMoments(group="west", space=first.space, classes=None, gram=np.eye(5))
    with pytest.raises(AgreementError, match="several kinds"):
        Centre().linear_model([first, numbers])
    with pytest.raises(ValueError, match="shrinkage"):
        Centre().linear_model([first], shrinkage=2)


def test_text_forms_show_no_entry():
    every = shares()
    found, messages, target = finished(every, TWO, dc.LTI(3), LogisticRegression(max_iter=2000))
    analyst, own = found["north"]
    shown = [*messages, target, analyst, Centre(["north"]), analyst.moments(own, least=1)]
    assert isinstance(messages[0], GroupMessage)
    for each in shown:
        assert "array(" not in repr(each)
        assert "\n" not in repr(each)
    assert messages[0].nbytes == messages[0].arrays["factor"].nbytes
