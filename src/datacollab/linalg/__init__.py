"""Pure mathematics: arrays in, arrays out.  No estimators, no logging, no files."""

from ._array_api import ARRAY_KERNELS, as_precise_as, cast, column_norms, device_memory, hstack, like, zeros
from ._column_space import ColumnSpace, centred_columns, column_space, leading_left_singular
from ._eigen import (
    add_sparse_to_lower,
    centre_lower,
    fix_signs,
    largest_of_pencil,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)
from ._kernel_blocks import KernelBlocks, symmetric_product
from ._kernel_left_out import centred_ridge, left_out_errors
from ._kernel_product import kernel_expansion, kernel_product
from ._kernel_ridge import add_to_lower, ridge_coefficients, ridge_inverse
from ._kernels import Kernel, median_gamma, scale_gamma
from ._krylov import LeadingEigenpairs, basis_capacity, leading_eigenpairs
from ._metric import metric_scaling
from ._panels import PanelCholesky, panel_cholesky, refined_solution
from ._ranking import auc_with_interval, ranking_figures
from ._restricted_ridge import (
    RestrictedRidge,
    feature_dtype,
    landmark_moments,
    landmark_root,
    nested_ridges,
    restricted_ridge,
    restricted_ridge_of_features,
    smoother_trace,
)
from ._ridge_path import RidgePath, ridge_path
from ._rpcholesky import PivotedCholesky, extend_pivots, start_pivots
from ._treatment_weights import PROPENSITY_CLIP, treatment_weights
from ._weighted_ridge import WeightedRidgePath, weighted_ridge_path

__all__ = [
    "ARRAY_KERNELS",
    "PROPENSITY_CLIP",
    "ColumnSpace",
    "Kernel",
    "KernelBlocks",
    "LeadingEigenpairs",
    "PanelCholesky",
    "PivotedCholesky",
    "RestrictedRidge",
    "RidgePath",
    "WeightedRidgePath",
    "add_sparse_to_lower",
    "add_to_lower",
    "as_precise_as",
    "auc_with_interval",
    "basis_capacity",
    "cast",
    "centre_lower",
    "centred_columns",
    "centred_ridge",
    "column_norms",
    "column_space",
    "device_memory",
    "extend_pivots",
    "feature_dtype",
    "fix_signs",
    "hstack",
    "kernel_expansion",
    "kernel_product",
    "landmark_moments",
    "landmark_root",
    "largest_of_pencil",
    "leading_eigenpairs",
    "leading_left_singular",
    "left_out_errors",
    "like",
    "median_gamma",
    "metric_scaling",
    "nested_ridges",
    "panel_cholesky",
    "ranking_figures",
    "refined_solution",
    "restricted_ridge",
    "restricted_ridge_of_features",
    "ridge_coefficients",
    "ridge_inverse",
    "ridge_path",
    "scale_gamma",
    "smallest_eigenpairs",
    "smallest_eigenpairs_centred",
    "smoother_trace",
    "start_pivots",
    "symmetric_product",
    "treatment_weights",
    "weighted_ridge_path",
    "zeros",
]
