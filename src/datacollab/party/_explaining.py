"""A party that says what its columns do in the model it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .._threads import one_thread
from ..model import PartyModel
from ._column_effects import ColumnEffects, effects_of_columns
from ._explain import explained
from ._explanation import Explanation
from ._inference import LocalInference

__all__ = ["ExplainingParty"]


class ExplainingParty(LocalInference):
    """Explain the composed model h(g_k(f_k(x))) on raw columns, at home."""

    @one_thread
    def explain(
        self,
        X: ArrayLike,
        model: PartyModel,
        *,
        background: ArrayLike,
        columns: Mapping[str, Sequence[str | int]] | None = None,
        output: str = "auto",
        n_permutations: int | None = None,
        n_background: int = 100,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> Explanation:
        r"""Shapley values of the party's own columns: what each adds to the model's answer for a row.

        A column that is masked is taken from a row of the background; the value of a column is the mean, over orders in
        which columns come, of what it changes when it comes [Lundberg2017].

        Parameters
        ----------
        X : array-like or dataframe of shape (n_rows, n_columns)
            Rows to explain, in the form of `fit`.
        model : PartyModel
            What the analyst made for this party.
        background : array-like or dataframe of shape (n_anchors, n_columns)
            Rows that masked columns are taken from.  Give the anchor: it is the same at every party, so that parties
            explain like answers alike.  With own rows each party measures from another base.
        columns : mapping of str to sequence of str or int, optional
            Columns, by name or position, that come and go together under one name, such as the indicators of one
            category.  The others stand alone.
        output : {"auto", "prediction", "probability", "log-odds"}, default="auto"
            What is explained: what h predicts, such as a number or a log risk; or of each class the probability, or the
            log odds against the other classes.  "auto" takes probabilities where h has them.
        n_permutations : int, optional
            Random orders for each row of the background, each with its reverse.  None takes all coalitions, which is
            exact, of up to 10 columns or groups, and otherwise one order.
        n_background : int, default=100
            How many rows of the background are taken, evenly spaced; at most all.
        random_state : int, RandomState or None, default=None
            Of the orders.  With the same number at every party they are the same.
        n_jobs : int, optional
            Threads.
        progress : callable, optional
            Called with a line of text after each row.

        Returns
        -------
        Explanation

        Raises
        ------
        AgreementError
            When the model was made for another party or has no probabilities where these are wanted, or tables or
            columns do not fit together.
        ObfuscationError
            When rows do not fit the obfuscator.
        NumericalError
            When an answer is not finite, or log odds are wanted of a probability of 0 or 1.
        ValueError
            When a parameter is not what it has to be.

        Warns
        -----
        UnidentifiedColumnsWarning
            When the collaboration representation does not tell columns from others.

        Notes
        -----
        Leaves the party: nothing.  Values of a private row tell of the row; those of anchor rows tell what the model
        answers there, and something of f_k where the model is known.

        Cost, in rows that are obfuscated and predicted: for each row, all :math:`2^d` coalitions of d columns or
        groups with every row of the background, or ``2 n_permutations (d - 1)`` for each.

        A masked row has some columns of one row and others of another: no such row may exist.  A kernel map was
        learnt on the anchor and tends to zero away from it, where the model answers the same whatever the columns
        are.  ``faded`` of the result says for what share of the masked rows this may be so.

        Values say what the model computes.  Where the representation has fewer dimensions than the table, columns are
        mixed in it, and a column that does nothing may be given another's value; ``identified`` marks these.

        Examples
        --------
        >>> import datacollab as dc
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import LinearRegression
        >>> X, y = load_diabetes(return_X_y=True)
        >>> anchor = X[300:]
        >>> parties = [dc.Party(k, dc.obfuscator("pca")).fit(X[k:300:2], y[k:300:2]) for k in range(2)]
        >>> analyst = dc.Analyst(dc.LTI(10, fit_intercept=True), LinearRegression())
        >>> model = analyst.fit([party.share(anchor) for party in parties]).party_model(0)
        >>> found = parties[0].explain(X[:4:2], model, background=anchor, n_background=5)
        >>> found
        Explanation(party=0, values=(2, 10), exact, 10 of 10 columns identified, faded=0.00)
        >>> answers = parties[0].predict(X[:4:2], model)
        >>> bool(abs(found.values.sum(axis=1) + found.base_values - answers).max() < 1e-9)
        True
        """
        return explained(
            self,
            X,
            model,
            background=background,
            columns=columns,
            output=output,
            n_permutations=n_permutations,
            n_background=n_background,
            random_state=random_state,
            n_jobs=n_jobs,
            progress=progress,
        )

    @one_thread
    def column_effects(
        self,
        anchor: ArrayLike,
        model: PartyModel,
        *,
        columns: Sequence[str | int] | None = None,
        scale: str | Mapping[str, float] = "sd",
        confidence: float = 0.95,
    ) -> ColumnEffects:
        r"""Effects of the party's own columns in a linear model h, with intervals.

        With coefficients :math:`\hat\beta` of the collaboration representation and their covariance V, column j has
        the effect :math:`D_j^\top \hat\beta` with standard error :math:`\sqrt{D_j^\top V D_j}`, where :math:`D_j` is
        how the representation moves, in the mean over the anchor, when column j moves by a step: half of it down and
        half of it up, or from one to the other of two values.

        Parameters
        ----------
        anchor : array-like or dataframe of shape (n_anchors, n_columns)
            As it was shared.
        model : PartyModel
            Of an h with ``coef_`` and ``covariance_``: `LeastSquaresInference`, `LogisticInference`, or a Cox
            regression.
        columns : sequence of str or int, optional
            Names or positions; all by default.
        scale : {"sd", "unit"} or mapping of str to float, default="sd"
            Steps: a standard deviation over the anchor, a unit, or some in units of their columns and the others a
            standard deviation.
        confidence : float, default=0.95
            Of the intervals.

        Returns
        -------
        ColumnEffects
            Of Cox and logistic regressions, ``ratios()`` are hazard and odds ratios.

        Raises
        ------
        AgreementError
            When the model was made for another party or has no covariance, or there is no such column.
        ObfuscationError
            When rows do not fit the obfuscator.
        ValueError
            When a parameter is not what it has to be.

        Notes
        -----
        Leaves the party: nothing.

        An effect is shown only of a column that the representation tells: where its adjusted R² in linear regression
        on the anchor's collaboration representation is at least .99, or .95 where maps are not affine, and where a step
        of it is read as a step of others by no more than .1 standard deviations (``leakage``).  Others are NaN, with
        the reason: their effect would be that of a mixture of columns, with an interval that does not say so.

        Leakage of the columns that the representation tells, categories' indicators included, times the length of their
        effects as the model has them bounds how far an effect is off by it; intervals are as much wider as this asks
        for [Armstrong2020].  They are for the effects in the world that the rows come from, and not for what all rows
        in one place would give, which is far nearer.

        While the representation lost any column or indicator, whose R² is below these bounds, its effect is unknown,
        and no interval covers it whatever it is.  An effect is then shown only where leakage of lost ones is at most
        .05 at the 95 % limit of what the anchor leaves open, which with fewer than some thousand anchor rows it seldom
        is.  The interval covers it for lost effects that together are no longer than those the model has of all
        columns; longer ones move the estimate by .05 times their length at most, but for 5 % of anchors.

        What is assumed: that h is the right model of the representation, that the anchor's columns vary together as the
        parties' do (missing entries are taken for the mean, and what is constant in the anchor for constant), and that
        parties shared their own rows one by one.  Where rows were moved, grouped or labelled by a defence, standard
        errors do not know of it and are wrong.

        With PCA of all columns and `LTI` with intercepts, effects and standard errors are those of all rows in one
        place.

        Examples
        --------
        >>> import datacollab as dc
        >>> from datacollab.model import LeastSquaresInference
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> anchor = X[300:]
        >>> parties = [dc.Party(k, dc.obfuscator("pca")).fit(X[k:300:2], y[k:300:2]) for k in range(2)]
        >>> analyst = dc.Analyst(dc.LTI(10, fit_intercept=True), LeastSquaresInference())
        >>> model = analyst.fit([party.share(anchor) for party in parties]).party_model(0)
        >>> found = parties[0].column_effects(anchor, model, columns=["bmi", "bp"])
        >>> found.effect.round(), found.se.round()
        (array([28., 14.]), array([4., 4.]))
        >>> found
        ColumnEffects(party=0, 2 of 2 columns identified)
        """
        return effects_of_columns(self, anchor, model, columns=columns, scale=scale, confidence=confidence)
