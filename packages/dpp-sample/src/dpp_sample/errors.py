"""What can go wrong with a pool: too little rank to choose from, and figures to be wary of."""

from armillary import InputError

__all__ = ["PoolWarning", "RankError", "rank_error"]


class RankError(InputError):
    """The rows span too few dimensions: every set of k of them has volume zero."""

    rank: int | None = None  # how many can be chosen


class PoolWarning(UserWarning):
    """The pool is too small, or its weights too uneven, for the figures to be trusted."""


def rank_error(rank: int, k: int, n: int) -> RankError:
    """The error of `n` distinct rows of that rank where k should be chosen."""
    error = RankError(
        "features",
        found=f"rank {rank} among {n} distinct rows",
        expected=f"a rank of at least k = {k}",
        instead='add lexical features or fill="quality"',
    )
    error.rank = rank
    return error
