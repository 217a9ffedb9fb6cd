# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, run by pytest itself."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "how_to" / "test_with_pytest.md"
IMPORTS = "import artifex_devices as ad, numpy as np, pytest\n"


@pytest.fixture
def run(pytester):
    """run(text of a test file, *arguments) runs it and returns its result."""

    def run_file(text, *arguments):
        pytester.makepyfile(test_worlds=IMPORTS + text)
        return pytester.runpytest_inprocess("-p", "no:randomly", *arguments)

    return run_file


def test_fixtures_open_a_world_of_8_devices(run):
    result = run("""
def test_devices(artifex_devices, artifex_mesh):
    assert [device.id for device in artifex_devices] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert artifex_devices == ad.devices()
    assert artifex_mesh.devices.tolist() == artifex_devices
    assert (dict(artifex_mesh.shape), artifex_mesh.axis_types) == ({"x": 8}, (ad.AxisType.Auto,))
""")
    result.assert_outcomes(passed=1)


def test_the_world_ends_with_the_test(run):
    result = run("""
worlds = []

@pytest.mark.artifex_devices(3)
def test_inside():
    worlds.append(ad.devices()[0].client)
    assert ad.device_count() == 3

def test_outside():
    assert ad.devices()[0].client is not worlds[0]
""")
    result.assert_outcomes(passed=2)


def test_a_mark_runs_a_test_in_each_world(run):
    result = run(
        """
@pytest.mark.artifex_devices(1, 8, 64)
def test_one(artifex_devices): assert len(artifex_devices) == ad.device_count()

@pytest.mark.artifex_devices("2 nodes x 4")
class TestTwo:
    def test_node(self): assert ad.devices()[7].numa_nodes == [1]

    @pytest.mark.artifex_devices(2)
    def test_closest(self, artifex_mesh): assert artifex_mesh.size == 2
""",
        "-v",
    )
    assert re.findall(r"^test_worlds\.py::(\S+) PASSED", result.stdout.str(), re.MULTILINE) == [
        "test_one[1-device]",
        "test_one[8-devices]",
        "test_one[64-devices]",
        "TestTwo::test_node[2-nodes-x-4]",
        "TestTwo::test_closest[2-devices]",
    ]


def test_a_mark_of_a_module_applies_to_all_its_tests(run):
    result = run("""
pytestmark = pytest.mark.artifex_devices(5)

@pytest.fixture
def rows(artifex_mesh): return ad.device_put(np.zeros((5, 1)), ad.NamedSharding(artifex_mesh, ad.P("x")))

def test_marked(rows): assert len(rows.sharding.device_set) == ad.device_count() == 5

@pytest.mark.parametrize("size", [1, 2])
def test_other_parameters(size, artifex_devices): assert len(artifex_devices) == 5
""")
    result.assert_outcomes(passed=3)


def test_the_world_is_open_before_other_fixtures_of_a_marked_test(run):
    result = run("""
@pytest.fixture
def count(): return ad.device_count()

@pytest.mark.artifex_devices(6)
def test_count(count): assert count == 6
""")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "got"), [("artifex_devices()", r"\(\) and {}"), ("artifex_devices(8, size=2)", r"\(8,\) and {'size': 2}")]
)
def test_a_wrong_mark_is_a_usage_error(run, mark, got):
    result = run(f"@pytest.mark.{mark}\ndef test_it(): pass\n")
    assert result.ret != 0
    assert re.search(
        rf"test_worlds.py::test_it: the mark artifex_devices has the arguments {got}; expected numbers of devices or "
        r"descriptions of worlds; write @pytest.mark.artifex_devices\(1, 8\)",
        result.stdout.str() + result.stderr.str(),
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--devices 8", "--devices is not an option of artifex_devices; write @pytest.mark.artifex_devices(8)"),
        ("--artifex-processes=2", "write @pytest.mark.artifex_processes(2) above the test"),
        ("--schedules 3", "--schedules is not an option of artifex_devices; write --artifex-schedules"),
    ],
)
def test_options_that_people_try_are_refused_with_a_hint(run, words, text):
    result = run("def test_it(): pass\n", *words.split())
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert text in result.stderr.str()


def test_a_project_may_have_an_option_of_such_a_name(run, pytester):
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--devices', type=int)")
    result = run("def test_it(request): assert request.config.getoption('devices') == 8\n", "--devices", "8")
    result.assert_outcomes(passed=1)


def test_an_option_writes_golden_files(run, pytester):
    text = """
def test_it(spec=ad.P("data")):
    ad.audit.assert_matches({"w": (spec, (8, 4))}, "golden/w.json")
"""
    first = run(text)
    first.assert_outcomes(failed=1)
    first.stdout.fnmatch_lines("*there is no golden file 'golden/w.json'*write it by pytest --update-audit*")
    run(text, "--update-audit").assert_outcomes(passed=1)
    golden = pytester.path / "golden" / "w.json"
    assert '"spec": ["data"]' in golden.read_text()
    run(text).assert_outcomes(passed=1)
    run(text.replace('"data"', '"model"', 1)).stdout.fnmatch_lines("*~ ?'w'?: P('data') -> P('model')")
    assert '"spec": ["data"]' in golden.read_text()


def test_the_mark_is_registered(run):
    result = run("@pytest.mark.artifex_devices(2)\ndef test_it(): pass\n", "--strict-markers")
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("option", "pattern", "added"),
    [
        ("--fixtures", r"^(\w+)(?: \[| -- )", {"artifex_devices", "artifex_mesh", "artifex_processes"}),
        ("--markers", r"^@pytest\.mark\.(\w+)", {"artifex_devices", "artifex_processes"}),
        (
            "--help",
            r"^ +(--?[\w-]+|\w+ \()",
            {"--artifex-real-processes", "--artifex-schedule-seed", "--artifex-schedules", "--update-audit"},
        ),
    ],
)
def test_all_names_but_one_begin_with_artifex(pytester, option, pattern, added):
    """Other names could replace those of another test suite."""

    def names(*arguments):
        result = pytester.runpytest_subprocess("-p", "no:xdist", option, *arguments)
        return set(re.findall(pattern, result.stdout.str(), re.MULTILINE))

    without = names("-p", "no:artifex_devices")
    assert len(without) >= 10
    assert names() - without == added


def test_pytest_starts_without_loading_the_library(pytester, monkeypatch):
    # Other plugins import what they need: pytest-run-parallel imports Hypothesis.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile("def test_it(): pass")
    pytester.makeconftest(
        """
import sys

def pytest_unconfigure(config):
    loaded = [name for name in ("artifex_devices", "numpy", "hypothesis.strategies") if name in sys.modules]
    print("plugin:", config.pluginmanager.has_plugin("artifex_devices"), "loaded:", loaded)
"""
    )
    result = pytester.runpytest_subprocess("-p", "artifex_devices")
    result.stdout.fnmatch_lines(["plugin: True loaded: []"])


def test_tests_of_the_guide_pass_or_fail_as_it_shows(pytester):
    blocks = re.findall(r"(?ms)^```(python|text)\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"))
    assert [language for language, _ in blocks].count("text") == 3
    for number, (language, code) in enumerate(blocks):
        if language != "python":
            continue
        pytester.makepyfile(test_worlds=code)
        result = pytester.runpytest_inprocess("-v", "-p", "no:cacheprovider")
        shown = blocks[number + 1][1] if number + 1 < len(blocks) and blocks[number + 1][0] == "text" else ""
        lines = [re.sub(r"^E|\[ *\d+%\]$", "", line).strip() for line in result.stdout.lines]
        assert [line for line in shown.splitlines() if line.strip() not in lines] == [], result.stdout.str()
        assert result.ret == (1 if "AssertionError" in shown else 0), result.stdout.str()
