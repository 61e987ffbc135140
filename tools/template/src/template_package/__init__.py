"""The mean of heavy-tailed data, by the median of block means."""

from importlib.metadata import version

from .block_means import Estimate as Estimate
from .block_means import blocks_for as blocks_for
from .block_means import median_of_means as median_of_means

__version__ = version("template-package")
