"""Delay vectors, the Theiler window, and the choice of the delays' number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.stattools import acf

from armillary import InputError
from dynabase import delay_embed, systems, theiler_window
from dynabase._choose import choose_delays, delay_step
from dynabase._recording import Recording
from dynabase.embed import autocorrelation
from dynabase.fit import one_step_errors


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 60), d=st.integers(1, 3), m=st.integers(1, 5), tau=st.integers(1, 6))
def test_delay_vectors_equal_a_naive_loop(n, d, m, tau):
    y = np.arange(n * d, dtype=float).reshape(n, d)
    if (m - 1) * tau >= n:
        with pytest.raises(InputError, match="delays"):
            delay_embed(y, m, tau)
        return
    expected = [
        [y[t - j * tau, c] for j in range(m) for c in range(d)] for t in range((m - 1) * tau, n)
    ]
    np.testing.assert_array_equal(delay_embed(y, m, tau), expected)


def test_too_short_says_how_many_delays_fit():
    with pytest.raises(InputError, match="at most 3 delay"):
        delay_embed(np.arange(9.0), 4, 3)


@pytest.mark.parametrize("n", [30, 257, 1000])
def test_autocorrelation_equals_statsmodels(n, rng):
    x = np.cumsum(rng.normal(size=(n, 2)), axis=0) + 100
    for at in range(2):
        expected = acf(x[:, at], nlags=n - 1, fft=False, adjusted=False)
        np.testing.assert_allclose(autocorrelation(x)[:, at], expected, atol=1e-10)


def test_autocorrelation_with_gaps_is_the_definition(rng):
    x = np.cumsum(rng.normal(size=(120, 1)), axis=0)
    x[rng.random(120) < 0.3] = np.nan
    centred = np.nan_to_num(x[:, 0] - np.nanmean(x))
    seen = np.isfinite(x[:, 0])
    covariance = [
        (centred[: 120 - k] @ centred[k:])
        / max((seen[: 120 - k] & seen[k:]).sum(), 1)
        * (120 - k)
        / 120
        for k in range(120)
    ]
    expected = np.array(covariance) / covariance[0]
    np.testing.assert_allclose(autocorrelation(x)[:, 0], expected, atol=1e-10)


def test_gaps_do_not_shorten_the_memory(rng):
    """Zeros in place of gaps would: the window then halves when half the rows are missing."""
    x = systems.generate("lorenz63", 4000)
    gapped = x.copy()
    gapped[rng.random(4000) < 0.45] = np.nan
    assert abs(theiler_window(gapped) - theiler_window(x)) <= 1


def test_window_is_the_first_lag_below_1_over_e():
    x = systems.generate("rossler", 2000)
    below = [
        int(np.argmax(acf(x[:, at], nlags=200, adjusted=False) < np.exp(-1))) for at in range(3)
    ]
    assert theiler_window(x) == max(below)


@pytest.mark.parametrize(
    ("x", "window"),
    [
        (np.tile([1.0, -1.0], 50), 1),
        (np.full(100, 3.3), 1),
        (np.full((100, 2), 0.1), 1),
        (np.arange(100.0), 10),  # never below: clipped to T // 10
        (np.arange(5.0), 1),
        (np.array([1.0]), 1),
    ],
)
def test_window_of_awkward_series(x, window):
    assert theiler_window(x) == window


def test_constant_coordinates_do_not_count(rng):
    x = np.column_stack([np.full(500, 0.1), np.sin(np.arange(500) * 0.1)])
    assert theiler_window(x) == theiler_window(x[:, 1])


def test_delay_step_is_a_quarter_of_a_long_memory():
    assert [delay_step(w) for w in (1, 8, 9, 12, 40)] == [1, 1, 2, 3, 10]


def test_delays_are_the_fewest_within_two_per_cent(rng):
    """The choice by its definition: errors of every m over the times that all of them have."""
    y = systems.generate("lorenz63", 500)[:, :1]
    tau, w = 3, 12
    errors = {}
    for m in range(1, 13):
        times, squared = one_step_errors(Recording.of(y, m=m, tau=tau, theiler=w), k=1)
        errors[m] = dict(zip((times + (m - 1) * tau).tolist(), squared, strict=True))
    common = set.intersection(*(set(each) for each in errors.values()))
    total = {m: sum(each[t] for t in common) for m, each in errors.items()}
    best = min(total.values())
    expected = min(m for m in total if total[m] <= 1.02 * best)
    assert choose_delays(y, tau=tau, theiler=w) == expected
    assert expected > 1


def test_short_series_have_few_delays(rng):
    assert choose_delays(rng.normal(size=(21, 1)), tau=1, theiler=1) <= 2
    assert choose_delays(rng.normal(size=(12, 1)), tau=1, theiler=1) == 1
