"""Estimate the mean of heavy-tailed values, and see what a few wild ones do to it."""

import numpy as np

from template_package import blocks_for, median_of_means

rng = np.random.default_rng(0)
values = rng.standard_t(2.1, 1_000) + 10  # the true mean is 10
values[:3] = 5_000.0  # three records with the decimal point lost

found = median_of_means(values, blocks_for(0.01), rng=0)
print(f"mean             {values.mean():8.3f}")
print(f"median of means  {found.value:8.3f}  (confidence {found.confidence:.3f})")
