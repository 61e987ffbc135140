"""The paper's claims, each with what it says, what was expected here, and how it is measured."""

from armillary.claims import Claim

from .coverage import coverage
from .identities import identities, interpolation
from .peers import peers
from .rate import rate
from .volumes import dimension, level, no_harm, smaller

CLAIMS = (
    Claim(
        "coverage",
        says="Regions hold the truth with probability at least 1 - alpha in finite samples.",
        expected="On every data set, alpha .1 and .02, mean coverage within 3 standard deviations "
        "of 1 - alpha; with 19 calibration rows .900 +- .020 (18/20 exactly).",
        measure=coverage,
        minutes=4,
    ),
    Claim(
        "smaller",
        says="Regions are smaller than ellipsoids on real data (up to 86 %).",
        expected="Volume over the ellipsoid's: digits, d = 8, .64 at alpha .1 and .74 at .02 "
        "(at most .75 and .85); txhousing, d = 5, .88 (at most .97); diamonds, d = 4, .87 and .90 "
        "(at most 1).",
        measure=smaller,
        minutes=3,
    ),
    Claim(
        "dimension",
        says="Gains grow with the dimension.",
        expected="Exponential residuals, n 600 and 800: .62, .37, .26 at d = 2, 4, 8; strictly "
        "decreasing, at most .35 at d = 8.",
        measure=dimension,
        minutes=2,
    ),
    Claim(
        "level",
        says="Gains grow as the level tightens.",
        expected="Exponential residuals, n 1000 and 4000, alpha .1 to .02: .625 to .483 at d = 2, "
        ".363 to .317 at d = 4, .237 to .222 at d = 8. Paired decrease above 0 at d = 2 and 4, at "
        "least 12 % at d = 2; d = 8, 600 rows and banana are reported.",
        measure=level,
        minutes=5,
    ),
    Claim(
        "identities",
        says="The score is a Gaussian process' posterior variance: MMD less kernel PCA.",
        expected="Equal to scikit-learn's variance and among its own forms to 1e-8 of k(r, r); "
        "limits to 1e-5.",
        measure=identities,
        minutes=0.2,
    ),
    Claim(
        "interpolates",
        says="The score lies between the kernel density and the Mahalanobis distance.",
        expected="Spearman correlation at least .9999 with -KDE at lam = 1e6, h = 1, and with the "
        "Mahalanobis distance at h = 50, lam = 1e-3.",
        measure=interpolation,
        minutes=0.2,
    ),
    Claim(
        "rate",
        says="It converges at a rate set by the effective rank, not by the dimension.",
        expected="Slope of the rms error in n about -1/2 ([-.65, -.35]); d = 8 and 16 of "
        "effective rank 3 within 1.5 of d = 2; N(0, I_8), rank 27, at least twice the low-rank "
        "d = 8.",
        measure=rate,
        minutes=1,
    ),
    Claim(
        "no-harm",
        says="Where ellipsoids are right it does no harm (ours).",
        expected="gauss, d = 4, in [.95, 1.06]; cancer, d = 10, and french, d = 8, at most 1.15.",
        measure=no_harm,
        minutes=3,
    ),
    Claim(
        "peers",
        says="Smaller than density scores, boxes, local ellipsoids and optimal-transport ranks.",
        expected="Reported, nothing promised: the ratio of each peer's volume to the ellipsoid's.",
        measure=peers,
        promised=False,
        minutes=4,
    ),
)
