"""Pure mathematics: arrays in, arrays out.  No estimators, no logging, no files."""

from .._validation import array_library, array_namespace, to_numpy
from ._array_api import (
    ARRAY_KERNELS,
    add_gram,
    add_tall_product,
    add_wide_product,
    as_precise_as,
    cast,
    device_memory,
    hstack,
    inverse_cholesky,
    like,
    matching,
    times_upper,
    zeros,
)
from ._eigen import (
    ColumnSpace,
    LeadingEigenpairs,
    StopRule,
    add_sparse_to_lower,
    basis_capacity,
    centre_columns,
    centre_lower,
    column_space,
    fix_signs,
    largest_of_pencil,
    leading_eigenpairs,
    leading_left_singular,
    leading_singular_of_blocks,
    metric_scaling,
    smallest_eigenpairs,
    smallest_eigenpairs_centred,
)
from ._gaussian_noise import SMALLEST_DELTA, below_zero, gaussian_delta, gaussian_epsilon, gaussian_sigma, largest_noise
from ._kernel_ridge import (
    RidgePath,
    WeightedRidgePath,
    add_to_lower,
    full_ridge_path,
    groups_of_several,
    ridge_coefficients,
    ridge_inverse,
    ridge_path,
    ridge_path_of_features,
    ridge_with_intercept,
)
from ._kernels import MEDIAN_ROWS, Kernel, KernelBlocks, kernel_expansion, median_gamma, scale_gamma, symmetric_product
from ._panels import PanelCholesky, panel_cholesky, refine_solution
from ._ranking import (
    FEWEST_OF_A_CLASS,
    auc_difference,
    auc_with_interval,
    entropy,
    find_threshold,
    log_losses,
    mean_with_interval,
    ranking_figures,
    wilson,
)

__all__ = ["ARRAY_KERNELS", "FEWEST_OF_A_CLASS", "MEDIAN_ROWS", "SMALLEST_DELTA", "ColumnSpace", "Kernel"]
__all__ += ["KernelBlocks", "LeadingEigenpairs", "PanelCholesky", "RidgePath", "StopRule", "WeightedRidgePath"]
__all__ += ["add_gram"]
__all__ += ["add_sparse_to_lower", "add_tall_product", "add_to_lower", "add_wide_product", "array_library"]
__all__ += ["array_namespace", "as_precise_as"]
__all__ += ["auc_difference", "auc_with_interval", "basis_capacity", "below_zero", "cast", "centre_columns"]
__all__ += ["centre_lower", "column_space", "device_memory", "entropy", "find_threshold", "fix_signs"]
__all__ += ["full_ridge_path", "gaussian_delta", "gaussian_epsilon", "gaussian_sigma", "groups_of_several"]
__all__ += ["hstack", "inverse_cholesky", "kernel_expansion", "largest_noise", "largest_of_pencil"]
__all__ += ["leading_eigenpairs", "leading_left_singular", "leading_singular_of_blocks", "like", "log_losses"]
__all__ += ["matching", "mean_with_interval", "median_gamma", "metric_scaling", "panel_cholesky", "ranking_figures"]
__all__ += ["refine_solution", "ridge_coefficients", "ridge_inverse", "ridge_path", "ridge_path_of_features"]
__all__ += ["ridge_with_intercept", "scale_gamma", "smallest_eigenpairs", "smallest_eigenpairs_centred"]
__all__ += ["symmetric_product", "times_upper", "to_numpy", "wilson", "zeros"]
