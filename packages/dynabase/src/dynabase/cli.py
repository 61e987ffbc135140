"""The command `dynabase`: signatures, help and printing; the work is in the other modules."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from armillary import InputError
from armillary.cli import Common, CommonOptions, command
from armillary.run import Run

from ._verbs import (
    ALL,
    AUTO,
    Alpha,
    Beta,
    Goal,
    MapArgument,
    Several,
    TableArgument,
    checkpoint,
    chosen_columns,
    describe,
    draw_forecasts,
    map_params,
    read,
)
from .method import METHOD

main = command(METHOD)

SHOWN = 20  # rows of a table on the screen


def forecast(
    file: Path,
    /,
    *,
    horizon: int,
    alpha: Alpha = "forecast",
    beta: Beta = 0.0,
    coverage: Literal["none"] | float = 0.9,
    plot: bool = False,
    resume: bool = False,
    columns: TableArgument = ALL,
    settings: MapArgument = AUTO,
    common: CommonOptions = Common(),
) -> None:
    """Forecast one series or many from a table.

    Writes `forecast.csv` with the columns `unique_id`, `ds`, `step`, the targets, and the ends of
    their intervals (`y_lo_90`, `y_hi_90`).

    Parameters
    ----------
    file
        CSV or Parquet, wide (a column of time, one for each variable) or long (unique_id, ds, y);
        or an array in .npy or .npz.
    horizon
        Steps to forecast.
    alpha
        Deviation gain: a preset, a fit to each series (mse, horizon, dsr), or a number.
    beta
        Velocity gain, or mse to fit it.
    coverage
        Of the interval of each step; none for no intervals.
    plot
        Also draw `forecast.png` and `forecast.svg`, the first 6 series.
    resume
        Keep the series that an interrupted run has finished in the same folder.
    """
    from armillary.files import write_csv

    from .batch import forecast_one, forecast_rows, forecast_table, of_file

    params = map_params(settings, common.seed, alpha=alpha, beta=beta)
    level = None if coverage == "none" else float(coverage)
    if level is not None and not 0 < level < 1:
        raise InputError("--coverage", found=level, expected="a number between 0 and 1, or none")
    record = {"horizon": horizon, "coverage": level} | params
    with Run(METHOD, "forecast", common, record) as run, of_file(str(file)):
        table = read(run, file, columns)
        begin = run.elapsed_s
        if len(table.recordings) == 1:
            value, model = forecast_one(table.recordings[0], horizon, level, params)
            values = [value]
            describe(run, model)
        else:
            kept = checkpoint(run, resume)
            values = forecast_table(
                table, horizon, level, params, jobs=run.jobs, progress=run.progress, kept=kept
            )
        run.metrics |= {
            "horizon": horizon,
            "coverage": level,
            "seconds_per_step": (run.elapsed_s - begin) / (horizon * len(values)),
        }
        rows = list(forecast_rows(values, table.targets, level))
        write_csv(run.path("forecast.csv", "The forecasts."), rows)
        if plot:
            draw_forecasts(run, table, values, level)
        more = f", the first {SHOWN} of {len(rows)} rows" if len(rows) > SHOWN else ""
        run.table(rows[:SHOWN], f"Forecast{more}")


def reconstruct(
    file: Path,
    /,
    *,
    steps: int = 10_000,
    holdout: float = 0.5,
    alpha: Literal["forecast", "reconstruct", "parrot", "mse", "dsr"] | float = "reconstruct",
    beta: Beta = 0.0,
    columns: TableArgument = ALL,
    settings: MapArgument = AUTO,
    common: CommonOptions = Common(),
) -> None:
    """Run a recorded system on, for long, and compare its behaviour with what really followed.

    Writes `trajectory.npz` (trajectory, indices: the rows of the context that served, context,
    target), and figures of attractor and spectrum.

    Parameters
    ----------
    file
        As for forecast: one recording.
    steps
        Steps to run.
    holdout
        Share of the recording that is held out for comparison; 0: compare with the context.
    alpha
        Deviation gain: a preset, a fit to the recording (mse, dsr), or a number.
    beta
        Velocity gain, or mse to fit it.
    """
    from armillary.files import write_arrays

    from .batch import of_file
    from .figures import attractor_figure, spectrum_figure
    from .surrogate import reconstruct as run_on
    from .surrogate import stretch

    if steps < 1:
        raise InputError("--steps", expected="a whole number >= 1", found=str(steps))
    params = map_params(settings, common.seed, alpha=alpha, beta=beta)
    record = {"steps": steps, "holdout": holdout} | params
    with Run(METHOD, "reconstruct", common, record) as run, of_file(str(file)):
        table = read(run, file, columns)
        y = table.only().y.to_numpy(dtype=float).reshape(len(table.only().y), -1)
        begin = run.elapsed_s
        found = run_on(y, steps, holdout=holdout, params=params, rng=run.seed)
        run.metrics |= {
            "n_context": len(found.context),
            "seconds_per_step": (run.elapsed_s - begin) / steps,
        }
        describe(run, found.model)
        for score in found.scores:
            suffix = "" if score["run"] == "dynabase" else f"_{score['run']}"
            run.metrics |= {f"d_stsp{suffix}": score["d_stsp"], f"d_h{suffix}": score["d_h"]}
        run.metrics["period"] = found.scores[0]["period"]
        write_arrays(
            run.path("trajectory.npz", "The free run, and what it is compared with."),
            trajectory=found.trajectory,
            indices=found.indices,
            context=found.context,
            target=found.target,
        )
        what = "held out" if holdout else "context"
        orbits = {what: found.target, "dynabase": found.trajectory, "parrot": found.parrot}
        orbits = {name: stretch(orbit) for name, orbit in orbits.items()}
        tau = found.model.tau_ * 2
        run.figure(
            attractor_figure(orbits, table.targets, tau=tau),
            "attractor",
            "Orbits in two of their coordinates, in the recording's units.",
        )
        run.figure(
            spectrum_figure(orbits, table.targets),
            "spectrum",
            "Power spectra, smoothed over 20 frequency bins, as D_H compares them.",
        )
        run.table(
            found.scores,
            f"Against the {what} part ({len(found.target)} rows); smaller is better, the context's "
            "own values are what a recording of this length leaves to be desired",
        )


def fit(
    file: Path,
    /,
    *,
    objective: Goal = "mse",
    horizon: int | None = None,
    resume: bool = False,
    columns: TableArgument = ALL,
    settings: MapArgument = AUTO,
    common: CommonOptions = Common(),
) -> None:
    """Fit the two parameters to a recording, or to each of many.

    Writes `fit.csv`, one row a series.

    Parameters
    ----------
    file
        As for forecast.
    objective
        mse: one step ahead, alpha and beta in closed form; horizon: alpha for the error over
        --horizon steps; dsr: alpha for the measures of reconstruction.
    horizon
        Steps of that objective.
    resume
        Keep the series that an interrupted run has finished in the same folder.
    """
    from armillary.files import write_csv

    from .batch import fit_table, of_file

    if (horizon is None) == (objective == "horizon"):
        raise InputError(
            "--horizon",
            found=horizon,
            expected="steps for --objective horizon" if horizon is None else "none but for horizon",
        )
    params = map_params(
        settings, common.seed, alpha=objective, beta="mse" if objective == "mse" else 0.0
    )
    params |= {"horizon": horizon}
    with Run(METHOD, "fit", common, params) as run, of_file(str(file)):
        table = read(run, file, columns)
        rows = fit_table(
            table, params, jobs=run.jobs, progress=run.progress, kept=checkpoint(run, resume)
        )
        write_csv(run.path("fit.csv", "What was fitted to each series."), rows)
        run.metrics["n_series"] = len(rows)
        if len(rows) == 1:
            run.metrics |= {k: v for k, v in rows[0].items() if k != "unique_id"}
        else:
            shown = ["unique_id", "n", "alpha", "beta", "r2", "theiler", "delays", "n_neighbors"]
            run.table(rows[:SHOWN], f"Fits, of {len(rows)} series", columns=shown)


def train(
    files: Annotated[list[Path] | None, Parameter(negative="")] = None,
    /,
    *,
    systems: Several = None,
    seeds: int = 5,
    objective: Goal = "dsr",
    horizon: int | None = None,
    context: int = 2_000,
    target: int = 5_000,
    grid_only: bool = False,
    common: CommonOptions = Common(),
) -> None:
    """Compute one alpha for many recordings: how the presets were made.

    Writes `train.csv`, every alpha that was tried, and a figure of the loss.

    Parameters
    ----------
    files
        Recordings to train on, each a table as for reconstruct; the first `context` rows are
        given, the rest is to be met.
    systems
        Systems of dynabase.systems, or dysts:NAME [default: all twelve, if no file is given].
    seeds
        Trajectories of each system.
    objective
        dsr: reconstruction; horizon: error over --horizon steps; mse: one step in closed form.
    horizon
        Steps of that objective.
    context
        Samples that are given.
    target
        Samples that follow.
    grid_only
        Do not refine the best alpha of the grid.
    """
    from armillary.files import write_csv

    from ._train import train as train_on
    from .figures import loss_figure
    from .training import recorded_pair, system_pairs

    record = {
        "systems": systems,
        "seeds": seeds,
        "objective": objective,
        "horizon": horizon,
        "context": context,
        "target": target,
        "grid_only": grid_only,
    }
    with Run(METHOD, "train", common, record) as run:
        pairs = [recorded_pair(run.input(file), context) for file in files or ()]
        if systems or not files:
            pairs += system_pairs(systems, seeds, context, target, seed=run.seed, jobs=run.jobs)
        found = train_on(
            pairs, objective, horizon=horizon, refine=not grid_only, jobs=run.jobs, rng=run.seed
        )
        run.metrics |= {
            "alpha": found.alpha,
            "beta": found.beta,
            "objective": objective,
            "n_pairs": found.n_pairs,
        }
        write_csv(run.path("train.csv", "Every alpha that was tried."), found.table)
        if len(found.table) > 1:
            run.figure(
                loss_figure(found.table, found.alpha, objective),
                "train",
                f"Loss of every alpha that was tried, median over {found.n_pairs} pairs.",
            )
        run.table(found.table, f"Trained on {found.n_pairs} pairs: alpha = {found.alpha:.5g}")


def score(
    *,
    true: Path,
    pred: Path,
    past: Path | None = None,
    season: int = 1,
    columns: TableArgument = ALL,
    common: CommonOptions = Common(),
) -> None:
    """Compare a forecast with what really followed, by all measures.

    Writes `scores.csv`, one row a series. Any forecast will do, whoever made it.

    Parameters
    ----------
    true
        What followed: a table or an array, as for forecast.
    pred
        The forecast: the same, or a `forecast.csv`, whose intervals are scored too.
    past
        The recording before, for mase and for the scale of d_stsp.
    season
        Steps that the naive forecast of mase looks back.
    """
    from armillary.files import write_csv

    from .scoring import score_files

    with Run(METHOD, "score", common, {"season": season}) as run:
        inputs = str(run.input(true)), str(run.input(pred))
        before = None if past is None else str(run.input(past))
        rows = score_files(*inputs, before, chosen_columns(columns), season, run.seed)
        write_csv(run.path("scores.csv", "The scores of each series."), rows)
        names = [name for name in rows[0] if name not in ("unique_id", "n")]
        run.metrics |= {"n_series": len(rows), "n": sum(row["n"] for row in rows)}
        run.metrics |= {name: sum(row[name] for row in rows) / len(rows) for name in names}
        if len(rows) > 1:
            run.table(rows[:SHOWN], f"Scores, of {len(rows)} series")


def explain(
    file: Path,
    /,
    *,
    horizon: int = 10,
    alpha: Alpha = "forecast",
    beta: Beta = 0.0,
    columns: TableArgument = ALL,
    settings: MapArgument = AUTO,
    common: CommonOptions = Common(),
) -> None:
    """Show where each forecast step comes from.

    Writes `explain.csv`: for each step, neighbour and variable, the row and time stamp of the
    neighbour, its distance and weight, and the parts that add up to the forecast.

    Parameters
    ----------
    file
        As for forecast: one series.
    horizon
        Steps to explain.
    alpha
        Deviation gain: a preset, a fit to the series, or a number.
    beta
        Velocity gain, or mse to fit it.
    """
    from armillary.files import write_csv

    from .batch import of_file
    from .explanation import explain_recording

    params = map_params(settings, common.seed, alpha=alpha, beta=beta)
    with Run(METHOD, "explain", common, {"horizon": horizon} | params) as run, of_file(str(file)):
        table = read(run, file, columns)
        rows, model = explain_recording(table.only(), table.targets, horizon, params)
        describe(run, model)
        write_csv(run.path("explain.csv", "Where each step comes from."), rows)
        nearest = [row for row in rows if row["rank"] == 1]
        shown = ["step", "ds", "variable", "neighbour_ds", "distance", "successor", "deviation"]
        run.table(nearest[:SHOWN], "Nearest neighbour of each step", columns=[*shown, "value"])
