"""Checks of what the caller gave: arrays become float64, faults become `InputError`."""

from collections.abc import Sequence
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError


def as_rows(features: Any) -> Float[np.ndarray, "n d"]:
    """Features as finite float64 rows, none of them zero."""
    rows = _numbers(features, "features")
    if rows.ndim != 2 or not rows.size:
        raise InputError("features", found=f"shape {rows.shape}", expected="rows x dimensions")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        norm2 = np.einsum("ij,ij->i", rows, rows)
    bad = np.flatnonzero(~np.isfinite(norm2) | (norm2 <= 0))
    if bad.size:
        norm = float(np.linalg.norm(rows[bad[0]]))
        raise InputError(
            "features",
            where=f"row {bad[0]}",
            found=f"norm {norm:g}",
            expected="a finite norm above 0",
        )
    return rows


def as_logs(values: Any, name: str, n: int) -> Float[np.ndarray, " n"]:
    """One finite number per row; None means that all rows weigh the same."""
    if values is None:
        return np.zeros(n)
    logs = _numbers(values, name)
    if logs.shape != (n,):
        raise InputError(name, found=f"shape {logs.shape}", expected=f"({n},), one number per row")
    bad = np.flatnonzero(~np.isfinite(logs))
    if bad.size:
        raise InputError(
            name, where=f"row {bad[0]}", found=float(logs[bad[0]]), expected="a finite number"
        )
    return logs


def as_count(k: Any, n: int, name: str = "k") -> int:
    """A whole number from 1 to `n`."""
    try:
        count = index(k)
    except TypeError as error:
        raise TypeError(f"{name}: expected a whole number, found {k!r}") from error
    if not 1 <= count <= n:
        raise InputError(name, found=count, expected=f"1 to {n}, the number of rows")
    return count


def as_kept(keep: Sequence[int], n: int, k: int) -> Int[np.ndarray, " kept"]:
    """Rows that must be in the set: in range, no two the same, at most k."""
    kept = [index(row) for row in keep]
    outside = [row for row in kept if not 0 <= row < n]
    if outside:
        raise InputError("keep", found=f"row {outside[0]}", expected=f"rows 0 to {n - 1}")
    twice = sorted({row for row in kept if kept.count(row) > 1})
    if twice:
        raise InputError("keep", found=f"row {twice[0]} twice", expected="each row once")
    if len(kept) > k:
        raise InputError("keep", found=f"{len(kept)} rows", expected=f"at most k = {k}")
    return np.array(kept, dtype=int)


def one_of(value: Any, name: str, choices: Sequence[str]) -> str:
    """`value`, if it is one of `choices`."""
    if value not in choices:
        raise InputError(name, found=repr(value), expected=" or ".join(map(repr, choices)))
    return value


def _numbers(values: Any, name: str) -> Float[np.ndarray, "..."]:
    array = np.asarray(values)
    if array.dtype.kind == "O":  # None stands for a number that is missing
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: expected real numbers, found dtype {array.dtype}")
    return array.astype(np.float64, copy=False)
