"""Calibration scores by group (Mondrian) and by weight: which of them serve which row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError

from .checks import as_vector
from .conformal import Calibration, warn_unbounded
from .law import SplitLaw

__all__ = ["CalibrationSet", "one_a_row"]


def one_a_row(values: Any, n: int, name: str) -> np.ndarray:
    """Labels or weights, one a row.

    Raises
    ------
    InputError
        For another number of them.
    """
    array = np.asarray(values)
    if array.shape != (n,):
        raise InputError(name, expected=f"{n} value(s), one a row", found=f"shape {array.shape}")
    return array


@dataclass(frozen=True, eq=False)
class CalibrationSet:
    """Calibration scores, one set a group; an empty last one serves groups that none knows."""

    calibrations: tuple[Calibration, ...]
    labels: tuple[Any, ...] | None  # of the groups; None without groups
    weighted: bool

    @classmethod
    def build(
        cls, scores: Float[np.ndarray, " n"], weights: Any, groups: Any, resolution: float
    ) -> "CalibrationSet":
        """From the scores of n calibration rows, their weights or None, their groups or None."""
        if weights is not None:
            weights = as_vector(weights, "weights", length=len(scores), nonnegative=True)
        if groups is None:
            return cls((Calibration(scores, weights, resolution),), None, weights is not None)
        found, index = np.unique(one_a_row(groups, len(scores), "groups"), return_inverse=True)
        parts = [
            Calibration(
                scores[index == label],
                None if weights is None else weights[index == label],
                resolution,
            )
            for label in range(len(found))
        ]
        empty = Calibration(np.empty(0), None, resolution)
        return cls((*parts, empty), tuple(found.tolist()), weights is not None)

    def group_of(self, groups: Any, m: int) -> Int[np.ndarray, " m"]:
        """Which calibration serves each of m rows.

        Raises
        ------
        InputError
            If only one of calibration rows and these rows has groups.
        """
        if self.labels is None:
            if groups is not None:
                raise InputError("groups: the calibration rows had no groups")
            return np.zeros(m, dtype=int)
        if groups is None:
            raise InputError("groups: the calibration rows had groups, these rows need theirs")
        order = {label: k for k, label in enumerate(self.labels)}
        given = one_a_row(groups, m, "groups").tolist()
        return np.array([order.get(label, len(order)) for label in given], dtype=int)

    def weights_of(self, weights: Any, m: int) -> Float[np.ndarray, " m"] | None:
        """Weights of m rows, or None.

        Raises
        ------
        InputError
            If only one of calibration rows and these rows has weights.
        """
        if (weights is not None) != self.weighted:
            had = "had weights, these rows need theirs" if self.weighted else "had no weights"
            raise InputError(f"weights: the calibration rows {had}")
        if weights is None:
            return None
        return as_vector(weights, "weights", length=m, nonnegative=True)

    def warn(self, law: SplitLaw, groups: Any, *, stacklevel: int) -> None:
        """Warn of rows whose region is everything."""
        infinite = np.isinf(law.thresholds())
        if not infinite.any():
            return
        where = f"{int(infinite.sum())} of {len(infinite)} row(s): "
        if groups is not None:
            named = np.unique(np.asarray(groups)[infinite]).tolist()
            where = f"group(s) {', '.join(map(str, named))}: "
        n = min(len(law.calibrations[group]) for group in np.unique(law.group[infinite]))
        weighted = self.weighted and n > 0
        warn_unbounded(law.alpha, weighted=weighted, n=n, where=where, stacklevel=stacklevel + 1)
