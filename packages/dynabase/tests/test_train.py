"""Pooled training: the objectives by their definitions, and the presets held to them."""

import numpy as np
import pytest

from armillary import InputError
from dynabase import (
    PRESETS,
    DynaBase,
    d_hellinger,
    d_stsp,
    fit_one_step,
    rollout,
    systems,
    theiler_window,
    train,
)
from dynabase._recording import Recording
from dynabase._train import GRID
from dynabase.fit import trust_radius


@pytest.fixture(scope="module")
def pairs():
    return [
        systems.split(name, n_context=250, n_target=300) for name in ("lorenz63", "van_der_pol")
    ]


def scaled(context, target):
    mean, sd = context.mean(axis=0), context.std(axis=0)
    return (context - mean) / sd, (target - mean) / sd


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_reconstruction_objective_is_the_definition(pairs):
    result = train(pairs, refine=False)
    assert [row["alpha"] for row in result.table] == sorted(GRID)
    for row in result.table[::5]:
        alpha, losses = row["alpha"], []
        for pair in pairs:
            context, target = scaled(*pair)
            w = theiler_window(context)
            radius = trust_radius(Recording.of(context, theiler=w).context) if alpha > 1 else None
            path = rollout(context, len(target), alpha, theiler=w, trust_radius=radius)
            losses.append(d_stsp(target, path) + 10 * d_hellinger(target, path))
        assert row["loss"] == pytest.approx(np.median(losses), rel=1e-9)
    best = min(result.table, key=lambda row: row["loss"])
    assert (result.alpha, result.beta) == (best["alpha"], 0.0)
    assert result.n_pairs == 2


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refinement_only_improves(pairs):
    short = [(pairs[0][0][:200], pairs[0][1][:30])]
    coarse = train(short, refine=False)
    fine = train(short, refine=True)
    assert 0 < len(fine.table) - len(coarse.table) <= 40
    losses = [min(row["loss"] for row in each.table) for each in (coarse, fine)]
    assert losses[1] <= losses[0]
    assert train(short, refine=True) == fine


@pytest.mark.slow
def test_jobs_change_nothing(pairs):
    one, two = (train(pairs, "horizon", horizon=5, refine=False, jobs=j) for j in (1, 2))
    assert one == two


def test_horizon_objective_is_the_definition(pairs):
    result = train(pairs, "horizon", horizon=10, refine=False)
    row = next(row for row in result.table if row["alpha"] == 0.9)
    ratios = []
    for pair in pairs:
        context, target = scaled(*pair)
        w = theiler_window(context)
        origins = np.linspace(0, 289, 50).round().astype(int)
        truth = np.stack([target[o + 1 : o + 11] for o in origins], axis=1)
        errors = [
            np.abs(rollout(context, 10, alpha, z0=target[origins], theiler=w) - truth).mean()
            for alpha in (0.9, 0.0)
        ]
        ratios.append(errors[0] / errors[1])
    assert row["loss"] == pytest.approx(np.median(ratios), rel=1e-9)
    assert next(r for r in result.table if r["alpha"] == 0)["loss"] == 1.0


def test_pooled_one_step_fit_of_one_pair_is_its_own(pairs):
    context, _ = scaled(*pairs[0])
    alone = fit_one_step(context, theiler=theiler_window(context))
    result = train(pairs[:1], "mse")
    assert (result.alpha, result.beta) == (alone.alpha, alone.beta)
    both = train(pairs, "mse")
    assert both.alpha != alone.alpha


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_in_context_reconstruction_takes_the_best_of_the_grid():
    context = systems.generate("lorenz63", 150)
    model = DynaBase("dsr", n_neighbors=1, standardize=False).fit(context)
    w, radius = model.theiler_, trust_radius(Recording.of(context, theiler=model.theiler_).context)
    starts = context[np.ceil(np.linspace(0.05, 0.7, 4) * 150).astype(int)]
    losses = {}
    for alpha in GRID:
        guard = radius if alpha > 1 else None
        paths = rollout(context, 150, alpha, z0=starts, theiler=w, trust_radius=guard)
        runs = [
            d_stsp(context, path) + 10 * d_hellinger(context, path) for path in paths.swapaxes(0, 1)
        ]
        losses[alpha] = np.median(runs)
    assert model.alpha_ == min(losses, key=losses.__getitem__)


@pytest.mark.parametrize("delays", [1, 4])
def test_in_context_reconstruction_of_one_coordinate_with_gaps(delays):
    y = systems.generate("lorenz63", 130)[:, 0]
    y[40:43] = np.nan
    assert DynaBase("dsr", delays=delays, n_neighbors=1).fit(y).alpha_ in GRID


def test_many_coordinates_use_the_mixture():
    wide = np.concatenate([systems.generate("lorenz63", 160), systems.generate("rossler", 160)], 1)
    pair = (wide[:100], wide[100:])
    one, two = (train([pair], refine=False, rng=0) for _ in range(2))
    assert one == two


@pytest.mark.unchecked
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: train([]), ["pairs", "at least one"]),
        (lambda p: train(p, "mae"), ["objective", "'dsr'"]),
        (lambda p: train(p, "horizon"), ["horizon", "None"]),
        (lambda p: train(p, "horizon", horizon=300), ["horizon", "300"]),
        (lambda p: train([(p[0][0], p[1][1])]), ["target", "2 coordinate"]),
        (lambda p: train([(p[0][0][:2], p[0][1])]), ["context"]),
    ],
)
def test_refusals(make, words, pairs):
    with pytest.raises(InputError) as caught:
        make(pairs)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.slow
@pytest.mark.unchecked
def test_presets_are_what_training_gives():
    """The twelve systems, five seeds: the best alpha of each objective, or as good as it."""
    made = [systems.split(name, seed=seed) for name in systems.SYSTEMS for seed in range(5)]
    dsr = {row["alpha"]: row["loss"] for row in train(made, "dsr", refine=False).table}
    best = min(dsr, key=dsr.__getitem__)
    assert 1.0 <= best <= 1.0125
    assert dsr[PRESETS["reconstruct"][0]] <= 1.1 * dsr[best]
    assert dsr[0] > 1.2 * dsr[best]
    ahead = {
        row["alpha"]: row["loss"] for row in train(made, "horizon", horizon=50, refine=False).table
    }
    best = min(ahead, key=ahead.__getitem__)
    assert 0.8 <= best <= 0.98
    assert ahead[PRESETS["forecast"][0]] <= 1.02 * ahead[best]
