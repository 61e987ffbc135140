"""Five minutes with dynabase: a forecast with intervals, and a chaotic system run on."""

import numpy as np

from dynabase import DynaBase, d_hellinger, d_stsp
from dynabase.recordings import load
from dynabase.systems import split

# A year of sea surface temperature off Peru, from the 60 before. Nothing is trained.
sea = load("elnino")
model = DynaBase().fit(sea[:-12])
found = model.predict_interval(12, coverage=0.9)
inside = (found.lower <= sea[-12:]) & (sea[-12:] <= found.upper)
print(f"El Nino: mean error {np.abs(found.forecast - sea[-12:]).mean():.2f} degrees C,")
print(f"         {inside.sum()} of 12 months within the 90 % intervals")

# Where does the first step come from?
first = model.explain(1)[0]
print(f"         its nearest analogue is row {first.neighbours[0]} (of {len(sea) - 12})")

# 2,000 samples of Lorenz-63, run on for 5,000 steps, against what really followed.
context, truth = split("lorenz63", seed=2)
mean, scale = context.mean(axis=0), context.std(axis=0)
for alpha in ("parrot", "reconstruct"):
    surrogate = DynaBase(alpha).fit(context)
    free = surrogate.simulate(5_000)
    near = d_stsp((truth - mean) / scale, (free - mean) / scale)
    print(f"Lorenz-63, {alpha}: D_stsp {near:.2f}, D_H {d_hellinger(truth, free):.3f}")
