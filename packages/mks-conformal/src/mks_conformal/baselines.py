"""The regions that people build today: ellipsoids, boxes, one interval an output.

`ellipsoid_score` (Johnstone & Cox 2021; Messoudi et al. 2022) and `box_score` have the interface of
the kernel score, so they go wherever it goes. The kernel density score is the kernel score with
``lam=inf``. `bonferroni_box` needs no score: it is the intersection of d intervals.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from armillary import InputError

from .body import Box
from .checks import as_rows, check_alpha, column_names, same_width
from .conformal import Calibration
from .fitted import ResidualScore
from .quadratic import Ellipsoid
from .whitening import mahalanobis_whitening

__all__ = ["BonferroniBox", "BoxScore", "EllipsoidScore", "bonferroni_box", "box_score"]
__all__ += ["ellipsoid_score"]


class EllipsoidScore(ResidualScore):
    """Squared Mahalanobis distance (r - m)' C^-1 (r - m), C the covariance with divisor n."""

    def __init__(
        self, residuals: Float[np.ndarray, "n d"], names: tuple[str, ...] | None = None
    ) -> None:
        self.names_ = names
        self.references_ = residuals
        self.proposal_whitening_ = mahalanobis_whitening(residuals, names)
        self.resolution_ = 1.0

    def score_samples(self, R: Any) -> Float[np.ndarray, " m"]:
        """Scores of residuals, larger is stranger."""
        rows = as_rows(R, "residuals", names=self.names_)
        same_width(rows, self.references_.shape[1], "residuals", self.names_)
        z = self.proposal_whitening_(rows)
        return np.einsum("ij,ij->i", z, z)

    def with_gradients(
        self, R: Float[np.ndarray, "m d"]
    ) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m d"]]:
        """Scores and their gradients."""
        white = self.proposal_whitening_
        return self.score_samples(R), 2.0 * white(R) @ white.matrix

    def closed_form(self, q: float) -> Ellipsoid | None:
        """The ellipsoid { score <= q }."""
        white = self.proposal_whitening_
        return None if q < 0 else Ellipsoid(white.location, np.sqrt(q) * white.inverse)


class BoxScore(ResidualScore):
    """max_j |r_j - median_j| / sd_j: one quantile for all outputs."""

    def __init__(
        self, residuals: Float[np.ndarray, "n d"], names: tuple[str, ...] | None = None
    ) -> None:
        self.names_ = names
        self.references_ = residuals
        self.proposal_whitening_ = mahalanobis_whitening(residuals, names)
        self.median_ = np.median(residuals, axis=0)
        self.sd_ = residuals.std(axis=0)
        self.resolution_ = 1.0

    def score_samples(self, R: Any) -> Float[np.ndarray, " m"]:
        """Scores of residuals, larger is stranger."""
        rows = as_rows(R, "residuals", names=self.names_)
        same_width(rows, self.references_.shape[1], "residuals", self.names_)
        return (np.abs(rows - self.median_) / self.sd_).max(axis=1)

    def closed_form(self, q: float) -> Box | None:
        """The box { score <= q }."""
        return None if q < 0 else Box(self.median_ - q * self.sd_, self.median_ + q * self.sd_)


def ellipsoid_score(R: Any) -> EllipsoidScore:
    """The Mahalanobis score of residuals, fitted on `R`.

    Parameters
    ----------
    R
        Residuals (n, d), n >= d + 2; not the calibration rows.

    Raises
    ------
    InputError
        For a NaN, too few rows, constant or linearly dependent outputs.
    """
    names = column_names(R)
    return EllipsoidScore(_residuals(R), names)


def box_score(R: Any) -> BoxScore:
    """The max-scaled score of residuals, fitted on `R`; see `ellipsoid_score`."""
    names = column_names(R)
    return BoxScore(_residuals(R), names)


def _residuals(R: Any) -> Float[np.ndarray, "n d"]:
    rows = as_rows(R, "R")
    if len(rows) < rows.shape[1] + 2:
        needed = f"at least {rows.shape[1] + 2} for {rows.shape[1]} output(s)"
        raise InputError("R", expected=f"rows, {needed}", found=f"{len(rows)}")
    return rows


@dataclass(frozen=True, eq=False)
class BonferroniBox:
    """One split-conformal interval an output, each at alpha / d."""

    center: Float[np.ndarray, " d"]
    half_widths: Float[np.ndarray, " d"]

    def contains(self, residuals: Float[np.ndarray, "m d"]) -> Bool[np.ndarray, " m"]:
        """Which residuals lie in the box."""
        return np.all(np.abs(residuals - self.center) <= self.half_widths, axis=1)

    @property
    def log_volume(self) -> float:
        """Log volume; inf when an output has too few rows for alpha / d."""
        return Box(self.center - self.half_widths, self.center + self.half_widths).log_volume


def bonferroni_box(R_fit: Any, R_cal: Any, alpha: float) -> BonferroniBox:
    """The Bonferroni box of calibration residuals about the medians of others."""
    center = np.median(_residuals(R_fit), axis=0)
    held = as_rows(R_cal, "R_cal", width=len(center))
    level = check_alpha(alpha) / len(center)
    distance = np.abs(held - center)
    widths = [float(Calibration(column).quantile(level)[0]) for column in distance.T]
    return BonferroniBox(center, np.array(widths))
