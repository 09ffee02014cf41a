"""What a share says about one record: figures that an attacker compares between shares with the record and without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from ..._validation import FloatArray

__all__ = ["Reference", "View", "share_statistics"]

IntArray = NDArray[np.intp]
_NEIGHBOURS = 5
_RIDGE = 0.1
_MODEL_ROWS = 600
"""Shared rows at most that the model learns from: its time grows with their cube."""


@dataclass(frozen=True, eq=False)
class View:
    """A share as an attacker sees it.

    Attributes
    ----------
    rows : ndarray of shape (n_shared, n_intermediate)
    group : ndarray of shape (n_shared,)
        Class of each row, or its group of similar numeric targets.
    origins : ndarray of shape (n_shared, n_intermediate) or None
        Where it is known which anchor row each is made of, that row's representation.
    """

    rows: FloatArray
    group: IntArray
    origins: FloatArray | None = None


class Reference:
    """What rows of each class are usually like, from the anchor's or public rows' images.

    Parameters
    ----------
    images : ndarray of shape (n_rows, n_intermediate)
    group : ndarray of shape (n_rows,)
    n_groups : int
    """

    def __init__(self, images: FloatArray, group: IntArray, n_groups: int) -> None:
        d = images.shape[1]
        within, self.means, self.clips, spread = images.copy(), np.empty((n_groups, d)), np.empty(n_groups), []
        for label in range(n_groups):
            rows = images[group == label] if (group == label).any() else images
            self.means[label] = rows.mean(axis=0)
            self.clips[label] = np.median(np.linalg.norm(rows - self.means[label], axis=1))
            spread.append(np.cov(rows, rowvar=False).reshape(d, d) if len(rows) > 1 else np.eye(d))
        within -= self.means[group]
        self.pooled = within.T @ within / max(1, len(within) - n_groups) + 1e-9 * np.eye(d) * (within**2).mean()
        self.precisions = [np.linalg.pinv(0.8 * own + 0.2 * self.pooled) for own in spread]
        self.n_groups = n_groups
        distances = cdist(images[:500], images[:500])
        self.width = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0

    def towards(self, images: FloatArray, group: IntArray) -> FloatArray:
        """Rows less their class's mean, no longer than the median row of the class is; shape of `images`."""
        gaps = images - self.means[group]
        lengths = np.linalg.norm(gaps, axis=1)
        return np.asarray(gaps * np.minimum(1.0, self.clips[group] / np.maximum(lengths, 1e-300))[:, None])


def share_statistics(view: View, reference: Reference, images: FloatArray, group: IntArray) -> FloatArray:
    """Figures about each record, larger where it is likelier to be in the share.

    Parameters
    ----------
    view : View
    reference : Reference
    images : ndarray of shape (n_records, n_intermediate)
        The records through the attacker's estimate of f.
    group : ndarray of shape (n_records,)
        Their classes.

    Returns
    -------
    ndarray of shape (n_records, n_statistics)
        How near the nearest shared row is, of the class and of all; how near the five nearest are; how well the rest of
        a group would be usual rows of the class, if the record were in it; how far the class's mean is off in the
        record's direction, and the same in units of the rows' spread; how a model of the share judges the record's
        target, and how often its nearest rows have it.
    """
    distances = cdist(images, view.rows)
    same = group[:, None] == view.group[None, :]
    of_class = np.where(same, distances, np.inf)
    far = distances.max(initial=0.0)
    near = np.sort(of_class, axis=1)[:, :_NEIGHBOURS]
    near = np.where(np.isfinite(near), near, far)
    direction = reference.towards(images, group)
    shift = _shifts(view, reference)[group]
    nearest = np.argsort(distances, axis=1)[:, :_NEIGHBOURS]
    return np.column_stack(
        [
            -near[:, 0],
            -distances.min(axis=1),
            -near.mean(axis=1),
            _group_likelihood(view, reference, images, group),
            (shift * direction).sum(axis=1),
            (shift * np.linalg.solve(reference.pooled, direction.T).T).sum(axis=1),
            _model_scores(view, reference, images, group),
            np.take_along_axis(same, nearest, axis=1).mean(axis=1),
        ]
    )


def _shifts(view: View, reference: Reference) -> FloatArray:
    """How far each class's shared rows are off on average, shape (n_groups, n_intermediate)."""
    usual = reference.means[view.group] if view.origins is None else view.origins
    counts = np.bincount(view.group, minlength=reference.n_groups)
    sums = np.zeros_like(reference.means)
    np.add.at(sums, view.group, view.rows - usual)
    return np.asarray(sums / np.maximum(counts, 1)[:, None])


def _group_likelihood(view: View, reference: Reference, images: FloatArray, group: IntArray) -> FloatArray:
    """Log of the mean, over the class's shared means, of how much likelier each is with the record than without."""
    found = np.zeros(len(images))
    for label in np.unique(group):
        records = group == label
        rows, counts = np.unique(view.rows[view.group == label], axis=0, return_counts=True)
        if not len(rows):
            continue
        precision, centre = reference.precisions[label], reference.means[label]
        without = counts * np.einsum("ij,jk,ik->i", rows - centre, precision, rows - centre)
        ratios = np.empty((records.sum(), len(rows)))
        for column, (row, m) in enumerate(zip(rows, counts, strict=True)):
            if m == 1:
                gaps = (images[records] - row) / 0.3
                ratios[:, column] = -0.5 * np.einsum("ij,jk,ik->i", gaps, precision, gaps)
                continue
            rest = (m * row - images[records]) / (m - 1) - centre
            ratios[:, column] = -0.5 * ((m - 1) * np.einsum("ij,jk,ik->i", rest, precision, rest) - without[column])
            ratios[:, column] += 0.5 * rows.shape[1] * np.log(m / (m - 1))
        found[records] = logsumexp(ratios, axis=1)
    return found


def _model_scores(view: View, reference: Reference, images: FloatArray, group: IntArray) -> FloatArray:
    """What kernel ridge regression on the share gives for the record's own target."""
    every = -(-len(view.rows) // _MODEL_ROWS)
    rows, group_of = view.rows[::every], view.group[::every]

    def kernel(others: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-cdist(others, rows, "sqeuclidean") / reference.width**2))

    wanted = np.eye(reference.n_groups)[group_of]
    fitted = np.linalg.solve(kernel(rows) + _RIDGE * np.eye(len(rows)), wanted)
    return np.asarray((kernel(images) @ fitted)[np.arange(len(images)), group])
