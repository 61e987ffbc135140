"""`MKSRegressor`: any multi-output regressor, with regions of guaranteed coverage around it."""

from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from armillary import InputError

from .checks import check_alpha, column_names
from .conformal import misses_allowed, warn_unbounded
from .crossfit import (
    CrossLaw,
    aligned,
    fit_fold_rules,
    fitted_estimator,
    folds_of,
    out_of_fold,
    rows_of,
    without_rounding,
)
from .fitted import as_score
from .full import FullLaw
from .kernel_score import MultivariateKernelScore, generator_from
from .law import Factor, Law, SplitLaw
from .mondrian import CalibrationSet, one_a_row
from .region import RegionSet
from .scaling import checked_factor, divided
from .shape import Shape, fit_shape, is_unfitted
from .tables import checked_features, checked_targets, is_frozen, seeded

__all__ = ["MKSRegressor"]

METHODS = ("split", "full", "cv+", "jackknife+")
Residuals = Float[np.ndarray, "n d"]


class MKSRegressor(RegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Prediction regions of kernel shape around any multi-output regressor.

    Parameters
    ----------
    estimator
        A regressor; None is a random forest of 200 trees. One that is fitted already goes
        through `conformalize` instead of `fit`.
    alpha
        Miscoverage: regions hold the truth with probability at least 1 - alpha.
    method
        ``"split"``: a calibration part is held out. ``"full"``: the same parts, the calibration
        residuals being the score's references too (up to about 1000 of them). ``"cv+"`` and
        ``"jackknife+"``: no part is held out, cv^2 + cv model fits, proven coverage
        1 - 2 alpha less a little.
    cal_size
        Share of the rows that calibrate (split and full).
    cv
        Folds: of the out-of-fold residuals that fit the score, and of cv+.
    residual_score
        None is ``MultivariateKernelScore(alpha=alpha)``; or one with other options, or a fitted
        score, or any object with ``score_samples``.
    scale
        ``"global"``; ``"knn"``: the shape follows x; or an object with ``fit(X, residuals)`` and
        ``factor(X)``.
    random_state
        Seed of splits, folds and the score, and of the estimator where it has none itself.
    n_jobs
        Models fitted at once.

    Attributes
    ----------
    estimator_ : fitted regressor (split, full)
    score_ : fitted score (split, full)
    fold_rules_ : one fitted model, score and set of scores a fold (cv+, jackknife+)
    calibration_residuals_ : residuals that calibrate, divided by L(x) where `scale` is not global
    """

    def __init__(
        self,
        estimator: Any = None,
        alpha: float = 0.1,
        method: str = "split",
        cal_size: float = 0.25,
        cv: int = 5,
        residual_score: Any = None,
        scale: Any = "global",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.alpha = alpha
        self.method = method
        self.cal_size = cal_size
        self.cv = cv
        self.residual_score = residual_score
        self.scale = scale
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, Y: Any, *, groups: Any = None, **fit_params: Any) -> "MKSRegressor":
        """Fit the regressor and everything that its regions need.

        Parameters
        ----------
        X
            Features (n, p), array or data frame.
        Y
            Targets (n, d) or (n,).
        groups
            Group of each row (split only): one quantile a group, coverage within each.
        fit_params
            Passed to the estimator's `fit`; array-likes of n rows follow the folds.

        Raises
        ------
        InputError
            For a NaN with its place, too few rows, an estimator whose predictions do not have
            the targets' shape, constant or linearly dependent residuals, options out of range.
        """
        X = checked_features(self, X, reset=True)
        targets = self._targets(X, Y)
        n, rng = len(targets), generator_from(self.random_state)
        if is_frozen(self.estimator):
            raise InputError("a frozen estimator cannot be fitted", instead="use conformalize")
        self._check_options(groups=groups)
        model = self._model(rng)
        if self.method in ("cv+", "jackknife+"):
            k = n if self.method == "jackknife+" else self.cv
            self.fold_rules_ = fit_fold_rules(
                model, X, Y, targets, self._shape_of, k, self.cv, fit_params, rng, self.n_jobs
            )
            return self
        order = rng.permutation(n)
        n_cal = max(1, round(self.cal_size * n))
        cal, train = np.sort(order[:n_cal]), np.sort(order[n_cal:])
        if len(train) < 2:
            raise InputError("X", expected="more rows", found=f"n_samples = {n}")
        residuals = np.zeros((len(train), targets.shape[1]))
        if self._learns_from_residuals():
            splits = [(train[a], train[b]) for a, b in folds_of(len(train), self.cv, rng)]
            residuals = out_of_fold(model, X, Y, targets, splits, fit_params, self.n_jobs)[train]
            residuals = without_rounding(residuals, targets)
        self.estimator_ = fitted_estimator(model, X, Y, train, fit_params, n)
        self.copies_targets_ = bool(
            self._learns_from_residuals() and not np.ptp(residuals, 0).any()
        )
        if self.copies_targets_:
            return self  # predictions are fine; a region has nothing to learn from
        self._set_shape(rows_of(X, train), residuals, rng)
        self._calibrate(
            rows_of(X, cal),
            targets[cal],
            None,
            None if groups is None else one_a_row(groups, n, "groups")[cal],
        )
        return self

    def conformalize(
        self,
        X_cal: Any,
        Y_cal: Any,
        *,
        score_size: float = 0.5,
        weights: Any = None,
        groups: Any = None,
    ) -> "MKSRegressor":
        """Calibrate an estimator that is fitted already, on rows that it has not seen.

        Parameters
        ----------
        X_cal, Y_cal
            Held-out rows.
        score_size
            Share of them, at random, that fits the score; the others calibrate. With a fitted
            `residual_score` all calibrate.
        weights
            Weight of each row, >= 0, for covariate shift (split only); `predict_region` then
            needs the weights of its rows.
        groups
            Group of each row (split only).

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        InputError
            As for `fit`.
        """
        X = checked_features(self, X_cal, reset=True)
        targets = self._targets(X, Y_cal)
        n, rng = len(targets), generator_from(self.random_state)
        if self.method in ("cv+", "jackknife+"):
            raise InputError("conformalize", found=self.method, expected="split or full")
        if self.estimator is None:
            raise NotFittedError("conformalize needs a fitted estimator; use fit to fit a forest")
        self._check_options(groups=groups, weights=weights)
        self.estimator_ = self.estimator
        cal = np.arange(n)
        fitting = cal[:0]
        if self._learns_from_residuals():
            if not 0 < score_size < 1:
                raise InputError("score_size", found=score_size, expected="between 0 and 1")
            order = rng.permutation(n)
            n_score = round(score_size * n)
            fitting, cal = np.sort(order[:n_score]), np.sort(order[n_score:])
        part = rows_of(X, fitting)
        residuals = np.zeros((0, targets.shape[1]))
        if len(fitting):
            residuals = targets[fitting] - aligned(self.estimator_.predict(part), targets[fitting])
            residuals = without_rounding(residuals, targets)
        self._set_shape(part, residuals, rng)
        self._calibrate(
            rows_of(X, cal),
            targets[cal],
            None if weights is None else one_a_row(weights, n, "weights")[cal],
            None if groups is None else one_a_row(groups, n, "groups")[cal],
        )
        return self

    def _targets(self, X: Any, Y: Any) -> Residuals:
        targets = checked_targets(Y, len(X))
        self._one_d, self.output_names_ = np.asarray(Y).ndim == 1, column_names(Y)
        self.n_outputs_ = targets.shape[1]
        return targets

    def _check_options(self, *, groups: Any = None, weights: Any = None) -> None:
        check_alpha(self.alpha)
        if self.method not in METHODS:
            raise InputError("method", found=repr(self.method), expected=", ".join(METHODS))
        if self.method != "split" and not (groups is None and weights is None):
            raise InputError("weights and groups", found=self.method, expected="method='split'")
        if not 0 < self.cal_size < 1:
            raise InputError("cal_size", found=self.cal_size, expected="between 0 and 1")
        if self.cv < 2:
            raise InputError("cv", found=self.cv, expected="a whole number >= 2")

    def _model(self, rng: np.random.Generator) -> Any:
        seed = int(rng.integers(2**31 - 1))
        if self.estimator is None:
            from sklearn.ensemble import RandomForestRegressor

            return RandomForestRegressor(200, random_state=seed)
        # without a seed of ours the estimator keeps its own randomness
        return self.estimator if self.random_state is None else seeded(self.estimator, seed)

    def _learns_from_residuals(self) -> bool:
        """Whether residuals are needed to fit the score or the scale."""
        varies = not isinstance(self.scale, str) or self.scale != "global"
        return varies or self.residual_score is None or is_unfitted(self.residual_score)

    def _shape_of(self, X: Any, residuals: Residuals, rng: np.random.Generator) -> Shape:
        """Scale and score from residuals that no calibration row had a part in."""
        score = self.residual_score
        if score is None:
            score = MultivariateKernelScore(alpha=self.alpha)
        return fit_shape(score, self.scale, X, residuals, self.output_names_, rng)

    def _set_shape(self, X: Any, residuals: Residuals, rng: np.random.Generator) -> None:
        shape = self._shape_of(X, residuals, rng)
        self.score_, self.scale_ = shape.score, shape.scale

    def _factor(self, X: Any) -> Factor | None:
        if self.scale_ is None:
            return None
        return checked_factor(self.scale_.factor(X), len(X), self.n_outputs_)

    def _calibrate(self, X: Any, targets: Residuals, weights: Any, groups: Any) -> None:
        residuals = targets - aligned(self.estimator_.predict(X), targets)
        factor = self._factor(X)
        if factor is not None:
            residuals = divided(residuals, factor)
        self.calibration_residuals_ = residuals
        self.score_ = as_score(self.score_, residuals)
        scores = self.score_.score_samples(residuals)
        self.calibration_ = CalibrationSet.build(scores, weights, groups, self.score_.resolution_)

    def predict(self, X: Any) -> Any:
        """Point predictions (m, d), or (m,) after fitting on one target given as a vector."""
        check_is_fitted(self)
        X = checked_features(self, X, reset=False)
        if hasattr(self, "fold_rules_"):
            parts = [self._predicted(rule.estimator, X) for rule in self.fold_rules_]
            prediction = np.mean(parts, axis=0)
        else:
            prediction = self._predicted(self.estimator_, X)
        return prediction[:, 0] if self._one_d else prediction

    def _predicted(self, estimator: Any, X: Any) -> Residuals:
        return aligned(estimator.predict(X), np.empty((len(X), self.n_outputs_)))

    def predict_region(
        self, X: Any, alpha: float | None = None, weights: Any = None, groups: Any = None
    ) -> RegionSet:
        """The region of each row.

        Parameters
        ----------
        X
            Features (m, p).
        alpha
            Another miscoverage than that of the fit; coverage holds for it as well.
        weights
            Weight of each row, if the calibration rows had weights.
        groups
            Group of each row, if the calibration rows had groups. An unknown group has no
            calibration rows, and so an infinite region.

        Warns
        -----
        UnboundedRegionWarning
            If a region is everything, with the number of calibration rows that would bound it.
        """
        check_is_fitted(self)
        if getattr(self, "copies_targets_", False):
            raise InputError("the estimator copies every target exactly: no residual varies")
        X = checked_features(self, X, reset=False)
        alpha = check_alpha(self.alpha if alpha is None else alpha)
        if hasattr(self, "fold_rules_"):
            if not (weights is None and groups is None):
                self._check_options(groups=groups, weights=weights)
            folds = tuple(rule.fold(X, self.n_outputs_) for rule in self.fold_rules_)
            law: Law = CrossLaw(folds, alpha)
            _warn_few(law.n, alpha)
        else:
            law = self._one_score_law(X, alpha, weights, groups)
        return RegionSet(law, self.output_names_)

    def _one_score_law(self, X: Any, alpha: float, weights: Any, groups: Any) -> Law:
        prediction, factor = self._predicted(self.estimator_, X), self._factor(X)
        m, known = len(prediction), self.calibration_
        index, weights = known.group_of(groups, m), known.weights_of(weights, m)
        score = self.score_
        if self.method == "full" and getattr(score, "kernel_", None) is not None:
            assert isinstance(score, MultivariateKernelScore)
            _warn_few(len(self.calibration_residuals_), alpha)
            return FullLaw.build(score, self.calibration_residuals_, prediction, alpha, factor)
        law = SplitLaw(score, prediction, alpha, known.calibrations, index, factor, weights)
        known.warn(law, groups, stacklevel=4)
        return law


def _warn_few(n: int, alpha: float) -> None:
    """Warn where n rows are too few for any finite region."""
    if misses_allowed(n, alpha) < 1:
        warn_unbounded(alpha, weighted=False, n=n, stacklevel=4)
