"""Choose K good and different answers out of N generated ones, by a determinantal point process.

`make_pool` takes candidates with their log-probs and embeddings, `select` chooses among them, and
`pareto` shows what diversity costs. `KDPP` and `greedy_map` are the method on plain arrays.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from .bias import pool_bias as pool_bias
from .errors import PoolWarning as PoolWarning
from .errors import RankError as RankError
from .frontier import ParetoPoint as ParetoPoint
from .frontier import pareto as pareto
from .greedy import MapResult as MapResult
from .greedy import greedy_map as greedy_map
from .kdpp import KDPP as KDPP
from .pool import Pool as Pool
from .pool import make_pool as make_pool
from .refresh import iterated_select as iterated_select
from .result import Selection as Selection
from .selection import select as select
from .symmetric import log_esp as log_esp
from .weights import Weights as Weights

if TYPE_CHECKING:
    from . import baselines as baselines
    from . import clusters as clusters
    from . import features as features
    from . import metrics as metrics
    from . import sources as sources

__version__ = version("dpp-sample")

_MODULES = ("baselines", "clusters", "features", "metrics", "sources")


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # each brings more than the method needs
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
