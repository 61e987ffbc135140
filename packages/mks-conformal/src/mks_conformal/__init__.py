"""Small, shape-adaptive prediction regions with guaranteed coverage, for any regressor."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .baselines import box_score as box_score
    from .baselines import ellipsoid_score as ellipsoid_score
    from .conformal import UnboundedRegionWarning as UnboundedRegionWarning
    from .conformal import conformal_quantile as conformal_quantile
    from .estimator import MKSRegressor as MKSRegressor
    from .full import full_conformal_pvalues as full_conformal_pvalues
    from .kernel_score import MultivariateKernelScore as MultivariateKernelScore
    from .kernels import Gaussian as Gaussian
    from .kernels import InverseMultiquadric as InverseMultiquadric
    from .kernels import Laplace as Laplace
    from .kernels import Linear as Linear
    from .kernels import Matern32 as Matern32
    from .online import OnlineCalibrator as OnlineCalibrator
    from .region import RegionSet as RegionSet
    from .score import mks_score as mks_score
    from .volume import PlateauWarning as PlateauWarning
    from .volume import VolumeEstimate as VolumeEstimate
    from .volume import VolumeWarning as VolumeWarning
    from .volume import region_volume as region_volume

# scikit-learn takes seconds to load, and the command's --help needs none of it
_HOME = {
    "Gaussian": "kernels",
    "InverseMultiquadric": "kernels",
    "Laplace": "kernels",
    "Linear": "kernels",
    "MKSRegressor": "estimator",
    "Matern32": "kernels",
    "MultivariateKernelScore": "kernel_score",
    "OnlineCalibrator": "online",
    "PlateauWarning": "volume",
    "RegionSet": "region",
    "UnboundedRegionWarning": "conformal",
    "VolumeEstimate": "volume",
    "VolumeWarning": "volume",
    "box_score": "baselines",
    "conformal_quantile": "conformal",
    "ellipsoid_score": "baselines",
    "full_conformal_pvalues": "full",
    "mks_score": "score",
    "region_volume": "volume",
}
__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]
__version__ = version("mks-conformal")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
