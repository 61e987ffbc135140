"""Gains from a recording: the closed form against an optimiser, and against what is known."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from armillary import InputError
from dynabase import (
    DynaBase,
    OneStepFit,
    fit_horizon,
    fit_one_step,
    rollout,
    systems,
    theiler_window,
)
from dynabase._recording import Recording
from dynabase.baselines import parrot
from dynabase.fit import Pairs, golden_section, solve, trust_radius


def standard(name, n=700, seed=0):
    rows = systems.generate(name, n, seed=seed)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def deviations(context, w, k=1):
    """e0, v, e1 by the definition, one time after the other."""
    e0, v, e1 = [], [], []
    candidates = np.arange(len(context) - 1 - w)
    for t in range(len(context) - 1):
        allowed = candidates[np.abs(candidates - t) > w]
        distance = np.linalg.norm(context[allowed] - context[t], axis=1)
        order = np.argsort(distance, kind="stable")[:k]
        near = allowed[order]
        weight = np.exp(-distance[order] / distance[order][0])
        weight /= weight.sum()
        now, then = weight @ context[near], weight @ context[near + 1]
        e0.append(context[t] - now)
        v.append(then - now)
        e1.append(context[t + 1] - then)
    return np.array(e0), np.array(v), np.array(e1)


@pytest.mark.parametrize("name", ["lorenz63", "rossler", "dadras", "van_der_pol"])
@pytest.mark.parametrize("k", [1, 4])
def test_closed_form_equals_an_optimiser(name, k):
    context = standard(name, 300)
    w = theiler_window(context)
    e0, v, e1 = deviations(context, w, k)

    def sse(gains):
        return np.sum((e1 - gains[0] * e0 - gains[1] * v) ** 2) / np.sum(e1**2)

    found = minimize(sse, [0.5, 0.0], method="BFGS", options={"gtol": 1e-12})
    fit = fit_one_step(context, theiler=w, n_neighbors=k)
    np.testing.assert_allclose([fit.alpha, fit.beta], found.x, atol=1e-8)
    assert fit.r2 == pytest.approx(1 - found.fun, abs=1e-9)
    assert fit.n_pairs == len(e0)
    assert not fit.degenerate
    alone = minimize(lambda a: sse([a[0], 0.0]), [0.5], method="BFGS", options={"gtol": 1e-12})
    one = fit_one_step(context, theiler=w, beta=False, n_neighbors=k)
    assert one.alpha == pytest.approx(alone.x[0], abs=1e-8)
    assert one.beta == 0.0
    assert np.isnan(one.se_beta)
    assert one.r2 <= fit.r2 + 1e-12


def test_standard_errors_are_as_wide_as_the_scatter(rng):
    """Over 150 noisy repetitions of one design the estimates scatter as the errors say."""
    recording = Recording.of(np.cumsum(rng.normal(size=(300, 2)), axis=0), theiler=4)
    base = Pairs.of(recording, k=1)
    found, errors = [], []
    for _ in range(150):
        noise = rng.normal(size=base.e0.shape)
        target = 0.8 * base.e0 + 0.3 * base.v + noise
        fit = solve([(Pairs(base.times, base.e0, base.v, target), recording.context)])
        found.append([fit.alpha, fit.beta])
        errors.append([fit.se_alpha, fit.se_beta])
    scatter = np.std(found, axis=0)
    # A standard deviation from 150 values is within 1 +- .23 of the truth (4 sigma); the sandwich
    # of 75 blocks is low by a few per cent.
    np.testing.assert_allclose(np.mean(errors, axis=0) / scatter, 1.0, atol=0.27)
    np.testing.assert_allclose(np.mean(found, axis=0), [0.8, 0.3], atol=4 * scatter.max() / 12)


@pytest.mark.parametrize("name", ["lorenz63", "thomas", "chen", "selkov"])
def test_alpha_of_clean_flows_is_near_one(name):
    context = standard(name, 2000)
    fit = fit_one_step(context, theiler=theiler_window(context))
    assert 0.92 <= fit.alpha <= 1.05
    assert abs(fit.beta) <= 0.12


def test_noise_pulls_alpha_down_and_the_result_says_so():
    context = standard("lorenz63", 1500)
    noisy = context + 0.2 * np.random.default_rng(1).normal(size=context.shape)
    fit = fit_one_step(noisy, theiler=15)
    assert fit.alpha < 0.8
    assert "noise" in fit.reading
    assert "noise" not in fit_one_step(context, theiler=15).reading
    # A noisy oscillation, seen through the estimator.
    wave = np.sin(np.arange(300) * 0.4) + 0.4 * np.random.default_rng(2).normal(size=300)
    model = DynaBase(delays=2, n_neighbors=1).fit(wave)
    assert model.one_step_.alpha < 0.8
    assert any("noise" in remark for remark in model.advice_)


def test_exactly_periodic_data_are_degenerate():
    """Without the rule, rounding noise gave alpha = -1.03 on a sampled circle."""
    angle = 2 * np.pi * np.arange(400) / 40
    fit = fit_one_step(np.column_stack([np.cos(angle), np.sin(angle)]), theiler=5)
    assert fit.degenerate
    assert (fit.alpha, fit.beta, fit.r2) == (0.0, 0.0, 1.0)
    assert "exactly" in fit.reading


def test_quantised_noise_is_degenerate_but_not_predictable(rng):
    """All neighbours match exactly and none of them helps: r2 is 0, so that many are averaged."""
    y = rng.integers(0, 3, size=(300, 1)).astype(float)
    fit = fit_one_step(y, theiler=1)
    assert fit.degenerate
    assert fit.r2 == 0.0
    assert DynaBase(delays=1).fit(y[:, 0]).n_neighbors_ == 10


def test_a_negative_alpha_is_reported_raw_and_used_as_zero():
    y = np.tile([1.0, -1.0], 40) + 0.1 * np.random.default_rng(5).normal(size=80)
    raw = fit_one_step(y[:, None], theiler=1, beta=False)
    model = DynaBase("mse", delays=1, n_neighbors=1).fit(y)
    assert raw.alpha < 0
    assert model.one_step_.alpha == pytest.approx(raw.alpha)
    assert (model.alpha_, model.beta_) == (0.0, 0.0)
    both = DynaBase("mse", "mse", delays=1, n_neighbors=1, standardize=False).fit(y)
    _, v, e1 = deviations(y[:, None], 1)
    assert both.one_step_.alpha < 0
    assert both.alpha_ == 0.0
    assert both.beta_ == pytest.approx(np.sum(v * e1) / np.sum(v * v))  # refitted


def test_beta_can_be_fitted_for_a_given_alpha():
    y = standard("dadras", 600)
    model = DynaBase(0.9, "mse", n_neighbors=1, standardize=False).fit(y)
    e0, v, e1 = deviations(y, model.theiler_)
    assert model.alpha_ == 0.9
    assert model.beta_ == pytest.approx(np.sum(v * (e1 - 0.9 * e0)) / np.sum(v * v), abs=1e-9)


def test_horizon_fit_beats_its_grid_neighbours_and_parroting():
    context = standard("lorenz63", 500)
    w = theiler_window(context)
    alpha = fit_horizon(context, 8, theiler=w)
    assert 0 <= alpha <= 1.05
    assert alpha == fit_horizon(context, 8, theiler=w)
    loss = horizon_loss(context, w, 8)
    assert loss(alpha) <= min(loss(other) for other in np.linspace(0, 1.05, 13)[::4]) + 1e-12


def horizon_loss(context, w, h):
    """The objective of Fit 2 by separate rollouts on truncated contexts."""
    origins = np.arange(len(context) // 2, len(context) - h)
    origins = origins[np.linspace(0, len(origins) - 1, 64).round().astype(int)]
    radius = trust_radius(Recording.of(context, theiler=w).context)

    def loss(alpha):
        errors = [
            np.abs(
                rollout(
                    context[: o + 1],
                    h,
                    float(alpha),
                    theiler=w,
                    trust_radius=radius if alpha > 1 else None,
                )
                - context[o + 1 : o + 1 + h]
            ).mean()
            for o in origins
        ]
        return np.mean(errors)

    return loss


def test_horizon_fit_sees_nothing_after_its_origins(rng):
    """Where parroting is perfect before every origin, alpha = 0 is best, whatever comes last."""
    pattern = rng.normal(size=(25, 2))
    context = np.tile(pattern, (16, 1))
    np.testing.assert_array_equal(parrot(context[:380], 20, theiler=3), context[380:])
    assert fit_horizon(context, 4, theiler=3) == 0.0


def test_horizon_origins_can_be_drawn():
    context = standard("lorenz63", 300)
    one, two = (fit_horizon(context, 3, theiler=15, rng=seed) for seed in (1, 1))
    assert one == two


def test_golden_section_closes_in_on_a_minimum():
    seen = golden_section(lambda x: (x - 0.3) ** 2, 0.0, 1.0, 20)
    assert len(seen) == 20
    assert min(seen, key=seen.__getitem__) == pytest.approx(0.3, abs=1e-4)


def test_trust_radius_is_a_quantile_of_neighbour_distances():
    context = standard("lorenz63", 300)
    w = theiler_window(context)
    e0, _, _ = deviations(context, w)
    found = trust_radius(Recording.of(context, theiler=w).context)
    assert found == pytest.approx(np.quantile(np.linalg.norm(e0, axis=1), 0.99))


@pytest.mark.parametrize("n", [4, 5, 8, 19])
def test_white_noise_of_any_length_gives_numbers(n, rng):
    y = rng.normal(size=(n, 1))
    fit = fit_one_step(y, theiler=1)
    assert np.isfinite([fit.alpha, fit.beta, fit.r2]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for alpha in ("mse", "forecast", "reconstruct", 0.3):
            assert np.isfinite(DynaBase(alpha).fit(y[:, 0]).predict(5)).all()


def test_long_recordings_are_thinned_for_choices_only(monkeypatch):
    from dynabase import _model

    monkeypatch.setattr(_model, "AT_MOST", 200)
    context = standard("lorenz63", 900)
    assert DynaBase().fit(context).one_step_.n_pairs == 200
    assert DynaBase("mse").fit(context).one_step_.n_pairs > 800


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: fit_one_step(c[:6], theiler=5), ["6 row(s)", "Theiler window of 5"]),
        (lambda c: fit_one_step(c, theiler=2, n_neighbors=0), ["n_neighbors", "0"]),
        (lambda c: fit_horizon(c, 0, theiler=2), ["h", "0"]),
        (lambda c: fit_horizon(c, 20, theiler=2), ["h", "20", "second half"]),
    ],
)
def test_refusals(call, words, rng):
    with pytest.raises(InputError) as caught:
        call(rng.normal(size=(30, 2)))
    for word in words:
        assert word in str(caught.value)


def test_fits_are_small_records():
    fit = OneStepFit(1.02, 0.0, 0.9, 0.01, float("nan"), 100, False)
    assert fit.reading.startswith("alpha = 1.02: deviations from a neighbour grow by 2.00%")
