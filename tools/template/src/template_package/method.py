"""The card of template-package. It holds strings only, so that listing the methods loads none."""

from armillary.method import Method, Paper, Verb

METHOD = Method(
    dist="template-package",
    title="The mean of heavy-tailed data, by the median of block means",
    paper=Paper(
        title="Mean estimation and regression under heavy-tailed distributions: a survey",
        authors=("Gábor Lugosi", "Shahar Mendelson"),
        venue="Foundations of Computational Mathematics 19, 1145-1190",
        year=2019,
        arxiv="1906.04280",
        doi="10.1007/s10208-019-09427-x",
    ),
    demo="template_package.demo:demo",
    claims="template_package.claims:CLAIMS",
    verbs=(
        Verb(
            "estimate",
            "template_package.cli:estimate",
            "Estimate the mean of one column of a CSV or Parquet file.",
        ),
    ),
)
