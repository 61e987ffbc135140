"""Check that a release tag agrees with the tree, and with the files built from it.

    python tools/check_tag.py dpp-sample-v0.2.0         # prints the distribution's name
    python tools/check_tag.py dpp-sample-v0.2.0 dist    # and looks at what was built

A tag `<dist>-v<version>` must name a distribution of this repository, the version that its
pyproject states, and a version that its changelog describes. The built folder must hold the
sdist and the wheel of just that version. Anything else ends with one line and status 1.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def folder_of(dist: str, root: Path = ROOT) -> Path:
    """The folder of a distribution: the core lies under tools/, the others under packages/."""
    return root / "tools" / dist if dist == "armillary" else root / "packages" / dist


def check_tree(tag: str, root: Path = ROOT) -> tuple[str, str]:
    """Distribution and version of a tag, if they agree with the tree.

    Raises
    ------
    ValueError
        If they do not.
    """
    match = re.fullmatch(r"([a-z0-9-]+)-v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)", tag)
    if match is None:
        raise ValueError(f"{tag}: expected <distribution>-v<version>, such as dpp-sample-v0.2.0")
    dist, version = match.groups()
    pyproject = folder_of(dist, root) / "pyproject.toml"
    if not pyproject.is_file():
        raise ValueError(f"{tag}: no distribution {dist} in this repository")
    stated = tomllib.loads(pyproject.read_text("utf-8"))["project"]["version"]
    if stated != version:
        raise ValueError(f"{tag}: the pyproject of {dist} says version {stated}")
    changelog = (folder_of(dist, root) / "CHANGELOG.md").read_text("utf-8")
    if not re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        raise ValueError(f"{tag}: the changelog of {dist} has no section {version}")
    return dist, version


def check_built(dist: str, version: str, folder: Path) -> None:
    """Check that a folder holds one sdist and one wheel, both of this version.

    Raises
    ------
    ValueError
        If it holds anything else.
    """
    stem = f"{dist.replace('-', '_')}-{version}"
    expected = {f"{stem}.tar.gz", f"{stem}-py3-none-any.whl"}
    found = {file.name for file in folder.iterdir() if not file.name.startswith(".")}
    if found != expected:
        raise ValueError(f"{folder}: expected {sorted(expected)}, found {sorted(found)}")


def main(arguments: list[str]) -> int:
    """Check what the arguments name; print the distribution."""
    try:
        dist, version = check_tree(arguments[0])
        if len(arguments) > 1:
            check_built(dist, version, Path(arguments[1]))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(dist)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
