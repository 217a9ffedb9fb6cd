# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin of artifex_devices: tests in worlds of simulated devices.

pytest imports each installed plugin at its start, for the tests of any project. This package is not a part of
artifex_devices because importing that one would load NumPy and the C++ core; the fixtures do so when a test uses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import artifex_devices as ad

_MARK = "devices"
_FIXTURE = "simulated_devices"
_DEFAULT_WORLD = 8


@pytest.fixture
def simulated_devices(request: pytest.FixtureRequest) -> Iterator[list[ad.Device]]:
    """The devices of the world that the test runs in: 8, or those of `@pytest.mark.devices(...)`."""
    import artifex_devices as ad

    with ad.simulate(getattr(request, "param", _DEFAULT_WORLD)):
        yield ad.devices()


@pytest.fixture
def mesh(simulated_devices: list[ad.Device]) -> ad.Mesh:
    """A mesh of all simulated devices along one Auto axis "x"."""
    import artifex_devices as ad

    return ad.make_mesh((len(simulated_devices),), ("x",), (ad.AxisType.Auto,), devices=simulated_devices)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line(
        "markers", f"{_MARK}(*worlds): run the test once in each world, an argument of artifex_devices.simulate"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: Any) -> None:
    """Lets marked tests use the fixture, also those that do not name it."""
    if not collector.istestfunction(obj, name):
        return
    own = getattr(obj, "pytestmark", ())
    if collector.get_closest_marker(_MARK) is not None or any(mark.name == _MARK for mark in own):
        pytest.mark.usefixtures(_FIXTURE)(getattr(obj, "__func__", obj))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a marked test once in each world."""
    mark = metafunc.definition.get_closest_marker(_MARK)
    if mark is None:
        return
    if not mark.args or mark.kwargs:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the mark {_MARK} has the arguments {mark.args} and {mark.kwargs}; expected "
            f"numbers of devices or descriptions of worlds; write @pytest.mark.{_MARK}(1, 8)"
        )
    metafunc.parametrize(_FIXTURE, mark.args, indirect=True, ids=_world_id)


def _world_id(world: Any) -> str:
    """Names a world in the id of a test: "1-device", "8-devices", "2-nodes-x-4"."""
    if isinstance(world, int):
        return f"{world}-device{'' if world == 1 else 's'}"
    return re.sub(r"\W+", "-", str(world)).strip("-")
