"""The demo: a chaotic system run on from a short recording, and a year of El Nino forecast."""

import numpy as np

from armillary.files import write_csv
from armillary.run import Run

from . import recordings, systems
from ._map import rollout
from .baselines import seasonal_naive
from .embed import theiler_window
from .figures import attractor_figure, forecast_figure, spectrum_figure
from .fit import fit_one_step
from .forecaster import DynaBase
from .measures import d_hellinger, d_stsp, itinerary_period, mase

GIVEN, FOLLOWED = 2_000, 5_000
ALPHAS = {"parrot": 0.0, "forecast": 0.95, "reconstruct": 1.005}
SEED = 2  # of the trajectory; --seed moves it
ORIGINS, MONTHS = 12, 12


def demo(run: Run) -> None:
    """Reconstruct Lorenz-63 at three alphas, and forecast sea temperatures with intervals."""
    _reconstruct(run)
    _forecast(run)


def _reconstruct(run: Run) -> None:
    context, target = systems.split("lorenz63", seed=SEED + run.seed)
    mean, scale = context.mean(axis=0), context.std(axis=0)
    given, truth = (context - mean) / scale, (target - mean) / scale
    theiler = theiler_window(given)
    fit = fit_one_step(given, theiler=theiler)
    radius = DynaBase("reconstruct").fit(context).trust_radius_
    rows, orbits = [], {f"what followed ({FOLLOWED:,} samples)": target}
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
        rows.append(
            {
                "map": name,
                "alpha": alpha,
                "D_stsp": d_stsp(truth, free),
                "D_H": d_hellinger(truth, free),
                "period": itinerary_period(index),
            }
        )
    own = {"map": "the context itself", "D_stsp": d_stsp(truth, given)}
    rows.append({**own, "D_H": d_hellinger(truth, given)})
    run.metrics |= {f"d_stsp_{row['map'].split()[-1]}": row["D_stsp"] for row in rows}
    run.metrics["one_step_alpha"] = fit.alpha
    run.table(rows, f"Lorenz-63 run on for {FOLLOWED:,} steps from {GIVEN:,} samples")
    run.figure(
        attractor_figure(orbits, ["x", "y", "z"]),
        "attractors",
        f"Lorenz-63, x against z. From {GIVEN:,} samples, with no training, the map runs on: a "
        "parrot falls into a cycle of old stretches, alpha just above 1 does not.",
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
