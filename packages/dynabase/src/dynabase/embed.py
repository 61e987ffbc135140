"""Time scales of a series, and delay vectors built from them.

A delay vector ``v_t = (y_t, y_{t-tau}, ..., y_{t-(m-1)tau})`` holds what a single coordinate knows
of the state (Takens). The newest values come first; several coordinates are stacked lag by lag.
"""

import numpy as np
from jaxtyping import Float

from armillary import InputError

from . import _checks


def autocorrelation(x: Float[np.ndarray, "T d"]) -> Float[np.ndarray, "T d"]:
    """Autocorrelation of each coordinate at lags 0 to T - 1, biased, by FFT: O(T log T).

    A constant coordinate gives NaN. Gaps count as zeros after centring, and each lag is divided by
    its own number of pairs: with none missing this is the usual biased estimate.
    """
    n = len(x)
    seen = np.isfinite(x)
    count = np.maximum(seen.sum(axis=0), 1)
    centred = np.where(seen, x, 0.0)
    centred = np.where(seen, centred - centred.sum(axis=0) / count, 0.0)
    # A constant with rounding noise around its mean is still a constant.
    spread, scale = np.abs(centred).max(axis=0), np.where(seen, np.abs(x), 0.0).max(axis=0)
    centred[:, spread <= 1e-14 * scale] = 0.0
    size = 1 << (2 * n - 1).bit_length()
    products = _lagged_products(centred, size, n)
    if seen.all():
        pairs = (n - np.arange(n, dtype=float))[:, None]
    else:
        pairs = np.round(_lagged_products(seen.astype(float), size, n))
    with np.errstate(invalid="ignore", divide="ignore"):
        covariance = np.where(pairs > 0, products / pairs, 0.0)
        covariance *= (n - np.arange(n, dtype=float))[:, None] / n
        return covariance / covariance[0]


def theiler_window(x: Float[np.ndarray, "T d"] | Float[np.ndarray, " T"]) -> int:
    """Samples over which a series remembers itself: closer neighbours are neighbours in time only.

    The first lag at which the autocorrelation of a coordinate falls below 1/e, the largest over the
    coordinates that are not constant, clipped to [1, max(1, T // 10)].

    Parameters
    ----------
    x
        The series; NaN marks a gap.

    Returns
    -------
    The window w, in samples.

    Examples
    --------
    >>> theiler_window(np.sin(np.arange(400) * 2 * np.pi / 40))
    8
    """
    rows = _checks.as_rows(x, "x")
    longest = max(1, len(rows) // 10)
    # No lag beyond the longest can matter, but all of them come from one transform.
    correlation = autocorrelation(rows)[: longest + 1]
    below = correlation < np.exp(-1)
    first = np.where(below.any(axis=0), below.argmax(axis=0), longest)
    first = first[~np.isnan(correlation[0])]
    return int(np.clip(first.max(initial=1), 1, longest))


def delay_embed(
    y: Float[np.ndarray, "T d"] | Float[np.ndarray, " T"], m: int, tau: int
) -> Float[np.ndarray, "n D"]:
    """Delay vectors of a series, one per time from (m - 1) tau on.

    Parameters
    ----------
    y
        The series, shape (T,) or (T, d).
    m, tau
        Number of values of each coordinate, and the samples between them.

    Returns
    -------
    Shape (T - (m - 1) tau, m d): first the d newest values, then those tau older, and so on.

    Raises
    ------
    InputError
        If the series is shorter than one delay vector.

    Examples
    --------
    >>> delay_embed(np.arange(5.0), 2, 2)
    array([[2., 0.],
           [3., 1.],
           [4., 2.]])
    """
    rows = _checks.as_rows(y, "y")
    m, tau = _checks.whole(m, "m", at_least=1), _checks.whole(tau, "tau", at_least=1)
    n = len(rows) - (m - 1) * tau
    if n < 1:
        raise InputError(
            "y",
            found=f"{len(rows)} row(s)",
            expected=f"at least {(m - 1) * tau + 1} for {m} delays {tau} samples apart",
            instead=f"at most {(len(rows) - 1) // tau + 1} delay(s) fit" if len(rows) else None,
        )
    newest = (m - 1) * tau
    return np.concatenate([rows[newest - j * tau : newest - j * tau + n] for j in range(m)], axis=1)


def _lagged_products(x: Float[np.ndarray, "T d"], size: int, n: int) -> Float[np.ndarray, "n d"]:
    power = np.abs(np.fft.rfft(x, size, axis=0)) ** 2
    return np.fft.irfft(power, size, axis=0)[:n]
