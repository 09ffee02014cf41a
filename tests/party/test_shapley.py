"""Shapley values of worths, against their definition and their axioms."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datacollab.party._shapley import (
    all_coalitions,
    antithetic_orders,
    coalitions_along,
    values_along,
    values_of_all,
)


def naive_values(worth, n_players):
    """Mean over all orders of what a player adds, straight from the definition."""
    values, orders = np.zeros(n_players), list(permutations(range(n_players)))
    for order in orders:
        for place, player in enumerate(order):
            values[player] += worth(frozenset(order[: place + 1])) - worth(frozenset(order[:place]))
    return values / len(orders)


def worths_of(worth, n_players):
    return np.array([worth(frozenset(np.flatnonzero(each).tolist())) for each in all_coalitions(n_players)])


def path_worths(worth, orders):
    """Worths of nobody, of the coalitions along each path, and of all."""
    n_players = orders.shape[1]
    inner = [[worth(frozenset(np.flatnonzero(kept).tolist())) for kept in path] for path in coalitions_along(orders)]
    inner = np.array(inner).reshape(len(orders), n_players - 1)
    none, everybody = worth(frozenset()), worth(frozenset(range(n_players)))
    return np.column_stack([np.full(len(orders), none), inner, np.full(len(orders), everybody)])


def random_game(seed):
    table = {}
    rng = np.random.default_rng(seed)

    def worth(coalition):
        return table.setdefault(coalition, rng.normal())

    return worth


@pytest.mark.parametrize("n_players", [1, 2, 3, 5, 6])
def test_exact_values_are_those_of_all_orders(n_players):
    worth = random_game(n_players)
    np.testing.assert_allclose(
        values_of_all(worths_of(worth, n_players)), naive_values(worth, n_players), rtol=0, atol=1e-13
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_exact_values_keep_the_axioms(n_players, seed):
    rng = np.random.default_rng(seed)
    worths = rng.normal(size=(1 << n_players, 2))
    values = values_of_all(worths)
    # Efficiency, and linearity in the worths.
    np.testing.assert_allclose(values.sum(axis=0), worths[-1] - worths[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(values_of_all(2 * worths[:, :1] - worths[:, 1:])[:, 0], 2 * values[:, 0] - values[:, 1])
    # A player that adds nothing gets nothing; one that adds the same to all gets that.
    codes = np.arange(len(worths))
    null = np.concatenate([worths, worths])
    assert np.abs(values_of_all(null)[n_players]).max() < 1e-12
    np.testing.assert_allclose(values_of_all(null)[:n_players], values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(values_of_all(np.concatenate([worths, worths + 3.0]))[n_players], 3.0)
    # Two players that can stand for each other get the same.
    if n_players > 1:
        swapped = (codes & ~3) | ((codes & 1) << 1) | ((codes >> 1) & 1)
        symmetric = values_of_all(worths + worths[swapped])
        np.testing.assert_allclose(symmetric[0], symmetric[1], rtol=0, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_values_along_paths_add_up(n_players, n_paths, seed):
    orders = antithetic_orders(n_paths, n_players, np.random.default_rng(seed))
    worth = random_game(seed)
    values = values_along(orders, path_worths(worth, orders))
    total = worth(frozenset(range(n_players))) - worth(frozenset())
    assert values.sum() == pytest.approx(total, abs=1e-12)


def test_orders_come_with_their_reverses():
    orders = antithetic_orders(5, 4, np.random.default_rng(0))
    assert orders.shape == (10, 4)
    assert (np.sort(orders, axis=1) == np.arange(4)).all()
    np.testing.assert_array_equal(orders[::2], orders[1::2, ::-1])
    assert len({tuple(order) for order in orders[::2]}) > 1


@pytest.mark.parametrize("seed", range(5))
def test_one_order_and_its_reverse_are_exact_where_only_pairs_interact(seed):
    rng = np.random.default_rng(seed)
    alone, pairs = rng.normal(size=5), rng.normal(size=(5, 5))

    def worth(coalition):
        members = sorted(coalition)
        return alone[members].sum() + sum(pairs[i, j] for i in members for j in members if i < j)

    orders = antithetic_orders(1, 5, rng)
    expected = naive_values(worth, 5)
    np.testing.assert_allclose(values_along(orders, path_worths(worth, orders)), expected, rtol=0, atol=1e-12)
    # One order alone is not.
    assert np.abs(values_along(orders[:1], path_worths(worth, orders[:1])) - expected).max() > 1e-3


def test_values_along_many_paths_come_near_the_exact_ones():
    worth = random_game(3)
    expected, errors = naive_values(worth, 5), []
    for n_paths in (20, 2_000):
        orders = antithetic_orders(n_paths, 5, np.random.default_rng(1))
        errors.append(np.abs(values_along(orders, path_worths(worth, orders)) - expected).max())
    assert errors[1] < errors[0] / 3
    assert errors[1] < 0.05
