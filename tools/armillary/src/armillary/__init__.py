"""The common core of the Armillary libraries.

The package itself exports the errors alone, so that a method that raises `InputError` loads
nothing else. Everything else is imported by module: `armillary.cli`, `armillary.run`,
`armillary.claims`, `armillary.files` and so on.
"""

from importlib.metadata import version

from .errors import ArmillaryError as ArmillaryError
from .errors import InputError as InputError
from .errors import MissingExtra as MissingExtra
from .errors import require as require

__version__ = version("armillary")
