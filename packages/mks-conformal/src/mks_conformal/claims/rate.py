"""How fast the score of n references comes to that of many."""

import numpy as np
from jaxtyping import Float

from armillary.claims import Check, Effort, Measured
from armillary.randomness import keyed
from mks_conformal.figures import rate_figure
from mks_conformal.kernels import Gaussian
from mks_conformal.score import ExactCore

H, LAM, POINTS = 1.5, 0.01, 200
SIZES = (125, 250, 500, 1000)
LOW = (2, 8, 16)  # dimensions, of which two have spread
FULL = "N(0, I), d = 8"


def rate(effort: Effort) -> Measured:
    """Low effective rank in 2, 8 and 16 dimensions, and full rank in 8 as a control."""
    many, repeats = (2000, 3) if effort.quick else (4000, 8)
    names = [f"two of d = {d}" for d in LOW] + [FULL]
    spreads = [np.where(np.arange(d) < 2, 1.0, 1e-3) for d in LOW] + [np.ones(8)]
    errors: dict[str, list[float]] = {}
    rows: list[dict[str, object]] = []
    cells = list(zip(names, spreads, strict=True))
    for name, spread in effort.run.progress(cells, description="laws"):
        rms, rank = _errors(spread, many, repeats, effort.seed)
        errors[name] = rms
        row: dict[str, object] = {"law": name, "effective rank": rank}
        rows.append(row | {f"n = {n}": value for n, value in zip(SIZES, rms, strict=True)})
    checks = []
    for name in names[:3]:
        slope = float(np.polyfit(np.log(SIZES), np.log(errors[name]), 1)[0])
        checks.append(Check(f"slope, {name}", slope, at_least=-0.65, at_most=-0.35))
    first = np.array(errors[names[0]])
    for name in names[1:3]:
        ratio = np.array(errors[name]) / first
        checks.append(
            Check(
                f"rms over that of d = 2, {name} (mean, range over n)",
                float(ratio.mean()),
                float(ratio.min()),
                float(ratio.max()),
                at_least=1 / 1.5,
                at_most=1.5,
            )
        )
    control = np.array(errors[FULL]) / np.array(errors[names[1]])
    checks.append(
        Check(
            "rms of full rank over low rank, both d = 8 (mean, range over n)",
            float(control.mean()),
            float(control.min()),
            float(control.max()),
            at_least=2.0,
        )
    )
    effort.run.figure(
        rate_figure(errors, SIZES, names[0]),
        "rate",
        f"Root mean square difference at {POINTS} points between the score of n and of {many} "
        f"references, {repeats} repetitions: dimensions without spread cost nothing.",
    )
    return Measured(checks, rows, scope=f"Gaussian kernel, h {H}, lam {LAM}, not whitened")


def _errors(
    spread: Float[np.ndarray, " d"], many: int, repeats: int, seed: int
) -> tuple[list[float], float]:
    rng = keyed(seed, "rate", len(spread), float(spread.sum()).hex())
    kernel = Gaussian(H)

    def draw(n: int) -> Float[np.ndarray, "n d"]:
        return spread * rng.normal(size=(n, len(spread)))

    points = draw(POINTS)
    limit = ExactCore(draw(many), kernel, LAM)(points)
    squares = {
        n: [np.mean((ExactCore(draw(n), kernel, LAM)(points) - limit) ** 2) for _ in range(repeats)]
        for n in SIZES
    }
    values = ExactCore(draw(SIZES[-1]), kernel, LAM).spectrum()
    rms = [float(np.sqrt(np.mean(squares[n]))) for n in SIZES]
    return rms, float(values.sum() / values[0])
