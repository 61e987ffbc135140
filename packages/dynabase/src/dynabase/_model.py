"""One series, prepared and fitted: all that a forecast of it needs.

`fit_model` settles what the caller left open, in this order: trend and scale, Theiler window,
delays, neighbours, gains, trust radius. `Model.refitted` repeats trend and scale alone on a shorter
series, which is what calibration does before each of its origins.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from armillary import InputError
from armillary.randomness import RngLike

from . import _checks
from ._choose import choose_delays, choose_neighbors, delay_step
from ._recording import Recording
from ._run import Gains, Path, Shift, run, run_one
from ._train import reconstruction_alpha
from .embed import theiler_window
from .fit import OneStepFit, horizon, one_step, trust_radius
from .preprocess import Preparation, outside_earlier_range, season_period

Number = TypeVar("Number", int, float)

PRESETS: dict[str, tuple[float, float]] = {
    "parrot": (0.0, 0.0),
    "forecast": (0.95, 0.0),
    "reconstruct": (1.005, 0.0),
}
FITS = ("mse", "horizon", "dsr")
# Rows looked at for what only steers a choice (r2, the trust radius) on a long recording.
AT_MOST = 10_000
USUAL_WINDOWS = (5, 50)  # memory, in samples, of the series that the presets were trained on


@dataclass(frozen=True, slots=True)
class Settings:
    """What the caller asked for; see `DynaBase`."""

    alpha: float | str = "forecast"
    beta: float | str = 0.0
    delays: int | str = "auto"
    tau: int | str = "auto"
    mode: str = "shift"
    n_neighbors: int | str = "auto"
    theiler: int | str = "auto"
    trust_radius: float | str | None = "auto"
    detrend: str | None = None
    log: bool = False
    standardize: bool = True
    horizon: int | None = None
    random_state: RngLike = None

    def checked(self) -> "Settings":
        """The same with plain numbers; refuses what no series could make sense of."""
        names = [*PRESETS, *FITS]
        if isinstance(self.alpha, str) and self.alpha not in names:
            raise InputError(
                "alpha",
                found=repr(self.alpha),
                expected=f"a number >= 0 or {', '.join(map(repr, names))}",
            )
        if self.alpha == "horizon" and self.horizon is None:
            raise InputError("horizon", found="None", expected="steps to fit alpha='horizon' for")
        if self.mode not in ("shift", "vector"):
            raise InputError("mode", found=repr(self.mode), expected="'shift' or 'vector'")
        season_period(self.detrend)
        whole, real = _checks.whole, _checks.real
        radius = _or_word(self.trust_radius, "trust_radius", "auto", real, 0.0)
        return replace(
            self,
            alpha=self.alpha if isinstance(self.alpha, str) else real(self.alpha, "alpha", 0.0),
            beta=_or_word(self.beta, "beta", "mse", real, -math.inf),
            delays=_or_word(self.delays, "delays", "auto", whole, 1),
            tau=_or_word(self.tau, "tau", "auto", whole, 1),
            n_neighbors=_or_word(self.n_neighbors, "n_neighbors", "auto", whole, 1),
            theiler=_or_word(self.theiler, "theiler", "auto", whole, 0),
            trust_radius=None if self.trust_radius is None else radius,
            horizon=None if self.horizon is None else whole(self.horizon, "horizon", 1),
        )


@dataclass(frozen=True, slots=True)
class Choices:
    """What was settled for a series."""

    theiler: int
    m: int
    tau: int
    shifted: bool
    k: int
    alpha: float
    beta: float
    radius: float  # in the prepared series' units; inf: no guard


@dataclass(frozen=True, eq=False)
class Model:
    """A series, how it was prepared, and the map's parameters."""

    y: Float[np.ndarray, "T d"]
    settings: Settings
    preparation: Preparation
    recording: Recording
    choices: Choices

    @cached_property
    def one_step(self) -> OneStepFit:
        """Fit 1 on the series, for its own number of neighbours: the raw values."""
        fitted = isinstance(self.settings.beta, str)
        return one_step(
            self.recording,
            k=self.choices.k,
            beta=None if fitted else float(self.settings.beta),
            at_most=None if self.settings.alpha == "mse" else AT_MOST,
        )

    @property
    def map_exponent(self) -> float:
        """Largest Lyapunov exponent of the map per step: ln alpha; nan with several neighbours."""
        if self.choices.k > 1:
            return math.nan
        return math.log(self.choices.alpha) if self.choices.alpha > 0 else -math.inf

    @property
    def n_missing(self) -> int:
        """Rows of the series with a missing value."""
        return int(np.isnan(self.y).any(axis=1).sum())

    def warnings(self) -> list[str]:
        """What a user should know before using a forecast."""
        found = []
        low, high = np.nanmin(self.y, axis=0), np.nanmax(self.y, axis=0)
        if (low == high).all():
            found.append("the series is constant: so is its forecast, and intervals have no width")
        prepared = self.recording.series
        outside = outside_earlier_range(prepared)
        if outside:
            where = "" if prepared.shape[1] == 1 else f" of coordinate {outside[0]}"
            found.append(
                f"the last value{where} lies outside all earlier ones: nearest neighbours cannot "
                "extrapolate; for trending data use detrend='linear' or 'diff'"
            )
        return found

    def start(
        self, z0: Float[np.ndarray, "L d"] | None
    ) -> tuple[Float[np.ndarray, "1 D"], Shift | None, Float[np.ndarray, "1 d"]]:
        """State, history and last observation at the end of the series, or of the stretch `z0`."""
        need = self.recording.offset + 1 + self.preparation.lost
        y = self.y if z0 is None else z0
        if len(y) < need:
            raise InputError(
                "z0", found=f"{len(y)} row(s)", expected=f"at least {need}, the newest last"
            )
        y = y[-need:]
        if np.isnan(y).any():
            raise InputError(
                "y" if z0 is None else "z0",
                found=f"NaN among the last {need} row(s)" if need > 1 else "NaN in the last row",
                expected="the last value, which a forecast starts from",
                instead="pass z0, or drop the last row(s)" if z0 is None else None,
            )
        past = self.preparation.apply(y, len(self.y) - need)
        m, d = len(self.recording.lags), past.shape[1]
        state = past[-1 - self.recording.lags].reshape(1, m * d)
        shift = Shift(self.recording.lags, past[None]) if self.recording.shifted else None
        return state, shift, y[-1:]

    def forecast(
        self,
        n_steps: int,
        z0: Float[np.ndarray, "L d"] | None = None,
        *,
        first: Int[np.ndarray, "b k"] | None = None,
    ) -> tuple[Float[np.ndarray, "n b d"], Path]:
        """The series continued, its logarithm if it has one, and the path behind it.

        With `first`, one forecast for each of its lines, whose first step has those neighbours.
        """
        state, shift, last = self.start(z0)
        c, context = self.choices, self.recording.context
        if c.k == 1 and first is None:
            path = run_one(context, state[0], n_steps, c.alpha, c.beta, c.radius, shift=shift)
        else:
            b = 1 if first is None else len(first)
            state, last = np.repeat(state, b, axis=0), np.repeat(last, b, axis=0)
            if shift is not None:
                shift = replace(shift, past=np.repeat(shift.past, b, axis=0))
            gains = Gains.equal(c.alpha, c.beta, c.radius, b)
            path = run(context, state, n_steps, gains, k=c.k, shift=shift, first=first)
        return self.preparation.undo(self.recording.newest(path), len(self.y), last), path

    def refitted(self, n: int) -> "Model":
        """The model of the first `n` rows: trend and scale fitted afresh, all else kept."""
        return assemble(self.y[:n], self.settings, self.choices)

    def extended(self, new: Float[np.ndarray, "T2 d"]) -> "Model":
        """The model with rows appended: trend, scale and parameters kept, the tree reused."""
        y = np.concatenate([self.y, new])
        series = self.preparation.apply(y)
        old, lags = self.recording, self.recording.lags
        rows = np.concatenate([series[lags[-1] - lag : len(series) - lag] for lag in lags], axis=1)
        context = old.context.extended(rows[len(old.context.rows) :])
        recording = Recording(series, context, lags, old.shifted)
        return Model(y, self.settings, self.preparation, recording, self.choices)


def assemble(y: Float[np.ndarray, "T d"], settings: Settings, choices: Choices) -> Model:
    """A model with everything settled but trend and scale."""
    preparation = Preparation.fit(
        y, detrend=settings.detrend, log=settings.log, standardize=settings.standardize
    )
    recording = Recording.of(
        preparation.apply(y),
        m=choices.m,
        tau=choices.tau,
        theiler=choices.theiler,
        shifted=choices.shifted,
    )
    return Model(y, settings, preparation, recording, choices)


def fit_model(y: Float[np.ndarray, "T d"], settings: Settings) -> Model:
    """Settle everything for a series.

    Raises
    ------
    InputError
        If the series is too short for what was asked, or more than half of it is missing.
    """
    missing = np.isnan(y).any(axis=1)
    if missing.mean() > 0.5 if len(y) else True:
        raise InputError(
            "y",
            found=f"{len(y)} row(s), {int(missing.sum())} of them with NaN",
            expected="a series of which at least half the rows are complete",
        )
    preparation = Preparation.fit(
        y, detrend=settings.detrend, log=settings.log, standardize=settings.standardize
    )
    series = preparation.apply(y)
    theiler = settings.theiler if isinstance(settings.theiler, int) else theiler_window(series)
    tau = settings.tau if isinstance(settings.tau, int) else delay_step(theiler)
    k = settings.n_neighbors if isinstance(settings.n_neighbors, int) else 1
    if isinstance(settings.delays, int):
        m = settings.delays
    elif series.shape[1] > 1:
        m = 1
    else:
        m = choose_delays(series, tau=tau, theiler=theiler, n_neighbors=k)
    _require_length(len(series), m, tau, theiler, k)
    recording = Recording.of(
        series, m=m, tau=tau, theiler=theiler, shifted=settings.mode == "shift"
    )
    if recording.context.n_admissible < k:
        raise InputError(
            "y",
            found=f"{len(y)} row(s), {int(missing.sum())} of them with NaN, which leaves "
            f"{recording.context.n_admissible} usable neighbour(s)",
            expected=f"at least {k}",
            instead="fill the gaps, or use fewer delays or neighbours",
        )
    if not isinstance(settings.n_neighbors, int) and settings.alpha != "parrot":
        seen = one_step(recording, k=1, beta=0.0, at_most=AT_MOST)
        k = choose_neighbors(seen, recording.context.n_admissible)
    alpha, beta = _gains(recording, settings, k)
    radius = settings.trust_radius
    if isinstance(radius, str):
        radius = trust_radius(recording.context, at_most=AT_MOST) if alpha > 1 else None
    choices = Choices(theiler, m, tau, recording.shifted, k, alpha, beta, _checks.radius(radius))
    return Model(y, settings, preparation, recording, choices)


def _gains(recording: Recording, settings: Settings, k: int) -> tuple[float, float]:
    """The gains asked for, fitted where they are not given."""
    beta = None if isinstance(settings.beta, str) else float(settings.beta)
    if settings.alpha == "mse" or (beta is None and settings.alpha not in FITS):
        alpha = None if settings.alpha == "mse" else _given(settings.alpha)
        fit = one_step(recording, k=k, alpha=alpha, beta=beta)
        if fit.alpha < 0:  # by noise: the best map without a negative gain has none
            fit = one_step(recording, k=k, alpha=0.0, beta=beta)
        return fit.alpha, fit.beta
    if settings.alpha == "horizon":
        steps = _checks.whole(settings.horizon, "horizon", at_least=1)
        alpha = horizon(recording, steps, k=k, beta=beta or 0.0, rng=settings.random_state)
    elif settings.alpha == "dsr":
        alpha = reconstruction_alpha(recording, k=k, beta=beta or 0.0, rng=settings.random_state)
    else:
        alpha = _given(settings.alpha)
    if beta is None:
        beta = one_step(recording, k=k, alpha=alpha, beta=None).beta
    return alpha, beta


def _given(alpha: float | str) -> float:
    return PRESETS[alpha][0] if isinstance(alpha, str) else float(alpha)


def _require_length(n: int, m: int, tau: int, theiler: int, k: int) -> None:
    need = (m - 1) * tau + 1 + theiler + k
    if n >= need:
        return
    fit = (n - 1 - theiler - k) // tau + 1
    raise InputError(
        "y",
        found=f"{n} row(s)",
        expected=f"at least {need} for {m} delay(s) {tau} apart, a Theiler window of {theiler} and "
        f"{k} neighbour(s)",
        instead=f"at most {fit} delay(s) would fit" if fit >= 1 else "give a longer series",
    )


def _or_word(
    value: Any, name: str, word: str, check: Callable[[object, str, Any], Number], at_least: float
) -> Number | str:
    """A number that `check` passes, or the one word that may stand for it."""
    if value is None or value == word:
        return word
    if isinstance(value, str):
        raise InputError(name, found=repr(value), expected=f"a number >= {at_least:g} or {word!r}")
    return check(value, name, at_least)
