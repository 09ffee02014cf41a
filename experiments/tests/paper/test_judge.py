"""What a judge makes of reconstructions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from datacollab.errors import AgreementError, RepresentationError
from datacollab_experiments.paper import PseudoinverseAttack
from datacollab_experiments.paper._judge import LabelMatch, label_match

NAMES = np.array(["ant", "bee", "cow", "dog"])
CODES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@pytest.fixture(scope="module")
def judge():
    """Recognises row [i] as the animal number i."""
    return KNeighborsClassifier(1).fit(np.arange(4.0)[:, None], NAMES)


@given(codes=CODES)
def test_counts_what_one_would_count(judge, codes):
    seen = [NAMES[i] for i, _ in codes]
    true = [NAMES[j] for _, j in codes]
    result = label_match(judge, [[float(i)] for i, _ in codes], true)
    assert result.n_rows == len(codes)
    assert result.accuracy == sum(a == b for a, b in zip(seen, true, strict=True)) / len(codes)
    assert result.most_common_share == max(seen.count(name) for name in NAMES) / len(codes)


@given(codes=CODES, seed=st.integers(0, 1000))
def test_order_of_the_rows_does_not_matter(judge, codes, seed):
    rows, true = np.array(codes, dtype=float)[:, :1], NAMES[[j for _, j in codes]]
    order = np.random.default_rng(seed).permutation(len(codes))
    assert label_match(judge, rows, true) == label_match(judge, rows[order], true[order])


def test_originals_score_one(judge):
    assert label_match(judge, np.arange(4.0)[:, None], NAMES) == LabelMatch(
        accuracy=1.0, most_common_share=0.25, n_rows=4
    )


def test_an_attack_that_always_says_the_same_is_exposed(judge, rng):
    """It matches the share of one class, which looks like chance; the other figure tells."""
    constant = PseudoinverseAttack().fit(np.full((9, 2), 0.3), rng.uniform(1.8, 2.2, size=(9, 1)))
    result = label_match(judge, constant.reconstruct(rng.normal(size=(40, 2))), np.repeat(NAMES, 10))
    assert result == LabelMatch(accuracy=0.25, most_common_share=1.0, n_rows=40)


def test_blurred_rows_are_misjudged():
    """Class means, which know the class and nothing else, need not be recognised: the rate is no measure of risk."""
    judge = KNeighborsClassifier(1).fit([[-1.0], [1.0], [0.1]], ["even", "even", "odd"])
    assert label_match(judge, [[0.0], [0.1]], ["even", "odd"]).accuracy == 0.5


def test_errors_show_no_data(judge):
    with pytest.raises(AgreementError, match=r"targets has shape \(1,\), but there are 2 reconstructions"):
        label_match(judge, [[1.0], [2.0]], ["bee"])
    with pytest.raises(AgreementError, match="does not know 1 of the 2 classes in targets") as caught:
        label_match(judge, [[1.0], [2.0]], ["bee", "secret"])
    assert "secret" not in str(caught.value)
    with pytest.raises(RepresentationError, match="reconstructions contains NaN or infinity in 1 of 2 rows"):
        label_match(judge, [[1.0], [np.nan]], ["bee", "cow"])


def test_labels_of_another_type_are_refused_rather_than_never_matched():
    judge = KNeighborsClassifier(1).fit([[0.0], [1.0]], [0, 1])
    assert label_match(judge, [[0.0]], [0.0]).accuracy == 1.0
    with pytest.raises(AgreementError, match="labels of the same type"):
        label_match(judge, [[0.0], [1.0]], ["0", "1"])
