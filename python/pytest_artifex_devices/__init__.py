# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin of artifex_devices: tests in worlds of simulated devices, and in several processes.

pytest imports each installed plugin at its start, for the tests of any project. This package is not a part of
artifex_devices because importing that one would load NumPy and the C++ core; the fixtures do so when a test uses them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_artifex_devices import processes

if TYPE_CHECKING:
    import artifex_devices as ad

_DEFAULT_WORLD = 8
_OPTIONS = {  # that people try, and what to write
    "--devices --artifex-devices": "@pytest.mark.artifex_devices(8) above the test",
    "--processes --artifex-processes": "@pytest.mark.artifex_processes(2) above the test",
    "--real-processes": "--artifex-real-processes",
    "--schedules": "--artifex-schedules",
    "--schedule-seed": "--artifex-schedule-seed",
    "--artifex-update-audit --audit-update --update-golden": "--update-audit",
}
_UPDATE_AUDIT = "ARTIFEX_UPDATE_AUDIT"  # which artifex_devices.audit.assert_matches reads
_EXAMPLES = {"artifex_devices": "1, 8", "artifex_processes": "1, 2, 4"}  # by mark, which has the name of its fixture


@pytest.fixture
def artifex_devices(request: pytest.FixtureRequest) -> Iterator[list[ad.Device]]:
    """Returns the devices of the test's world: 8, or the number of `@pytest.mark.artifex_devices(...)`."""
    import artifex_devices as ad

    with ad.simulate(getattr(request, "param", _DEFAULT_WORLD)):
        yield ad.devices()


@pytest.fixture
def artifex_mesh(artifex_devices: list[ad.Device]) -> ad.Mesh:
    """Returns a mesh of all simulated devices along one Auto axis "x"."""
    import artifex_devices as ad

    return ad.make_mesh((len(artifex_devices),), ("x",), (ad.AxisType.Auto,), devices=artifex_devices)


@pytest.fixture
def artifex_processes(request: pytest.FixtureRequest) -> int:
    """Returns the number of processes in which the test runs: 1, or one of `@pytest.mark.artifex_processes(...)`."""
    count: int = getattr(request, "param", 1)
    return count


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of tests in several processes, and of golden files."""
    group = parser.getgroup("artifex_devices")
    group.addoption(
        "--update-audit",
        action="store_true",
        help="write the golden files of artifex_devices.audit.assert_matches in place of comparing them",
    )
    group.addoption(
        "--artifex-real-processes",
        action="store_true",
        help="run tests marked artifex_processes under mpiexec, not simulated",
    )
    group.addoption(
        "--artifex-schedules",
        type=int,
        default=1,
        metavar="N",
        help="run tests marked artifex_processes under N schedules",
    )
    group.addoption(
        "--artifex-schedule-seed", type=int, metavar="SEED", help="the first schedule, by default the mark's"
    )


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> Generator[None, None, None]:
    """Refuses options that neither pytest nor a plugin has, with what to write instead."""
    yield
    for names, hint in _OPTIONS.items():
        tried = [word for word in args if word.partition("=")[0] in names.split()]
        if tried and set(tried) & set(parser.parse_known_and_unknown_args(args)[1]):
            raise pytest.UsageError(f"{tried[0]} is not an option of artifex_devices; write {hint}")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marks, and asks for golden files to be written."""
    if config.getoption("--update-audit"):
        before = os.environ.get(_UPDATE_AUDIT)
        os.environ[_UPDATE_AUDIT] = "1"
        config.add_cleanup(lambda: _restore(before))
    config.addinivalue_line(
        "markers", "artifex_devices(*worlds): run the test once in each world, an argument of artifex_devices.simulate"
    )
    config.addinivalue_line(
        "markers",
        "artifex_processes(*counts, devices=2, seed=0, faults=()): run the test in each of these numbers of "
        "simulated processes; see artifex_devices.testing.run_processes",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: Any) -> None:
    """Lets marked tests use the fixture, even if they do not name it."""
    if not collector.istestfunction(obj, name):
        return
    own = getattr(obj, "pytestmark", ())
    for mark in _EXAMPLES:
        if collector.get_closest_marker(mark) is not None or any(each.name == mark for each in own):
            pytest.mark.usefixtures(mark)(getattr(obj, "__func__", obj))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a marked test once in each world, or with each number of processes."""
    worlds = metafunc.definition.get_closest_marker("artifex_devices")
    counts = metafunc.definition.get_closest_marker("artifex_processes")
    if worlds is not None:
        expected = "numbers of devices or descriptions of worlds"
        _check_mark(metafunc, worlds, bool(worlds.args) and not worlds.kwargs, expected)
        metafunc.parametrize("artifex_devices", worlds.args, indirect=True, ids=_world_id)
    if counts is not None:
        is_right = bool(counts.args) and all(type(each) is int and each > 0 for each in counts.args)
        is_right = is_right and counts.kwargs.keys() <= {"devices", "seed", "faults"}
        _check_mark(metafunc, counts, is_right, "numbers of processes, and at most devices, seed and faults")
        if worlds is not None:
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid}: it has the marks artifex_devices and artifex_processes; expected only "
                "one mark; write @pytest.mark.artifex_processes(2, devices=4)"
            )
        ids = [f"{count}-process{'' if count == 1 else 'es'}" for count in counts.args]
        metafunc.parametrize("artifex_processes", counts.args, indirect=True, ids=ids)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test with the mark `artifex_processes` in each process."""
    mark = pyfuncitem.get_closest_marker("artifex_processes")
    if mark is None:
        return None
    config, arguments = pyfuncitem.config, mark.kwargs
    seed = config.getoption("--artifex-schedule-seed")
    count: Any = pyfuncitem.funcargs["artifex_processes"]
    settings = processes.Settings(
        count,
        arguments.get("devices", 2),
        arguments.get("seed", 0) if seed is None else seed,
        arguments.get("faults", ()),
    )
    values = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    if processes.is_in_job():
        processes.initialize_once()
        pyfuncitem.obj(**values)
    elif config.getoption("--artifex-real-processes"):
        processes.run_real(pyfuncitem, settings)
    else:
        processes.run_simulated(lambda: pyfuncitem.obj(**values), settings, config.getoption("--artifex-schedules"))
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes the outcome of a test where mpiexec has started this process for it."""
    if processes.is_in_job() and report.when == "call":
        processes.write_outcome(report)


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop(_UPDATE_AUDIT, None)
    else:
        os.environ[_UPDATE_AUDIT] = before


def _check_mark(metafunc: pytest.Metafunc, mark: pytest.Mark, is_right: bool, expected: str) -> None:
    if not is_right:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the mark {mark.name} has the arguments {mark.args} and {mark.kwargs}; "
            f"expected {expected}; write @pytest.mark.{mark.name}({_EXAMPLES[mark.name]})"
        )


def _world_id(world: Any) -> str:
    """Names a world in the id of a test: "1-device", "8-devices", "2-nodes-x-4"."""
    if isinstance(world, int):
        return f"{world}-device{'' if world == 1 else 's'}"
    return re.sub(r"\W+", "-", str(world)).strip("-")
