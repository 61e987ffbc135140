"""Regions for three outputs of a forest, and what they can be asked."""

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from mks_conformal import MKSRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 4))
noise = rng.exponential(size=(1200, 3)) - 1.0  # skewed: no ellipsoid fits it
Y = X[:, :3] + noise

model = MKSRegressor(RandomForestRegressor(50, min_samples_leaf=3), alpha=0.1, random_state=0)
model.fit(X[:1000], Y[:1000])

region = model.predict_region(X[1000:])
print("coverage on 200 new rows:", region.contains(Y[1000:]).mean())
print("p-value of the first truth:", region.pvalue(Y[1000:])[0].round(3))

volume = region.volume(rng=0)
print(f"volume: {volume.value:.1f} +- {volume.se:.1f}")
print("box that encloses the first region:", region.bounding_box(0).round(2).tolist())

rest = region.condition({0: Y[1000, 0]}, i=0)  # output 0 is known by now
print(f"left for the other two: {rest.volume(rng=0).value:.1f}")
print("two points of it:", rest.sample(2, rng=0).round(2).tolist())
