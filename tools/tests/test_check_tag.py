import pytest


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "packages" / "one-thing"
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project]\nname = "one-thing"\nversion = "0.2.0"\n')
    (folder / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0\n\nIt works.\n\n## 0.1.0\n")
    return tmp_path


def test_a_tag_that_agrees(check_tag, tree):
    assert check_tag.check_tree("one-thing-v0.2.0", tree) == ("one-thing", "0.2.0")


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("v0.2.0", "expected <distribution>-v<version>"),
        ("one-thing-v0.2", "expected <distribution>-v<version>"),
        ("one-thing-0.2.0", "expected <distribution>-v<version>"),
        ("../one-thing-v0.2.0", "expected <distribution>-v<version>"),
        ("other-v0.2.0", "no distribution other"),
        ("one-thing-v0.1.0", "the pyproject of one-thing says version 0.2.0"),
    ],
)
def test_a_tag_that_does_not(check_tag, tree, tag, message):
    with pytest.raises(ValueError, match=message):
        check_tag.check_tree(tag, tree)


def test_a_version_that_the_changelog_does_not_know(check_tag, tree):
    file = tree / "packages" / "one-thing" / "CHANGELOG.md"
    file.write_text(file.read_text().replace("## 0.2.0", "## 0.2.0rc1"))
    with pytest.raises(ValueError, match=r"has no section 0\.2\.0"):
        check_tag.check_tree("one-thing-v0.2.0", tree)


def test_the_built_files_must_be_just_those(check_tag, tmp_path):
    good = ("one_thing-0.2.0.tar.gz", "one_thing-0.2.0-py3-none-any.whl")
    for name in good:
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").touch()
    check_tag.check_built("one-thing", "0.2.0", tmp_path)

    (tmp_path / "armillary-0.1.0-py3-none-any.whl").touch()
    with pytest.raises(ValueError, match="armillary"):
        check_tag.check_built("one-thing", "0.2.0", tmp_path)
    with pytest.raises(ValueError, match=r"one_thing-0\.3\.0"):
        check_tag.check_built("one-thing", "0.3.0", tmp_path)


def test_the_command_says_it_in_one_line(check_tag, capsys):
    assert check_tag.main(["nonsense"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: nonsense: expected <distribution>-v<version>, such as dpp-sample-v0.2.0"
    ]


def test_the_core_in_the_tree_could_be_tagged(check_tag, root):
    text = (root / "tools" / "armillary" / "pyproject.toml").read_text("utf-8")
    version = text.split('\nversion = "')[1].split('"')[0]
    assert check_tag.check_tree(f"armillary-v{version}") == ("armillary", version)
