# SPDX-License-Identifier: Apache-2.0
"""tools/release.py and tools/run_page.py: what keeps a checkout from being released, and what a person must do."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
ABIS = ("cp311", "cp312", "cp313", "cp314", "cp314t")
AARCH64 = "artifex_devices-1.2.0-cp311-cp311-manylinux_2_28_aarch64.whl"
WHEELS = [f"artifex_devices-1.2.0-{abi.rstrip('t')}-{abi}-manylinux_2_28_x86_64.whl" for abi in ABIS] + [AARCH64]
WORKFLOW = TOOLS.parent / ".github/workflows/release.yml"
DATED = {
    "CMakeLists.txt": "project(artifex_devices VERSION 1.2.0 LANGUAGES CXX)\n",
    "CHANGELOG.md": "# Changelog\n\n## [1.2.0] - 2026-11-23\n\n## [1.1.0] - 2026-01-01\n",
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.0\ndate-released: 2026-11-23\n",
}


def load(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release():
    return load("release")


@pytest.fixture
def checkout(tmp_path):
    """Writes files and commits them; returns their folder."""

    def write(**changed):
        for name, text in {**DATED, **changed}.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        for command in (
            ["init", "--quiet"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "all"],
        ):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        return tmp_path

    return write


def test_a_consistent_commit_has_no_problems(release, checkout):
    assert release.problems(checkout()) == []


def test_versions_that_differ_are_named(release, checkout):
    root = checkout(**{"CHANGELOG.md": "## [Unreleased]\n\n## [1.2.0]\n", "CITATION.cff": "version: 1.1.0\n"})
    assert release.problems(root) == [
        "CHANGELOG.md: the newest version is Unreleased; expected 1.2.0, as in CMakeLists.txt; edit one of them",
        "CITATION.cff: the newest version is 1.1.0; expected 1.2.0, as in CMakeLists.txt; edit one of them",
    ]


def test_the_tag_of_this_commit_is_not_a_problem(release, checkout):
    root = checkout()
    subprocess.run(["git", "tag", "v1.2.0"], cwd=root, check=True)
    assert release.problems(root) == []
    annotated = ["-c", "user.name=a", "-c", "user.email=a@b", "tag", "--force", "--annotate", "--message=m", "v1.2.0"]
    subprocess.run(["git", *annotated], cwd=root, check=True, capture_output=True)
    assert release.problems(root) == []


def test_changed_files_and_an_old_tag_are_problems(release, checkout):
    root = checkout()
    subprocess.run(["git", "tag", "v1.2.0"], cwd=root, check=True)
    checkout(**{"other.txt": ""})
    (root / "new.txt").write_text("", encoding="utf-8")
    assert release.problems(root) == [
        "git: 1 files differ from the commit; expected none; commit them",
        "git: another commit has the tag v1.2.0; expected a new version; raise it in CMakeLists.txt, CHANGELOG.md, "
        "CITATION.cff",
    ]


def test_a_complete_build_is_tagged_and_uploaded_by_hand(release, checkout):
    steps = release.left_to_do(checkout(), WHEELS)
    assert [step.partition(":")[0] for step in steps] == [
        "Wait for CI (`.ci/run`) to pass on this commit",
        "Tag it",
        "Publish a release for the tag with the section 1.2.0 of CHANGELOG.md",
        "Start the next version",
    ]


def test_missing_dates_and_wheels_come_first(release, checkout):
    root = checkout(**{"CHANGELOG.md": "## [1.2.0]\n", "CITATION.cff": "version: 1.2.0\n"})
    assert release.left_to_do(root, [*WHEELS[1:3], WHEELS[4], AARCH64])[:4] == [
        "Write the date into CHANGELOG.md: ## [1.2.0] - YYYY-MM-DD",
        "Write the date into CITATION.cff: date-released: YYYY-MM-DD",
        "Install Python 3.11, 3.14 with headers and venv: wheels for them are missing",
        "Run `make release` again",
    ]


def test_a_release_has_a_wheel_for_aarch64(release, checkout):
    assert release.left_to_do(checkout(), WHEELS[:5])[:2] == [
        "Install g++-aarch64-linux-gnu and qemu-user-static: the wheel for aarch64 is missing",
        "Run `make release` again",
    ]


@pytest.mark.parametrize(("user", "found", "targets"), [(0, None, 2), (1000, "/usr/bin/it", 2), (1000, None, 1)])
def test_the_wheel_for_aarch64_is_built_where_its_compiler_is_or_can_be_installed(
    release, checkout, monkeypatch, user, found, targets
):
    root = checkout()
    (root / "dist").mkdir()
    ran = []

    def run(command, env=None, **_):
        ran.append((Path(command[0]).name, (env or {}).get("TARGET")))
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(release, "ROOT", root)
    monkeypatch.setattr(release, "problems", lambda root: [])
    monkeypatch.setattr(release.subprocess, "run", run)
    monkeypatch.setattr(release.shutil, "which", lambda name: found)
    monkeypatch.setattr(release.os, "geteuid", lambda: user)
    monkeypatch.setattr("sys.argv", ["release.py"])
    release.main()
    assert [target for name, target in ran if name == "make_wheels.sh"] == [None, "aarch64"][:targets]


def test_an_incomplete_release_fails(release, checkout, monkeypatch, capsys):
    root = checkout()
    (root / "dist").mkdir()
    for wheel in WHEELS:
        (root / "dist" / wheel).touch()
    monkeypatch.setattr(release, "ROOT", root)
    monkeypatch.setattr(release, "problems", lambda root: [])
    monkeypatch.setattr(release.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    monkeypatch.setattr("sys.argv", ["release.py"])
    assert release.main() == 0
    (root / "dist" / WHEELS[0]).unlink()
    assert release.main() == 1
    assert "1. Install Python 3.11 with headers and venv" in capsys.readouterr().out


def test_this_checkout_has_one_version(release):
    root = TOOLS.parent
    found = {release._found(root / name, pattern) for name, pattern in release.VERSIONS.items()}
    assert found == {release.version_of(root)}


def test_the_workflow_publishes_what_it_has_tested(release):
    text = WORKFLOW.read_text(encoding="utf-8")
    assert re.search(r"^  PYTHONS: (.*)$", text, re.MULTILINE)[1].split() == list(release.PYTHONS)
    jobs = re.split(r"^  (\w+):\n(?=    )", text[text.index("\njobs:") :], flags=re.MULTILINE)
    assert jobs[1::2] == ["build", "test", "publish"]
    assert [re.findall(r"^    needs: (\w+)$", job, re.MULTILINE) for job in jobs[2::2]] == [[], ["build"], ["test"]]
    assert re.findall(r"runner: (\S+), python: (\S+) }", jobs[4]) == [
        ("ubuntu-24.04", '"3.11"'),
        ("ubuntu-24.04", '"3.12"'),
        ("ubuntu-24.04-arm", '"3.11"'),
    ]
    uses = re.findall(r"uses: (.*)", text)
    assert len(uses) == 6
    assert [use for use in uses if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []


def run_page(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return load("run_page").run_page(page)


def test_blocks_of_a_page_share_names_and_print_what_the_page_says(tmp_path):
    text = "```python\nx = 1\n```\n\n```sh\nfalse\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n"
    assert run_page(tmp_path, text) == (2, [], "")


def test_another_output_is_a_difference(tmp_path):
    blocks, _, difference = run_page(tmp_path, "```python\nprint(2)\n```\n\n```text\n1\n```\n")
    assert blocks == 1
    assert difference.splitlines()[-2:] == ["-1", "+2"]


def test_an_error_names_the_line_of_the_page(tmp_path):
    with pytest.raises(ZeroDivisionError) as raised:
        run_page(tmp_path, "# Title\n\n```python\nx = 1\nx / 0\n```\n")
    assert raised.traceback[-1].lineno + 1 == 5
