"""Forecast and reconstruct a dynamical system from a short recording, with two parameters.

Nothing is trained on your data: the recording is the model. `DynaBase` forecasts one series,
`forecast_panel` many; `rollout` is the bare map; `d_stsp` and `d_hellinger` say how well the
long-run behaviour is met. `dynabase.systems` has twelve systems to try, `dynabase.baselines` what
any forecast should beat.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import baselines as baselines
    from . import systems as systems
    from ._map import from_weights as from_weights
    from ._map import rollout as rollout
    from ._map import step as step
    from ._map import weights as weights
    from ._model import PRESETS as PRESETS
    from ._train import TrainResult as TrainResult
    from ._train import train as train
    from .embed import delay_embed as delay_embed
    from .embed import theiler_window as theiler_window
    from .explain import StepRecord as StepRecord
    from .fit import OneStepFit as OneStepFit
    from .fit import fit_horizon as fit_horizon
    from .fit import fit_one_step as fit_one_step
    from .forecaster import DynaBase as DynaBase
    from .intervals import PredictionInterval as PredictionInterval
    from .measures import d_hellinger as d_hellinger
    from .measures import d_stsp as d_stsp
    from .measures import itinerary_period as itinerary_period
    from .measures import mase as mase
    from .measures import valid_time as valid_time
    from .panel import forecast_panel as forecast_panel

__version__ = version("dynabase")

# Loaded when first asked for: the command's help needs none of it.
_HOME = {
    "from_weights": "_map",
    "rollout": "_map",
    "step": "_map",
    "weights": "_map",
    "PRESETS": "_model",
    "TrainResult": "_train",
    "train": "_train",
    "delay_embed": "embed",
    "theiler_window": "embed",
    "StepRecord": "explain",
    "OneStepFit": "fit",
    "fit_horizon": "fit",
    "fit_one_step": "fit",
    "DynaBase": "forecaster",
    "PredictionInterval": "intervals",
    "d_hellinger": "measures",
    "d_stsp": "measures",
    "itinerary_period": "measures",
    "mase": "measures",
    "valid_time": "measures",
    "forecast_panel": "panel",
    "baselines": "",
    "systems": "",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not home:
        return import_module(f".{name}", __name__)
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
