"""The claims that `dynabase reproduce` measures.

C1 to C10 restate the paper's abstract in numbers; R1 to R3 are ours, on real data.
"""

from armillary.claims import Claim

from . import cost, real, reconstruction, theory

CLAIMS = (
    Claim(
        "C1",
        "context parroting is one end of the family",
        "alpha = 0 equals an independent parrot to the last bit",
        theory.parroting,
        minutes=0.5,
    ),
    Claim(
        "C2",
        "the other end is chaotic: divergent, yet bounded",
        "orbits part at the rate ln alpha; periodic itineraries below 1, none from 1 on; the trust "
        "radius bounds every orbit",
        theory.chaos,
        minutes=0.5,
    ),
    Claim(
        "C3",
        "one-step training has a closed form",
        "equals an optimizer's answer; alpha* within 0.93 .. 1.01 on clean flows; one-step errors "
        "at most 0.4 of parroting's",
        theory.closed_form,
        minutes=1,
    ),
    Claim(
        "C4",
        "zero-shot reconstruction of chaos is competitive",
        "wins over parroting in 80 % of pairs, D_stsp ratio at most 0.8, no excess over the "
        "context's own histogram",
        reconstruction.zero_shot,
        minutes=1.5,
    ),
    Claim(
        "C5",
        "the training goal decides the parameters",
        "forecasts want alpha below 1 (0.8 .. 0.98 at 50 steps), reconstruction above (1 .. 1.01)",
        reconstruction.goals,
        minutes=0.5,
    ),
    Claim(
        "C6",
        "cyclic systems are reconstructed too",
        "D_stsp at most 0.1, D_H at most 0.01 on two limit cycles",
        reconstruction.cycles,
        minutes=0.5,
    ),
    Claim(
        "C7",
        "the measures of reconstruction can be optimized directly",
        "alpha within 1 .. 1.0125 on every half of the systems; on the other half a D_stsp ratio "
        "below 0.85 to parroting, wins in 75 % of pairs",
        reconstruction.trained,
        promised=False,  # the range of alpha is exceeded on a few halves, as the README says
    ),
    Claim(
        "C8",
        "two parameters, far below the peers",
        "2 against some 10,000 of DynaMix; at least 20 times faster a step than pyEDM's simplex",
        cost.lean,
        minutes=0.5,
    ),
    Claim(
        "C9",
        "foundation models fail where two parameters succeed",
        "D_stsp of a small pretrained network at least twice that of the preset on Lorenz-63",
        cost.foundation,
    ),
    Claim(
        "C10",
        "the mechanism is minimal: each part earns its place",
        "without the neighbour's successor one-step errors are at least 3 times as large, with "
        "alpha = 0 twice; beta changes them by less than 10 %",
        cost.ladder,
    ),
    Claim(
        "R1",
        "(ours) real series of nature are forecast about as well as by established methods",
        "El Nino: MASE 0.93 +- 0.05 with 10 neighbours, better than seasonal naive; sunspots: a "
        "linear autoregression is better",
        real.measured_series,
        minutes=1.5,
    ),
    Claim(
        "R2",
        "(ours) intervals cover as often as they say",
        "90 % intervals cover 85 .. 99 %",
        real.intervals,
    ),
    Claim(
        "R3",
        "(ours) short trending business series are better served by others",
        "M3 monthly: between seasonal naive and a pretrained network",
        real.business,
        minutes=2,
    ),
)
