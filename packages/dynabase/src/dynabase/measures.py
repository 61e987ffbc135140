"""How well a forecast or a free-running surrogate matches the truth.

Two kinds. Of one trajectory: `mase`, `valid_time`. Of the invariant properties of a long one, where
point by point comparison is hopeless: `d_stsp` (where in state space), `d_hellinger` (which
frequencies). Two finite samples of the same chaotic system do not give `d_stsp` 0: print the
context's own value beside a model's. And a verbatim copy of a stretch of the context scores well in
all of them: print `itinerary_period` too.
"""

import math
import warnings
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.ndimage import gaussian_filter1d
from scipy.special import logsumexp

from armillary import InputError
from armillary.randomness import RngLike, as_generator

from . import _checks
from .preprocess import location_and_scale

SHORT = 400  # samples below which the smoothed spectra of any two series look alike
MIXTURE_POINTS = 1000


def d_stsp(
    true: Float[np.ndarray, "n d"],
    gen: Float[np.ndarray, "m d"],
    *,
    bins: int | None = None,
    smoothing: float = 1e-5,
    method: Literal["auto", "histogram", "mixture"] = "auto",
    compat: Literal["dynamix"] | None = None,
    rng: RngLike = None,
) -> float:
    """State-space divergence: Kullback-Leibler, of the true from the generated distribution.

    ``sum_b p_b ln(p_b / q_b)`` over a grid of equal bins on the range of `true`, with
    ``p = (count + smoothing) / (total + smoothing * number of bins)``. The bins are closed, as in
    `numpy.histogramdd`; generated points outside are dropped.

    Parameters
    ----------
    true, gen
        Trajectories of the same coordinates. Scale both by the context's mean and deviation.
    bins
        Bins for each coordinate. None: 30 up to three coordinates, 8 for four and five.
    smoothing
        Count added to every bin.
    method
        "histogram", or "mixture": Gaussians around the points, as wide as the standard deviations
        of `true`, by Monte Carlo from 1,000 points. "auto": the histogram up to five coordinates.
    compat
        "dynamix": drop the first bin and the points equal to the maximum, as that code does, to
        compare with its published numbers.
    rng
        Of the Monte Carlo estimate.

    Returns
    -------
    The divergence in nats, >= 0 for histograms; 0 is best.

    Raises
    ------
    InputError
        If an input is empty, holds NaN, or the numbers of coordinates differ.

    Warns
    -----
    UserWarning
        If more than 5 % of the generated points lie outside, since dropping them hides an escape.
    """
    true, gen = _trajectories(true, gen)
    d = true.shape[1]
    if method == "mixture" or (method == "auto" and d > 5):
        return _mixture_divergence(true, gen, as_generator(rng))
    bins = (30 if d <= 3 else 8) if bins is None else _checks.whole(bins, "bins", 1)
    smoothing = _checks.real(smoothing, "smoothing", 0.0)
    if bins**d > 2**62:
        raise InputError(
            "bins",
            found=f"{bins} for each of {d} coordinates",
            expected="a grid of fewer than 2**62 bins",
            instead="method='mixture'",
        )
    edges = [_edges(values, bins) for values in true.T]
    locate = _locate_strictly if compat == "dynamix" else _locate
    p_bins, p_counts = np.unique(locate(true, edges), return_counts=True)
    inside = locate(gen, edges)
    q_bins, q_counts = np.unique(inside, return_counts=True)
    outside = 1 - len(inside) / len(gen)
    if outside > 0.05:
        rest = "taken as spread evenly" if not len(inside) else "dropped"
        warnings.warn(
            f"{outside:.0%} of the generated points lie outside the true ones' range ({rest})",
            UserWarning,
            stacklevel=2,
        )
    return _histogram_divergence(p_bins, p_counts, q_bins, q_counts, bins**d, smoothing)


def d_hellinger(
    true: Float[np.ndarray, "n d"], gen: Float[np.ndarray, "m d"], *, smoothing: float = 20.0
) -> float:
    """Hellinger distance between smoothed power spectra, averaged over coordinates.

    ``sqrt(1 - sum sqrt(p q))``, p and q the power spectra of the z-scored coordinates, smoothed by
    a Gaussian of `smoothing` frequency bins and normalised to sum one.

    Parameters
    ----------
    true, gen
        Trajectories of the same coordinates and sampling; the longer is cut to the shorter.
    smoothing
        Standard deviation of the Gaussian, in frequency bins; 0: none.

    Returns
    -------
    In [0, 1], 0 is best. A coordinate that is constant in one of the two counts 1, in both 0.

    Raises
    ------
    InputError
        If an input is empty, holds NaN, or the numbers of coordinates differ.

    Warns
    -----
    UserWarning
        For fewer than 400 samples: the smoothing then makes any two spectra alike.
    """
    true, gen = _trajectories(true, gen)
    smoothing = _checks.real(smoothing, "smoothing", 0.0)
    n = min(len(true), len(gen))
    if n < SHORT and smoothing > 0:
        warnings.warn(
            f"{n} samples are few for spectra smoothed over {smoothing:g} bins: d_hellinger is "
            f"then small whatever is compared (use {SHORT} or more)",
            UserWarning,
            stacklevel=2,
        )
    return float(
        np.mean(
            [
                _spectral_distance(a, b, smoothing)
                for a, b in zip(true[:n].T, gen[:n].T, strict=True)
            ]
        )
    )


def power_spectrum(
    values: Float[np.ndarray, " n"], smoothing: float = 20.0
) -> Float[np.ndarray, " f"]:
    """Power at the frequencies of `numpy.fft.rfft`, smoothed, with sum one: see `d_hellinger`."""
    spread = values.std()
    if spread == 0:
        raise InputError("values", found="a constant", expected="a series that has a spectrum")
    power = np.abs(np.fft.rfft((values - values.mean()) / spread)) ** 2
    if smoothing > 0:
        power = gaussian_filter1d(power, smoothing)
    return power / power.sum()


def mase(
    *,
    y_true: Float[np.ndarray, "h d"] | Float[np.ndarray, " h"],
    y_pred: Float[np.ndarray, "h d"] | Float[np.ndarray, " h"],
    y_train: Float[np.ndarray, "T d"] | Float[np.ndarray, " T"],
    season: int = 1,
) -> float:
    """Mean absolute scaled error: in units of the seasonal naive forecast's error on `y_train`.

    Parameters
    ----------
    y_true, y_pred
        What followed, and the forecast of it.
    y_train
        The series before; the scale comes from it alone, never from a forecast. NaN is left out.
    season
        Steps that the naive forecast looks back.

    Returns
    -------
    The error, averaged over coordinates; below 1 beats the naive forecast's one-step error.

    Raises
    ------
    InputError
        If shapes differ, a value to compare is NaN, or `y_train` is constant or too short.
    """
    true, pred = _trajectories(y_true, y_pred)
    train = _checks.as_rows(y_train, "y_train", width=true.shape[1])
    season = _checks.whole(season, "season", 1)
    if len(true) != len(pred):
        raise InputError(
            "y_pred", found=f"{len(pred)} rows", expected=f"{len(true)}, as y_true has"
        )
    step = np.abs(train[season:] - train[:-season]) if len(train) > season else train[:0]
    seen = np.isfinite(step)
    scale = np.where(seen, step, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    if (scale == 0).any():
        raise InputError(
            "y_train",
            found="a naive forecast without error",
            expected=f"more than {season} values that are not all equal, to take the scale from",
        )
    return float(np.mean(np.abs(true - pred).mean(axis=0) / scale))


def valid_time(
    true: Float[np.ndarray, "n d"] | Float[np.ndarray, " n"],
    pred: Float[np.ndarray, "n d"] | Float[np.ndarray, " n"],
    threshold: float = 0.4,
) -> int:
    """Steps for which a forecast stays near the truth.

    Parameters
    ----------
    true, pred
        What followed, and the forecast; the longer is cut to the shorter. NaN in `pred` is far.
    threshold
        Error allowed, in units of the truth's root mean square deviation from its mean.

    Returns
    -------
    Number of steps before the error exceeds the threshold; all of them if it never does.
    """
    truth = _checks.as_rows(true, "true")
    forecast = _checks.as_rows(pred, "pred", width=truth.shape[1])
    n = min(len(truth), len(forecast))
    scale = math.sqrt(np.mean(np.sum((truth - truth.mean(axis=0)) ** 2, axis=1))) or 1.0
    error = np.sqrt(np.sum((truth[:n] - forecast[:n]) ** 2, axis=1)) / scale
    far = ~(error <= threshold)
    return int(far.argmax()) if far.any() else n


def itinerary_period(indices: Int[np.ndarray, " n"]) -> int | None:
    """Period into which a sequence of neighbours has settled, or None.

    Parameters
    ----------
    indices
        The neighbours of a rollout (`return_indices=True`).

    Returns
    -------
    The smallest p, at most a quarter of the sequence, with which its second half repeats itself.
    """
    half = np.asarray(indices)[len(indices) // 2 :]
    if not len(half):
        return None
    longest = len(indices) // 4
    for period in len(half) - 1 - np.flatnonzero(half[:-1] == half[-1])[::-1]:
        if period > longest:
            break
        if np.array_equal(half[period:], half[:-period]):
            return int(period)
    return None


def _trajectories(true: np.ndarray, gen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = _checks.as_rows(true, "true")
    second = _checks.as_rows(gen, "gen", width=first.shape[1])
    for name, rows in (("true", first), ("gen", second)):
        if not len(rows):
            raise InputError(name, found="no rows", expected="at least one")
        gaps = np.flatnonzero(np.isnan(rows).any(axis=1))
        if len(gaps):
            raise InputError(
                name,
                where=f"row {gaps[0]}",
                found="NaN",
                expected="finite numbers",
                instead="a forecast that diverged is NaN from there on",
            )
    return first, second


def _edges(values: Float[np.ndarray, " n"], bins: int) -> Float[np.ndarray, " e"]:
    low, high = values.min(), values.max()
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def _locate(points: Float[np.ndarray, "n d"], edges: list[np.ndarray]) -> Int[np.ndarray, " m"]:
    """Flat bin numbers of the points inside closed bins."""
    bins = len(edges[0]) - 1
    flat = np.zeros(len(points), dtype=np.int64)
    inside = np.ones(len(points), dtype=bool)
    for values, edge in zip(points.T, edges, strict=True):
        at = np.searchsorted(edge, values, side="right") - 1
        at[values == edge[-1]] = bins - 1
        inside &= (at >= 0) & (at < bins)
        flat = flat * bins + at
    return flat[inside]


def _locate_strictly(
    points: Float[np.ndarray, "n d"], edges: list[np.ndarray]
) -> Int[np.ndarray, " m"]:
    """As DynaMix's published code does: the bins 0 and `bins` of each coordinate are dropped."""
    bins = len(edges[0]) - 1
    flat = np.zeros(len(points), dtype=np.int64)
    inside = np.ones(len(points), dtype=bool)
    for values, edge in zip(points.T, edges, strict=True):
        at = np.floor(bins * (values - edge[0]) / (edge[-1] - edge[0])).astype(np.int64)
        inside &= (at > 0) & (at < bins)
        flat = flat * bins + at
    return flat[inside]


def _histogram_divergence(
    p_bins: Int[np.ndarray, " a"],
    p_counts: Int[np.ndarray, " a"],
    q_bins: Int[np.ndarray, " b"],
    q_counts: Int[np.ndarray, " b"],
    n_bins: int,
    smoothing: float,
) -> float:
    """Kullback-Leibler divergence from counts of the bins that are not empty."""
    occupied = np.union1d(p_bins, q_bins)
    p, q = np.zeros(len(occupied)), np.zeros(len(occupied))
    p[np.searchsorted(occupied, p_bins)] = p_counts
    q[np.searchsorted(occupied, q_bins)] = q_counts
    p_total, q_total = p.sum() + smoothing * n_bins, q.sum() + smoothing * n_bins
    if p_total == 0 or q_total == 0:
        return math.inf
    p, q = (p + smoothing) / p_total, (q + smoothing) / q_total
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / q), 0.0)
    empty = n_bins - len(occupied)  # all alike: one term, so many times
    rest = empty * smoothing / p_total * math.log(q_total / p_total) if smoothing else 0.0
    return float(terms.sum() + rest)


def _mixture_divergence(
    true: Float[np.ndarray, "n d"], gen: Float[np.ndarray, "m d"], rng: np.random.Generator
) -> float:
    mean, scale = location_and_scale(true)
    true, gen = (true - mean) / scale, (gen - mean) / scale
    points = true[rng.integers(len(true), size=MIXTURE_POINTS)]
    points = points + rng.normal(size=points.shape)
    return float(np.mean(_log_mixture(points, true) - _log_mixture(points, gen)))


def _log_mixture(
    points: Float[np.ndarray, "n d"], centres: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, " n"]:
    """Log density, but for the Gaussians' constant, of the mixture with one centre per row."""
    out = np.empty(len(points))
    for low in range(0, len(points), 50):
        part = points[low : low + 50]
        squared = np.sum((part[:, None] - centres[None]) ** 2, axis=2)
        out[low : low + 50] = logsumexp(-0.5 * squared, axis=1)
    return out - math.log(len(centres))


def _spectral_distance(
    a: Float[np.ndarray, " n"], b: Float[np.ndarray, " n"], smoothing: float
) -> float:
    constant = (np.ptp(a) == 0, np.ptp(b) == 0)
    if any(constant):
        return 0.0 if all(constant) else 1.0
    overlap = np.sum(np.sqrt(power_spectrum(a, smoothing) * power_spectrum(b, smoothing)))
    return math.sqrt(max(0.0, 1 - overlap))
