"""What each column did to a model's answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, PartyName, require
from ..errors import AgreementError
from ._explanation_plots import beeswarm_axes, row_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Explanation"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation:
    """Shapley values of a party's columns in the composed model h(g_k(f_k(x))); see `Party.explain`.

    Attributes
    ----------
    party : str or int
    values : ndarray of shape (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        What each column, or group of columns, adds to the answer for a row.  Over columns they add up to the answer
        less `base_values`.
    base_values : float, or ndarray of shape (n_outputs,)
        Mean answer over the background.
    data : array or frame of shape (n_rows, n_table_columns)
        The rows themselves, not copied and never shown but in figures.
    feature_names : tuple of str
        Of the columns and groups.
    output_names : tuple of str or None
        Of the classes, where there are several outputs.
    identified : ndarray of shape (n_columns,), bool
        Whether the collaboration representation tells the column.  What a column does of which this is False is mixed
        with what others do: it says what the model computes, not what the column brings.
    r2 : ndarray of shape (n_columns,)
        Share of the column, over the background, that is linear in the collaboration representation; of a group the
        smallest.  NaN for a column that does not vary there.
    faded : float
        Share of the masked rows whose collaboration representation is shorter than that of 99 % of the background.
        About .01 or less where masked rows are like the background's; a kernel map tends to zero far from the anchor.
    exact : bool
        Whether all coalitions were taken, rather than random orders.

    Notes
    -----
    Leaves the party: nothing.  Values of private rows tell of these rows, and figures show their entries.
    """

    party: PartyName
    values: FloatArray
    base_values: Any
    data: Any = field(repr=False)
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...] | None
    identified: NDArray[np.bool_]
    r2: FloatArray
    faded: float
    exact: bool

    def importance(self) -> dict[str, float]:
        """Mean absolute value of each column over rows and outputs, largest first."""
        means = np.abs(self.values).reshape(*self.values.shape[:2], -1).mean(axis=(0, 2))
        order = np.argsort(-means, kind="stable")
        return {self.feature_names[place]: float(means[place]) for place in order}

    def plot_beeswarm(self, output: str | None = None, *, max_columns: int = 15, ax: Axes | None = None) -> Axes:
        """Draw every value of the most important columns as a point, coloured by the column's entry.

        The figure shows private entries by their colours.  Columns that are not identified have a star.

        Parameters
        ----------
        output : str, optional
            Name of a class; needed where there are several outputs, but of two classes the second is the default.
        max_columns : int, default=15
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        AgreementError
            When there is no such output.
        MissingExtraError
            When matplotlib is not installed.
        """
        values, _, name = self._one_output(output)
        colours = [self._entries(place) for place in range(values.shape[1])]
        return beeswarm_axes(values, self._labels(), colours, name, max_columns, ax)

    def plot_row(self, row: int, output: str | None = None, *, max_columns: int = 12, ax: Axes | None = None) -> Axes:
        """Draw how the columns of one row lead from the base value to its answer.

        Parameters
        ----------
        row : int
            Position among the explained rows.
        output, max_columns, ax
            As for `plot_beeswarm`.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        AgreementError
            When there is no such output or row.
        MissingExtraError
            When matplotlib is not installed.
        """
        values, base, name = self._one_output(output)
        if not 0 <= row < len(values):
            raise AgreementError(f"Rows 0 to {len(values) - 1} are explained; got {row!r}.")
        return row_axes(values[row], base, self._labels(), name, max_columns, ax)

    def to_shap(self) -> Any:
        """The same as `shap.Explanation`, for the plots of that package.

        Its ``data`` are the table's entries, where they are numbers and no columns are grouped.

        Raises
        ------
        MissingExtraError
            When shap is not installed.
        """
        shap = require("shap", "shap")
        bases = np.broadcast_to(self.base_values, (len(self.values), *np.shape(self.base_values)))
        data = np.asarray(self.data)
        shown = data if data.dtype.kind in "biuf" and data.shape[1] == len(self.feature_names) else None
        return shap.Explanation(
            self.values,
            base_values=bases,
            data=shown,
            feature_names=list(self.feature_names),
            output_names=None if self.output_names is None else list(self.output_names),
        )

    def _one_output(self, output: str | None) -> tuple[FloatArray, float, str]:
        if self.output_names is None:
            if output is not None:
                raise AgreementError(f"The model has one output without a name; got output={output!r}.")
            return self.values, float(self.base_values), "prediction"
        if output is None and len(self.output_names) == 2:
            output = self.output_names[1]
        if output not in self.output_names:
            raise AgreementError(f"Choose one of the outputs {list(self.output_names)!r}; got {output!r}.")
        place = self.output_names.index(output)
        return self.values[:, :, place], float(self.base_values[place]), output

    def _labels(self) -> list[str]:
        return [name if told else f"{name} *" for name, told in zip(self.feature_names, self.identified, strict=True)]

    def _entries(self, place: int) -> FloatArray | None:
        """Numbers to colour a column by, if it has any of its own."""
        name = self.feature_names[place]
        if hasattr(self.data, "columns"):
            labels = [label for label in self.data.columns if str(label) == name]
            column = np.asarray(self.data[labels[0]]) if len(labels) == 1 else None
        else:
            numbered = {f"column {number}": number for number in range(np.shape(self.data)[1])}
            column = np.asarray(self.data)[:, numbered[name]] if name in numbered else None
        return column.astype(np.float64) if column is not None and column.dtype.kind in "biuf" else None

    def __repr__(self) -> str:
        way = "exact" if self.exact else "sampled"
        return (
            f"Explanation(party={self.party!r}, values={self.values.shape}, {way}, "
            f"{int(self.identified.sum())} of {len(self.identified)} columns identified, faded={self.faded:.2f})"
        )
