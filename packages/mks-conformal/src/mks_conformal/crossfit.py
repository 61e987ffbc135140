"""Out-of-fold residuals, and the CV+ and jackknife+ regions that need no calibration split.

With K folds, models f_k and scores s_k that saw only rows outside fold k, the region at x is

    { y : 1 + sum_i [ s_k(i)(y - f_k(i)(x)) <= s_k(i)(r_i) ] > floor(alpha (n + 1)) }

with coverage at least 1 - 2 alpha - min{ 2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1) } (Barber,
Candes, Ramdas & Tibshirani 2021). The residuals that s_k is fitted on come from an inner K-fold
within the rows outside fold k: plain out-of-fold residuals of the other folds will not do,
because their models were trained on fold k.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from joblib import Parallel, delayed
from sklearn.base import clone

from armillary import InputError

from .body import Body, thin
from .checks import as_rows
from .conformal import Calibration, misses_allowed
from .fitted import RADIUS_INFLATION, ResidualScore, as_score
from .law import Factor, Points, Rows, Values, scaled, taken
from .scaling import checked_factor
from .shape import Shape
from .whitening import proposal_whitening

__all__ = [
    "CrossLaw",
    "Fold",
    "FoldRule",
    "aligned",
    "cross_guarantee",
    "fit_fold_rules",
    "fitted_estimator",
    "folds_of",
    "out_of_fold",
    "rows_of",
    "without_rounding",
]

Index = Int[np.ndarray, " k"]
Split = tuple[np.ndarray, np.ndarray]  # rows to learn from, rows held out


def rows_of(data: Any, rows: Index) -> Any:
    """Rows of an array or a table."""
    return data.iloc[rows] if hasattr(data, "iloc") else np.asarray(data)[rows]


def aligned(prediction: Any, target: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Predictions in the shape of the targets.

    One column may come as a vector; anything else that is not the targets' shape is refused,
    since broadcasting would pair every prediction with every target.

    Raises
    ------
    InputError
        With both shapes.
    """
    n, d = target.shape
    shape = np.asarray(prediction).shape
    if shape not in {(n, d), (n,) if d == 1 else (n, d)}:
        raise InputError(
            f"the estimator predicts shape {shape} for {n} rows of {d} output(s)",
            instead=f"it must predict shape {(n, d)}, one column for each target",
        )
    return as_rows(np.reshape(np.asarray(prediction), (n, d)), "predictions")


def without_rounding(
    residuals: Float[np.ndarray, "m d"], target: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, "m d"]:
    """Residuals with every output that is constant but for rounding made exactly constant."""
    noise = np.ptp(residuals, axis=0) <= 1e-12 * np.abs(target).max(axis=0, initial=0.0)
    return np.where(noise, residuals[:1], residuals)


def folds_of(n: int, k: int, rng: np.random.Generator) -> list[Split]:
    """K random folds as (rows to learn from, rows held out); at most n of them."""
    order = rng.permutation(n)
    held = [np.sort(part) for part in np.array_split(order, min(k, n))]
    return [(np.setdiff1d(np.arange(n), part), part) for part in held]


def fitted_estimator(
    estimator: Any, X: Any, Y: Any, rows: Index, params: dict[str, Any], n: int
) -> Any:
    """A clone fitted on some rows; array-like parameters of n rows follow them."""
    own = {key: _follow(value, rows, n) for key, value in params.items()}
    copy: Any = clone(estimator)
    return copy.fit(rows_of(X, rows), rows_of(Y, rows), **own)


def _follow(value: Any, rows: Index, n: int) -> Any:
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != n:
        return value
    return rows_of(value, rows)


def out_of_fold(
    estimator: Any,
    X: Any,
    Y: Any,
    targets: Float[np.ndarray, "n d"],
    splits: Sequence[Split],
    params: dict[str, Any],
    n_jobs: int | None,
) -> Float[np.ndarray, "n d"]:
    """Residuals of every row from a model that did not see it; 0 for rows in no fold."""

    def held_out(split: Split) -> Float[np.ndarray, "k d"]:
        learn, held = split
        model = fitted_estimator(estimator, X, Y, learn, params, len(targets))
        return targets[held] - aligned(model.predict(rows_of(X, held)), targets[held])

    parts: Any = Parallel(n_jobs=n_jobs)(delayed(held_out)(split) for split in splits)
    out = np.zeros_like(targets)
    for (_, held), part in zip(splits, parts, strict=True):
        out[held] = part
    return out


def cross_guarantee(n: int, k: int, alpha: float) -> float:
    """The proven coverage of CV+ with k folds; k = n is jackknife+ with 1 - 2 alpha."""
    slack = min(2.0 * (1.0 - 1.0 / k) / (n / k + 1.0), (1.0 - k / n) / (k + 1.0))
    return max(0.0, 1.0 - 2.0 * alpha - slack)


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold's rule with its predictions, and factors if any, for m rows."""

    rule: ResidualScore
    calibration: Calibration
    prediction: Float[np.ndarray, "m d"]
    factor: Factor | None = None

    def not_below(self, points: Points, rows: Rows) -> Int[np.ndarray, " k"]:
        """How many rows of the fold score at least as much as each point."""
        scores = self.rule.score_samples(scaled(points, rows, self.prediction, self.factor))
        return self.calibration.not_below(scores)

    def not_below_at_infinity(self) -> int:
        """The same for a point far away, where a bounded score has its plateau."""
        far = self.rule.far()
        if far is None or not far.flat:
            return 0
        return int(self.calibration.not_below(np.array([far.constant]))[0])


@dataclass(frozen=True, eq=False)
class FoldRule:
    """One fold: its model, the shape of its residuals, the scores of the rows it held out."""

    estimator: Any
    shape: Shape
    calibration: Calibration

    def fold(self, X: Any, d: int) -> Fold:
        """The rule at m rows."""
        prediction = aligned(self.estimator.predict(X), np.empty((len(X), d)))
        factor = self.shape.scale
        if factor is not None:
            factor = checked_factor(factor.factor(X), len(X), d)
        return Fold(self.shape.score, self.calibration, prediction, factor)


ShapeOf = Callable[[Any, Float[np.ndarray, "n d"], np.random.Generator], Shape]


def fit_fold_rules(
    estimator: Any,
    X: Any,
    Y: Any,
    targets: Float[np.ndarray, "n d"],
    shape_of: ShapeOf,
    k: int,
    inner: int,
    params: dict[str, Any],
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[FoldRule, ...]:
    """Models and scores of k folds; what fits a score is `inner`-fold within the other folds."""
    splits = folds_of(len(targets), k, rng)

    def one(split: Split, own: np.random.Generator) -> FoldRule:
        learn, held = split
        within = [(learn[a], learn[b]) for a, b in folds_of(len(learn), inner, own)]
        residuals = out_of_fold(estimator, X, Y, targets, within, params, 1)[learn]
        residuals = without_rounding(residuals, targets)
        shape = shape_of(rows_of(X, learn), residuals, own)
        model = fitted_estimator(estimator, X, Y, learn, params, len(targets))
        shape = Shape(shape.scale, as_score(shape.score, residuals))
        unseen = FoldRule(model, shape, Calibration(np.empty(0)))
        fold = unseen.fold(rows_of(X, held), targets.shape[1])
        rest = scaled(targets[held], np.arange(len(held)), fold.prediction, fold.factor)
        scores = shape.score.score_samples(rest)
        return FoldRule(model, shape, Calibration(scores, None, shape.score.resolution_))

    jobs = zip(splits, rng.spawn(len(splits)), strict=True)
    rules: Any = Parallel(n_jobs=n_jobs)(delayed(one)(split, own) for split, own in jobs)
    return tuple(rules)


@dataclass(frozen=True, eq=False)
class CrossLaw:
    """CV+ around the predictions of all fold models."""

    folds: tuple[Fold, ...]
    alpha: float

    @property
    def n(self) -> int:
        """Rows of all folds."""
        return sum(len(fold.calibration) for fold in self.folds)

    @property
    def prediction(self) -> Float[np.ndarray, "m d"]:
        """Mean of the fold models' predictions."""
        return np.mean([fold.prediction for fold in self.folds], axis=0)

    @property
    def guarantee(self) -> float:
        """The proven coverage; the usual one is near 1 - alpha."""
        return cross_guarantee(self.n, len(self.folds), self.alpha)

    def take(self, rows: Rows) -> "CrossLaw":
        """The law of some of its rows."""
        folds = tuple(
            replace(fold, prediction=fold.prediction[rows], factor=taken(fold.factor, rows))
            for fold in self.folds
        )
        return replace(self, folds=folds)

    def score(self, points: Points, rows: Rows) -> Values:  # noqa: ARG002
        """Refused: each fold has a score of its own."""
        raise InputError("there is no single score with cv+", instead="use pvalue or contains")

    def _counts(self, points: Points, rows: Rows) -> Int[np.ndarray, " k"]:
        return np.sum([fold.not_below(points, rows) for fold in self.folds], axis=0)

    def pvalue(self, points: Points, rows: Rows) -> Values:
        """(1 + number of rows whose score is reached) / (n + 1)."""
        return (1.0 + self._counts(points, rows)) / (self.n + 1.0)

    def inside(self, points: Points, rows: Rows) -> Bool[np.ndarray, " k"]:
        """Whether each point belongs to the region of its row."""
        return 1 + self._counts(points, rows) > misses_allowed(self.n, self.alpha)

    def thresholds(self) -> None:
        """None: there is no single score."""
        return

    def body(self, row: int) -> Body:
        """The region of one row: looked for around every fold model's prediction."""
        one = self.take(np.array([row]))
        heads = []
        for fold in one.folds:
            residuals = thin(fold.rule.references_)
            if fold.factor is not None:
                residuals = residuals @ fold.factor[0].T
            heads.append(fold.prediction[0] + residuals)
        references = np.concatenate(heads)
        white = proposal_whitening(references)
        far = sum(fold.not_below_at_infinity() for fold in self.folds)

        def inside(points: Points) -> Bool[np.ndarray, " k"]:
            return one.inside(points, np.zeros(len(points), dtype=int))

        return Body(
            inside=inside,
            references=thin(references),
            whitening=white,
            radius=RADIUS_INFLATION * float(np.linalg.norm(white(references), axis=1).max()),
            bounded=1 + far <= misses_allowed(self.n, self.alpha),
        )
