"""The card of dpp-sample. It holds strings only, so that listing the methods loads none."""

from armillary.method import Method, Paper, Verb

METHOD = Method(
    dist="dpp-sample",
    title="Choose K good and different answers out of N generated ones, by a determinantal "
    "point process",
    # The paper was read in abstract only; the derivations are this package's own.
    paper=Paper(
        title="A fixed-size determinantal point process over the strings of a language model "
        "(paper read in abstract only)",
        authors=(),
        venue="NeurIPS 2026",
        year=2026,
    ),
    demo="dpp_sample.demo:demo",
    claims="dpp_sample.claims:CLAIMS",
    verbs=(
        Verb("select", "dpp_sample.cli:select", "Choose K answers for every prompt of a file."),
        Verb("pareto", "dpp_sample.cli:pareto", "Quality against diversity, for every method."),
        Verb("check", "dpp_sample.cli:check", "Look at a file's pools: are they large enough?"),
        Verb("generate", "dpp_sample.cli:generate", "Draw candidates from a model in a folder."),
    ),
    extras={
        "hf": ("torch", "transformers", "accelerate", "gguf"),
        "sql": ("sqlglot",),
        "bench": ("dppy", "submodlib", "vendi_score", "sacrebleu", "arviz"),
    },
)
