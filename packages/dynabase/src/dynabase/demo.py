"""The demo: a chaotic system run on from a short recording, and a year of El Nino forecast."""

import numpy as np
from jaxtyping import Float

from armillary.files import write_csv
from armillary.run import Run

from . import recordings, systems
from ._map import rollout
from .baselines import seasonal_naive
from .embed import theiler_window
from .figures import attractor_figure, forecast_figure, spectrum_figure
from .forecaster import DynaBase
from .measures import d_hellinger, d_stsp, itinerary_period, mase

GIVEN, FOLLOWED = 2_000, 5_000
Rows = Float[np.ndarray, "T d"]
Scores = tuple[float, float, int | None]  # D_stsp, D_H, period of the itinerary
ALPHAS = {"parrot": 0.0, "forecast": 0.95, "reconstruct": 1.005}
RUNS = 5  # trajectories: one alone can show a factor of 2 either way
ORIGINS, MONTHS = 12, 12


def demo(run: Run) -> None:
    """Reconstruct Lorenz-63 at three alphas, and forecast sea temperatures with intervals."""
    _reconstruct(run)
    _forecast(run)


def _reconstruct(run: Run) -> None:
    seeds = [RUNS * run.seed + number for number in range(RUNS)]
    runs = [_run_on(seed) for seed in run.progress(seeds, description="Lorenz-63")]
    context, target, _, orbits = runs[0]
    rows: list[dict[str, object]] = []
    for name in runs[0][2]:
        found = np.array([scores[name][:2] for _, _, scores, _ in runs])
        cycles = sum(scores[name][2] is not None for _, _, scores, _ in runs)
        (d, h), low, high = np.median(found, axis=0), found[:, 0].min(), found[:, 0].max()
        rows.append(
            {
                "map": name,
                "alpha": ALPHAS.get(name),
                "D_stsp": d,
                "range": f"{low:.2f} .. {high:.2f}",
                "D_H": h,
                "ends in a cycle": f"{cycles} of {RUNS}" if name in ALPHAS else "-",
            }
        )
        run.metrics[f"d_stsp_{name.split()[-1]}"] = float(d)
    run.table(
        rows,
        f"Lorenz-63 run on for {FOLLOWED:,} steps from {GIVEN:,} samples: medians of {RUNS} "
        "trajectories",
    )
    run.figure(
        attractor_figure(orbits, ["x", "y", "z"]),
        "attractors",
        f"Lorenz-63, x against z, the first of {RUNS} trajectories. From {GIVEN:,} samples, with "
        "no training, the map runs on: with alpha below 1 it settles on stretches of the samples, "
        "with alpha just above 1 it does not.",
    )
    run.figure(
        spectrum_figure(dict(list(orbits.items())[::3]), ["x", "y", "z"]),
        "spectra",
        "Power spectra of what followed and of the run with alpha = 1.005, smoothed over 20 bins.",
    )
    names = ["t", "x", "y", "z"]
    dt = systems.SYSTEMS["lorenz63"].dt
    whole = np.concatenate([context, target])
    times = np.round(dt * np.arange(len(whole)), 4)
    write_csv(
        run.path("lorenz63.csv", "The recording, to try the command on."),
        [
            dict(zip(names, (t, *row), strict=True))
            for t, row in zip(times.tolist(), whole.tolist(), strict=True)
        ],
    )


def _run_on(seed: int) -> tuple[Rows, Rows, dict[str, Scores], dict[str, Rows]]:
    """Context, what followed, the scores of each map, and the orbits, of one trajectory."""
    context, target = systems.split("lorenz63", seed=seed)
    mean, scale = context.mean(axis=0), context.std(axis=0)
    given, truth = (context - mean) / scale, (target - mean) / scale
    theiler = theiler_window(given)
    radius = DynaBase("reconstruct").fit(context).trust_radius_
    scores: dict[str, Scores] = {}
    orbits = {f"what followed ({FOLLOWED:,} samples)": target}
    for name, alpha in ALPHAS.items():
        free, index = rollout(
            given,
            FOLLOWED,
            alpha,
            theiler=theiler,
            trust_radius=radius if alpha > 1 else None,
            return_indices=True,
        )
        orbits[f"{name} (alpha = {alpha:g})"] = free * scale + mean
        scores[name] = (d_stsp(truth, free), d_hellinger(truth, free), itinerary_period(index))
    scores["the context itself"] = (d_stsp(truth, given), d_hellinger(truth, given), None)
    return context, target, scores, orbits


def _forecast(run: Run) -> None:
    y = recordings.load("elnino")
    cuts = np.linspace(0.6 * len(y), len(y) - MONTHS, ORIGINS).astype(int)
    found = [DynaBase().fit(y[:cut]).predict_interval(MONTHS, 0.9) for cut in cuts]
    truths = [y[cut : cut + MONTHS] for cut in cuts]
    covered = np.mean([(f.lower <= t) & (t <= f.upper) for f, t in zip(found, truths, strict=True)])
    made = {
        "dynabase": [each.forecast for each in found],
        "seasonal naive": [seasonal_naive(y[:cut], MONTHS, 12) for cut in cuts],
    }
    errors = {
        name: np.mean(
            [
                mase(y_true=truth, y_pred=forecast, y_train=y[:cut])
                for forecast, truth, cut in zip(forecasts, truths, cuts, strict=True)
            ]
        )
        for name, forecasts in made.items()
    }
    rows: list[dict[str, object]] = [
        {"forecast": name, "MASE": float(error)} for name, error in errors.items()
    ]
    rows[0]["covered by 90 % intervals"] = f"{covered:.0%}"
    run.metrics |= {"mase_elnino": rows[0]["MASE"], "coverage_elnino": covered}
    run.table(rows, f"Sea surface off Peru, {MONTHS} months ahead from {ORIGINS} origins")
    years = 1950 + np.arange(len(y)) / 12
    last = cuts[-1]
    shown = {
        "name": "El Nino region 1+2",
        "unit": "year",
        "quantity": "sea surface (degrees C)",
        "time": years[last - 96 : last],
        "past": y[last - 96 : last],
        "ahead": years[last:],
        "forecast": found[-1].forecast,
        "lower": found[-1].lower,
        "upper": found[-1].upper,
        "truth": truths[-1],
    }
    run.figure(
        forecast_figure([shown], 0.9),
        "elnino",
        "Sea surface temperature forecast for a year from the 60 before, with what followed.",
    )
    place = run.path("elnino.csv", "The series, to try the command on.")
    place.write_bytes(recordings.path("elnino").read_bytes())
