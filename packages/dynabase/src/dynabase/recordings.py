"""Three real series that come with the package, for the demo, the claims and a first try.

* ``elnino`` - sea surface temperature off Peru (Nino 1+2) in degrees Celsius, monthly, 1950-2010:
  732 values of ERSST V3B (NOAA, public domain)
* ``sunspots`` - yearly sunspot numbers, 1700-2008: 309 values (NOAA, public domain)
* ``lynx`` - Canadian lynx trapped a year in the Mackenzie River district, 1821-1934: 114 counts
  (Elton & Nicholson 1942, Journal of Animal Ecology 11)
"""

from importlib.resources import files
from pathlib import Path

import numpy as np
from jaxtyping import Float

from armillary import InputError

SEASONS = {"elnino": 12, "sunspots": 11, "lynx": 10}
"""Samples in a season, or near it: a year, a solar cycle, a cycle of the lynx."""


def path(name: str) -> Path:
    """The CSV file of a series, with columns ``ds`` and ``y``."""
    if name not in SEASONS:
        raise InputError("name", found=name, expected=f"one of {', '.join(SEASONS)}")
    return Path(str(files("dynabase").joinpath("data", f"{name}.csv")))


def load(name: str) -> Float[np.ndarray, " T"]:
    """The values of a series, in time order."""
    return np.loadtxt(path(name), delimiter=",", skiprows=1, usecols=1)
