"""What the sessions decide: which packages a change touches, and what uv is told of pip."""

import subprocess

import pytest


@pytest.fixture
def git(tmp_path):
    """Run git in the small repository of `tree`."""

    def run(*arguments):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    return run


@pytest.fixture
def tree(tmp_path, git, noxfile, monkeypatch):
    """A small repository with the core and two packages, and one commit on main."""
    packages = {name: tmp_path / "packages" / name for name in ("one", "two")}
    everything = {"armillary": tmp_path / "tools" / "armillary", **packages}
    monkeypatch.setattr(noxfile, "ROOT", tmp_path)
    monkeypatch.setattr(noxfile, "PACKAGES", packages)
    monkeypatch.setattr(noxfile, "DISTRIBUTIONS", everything)
    for folder in everything.values():
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").touch()
    git("init", "-q", "-b", "main")
    git("config", "user.email", "test@example.org")
    git("config", "user.name", "test")
    git("add", ".")
    git("commit", "-q", "-m", "begin")
    return tmp_path


def test_nothing_changed_touches_nothing(tree, noxfile):
    assert noxfile.touched("main") == []


@pytest.mark.parametrize("how", ["new", "staged", "committed", "removed"])
def test_a_file_of_a_package_touches_that_package(tree, git, noxfile, how):
    if how == "removed":
        (tree / "packages/two/pyproject.toml").unlink()
    else:
        (tree / "packages/two/code.py").write_text("x = 1\n")
    if how in ("staged", "committed"):
        git("add", ".")
    if how == "committed":
        git("commit", "-q", "-m", "change")
    assert noxfile.touched("HEAD~1" if how == "committed" else "main") == ["two"]


@pytest.mark.parametrize("file", ["tools/armillary/core.py", "noxfile.py", ".github/ci.yml"])
def test_what_all_share_touches_all(tree, noxfile, file):
    (tree / file).parent.mkdir(exist_ok=True)
    (tree / file).write_text("x = 1\n")
    assert noxfile.touched("main") == ["armillary", "one", "two"]


def test_texts_for_people_touch_nothing(tree, noxfile):
    (tree / "README.md").write_text("hello\n")
    (tree / "docs").mkdir()
    (tree / "docs" / "page.html").write_text("hello\n")
    assert noxfile.touched("main") == []


def test_only_this_branch_counts_not_what_main_did_since(tree, git, noxfile):
    for branch, name in (("ours", "one"), ("main", "two")):
        git("switch", "-q", *(["-c"] if branch == "ours" else []), branch)
        (tree / "packages" / name / "code.py").touch()
        git("add", ".")
        git("commit", "-q", "-m", "change")
    git("switch", "-q", "ours")
    assert noxfile.touched("main") == ["one"]


def test_an_unknown_reference_is_refused(tree, noxfile):
    with pytest.raises(SystemExit, match="git knows no commit 'nosuch'"):
        noxfile.touched("nosuch")


@pytest.fixture
def no_settings(monkeypatch):
    for name in ("UV_FIND_LINKS", "UV_DEFAULT_INDEX", "PIP_FIND_LINKS", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def test_uv_is_told_of_the_wheel_folders_that_exist(noxfile, no_settings, monkeypatch, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    told = f"{tmp_path}/a {tmp_path}/gone\n{tmp_path}/b https://example.org/wheels"
    monkeypatch.setenv("PIP_FIND_LINKS", told)
    monkeypatch.setenv("UV_FIND_LINKS", "")  # so that monkeypatch puts it back
    monkeypatch.delenv("UV_FIND_LINKS")
    noxfile.follow_pip()
    joined = f"{tmp_path}/a,{tmp_path}/b,https://example.org/wheels"
    assert noxfile.os.environ["UV_FIND_LINKS"] == joined


def test_what_the_user_told_uv_stands(noxfile, no_settings, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_FIND_LINKS", "mine")
    noxfile.follow_pip()
    assert noxfile.os.environ["UV_FIND_LINKS"] == "mine"


def test_every_package_has_its_isolated_session(noxfile, root):
    folders = {file.parent.name for file in root.glob("packages/*/pyproject.toml")}
    assert set(noxfile.PACKAGES) == folders
    assert set(noxfile.DISTRIBUTIONS) == {"armillary", *folders}
