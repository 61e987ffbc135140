"""Begin a package: copy tools/template to packages/NAME under that name.

    python tools/new_package.py some-name     # or: nox -s new -- some-name, which tidies up too

The template is a working package, `template-package`, imported as `template_package`; a new one
differs by those names alone until you write your method into it. Its row in the table of the
root README is the only edit outside its folder.
"""

import keyword
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TABLE = re.compile(r"^\| package \|.*\n\|[ |-]+\|\n", re.MULTILINE)
ROW = re.compile(r"^\| \[`([a-z0-9-]+)`\]\(packages/\1\) \|.*\|$", re.MULTILINE)


def render(name: str, packages: Path, root: Path = ROOT) -> Path:
    """Write the package `name` into the folder `packages` and return its folder.

    Raises
    ------
    ValueError
        If the name cannot be a distribution's, or is taken.
    """
    module = name.replace("-", "_")
    if not NAME.fullmatch(name):
        raise ValueError(f"name: expected lower case words joined by hyphens, found {name!r}")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or name == "armillary":
        raise ValueError(f"name: {name!r} would hide another module")
    target = packages / name
    if target.exists():
        raise ValueError(f"name: packages/{name} exists already")
    template = root / "tools" / "template"
    for source in sorted(template.rglob("*")):
        inside = source.relative_to(template)
        if source.is_dir() or "__pycache__" in inside.parts:
            continue
        copy = target / str(inside).replace("template_package", module)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text("utf-8")
        text = text.replace("template-package", name).replace("template_package", module)
        copy.write_text(text, "utf-8")
    shutil.copy(root / "LICENSE", target / "LICENSE")
    return target


def with_row(readme: str, name: str) -> str:
    """The root README with a row for `name` in its table of packages, in alphabetical order.

    Raises
    ------
    ValueError
        If it has no such table.
    """
    table = TABLE.search(readme)
    if table is None:
        raise ValueError("README.md: no table of packages")
    earlier = [row.end() + 1 for row in ROW.finditer(readme) if row[1] < name]
    place = max([table.end(), *earlier])
    row = f"| [`{name}`](packages/{name}) | what it does, in one line |\n"
    return readme[:place] + row + readme[place:]


def main(arguments: list[str]) -> int:
    """Render the package that the arguments name."""
    if len(arguments) != 1:
        print("usage: nox -s new -- some-name", file=sys.stderr)
        return 2
    name = arguments[0]
    readme = ROOT / "README.md"
    try:
        listed = with_row(readme.read_text("utf-8"), name)
        target = render(name, ROOT / "packages")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    readme.write_text(listed, "utf-8")
    print(f"wrote {target.relative_to(ROOT)} and its row in README.md")
    print("next: method.py (the card), then your method in place of block_means.py, and")
    print(f"      nox -s tests -- packages/{name}, nox -s lint types, nox -s 'isolated({name})'")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
