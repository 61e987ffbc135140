"""Turning what a caller gave into float arrays, or into one line that says what is wrong.

Every public function passes its arrays through here, so that a NaN is reported with its row and
column, and a column has the name it has in the caller's table.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import InputError

__all__ = ["as_rows", "as_vector", "check_alpha", "column_names", "in_order", "label"]
__all__ += ["refuse_nonfinite", "same_width"]


def column_names(values: Any) -> tuple[str, ...] | None:
    """The column names of a table or the name of a series, None for anything else."""
    columns = getattr(values, "columns", None)
    if columns is not None:
        return tuple(str(column) for column in columns)
    name = getattr(values, "name", None)
    return None if name is None or not hasattr(values, "dtype") else (str(name),)


def in_order(values: Any, names: Sequence[str] | None) -> Any:
    """A data frame with its columns in the order of `names`, if it has them; else as it is.

    Raises
    ------
    InputError
        If it has some of the names and not all: which column is which would be a guess.
    """
    columns = column_names(values) if hasattr(values, "columns") else None
    if names is None or columns is None or columns == tuple(names):
        return values
    if not set(columns) & set(names):
        return values
    if sorted(columns) != sorted(names):
        expected, found = ", ".join(names), ", ".join(columns)
        raise InputError("columns", expected=expected, found=found)
    return values.iloc[:, [columns.index(name) for name in names]]


def label(names: Sequence[str] | None, column: int) -> str:
    """How a message calls a column: by its name if it has one, else by its index from 0."""
    return f"'{names[column]}'" if names is not None else str(column)


def as_rows(
    values: Any,
    name: str,
    *,
    names: Sequence[str] | None = None,
    width: int | None = None,
    at_least: int = 0,
) -> Float[np.ndarray, "n d"]:
    """A table of finite numbers as a float array.

    Parameters
    ----------
    values
        Anything two-dimensional that NumPy understands; a vector is one column.
    name
        What a message calls it.
    names
        Names of the columns; by default those of `values` itself.
    width, at_least
        The number of columns it must have, the number of rows it must at least have.

    Raises
    ------
    InputError
        For anything but finite real numbers in the right shape.
    """
    names = column_names(values) if names is None else names
    try:
        array = np.asarray(values)
        if np.iscomplexobj(array):
            raise InputError("Complex data not supported", where=name, expected="real numbers")
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(name, expected="a table of numbers", found=str(error)) from error
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(name, expected="two dimensions", found=f"shape {array.shape}")
    if width is not None and array.shape[1] != width:
        raise InputError(name, expected=f"{width} column(s)", found=f"shape {array.shape}")
    if len(array) < at_least:
        raise InputError(name, expected=f"at least {at_least} rows", found=f"{len(array)} row(s)")
    refuse_nonfinite(array, name, names)
    return array


def refuse_nonfinite(
    array: Float[np.ndarray, "n d"], name: str, names: Sequence[str] | None = None
) -> None:
    """Raise an InputError that names row and column of the first NaN or infinite value."""
    # The sum is finite unless an entry is not (or it overflows): no mask for good data.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = (int(index) for index in bad[0])
        value = array[row, column]
        raise InputError(
            "a finite number is needed",
            where=f"{name}: row {row}, column {label(names, column)}",
            found="NaN" if np.isnan(value) else f"{value}",
        )


def as_vector(
    values: Any, name: str, *, length: int | None = None, nonnegative: bool = False
) -> Float[np.ndarray, " n"]:
    """A sequence of finite numbers as a float array, with a length and a sign if asked."""
    array = as_rows(np.ravel(np.asarray(values)), name)[:, 0]
    if length is not None and len(array) != length:
        raise InputError(name, expected=f"{length} value(s)", found=f"{len(array)}")
    if nonnegative and (array < 0).any():
        row = int(np.argmax(array < 0))
        raise InputError(
            name, where=f"row {row}", expected="no negative value", found=f"{array[row]}"
        )
    return array


def same_width(
    found: Float[np.ndarray, "m d1"], width: int, name: str, names: Sequence[str] | None = None
) -> None:
    """Refuse rows that have another number of outputs than the fitted one."""
    if found.shape[1] != width:
        outputs = "" if names is None else f" ({', '.join(names)})"
        raise InputError(name, expected=f"{width} output(s){outputs}", found=f"{found.shape[1]}")


def check_alpha(alpha: float, name: str = "alpha") -> float:
    """A miscoverage strictly between 0 and 1.

    Raises
    ------
    InputError
        Otherwise.
    """
    if not isinstance(alpha, (int, float, np.number)) or not 0 < float(alpha) < 1:
        raise InputError(name, expected="a number strictly between 0 and 1", found=alpha)
    return float(alpha)
