"""The command template-package."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from armillary.cli import Common, CommonOptions, command
from armillary.run import Run

from .method import METHOD

main = command(METHOD)


def estimate(
    file: Path,
    /,
    *,
    column: str,
    blocks: Annotated[int | None, Parameter(name=["--blocks", "-b"])] = None,
    delta: float = 0.01,
    common: CommonOptions = Common(),
) -> None:
    """Estimate the mean of one column of a CSV or Parquet file.

    Parameters
    ----------
    file
        The table.
    column
        The column with the values.
    blocks
        How many blocks; by default as many as `--delta` asks for.
    delta
        Probability of an error above 2 sigma / sqrt(values in a block).
    """
    from armillary.files import read_table, write_csv

    from .block_means import blocks_for, median_of_means

    params = {"column": column, "blocks": blocks, "delta": delta}
    with Run(METHOD, "estimate", common, params) as run:
        table = read_table(run.input(file), number=[column], required=[column])
        values = table[column].to_numpy(dtype=float)
        found = median_of_means(values, blocks or blocks_for(delta), rng=run.seed)
        run.metrics |= {
            "median_of_means": found.value,
            "mean": values.mean(),
            "blocks": len(found.block_means),
            "block_size": found.block_size,
            "confidence": found.confidence,
        }
        rows = [{"block": i, "mean": mean} for i, mean in enumerate(found.block_means.tolist())]
        write_csv(run.path("block_means.csv"), rows)
