"""Pure mathematics: arrays in, arrays out.  No estimators, no logging, no files."""

from ._column_space import ColumnSpace, column_space, leading_left_singular
from ._eigen import (
    add_sparse_to_lower,
    centre_lower,
    fix_signs,
    largest_of_pencil,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)
from ._kernel_ridge import add_to_lower, ridge_coefficients, ridge_inverse
from ._kernels import Kernel, median_gamma, scale_gamma

__all__ = [
    "ColumnSpace",
    "Kernel",
    "add_sparse_to_lower",
    "add_to_lower",
    "centre_lower",
    "column_space",
    "fix_signs",
    "largest_of_pencil",
    "leading_left_singular",
    "median_gamma",
    "ridge_coefficients",
    "ridge_inverse",
    "scale_gamma",
    "smallest_eigenpairs",
    "smallest_eigenpairs_centred",
]
