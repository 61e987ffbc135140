"""The figures of the package: attractors, spectra, forecasts with bands, sweeps over alpha."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from armillary import figures

from ._frames import extended
from .embed import delay_embed
from .measures import power_spectrum

MOST_POINTS = 6000  # of an orbit that are drawn
DYNAMIC_RANGE = 1e-8  # of a spectrum; below is rounding
TRUTH, OURS, OTHER = figures.COLORS[6], figures.COLORS[0], figures.COLORS[4]


def attractor_figure(
    orbits: Mapping[str, Float[np.ndarray, "n d"]], names: Sequence[str], *, tau: int = 1
) -> Figure:
    """Orbits in a plane, one panel each, on the same axes.

    Two coordinates are shown: the first and the last, or a single one against itself `tau` steps
    before.
    """
    first = next(iter(orbits.values()))
    if first.shape[1] == 1:
        orbits = {title: delay_embed(orbit, 2, tau) for title, orbit in orbits.items()}
        names = [f"{names[0]}(t)", f"{names[0]}(t - {tau})"]
    figure, panels = figures.new(3.3 * len(orbits) + 0.6, 3.6, columns=len(orbits))
    axes = np.atleast_1d(panels)
    low, high = _limits(next(iter(orbits.values())))
    for number, (ax, (title, orbit)) in enumerate(zip(axes, orbits.items(), strict=True)):
        shown = orbit[:MOST_POINTS]
        color = TRUTH if number == 0 else OURS
        ax.plot(shown[:, 0], shown[:, -1], "-", color=color, linewidth=0.35, marker="none")
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[-1], high[-1])
        ax.grid(False)
        figures.label_axes(ax, names[0], names[-1] if number == 0 else "", title)
        if number:
            ax.set_yticklabels([])
    return figure


def spectrum_figure(
    orbits: Mapping[str, Float[np.ndarray, "n d"]],
    names: Sequence[str],
    *,
    smoothing: float = 20.0,
) -> Figure:
    """Smoothed power spectra of up to three coordinates, as `d_hellinger` compares them.

    A coordinate that is constant in an orbit has none, and no line.
    """
    shown = min(next(iter(orbits.values())).shape[1], 3)
    figure, panels = figures.new(3.1 * shown + 1.4, 3.4, columns=shown)
    n = min(len(orbit) for orbit in orbits.values())
    frequency = np.fft.rfftfreq(n)[1:]
    for at, ax in enumerate(np.atleast_1d(panels)):
        top = 0.0
        for (title, orbit), color in zip(orbits.items(), (TRUTH, OURS, OTHER), strict=False):
            if n < 2 or orbit[:n, at].std() == 0:
                continue
            power = power_spectrum(orbit[:n, at], smoothing)[1:]
            width = 2.6 if color == TRUTH else 1.6
            ax.loglog(frequency, power, color=color, linewidth=width, marker="none", label=title)
            top = max(top, float(power.max()))
        if top > 0:
            ax.set_ylim(top * DYNAMIC_RANGE, top * 2)
        figures.label_axes(ax, "frequency (1/step)", "share of power" if at == 0 else "", names[at])
        if at < shown - 1 and (legend := ax.get_legend()) is not None:
            legend.remove()
    return figure


def forecast_figure(series: Sequence[Mapping[str, Any]], coverage: float | None) -> Figure:
    """Forecasts after the end of their series, with their intervals.

    Each series is a mapping with ``name``, ``time`` and ``past`` (its end), ``ahead`` and
    ``forecast``, ``lower`` and ``upper`` where there are intervals, and perhaps ``truth``; ``unit``
    and ``quantity`` label the axes.
    """
    columns = min(len(series), 2)
    rows = -(-len(series) // columns)
    figure, panels = figures.new(4.6 * columns + 2.2, 2.4 * rows + 0.9, rows, columns)
    axes = np.atleast_1d(panels).ravel()
    for ax in axes[len(series) :]:
        ax.set_visible(False)
    for number, (ax, each) in enumerate(zip(axes, series, strict=False)):
        ax.plot(each["time"], each["past"], "-", color=TRUTH, linewidth=1, marker="none")
        if each.get("truth") is not None:
            ax.plot(
                each["ahead"],
                each["truth"],
                "-",
                color=TRUTH,
                linewidth=1,
                marker="x",
                markersize=4,
                label="what followed",
            )
        label = "forecast"
        if each.get("lower") is not None:
            low, high = (
                np.where(np.isfinite(each[k]), each[k], np.nan) for k in ("lower", "upper")
            )
            ax.fill_between(each["ahead"], low, high, color=OURS, alpha=0.2, linewidth=0.8)
            label = f"forecast, {coverage:.0%} interval of each step"
        ax.plot(
            each["ahead"],
            each["forecast"],
            "-",
            color=OURS,
            linewidth=1.4,
            marker="none",
            label=label,
        )
        figures.label_axes(ax, each.get("unit", "time"), each.get("quantity", ""), each["name"])
        if number and (legend := ax.get_legend()) is not None:
            legend.remove()
    return figure


def sweep_figure(
    errors: Mapping[str, tuple[Sequence[float], Float[np.ndarray, " a"]]],
    divergence: tuple[Float[np.ndarray, " a"], Float[np.ndarray, "pairs a"]],
) -> Figure:
    """Forecast errors and state-space divergence against alpha."""
    figure, (left, right) = figures.new(9.0, 3.6, columns=2)
    for title, (alphas, values) in errors.items():
        left.plot(alphas[1:], values[1:], label=title)
    left.axhline(1.0, color="#8a8a8a", linewidth=1, linestyle=":")
    left.axvline(1.0, color="#8a8a8a", linewidth=1, linestyle=":")
    figures.label_axes(left, "alpha", "MAE / parroting's MAE")
    alphas, values = divergence
    low, mid, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    kept = alphas >= 0.9
    figures.band(right, alphas[kept], low[kept], mid[kept], high[kept], color=OURS)
    right.axvline(1.0, color="#8a8a8a", linewidth=1, linestyle=":")
    figures.label_axes(right, "alpha", "D_stsp (nats)")
    return figure


def _limits(
    orbit: Float[np.ndarray, "n d"],
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    low, high = np.nanmin(orbit, axis=0), np.nanmax(orbit, axis=0)
    margin = 0.08 * np.where(high > low, high - low, 1.0)
    return low - margin, high + margin


def loss_figure(table: Sequence[Mapping[str, float]], best: float, objective: str) -> Figure:
    """The training loss of every alpha that was tried."""
    figure, ax = figures.new()
    tried = [row for row in table if row["alpha"] > 0]
    ax.plot([row["alpha"] for row in tried], [row["loss"] for row in tried], label="loss")
    ax.axvline(best, color=OTHER, linestyle="--", linewidth=1, label=f"best, {best:.4g}")
    units = {"dsr": "D_stsp + 10 D_H (nats)", "horizon": "MAE / parroting's MAE"}
    figures.label_axes(ax, "alpha", units.get(objective, "loss"))
    return figure


def growth_figure(
    contexts: Sequence[tuple[int, float, float]], horizons: Sequence[tuple[int, float]]
) -> Figure:
    """Seconds against the length of the context and against the horizon."""
    figure, (left, right) = figures.new(9.0, 3.6, columns=2)
    lengths, fitted, stepped = zip(*contexts, strict=True)
    left.loglog(lengths, fitted, label="fit")
    left.loglog(lengths, stepped, label="1,000 steps")
    figures.label_axes(left, "context T (samples)", "time (s)")
    steps, seconds = zip(*horizons, strict=True)
    right.loglog(steps, seconds)
    figures.label_axes(right, "horizon (steps)", "time (s)")
    return figure


def forecast_panels(table: Any, values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What `forecast_figure` draws, from the series of a file and their forecasts."""
    panels = []
    for recording, value in zip(table.recordings, values, strict=True):
        past = np.asarray(recording.y, dtype=float).reshape(len(recording.y), -1)
        horizon = len(value["ds"])
        shown = min(len(past), max(5 * horizon, 60))
        index = extended(recording.y.index, horizon)
        if isinstance(index, pd.PeriodIndex):
            index = index.to_timestamp()
        dated = isinstance(index, pd.DatetimeIndex)
        axis = np.asarray(index if dated else recording.write(index))
        for at, target in enumerate(table.targets):
            ends = {
                key: np.array(value[key], dtype=float)[:, at] if key in value else None
                for key in ("forecast", "lower", "upper")
            }
            panels.append(
                {
                    "name": recording.name,
                    "quantity": target,
                    "unit": "time" if recording.stamped else "row",
                    "time": axis[len(past) - shown : len(past)],
                    "past": past[-shown:, at],
                    "ahead": axis[len(past) :],
                    **ends,
                }
            )
    return panels
