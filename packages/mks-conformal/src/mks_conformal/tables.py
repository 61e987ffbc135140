"""What scikit-learn expects of an estimator's inputs, and what a table keeps: names, dtypes.

A data frame goes to the user's estimator as it came, so that pipelines find their columns;
anything else becomes an array. A NaN is reported with its row and column either way.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_array, validate_data

from armillary import InputError

from .checks import as_rows, column_names, refuse_nonfinite

__all__ = ["checked_features", "checked_targets", "is_frozen", "seeded"]

_ANY: dict[str, Any] = {"dtype": None}  # no conversion; scikit-learn's annotation lacks it


def checked_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Features that are finite and have the names and number of those seen in `fit`.

    Raises
    ------
    InputError
        For a NaN or infinite value in a numeric column: impute before, for example in a pipeline
        around the regressor.
    ValueError
        What scikit-learn raises for other shapes, names or types.
    """
    if hasattr(X, "iloc"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        numeric = X.select_dtypes("number")
        refuse_nonfinite(numeric.to_numpy(dtype=float), "X", column_names(numeric))
        return X
    X = validate_data(estimator, X, reset=reset, dtype="numeric", ensure_all_finite=False)
    if X.dtype.kind == "f":
        refuse_nonfinite(np.asarray(X, dtype=float), "X")
    return X


def checked_targets(Y: Any, n: int) -> Float[np.ndarray, "n d"]:
    """Targets as a table of n rows.

    Raises
    ------
    InputError
        For a NaN, another number of rows, or no numbers.
    """
    if Y is None:
        # the words are scikit-learn's, which its own checks look for
        raise InputError("requires y to be passed, but the target y is None")
    check_array(Y, ensure_2d=False, ensure_all_finite=False, input_name="y", **_ANY)
    targets = as_rows(Y, "y")
    if len(targets) != n:
        raise InputError("y", expected=f"{n} row(s), as in X", found=f"{len(targets)}")
    return targets


def is_frozen(estimator: Any) -> bool:
    """Whether fitting the estimator does nothing."""
    return isinstance(estimator, FrozenEstimator)


def seeded(estimator: Any, seed: int) -> Any:
    """A clone whose random states, where it has none, come from `seed`."""
    copy: Any = clone(estimator)
    if not hasattr(copy, "get_params"):
        return copy
    states = {
        key: seed
        for key, value in copy.get_params().items()
        if key.rpartition("__")[2] == "random_state" and value is None
    }
    return copy.set_params(**states) if states else copy
