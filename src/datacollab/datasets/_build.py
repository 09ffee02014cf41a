"""From the arrays in the files to the entries of a `Dataset`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits

from .._validation import FloatArray

__all__ = [
    "SLICE_COLUMNS",
    "UJI_COLUMNS",
    "build_diabetes",
    "build_digits",
    "build_slices",
    "build_ujiindoorloc",
    "image_builder",
]

UJI_COLUMNS = (
    *(f"WAP{number:03d}" for number in range(1, 521)),
    *("LONGITUDE", "LATITUDE", "FLOOR", "BUILDINGID", "SPACEID"),
    *("RELATIVEPOSITION", "USERID", "PHONEID", "TIMESTAMP"),
)
SLICE_COLUMNS = ("patientId", *(f"value{number}" for number in range(384)), "reference")


def build_digits(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    """Digits of scikit-learn; there are no files."""
    X, y = load_digits(return_X_y=True)
    return {
        "X": X / 16,
        "y": y.astype(np.int64),
        "feature_names": _pixel_names(8, 8),
        "target_names": [str(digit) for digit in range(10)],
    }


def build_diabetes(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    """Diabetes of scikit-learn; there are no files."""
    data = load_diabetes()
    return {"X": data.data, "y": data.target, "feature_names": list(data.feature_names)}


def image_builder(target_names: tuple[str, ...]) -> Callable[[list[NDArray[Any]]], dict[str, Any]]:
    """Builder for training images, their labels, test images and theirs."""

    def build(arrays: list[NDArray[Any]]) -> dict[str, Any]:
        train_images, train_labels, test_images, test_labels = arrays
        n_train, *size = train_images.shape
        pixels = np.concatenate([train_images, test_images]).reshape(n_train + len(test_images), -1)
        return {
            "X": pixels / 255.0,
            "y": np.concatenate([train_labels, test_labels]).astype(np.int64),
            "feature_names": _pixel_names(*size),
            "target_names": list(target_names),
            "n_train": n_train,
        }

    return build


def build_ujiindoorloc(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    """Training and validation tables, one after the other."""
    table: FloatArray = np.concatenate(arrays)
    column = dict(zip(UJI_COLUMNS, table.T, strict=True))
    return {
        "X": np.ascontiguousarray(table[:, :520]),
        "y": column["LATITUDE"].copy(),
        "feature_names": list(UJI_COLUMNS[:520]),
        "n_train": len(arrays[0]),
        "extra": {
            "LONGITUDE": column["LONGITUDE"].copy(),
            "FLOOR": column["FLOOR"].astype(np.int64),
            "BUILDINGID": column["BUILDINGID"].astype(np.int64),
        },
    }


def build_slices(arrays: list[NDArray[Any]]) -> dict[str, Any]:
    """Histograms between the patient's number and the position."""
    (table,) = arrays
    return {
        "X": np.ascontiguousarray(table[:, 1:-1]),
        "y": table[:, -1].copy(),
        "feature_names": list(SLICE_COLUMNS[1:-1]),
        "groups": table[:, 0].astype(np.int64),
    }


def _pixel_names(n_rows: int, n_columns: int) -> list[str]:
    return [f"pixel_{row}_{column}" for row in range(n_rows) for column in range(n_columns)]
