"""Where to look for a region: the law that proposals are drawn from, and what lies inside.

In whitened coordinates one half is uniform on a ball of radius 1.2 max |z_i| and one half a
mixture of multivariate t_4 at the references z_i with scale n^(-1/(d+4)); where the region holds
a far ellipsoid, thirds, with the uniform law on that ellipsoid, its radii times 1.1. The t part
has full support, which makes volumes unbiased and samples reach every part.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, logsumexp

from armillary import InputError

from .body import Body
from .kernels import squared_distances
from .quadratic import Ellipsoid, log_ball_volume

__all__ = ["Proposal", "explore", "sample_from"]

FAR_INFLATION = 1.1
FREEDOM = 4
BATCH = 10_000  # points at once
DRAWS_PER_SAMPLE = 20
MOST_DRAWS = 5_000_000


@dataclass(frozen=True, eq=False)
class Proposal:
    """The sampling law in whitened coordinates."""

    references: Float[np.ndarray, "n d"]
    radius: float
    far: Ellipsoid | None = None

    @property
    def d(self) -> int:
        """Dimension."""
        return self.references.shape[1]

    @property
    def width(self) -> float:
        """Scale of the t kernels."""
        return float(len(self.references)) ** (-1.0 / (self.d + 4))

    def draw(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        """Independent points."""
        parts = 2 if self.far is None else 3
        which = rng.integers(parts, size=n)
        gauss = rng.normal(size=(n, self.d))
        heads = self.references[rng.integers(len(self.references), size=n)]
        spread = self.width / np.sqrt(rng.chisquare(FREEDOM, size=n) / FREEDOM)
        ball = gauss / np.linalg.norm(gauss, axis=1, keepdims=True)
        ball *= rng.random(n)[:, None] ** (1.0 / self.d)
        out = np.where((which == 0)[:, None], self.radius * ball, heads + spread[:, None] * gauss)
        if self.far is not None:
            far = self.far.center + FAR_INFLATION * ball @ self.far.shape.T
            out[which == 2] = far[which == 2]
        return out

    def log_density(self, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Log of the density g."""
        d, power = self.d, 0.5 * (FREEDOM + self.d)
        squares = squared_distances(z, self.references)
        squares *= 1.0 / (FREEDOM * self.width**2)
        squares += 1.0
        log_norm = gammaln(power) - gammaln(0.5 * FREEDOM)
        log_norm -= d * (0.5 * np.log(FREEDOM * np.pi) + np.log(self.width))
        with np.errstate(divide="ignore"):
            # a mean that underflows is left to the other parts, or is too small to matter
            t = log_norm + np.log(np.maximum(_inverse_power(squares, power).mean(axis=1), 1e-300))
            inside = np.einsum("ij,ij->i", z, z) <= self.radius**2
            ball = np.where(inside, -log_ball_volume(d) - d * np.log(self.radius), -np.inf)
            parts = [t, ball]
            if self.far is not None:
                u = np.linalg.solve(self.far.shape, (z - self.far.center).T)
                inside = np.einsum("ij,ij->j", u, u) <= FAR_INFLATION**2
                log_far = -self.far.log_volume - d * np.log(FAR_INFLATION)
                parts.append(np.where(inside, log_far, -np.inf))
        return logsumexp(np.stack(parts), axis=0) - np.log(len(parts))


def _inverse_power(base: Float[np.ndarray, "n m"], power: float) -> Float[np.ndarray, "n m"]:
    """Base ** -power for a multiple of 1/2, by products: np.power is ten times slower."""
    np.divide(1.0, base, out=base)
    whole, half = divmod(round(2 * power), 2)
    out = np.sqrt(base) if half else np.ones_like(base)
    while whole:
        if whole & 1:
            out *= base
        whole >>= 1
        if whole:
            base *= base
    return out


def proposal_for(body: Body) -> Proposal:
    """The proposal of a body, in its whitened coordinates."""
    far = body.far
    if far is not None:
        white = body.whitening
        far = Ellipsoid(white(far.center[None])[0], white.matrix @ far.shape)
    return Proposal(body.whitening(body.references), body.radius, far)


def explore(
    body: Body, n: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, " k"]]:
    """Those of `n` proposals that lie inside, in the body's coordinates, and their log 1/g."""
    proposal = proposal_for(body)
    points, log_weights = [], []
    for start in range(0, n, BATCH):
        z = proposal.draw(min(BATCH, n - start), rng)
        x = body.whitening.back(z)
        keep = body.inside(x)
        points.append(x[keep])
        log_weights.append(body.whitening.log_volume_scale - proposal.log_density(z[keep]))
    return np.concatenate(points), np.concatenate(log_weights)


def sample_from(body: Body, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
    """Uniform points of the body, from at least 20 n proposals.

    Proposals inside are resampled without replacement, with weights 1/g, from so many that their
    effective number is at least twice `n`.

    Raises
    ------
    InputError
        If the body is unbounded, empty, or too small to be met.
    """
    if not body.bounded:
        raise InputError("the region is unbounded, no uniform law lives on it")
    if body.empty:
        raise InputError("the region is empty, there is nothing to sample")
    if n == 0:
        return np.empty((0, body.d))
    points, log_weights = np.empty((0, body.d)), np.empty(0)
    spent, goal = 0, max(DRAWS_PER_SAMPLE * n, 2_000)
    while True:
        fresh_points, fresh_weights = explore(body, goal - spent, rng)
        points = np.concatenate([points, fresh_points])
        log_weights = np.concatenate([log_weights, fresh_weights])
        spent = goal
        weights = np.exp(log_weights - log_weights.max(initial=-np.inf)) if len(points) else None
        if weights is not None and weights.sum() ** 2 >= 2 * n * (weights**2).sum():
            chosen = rng.choice(len(points), size=n, replace=False, p=weights / weights.sum())
            return points[chosen]
        if spent >= MOST_DRAWS:
            found = f"{len(points)} of {spent} proposals inside"
            raise InputError("the region is too small to sample", found=found)
        goal = min(2 * spent, MOST_DRAWS)
