"""Choose 4 different answers out of 12, in three ways."""

import numpy as np

import dpp_sample as dpp

answers = [
    "Plant more trees along the streets.",
    "Plant more trees.",
    "More trees in every street.",
    "Build safe lanes for bicycles.",
    "Safe bicycle lanes everywhere.",
    "Make buses free.",
    "Free buses for everyone.",
    "Open the schoolyards on weekends.",
    "Turn parking lots into small parks.",
    "Quiet zones at night.",
    "Public toilets that are clean.",
    "Trees, trees, trees.",
]
logprob = np.array([-9, -8, -11, -10, -12, -9, -11, -15, -14, -16, -17, -13.0])

pool = dpp.make_pool(answers, dpp.features.LexicalEmbedder()(answers), logprob=logprob)

print("the 4 most probable:")
for row in dpp.baselines.top_k(logprob, 4):
    print("   ", answers[row])

best = dpp.select(pool, 4)  # the set that is most probable under the determinantal law
print(f"good and different (MAP, beta {best.beta:.3f}, log det {best.log_det:.2f}):")
for text in best.texts or []:
    print("   ", text)

drawn = dpp.select(pool, 4, method="sample", beta=1.0, rng=0)
print(f"a draw from the law (its log-probability {drawn.log_prob:.2f}):")
for text in drawn.texts or []:
    print("   ", text)
