"""A region as a set in R^d: membership, where to look for it, and closed forms where they exist.

Volumes, samples, boxes and slices need no more than a `Body`, whichever score or conformal rule
stands behind it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from armillary import InputError

from .quadratic import Ellipsoid
from .whitening import Whitening, proposal_whitening

__all__ = ["Body", "Box", "Excess", "check_known", "thin"]

MAX_REFERENCES = 500  # in the proposal mixture: its density costs that much at every point

Points = Float[np.ndarray, "m d"]
# value and gradient, at one point, of score / q - 1 or the like: <= 0 on the body
Excess = Callable[[Float[np.ndarray, " d"]], tuple[float, Float[np.ndarray, " d"]]]


@dataclass(frozen=True, eq=False)
class Box:
    """The product of the intervals [lower_j, upper_j]."""

    lower: Float[np.ndarray, " d"]
    upper: Float[np.ndarray, " d"]

    @property
    def log_volume(self) -> float:
        """Log volume; -inf when a side has no width."""
        with np.errstate(divide="ignore"):
            return float(np.log(np.maximum(self.upper - self.lower, 0.0)).sum())

    def box(self) -> Float[np.ndarray, "2 d"]:
        """Lower and upper end of every coordinate."""
        return np.stack([self.lower, self.upper])

    def moved(
        self, shift: Float[np.ndarray, " d"], factor: Float[np.ndarray, "d d"] | None = None
    ) -> "Box | None":
        """Its image under x -> shift + factor x; None when that is no box."""
        if factor is None:
            return Box(self.lower + shift, self.upper + shift)
        return None

    def slice(self, at: Sequence[int], values: Float[np.ndarray, " k"]) -> "Box | None":
        """Its slice where the coordinates `at` have these values; None when they miss it."""
        known = np.asarray(at, dtype=int)
        if (values < self.lower[known]).any() or (values > self.upper[known]).any():
            return None
        free = np.setdiff1d(np.arange(len(self.lower)), known)
        return Box(self.lower[free], self.upper[free])


@dataclass(frozen=True, eq=False)
class Body:
    """A set in R^d.

    Attributes
    ----------
    inside
        Which of many points belong to it.
    references
        Points around which it may be expected, the heads of the proposal mixture.
    whitening
        Coordinates in which the references have about unit covariance.
    radius
        Radius, in those coordinates, of a ball about 0 that holds most of the set.
    far
        The ellipsoid that it contains because q exceeds the score's far minimum, if any.
    closed
        The set itself, where it is an ellipsoid or a box.
    excess
        A smooth function that is <= 0 on it, where there is one.
    bounded, empty
        What is known beforehand.
    """

    inside: Callable[[Points], Bool[np.ndarray, " m"]]
    references: Float[np.ndarray, "n d"]
    whitening: Whitening
    radius: float
    far: Ellipsoid | None = None
    closed: Ellipsoid | Box | None = None
    excess: Excess | None = None
    bounded: bool = True
    empty: bool = False

    @property
    def d(self) -> int:
        """Dimension."""
        return self.references.shape[1]

    def moved(
        self, shift: Float[np.ndarray, " d"], factor: Float[np.ndarray, "d d"] | None = None
    ) -> "Body":
        """Its image under x -> shift + factor x, `factor` lower triangular."""
        inverse = np.eye(self.d) if factor is None else np.linalg.inv(factor)
        scale = np.eye(self.d) if factor is None else factor
        old = self.whitening
        whitening = Whitening(
            scale @ old.location + shift, old.matrix @ inverse, scale @ old.inverse
        )
        excess = self.excess

        def moved_excess(
            x: Float[np.ndarray, " d"],
        ) -> tuple[float, Float[np.ndarray, " d"]]:
            assert excess is not None
            value, gradient = excess(inverse @ (x - shift))
            return value, inverse.T @ gradient

        return replace(
            self,
            inside=lambda points: self.inside((points - shift) @ inverse.T),
            references=self.references @ scale.T + shift,
            whitening=whitening,
            far=None if self.far is None else self.far.moved(shift, factor),
            closed=None if self.closed is None else self.closed.moved(shift, factor),
            excess=None if excess is None else moved_excess,
        )

    def slice(self, at: Sequence[int], values: Float[np.ndarray, " k"]) -> "Body":
        """The set of the other coordinates where those `at` have these values."""
        free = np.setdiff1d(np.arange(self.d), np.asarray(at, dtype=int))

        def whole(points: Float[np.ndarray, "m f"]) -> Points:
            full = np.empty((len(points), self.d))
            full[:, free] = points
            full[:, list(at)] = values
            return full

        excess = self.excess

        def sliced_excess(
            x: Float[np.ndarray, " d"],
        ) -> tuple[float, Float[np.ndarray, " d"]]:
            assert excess is not None
            value, gradient = excess(whole(x[None])[0])
            return value, gradient[free]

        references = self.references[:, free]
        whitening = proposal_whitening(references)
        radius = 1.2 * float(np.linalg.norm(whitening(references), axis=1).max())
        closed = None if self.closed is None else self.closed.slice(at, values)
        return Body(
            inside=lambda points: self.inside(whole(points)),
            references=references,
            whitening=whitening,
            radius=radius,
            far=None if self.far is None else self.far.slice(at, values),
            closed=closed,
            excess=None if excess is None else sliced_excess,
            bounded=self.bounded,
            empty=self.empty or (self.closed is not None and closed is None),
        )


def thin(rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "r d"]:
    """At most `MAX_REFERENCES` of the rows, evenly spread over their order."""
    if len(rows) <= MAX_REFERENCES:
        return rows
    return rows[np.linspace(0, len(rows) - 1, MAX_REFERENCES).round().astype(int)]


def check_known(known: dict[int, float], d: int) -> None:
    """Refuse to condition on outputs that do not exist, on all of them or on none.

    Raises
    ------
    InputError
        With the outputs that there are.
    """
    bad = [key for key in known if not isinstance(key, (int, np.integer)) or not 0 <= key < d]
    if bad:
        raise InputError("known", found=f"output {bad[0]!r}", expected=f"outputs 0 to {d - 1}")
    if not 0 < len(known) < d:
        raise InputError("known", found=f"{len(known)} output(s)", expected=f"1 to {d - 1} of {d}")
    for key, value in known.items():
        if not np.isfinite(value):
            raise InputError("known", where=f"output {key}", found=value, expected="a number")
