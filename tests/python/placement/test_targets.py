# SPDX-License-Identifier: Apache-2.0
"""Each public function that takes a target places data as device_put does, for each kind of target."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P, array_api, checkpoint
from artifex_devices.batch_placement import batch_share
from artifex_devices.layout import Format, Layout
from artifex_devices.prefetch import prefetch_to_device
from artifex_devices.testing import assert_same_bits, run_processes

X = np.arange(32.0).reshape(8, 4)

TARGETS: dict[str, Callable[[ad.Mesh], Any]] = {
    "None": lambda mesh: None,
    "Device": lambda mesh: ad.devices()[3],
    "NamedSharding": lambda mesh: NamedSharding(mesh, P("x", "y")),
    "SingleDeviceSharding": lambda mesh: ad.SingleDeviceSharding(ad.devices()[2]),
    "pinned memory": lambda mesh: NamedSharding(mesh, P("y"), memory_kind="pinned_host"),
    "PartitionSpec": lambda mesh: P("y"),
    "Format": lambda mesh: Format(None, NamedSharding(mesh, P("x"))),
    "Format of a device": lambda mesh: Format(Layout((0, 1)), ad.devices()[1]),
    "column-major Format": lambda mesh: Format(Layout((1, 0)), NamedSharding(mesh, P("x"))),
    "empty Format": lambda mesh: Format(),
    "Space.Device": lambda mesh: ad.memory.Space.Device,
    "Space.Host": lambda mesh: ad.memory.Space.Host,
}


def restored(x: Any, target: Any, folder: Path) -> Any:
    checkpoint.save(folder / "saved", {"x": x}, overwrite=True)
    return checkpoint.restore(folder / "saved", {"x": target})["x"]


FUNCTIONS: dict[str, Callable[[Any, Any, Path], Any]] = {
    "place_on_device": lambda x, target, _: ad.place_on_device(x, target),
    "DevicePlacement.place_on_device": lambda x, target, _: ad.DevicePlacement().place_on_device(x, target),
    "distribute_batch": lambda x, target, _: ad.distribute_batch(x, target),
    "DevicePlacement.distribute_batch": lambda x, target, _: ad.DevicePlacement().distribute_batch(x, target),
    "prefetch_to_device": lambda x, target, _: next(prefetch_to_device([x], target)),
    "DevicePlacement.prefetch_to_device": lambda x, target, _: next(
        ad.DevicePlacement().prefetch_to_device([x], target)
    ),
    "make_array_from_process_local_data": lambda x, target, _: ad.make_array_from_process_local_data(target, x),
    "checkpoint.restore": restored,
    "Array.to_device": lambda x, target, _: ad.device_put(x).to_device(target),
    "asarray": lambda x, target, _: array_api.asarray(x, device=target),
    "zeros": lambda x, target, _: array_api.zeros(x.shape, device=target),
    "zeros_like": lambda x, target, _: np.zeros_like(ad.device_put(x), device=target),
    "eye": lambda x, target, _: array_api.eye(*x.shape, device=target),
}
# None has another meaning there.
WITHOUT_NONE = {"make_array_from_process_local_data", "checkpoint.restore", "Array.to_device"}
COMMITTED = {  # None is the device of the DevicePlacement
    "place_on_device",
    "DevicePlacement.place_on_device",
    "DevicePlacement.prefetch_to_device",
}
OF_TREES = [
    name
    for name in FUNCTIONS
    if "place" in name or "batch" in name or "device_put" in name or "local" in name or "restore" in name
]


@pytest.fixture
def mesh() -> Any:
    with ad.simulate(8):
        mesh = ad.make_mesh((2, 4), ("x", "y"), (ad.AxisType.Auto,) * 2)
        with ad.set_mesh(mesh):
            yield mesh


def placement(x: Any) -> tuple[Any, ...]:
    return x.sharding, x.sharding.memory_kind, x.format.layout, x.committed


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_places_as_device_put(name: str, kind: str, mesh: ad.Mesh, tmp_path: Path) -> None:
    target = TARGETS[kind](mesh)
    if name in WITHOUT_NONE and kind in ("None", "empty Format"):
        pytest.skip("it needs a target")
    expected = ad.device_put(X, target)
    found = FUNCTIONS[name](X, target, tmp_path)
    assert placement(found)[:3] == placement(expected)[:3]
    assert found.committed == (expected.committed or (target is None and name in COMMITTED))


@pytest.mark.parametrize("name", OF_TREES)
def test_trees_of_targets(name: str, mesh: ad.Mesh, tmp_path: Path) -> None:
    kinds = [kind for kind in TARGETS if kind not in ("None", "empty Format")]
    targets = {kind: TARGETS[kind](mesh) for kind in kinds}
    data = dict.fromkeys(kinds, X)
    expected = ad.device_put(data, targets)
    found = FUNCTIONS[name](data, targets, tmp_path)
    for kind in kinds:
        assert placement(found[kind]) == placement(expected[kind]), kind
        assert_same_bits(found[kind], X)


def test_devices_are_kept_where_the_package_stands_in_for_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    with ad.simulate(4):
        device = ad.devices()[3]
        with ad.simulate(8):
            monkeypatch.setitem(sys.modules, "jax", ad)
            assert ad.device_put({"x": X}, {"x": device})["x"].device is device


@pytest.mark.parametrize("kind", TARGETS)
def test_batch_share(kind: str, mesh: ad.Mesh) -> None:
    assert batch_share(TARGETS[kind](mesh), 8) == slice(0, 8)


def test_a_spec_is_bound_where_prefetching_begins(mesh: ad.Mesh) -> None:
    batches = prefetch_to_device([X, X], P("x"))
    with ad.set_mesh(ad.make_mesh((8,), ("x",))):
        assert [batch.sharding for batch in batches] == [NamedSharding(mesh, P("x"))] * 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_targets_are_type_errors(name: str, mesh: ad.Mesh, tmp_path: Path) -> None:
    for wrong in (object(), mesh) if name == "checkpoint.restore" else ("gpu", 3, object(), mesh):
        error = ValueError if name == "make_array_from_process_local_data" else TypeError
        with pytest.raises(error, match=r"write ad\.|expected .* (Device|Sharding)"):
            FUNCTIONS[name](X, wrong, tmp_path)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_spec_without_a_mesh(name: str, tmp_path: Path) -> None:
    with ad.simulate(2), pytest.raises(ValueError, match=r"P\('x',\) needs a mesh and none is set"):
        FUNCTIONS[name](X, P("x"), tmp_path)


def test_batches_over_processes_take_specs_and_formats() -> None:
    def program() -> None:
        mesh = ad.make_mesh((4,), ("x",), (ad.AxisType.Auto,))
        rows = NamedSharding(mesh, P("x"))
        own = X[batch_share(rows, 8)]
        formats = (Format(None, rows), Format(Layout((1, 0)), rows))
        with ad.set_mesh(mesh):
            assert batch_share(P("x"), 8) == batch_share(formats[1], 8) == batch_share(rows, 8)
            for target in (P("x"), rows, *formats):
                for name in ("distribute_batch", "prefetch_to_device", "make_array_from_process_local_data"):
                    found = FUNCTIONS[name](own, target, Path())
                    assert placement(found) == placement(ad.device_put(X, target)), name
                    assert_same_bits(found.addressable_shards[0].data, X[found.addressable_shards[0].index])
            here = ad.local_devices()[0]
            assert ad.make_array_from_process_local_data(here, own).devices() == {here}

    run_processes(program, processes=2, devices=2)
