"""The card of the package: what the core shows of it without loading it."""

from armillary.method import Method, Paper, Verb

__all__ = ["METHOD"]

METHOD = Method(
    dist="mks-conformal",
    title="Small, shape-adaptive prediction regions with guaranteed coverage",
    paper=Paper(
        title="A Kernel Nonconformity Score for Multivariate Conformal Prediction",
        authors=("L. Meyer", "W. Xu"),
        venue="arXiv preprint",
        year=2026,
        arxiv="2604.21595",
    ),
    demo="mks_conformal.demo:demo",
    claims="mks_conformal.claims:CLAIMS",
    verbs=(
        Verb("fit", "mks_conformal.cli:fit", "Fit a regressor to a table and save its region"),
        Verb("calibrate", "mks_conformal.cli:calibrate", "Region for predictions of any model"),
        Verb("contains", "mks_conformal.cli:contains", "Test candidate vectors against a region"),
        Verb("volume", "mks_conformal.cli:volume", "Volume of a saved region"),
        Verb("plot", "mks_conformal.cli:plot", "Draw a saved region over two outputs"),
        Verb("compare", "mks_conformal.cli:compare", "Compare the scores on your own pairs"),
    ),
    extras={
        "data": ("plotnine", "linearmodels"),
        "bench": ("mapie", "ot", "torch"),
    },
)
