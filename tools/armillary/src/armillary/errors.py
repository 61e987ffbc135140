"""The errors that a user meets: one line that says what, where, found, expected and the way out.

`InputError` is for what the caller gave, `MissingExtra` for a library that is not installed.
The commands print either as one line and exit with status 2.
"""

import re
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["ArmillaryError", "InputError", "MissingExtra", "one_line", "require"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def one_line(text: str) -> str:
    """A stranger's text as one line that a terminal shows and does not obey."""
    return _CONTROL.sub("\ufffd", " ".join(text.split()))


class ArmillaryError(Exception):
    """Base of every error that Armillary raises on purpose."""


class InputError(ArmillaryError, ValueError):
    """Something the caller gave cannot be used.

    Parameters
    ----------
    what
        The argument, column or file content at fault, or a whole statement about it.
    where
        The place: ``"pools.jsonl:17"``, ``"prompt q7"``, ``"row 3"``.
    found
        The value seen. Text is shown as it is, anything else by its repr.
    expected
        What would have been right.
    instead
        The way out: what the caller can do now.

    Examples
    --------
    >>> print(InputError("k", found=0, expected="a whole number >= 1"))
    k: expected a whole number >= 1, found 0
    >>> print(InputError("expected a JSON object", where="a.jsonl:17", found="'[1,2'"))
    a.jsonl:17: expected a JSON object, found '[1,2'
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        found: object = None,
        expected: str | None = None,
        instead: str | None = None,
    ) -> None:
        self.what = what
        self.where = where
        self.found = found
        self.expected = expected
        self.instead = instead
        super().__init__(self._line())

    def _line(self) -> str:
        line = self.what if self.where is None else f"{self.where}: {self.what}"
        if self.expected is not None:
            line += f": expected {self.expected}"
        if self.found is not None:
            line += f", found {self.found if isinstance(self.found, str) else repr(self.found)}"
        if self.instead is not None:
            line += f" ({self.instead})"
        return one_line(line)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception pickles by its positional arguments, which would lose the fields on the way
        # out of a worker process.
        return _rebuild, (type(self), dict(self.__dict__), self.args)


class MissingExtra(ArmillaryError, ImportError):
    """A library of an optional extra is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        self.module = module
        self.extra = extra
        super().__init__(f"{module} is not installed: pip install '{extra}'")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.module, self.extra)


def require(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or say which extra brings it.

    Parameters
    ----------
    module
        Dotted name to import, for example ``"torch"``.
    extra
        What to install, for example ``"dpp-sample[hf]"``.

    Raises
    ------
    MissingExtra
        If the module, or the package that holds it, is not installed. An import that fails for
        another reason is passed on as it is.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            raise MissingExtra(module, extra) from error
        raise


def _rebuild(cls: type[InputError], fields: dict[str, Any], args: tuple[Any, ...]) -> InputError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(fields)
    error.args = args
    return error
