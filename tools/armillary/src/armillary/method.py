"""A package's card: what it is, which paper it follows, where its demo, claims and verbs are.

Each package exposes one `Method` through the entry point group ``armillary.methods``. A card
holds strings only, so that listing the methods of an environment loads none of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points, version

__all__ = ["GROUP", "Method", "Paper", "Verb", "methods"]

GROUP = "armillary.methods"


@dataclass(frozen=True)
class Paper:
    """The paper that a method comes from."""

    title: str
    authors: tuple[str, ...]
    venue: str
    year: int
    arxiv: str | None = None
    doi: str | None = None
    url: str | None = None

    @property
    def citation(self) -> str:
        """One line to cite the paper by; unknown authors are left out."""
        names = ", ".join(self.authors)
        where = f"{self.venue}, {self.year}" if str(self.year) not in self.venue else self.venue
        link = f" arXiv:{self.arxiv}." if self.arxiv else f" doi:{self.doi}." if self.doi else ""
        return f"{names + '. ' if names else ''}{self.title}. {where}.{link}"


@dataclass(frozen=True)
class Verb:
    """One verb of a package's command: its name, its function and its line of help.

    The help stands here too, since reading it from the docstring would import the function's
    module each time the verbs are listed.
    """

    name: str
    function: str  # "package.cli:fit"
    help: str


@dataclass(frozen=True)
class Method:
    """The card of one package."""

    dist: str
    title: str
    paper: Paper
    demo: str  # "package.demo:demo"
    claims: str  # "package.claims:CLAIMS"
    verbs: tuple[Verb, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def import_name(self) -> str:
        """The distribution's name as Python imports it."""
        return self.dist.replace("-", "_")

    @property
    def version(self) -> str:
        """The installed version."""
        return version(self.dist)


def methods() -> dict[str, Method]:
    """Cards of all methods installed in this environment, by distribution name, in order.

    Raises
    ------
    TypeError
        If an installed entry point is not a `Method`: a fault of that package.
    """
    found: dict[str, Method] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        method = entry.load()
        if not isinstance(method, Method):
            raise TypeError(f"entry point {entry.name} ({entry.value}) is not an armillary Method")
        found[method.dist] = method
    return found
