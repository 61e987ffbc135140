"""Files in: pairs of predictions and targets, and tables to fit on, columns by name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from armillary import InputError
from armillary.files import read_table

__all__ = ["Pairs", "chosen_order", "names_of", "read_features", "read_pairs"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Predictions and targets, row by row."""

    prediction: Float[np.ndarray, "n d"]
    target: Float[np.ndarray, "n d"]
    pred: tuple[str, ...]
    true: tuple[str, ...]

    @property
    def residuals(self) -> Float[np.ndarray, "n d"]:
        """Target minus prediction."""
        return self.target - self.prediction


def names_of(text: str, option: str) -> tuple[str, ...]:
    """The column names of a list such as ``y1,y2``.

    Raises
    ------
    InputError
        If one is empty or stands twice.
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InputError(option, found=repr(text), expected="column names separated by commas")
    for name in names:
        if names.count(name) > 1:
            raise InputError(option, found=f"{name!r} twice", expected="each column once")
    return names


def read_pairs(path: Path, pred: str, true: str) -> Pairs:
    """Predictions and targets of a CSV or Parquet file.

    Parameters
    ----------
    path
        The table.
    pred, true
        Their columns, separated by commas, in the same order.

    Raises
    ------
    InputError
        If the lists differ in length, share a column, or the file lacks one; for a cell that is
        no finite number, with its place.
    """
    first, second = names_of(pred, "--pred"), names_of(true, "--true")
    if len(first) != len(second):
        found = f"--pred {', '.join(first)} and --true {', '.join(second)}"
        raise InputError("lists of columns", found=found, expected="as many of one as of the other")
    if shared := [name for name in first if name in second]:
        raise InputError("--pred and --true", found=f"{shared[0]!r} in both")
    table = _numbers(path, [*first, *second])
    return Pairs(_columns(table, first), _columns(table, second), first, second)


def read_features(
    path: Path, targets: str, features: str | None
) -> tuple[Any, Float[np.ndarray, "n d"], tuple[str, ...]]:
    """Features as a frame, targets as an array, and the targets' names.

    Raises
    ------
    InputError
        As `read_pairs`, and if no feature is left.
    """
    outputs = names_of(targets, "--targets")
    if features is None:
        table = _numbers(path, None, required=outputs)
        inputs = tuple(name for name in table.columns if name not in outputs)
        if not inputs:
            raise InputError("--targets", found=targets, expected="a column left as a feature")
    else:
        inputs = names_of(features, "--features")
        if shared := [name for name in inputs if name in outputs]:
            raise InputError("--features and --targets", found=f"{shared[0]!r} in both")
        table = _numbers(path, [*inputs, *outputs])
    return table[list(inputs)], _columns(table, outputs), outputs


def chosen_order(given: tuple[str, ...], saved: tuple[str, ...] | None) -> list[int] | None:
    """Where each saved output stands among the given columns; None: they go by position.

    Raises
    ------
    InputError
        If their number differs, or some of the names are the saved ones and some are not.
    """
    if saved is None or not set(given) & set(saved):
        if saved is not None and len(given) != len(saved):
            found = f"{len(given)}: {', '.join(given)}"
            raise InputError(
                "--true", found=found, expected=f"{len(saved)} column(s): {', '.join(saved)}"
            )
        return None
    if set(given) != set(saved):
        raise InputError("--true", found=", ".join(given), expected=", ".join(saved))
    return [given.index(name) for name in saved]


def _numbers(path: Path, columns: list[str] | None, required: tuple[str, ...] = ()) -> Any:
    return read_table(path, number=columns, required=required)


def _columns(table: Any, names: tuple[str, ...]) -> Float[np.ndarray, "n d"]:
    return np.ascontiguousarray(table[list(names)].to_numpy(dtype=float))
