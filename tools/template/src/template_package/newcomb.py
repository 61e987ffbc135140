"""Newcomb's measurements of the speed of light, the data of the demo.

Simon Newcomb timed light over 7,442 m in Washington in 1882 and published 66 passage times
("Measures of the velocity of light made under direction of the Secretary of the Navy",
Astronomical Papers 2, 1891). They are kept here as he coded them, in nanoseconds above 24,800.
Two are wild; Newcomb himself discussed what to do with the worst. Today's speed of light gives 33
in this coding, so his apparatus had a bias that no way of averaging can remove. Public domain.
"""

import numpy as np

TODAY = 33.0  # ns above 24,800
PASSAGE_TIMES = np.fromstring(
    """
    28 26 33 24 34 -44 27 16 40 -2 29 22 24 21 25 30 23 29 31 19 24 20
    36 32 36 28 25 21 28 29 37 25 28 26 30 32 36 26 30 22 36 23 27 27
    28 27 31 27 26 33 26 32 32 24 39 28 24 25 32 25 29 27 28 29 16 23
    """,
    sep=" ",
)
