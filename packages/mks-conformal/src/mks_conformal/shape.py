"""Scale and score of the residuals: the shape of a region, before its size is calibrated."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from jaxtyping import Float

from armillary import InputError

from .fitted import ResidualScore
from .kernel_score import MultivariateKernelScore
from .scaling import as_scale, divided, factors_for_training

__all__ = ["Shape", "fit_shape", "is_unfitted", "unfitted_copy"]


@dataclass(frozen=True, eq=False)
class Shape:
    """A fitted scale, None where it is global, and a fitted score of the scaled residuals."""

    scale: Any
    score: Any


def is_unfitted(score: Any) -> TypeGuard[MultivariateKernelScore]:
    """Whether a score has to be fitted: only our own kernel score ever has."""
    return isinstance(score, MultivariateKernelScore) and not hasattr(score, "core_")


def unfitted_copy(score: MultivariateKernelScore) -> MultivariateKernelScore:
    """The score before its fit. Not scikit-learn's clone: that would unfit a whitener too."""
    return MultivariateKernelScore(**score.get_params(deep=False))


def fit_shape(
    score: Any,
    scale: Any,
    X: Any,
    residuals: Float[np.ndarray, "n d"],
    names: tuple[str, ...] | None,
    rng: np.random.Generator,
) -> Shape:
    """Scale and score from residuals that no calibration row had a part in."""
    scaler = deepcopy(as_scale(scale))
    if scaler is not None:
        scaler.fit(X, residuals)
        residuals = divided(residuals, factors_for_training(scaler, X, *residuals.shape))
    if not isinstance(score, ResidualScore) and not hasattr(score, "score_samples"):
        raise InputError("score", found=repr(score), expected="an object with score_samples")
    if is_unfitted(score):
        fresh = unfitted_copy(score)
        if fresh.random_state is None:
            fresh.random_state = int(rng.integers(2**31 - 1))
        score = fresh.fit_rows(residuals, names)
    return Shape(scaler, score)
