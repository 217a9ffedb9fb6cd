# SPDX-License-Identifier: Apache-2.0
"""DeviceMeshManager: meshes by mapping, by pairs, by strategy."""

from __future__ import annotations

import collections
import types
from collections.abc import Iterator
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import DeviceMeshManager, Mesh


@pytest.fixture(autouse=True)
def eight_devices() -> Iterator[None]:
    with ad.simulate(8):
        yield


def ids(mesh: Mesh) -> Any:
    return np.vectorize(lambda device: device.id, otypes=[int])(mesh.devices).tolist()


def test_all_devices_by_default() -> None:
    manager = DeviceMeshManager()
    assert manager.num_devices == 8
    assert manager.devices == ad.devices()


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array], ids=["list", "tuple", "iterator", "ndarray"])
def test_devices_are_kept_in_the_order_given(kind: Any) -> None:
    chosen = [ad.devices()[i] for i in (5, 1, 7, 2)]
    manager = DeviceMeshManager(kind(chosen))
    assert manager.devices == chosen
    assert ids(manager.create_device_mesh({"a": 2, "b": 2})) == [[5, 1], [7, 2]]


def test_the_device_list_handed_out_is_a_new_one() -> None:
    manager = DeviceMeshManager()
    manager.devices.clear()
    assert manager.num_devices == 8
    for name in ("devices", "num_devices"):
        with pytest.raises(AttributeError):
            setattr(manager, name, 1)


def test_devices_that_are_none_or_come_twice_are_errors() -> None:
    first, second = ad.devices()[:2]
    for make in (DeviceMeshManager, lambda devices: DeviceMeshManager().create_device_mesh({"a": 1}, devices)):
        with pytest.raises(TypeError, match=r"devices\[0\] is 1 \(int\)"):
            make([1, first])
        with pytest.raises(ValueError, match="cpu:1 named more than once"):
            make([first, second, second])
        with pytest.raises(TypeError, match="expected several Devices"):
            make(3)


@pytest.mark.parametrize(
    "spec",
    [
        {"data": 2, "model": 4},
        [("data", 2), ("model", 4)],
        (["data", 2], ["model", 4]),
        types.MappingProxyType({"data": 2, "model": 4}),
        collections.OrderedDict(data=2, model=4),
        [("data", np.int64(2)), ("model", np.int8(4))],
    ],
    ids=["dict", "pairs", "lists", "mapping", "ordered", "numpy ints"],
)
def test_every_way_to_say_a_shape_gives_the_same_mesh(spec: Any) -> None:
    manager = DeviceMeshManager()
    mesh = manager.create_device_mesh(spec)
    assert mesh.axis_names == ("data", "model")
    assert ids(mesh) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh == manager.create_device_mesh(zip(("data", "model"), (2, 4), strict=True))
    assert hash(mesh) == hash(manager.create_device_mesh({"data": 2, "model": 4}))


def test_the_first_devices_are_used_and_the_rest_left_out() -> None:
    manager = DeviceMeshManager()
    assert ids(manager.create_device_mesh({"a": 3})) == [0, 1, 2]
    assert ids(manager.create_device_mesh({"a": 2}, ad.devices()[4:])) == [4, 5]


def test_no_axes_give_a_mesh_of_one_device() -> None:
    manager = DeviceMeshManager()
    mesh = manager.create_device_mesh({})
    assert (mesh.axis_names, mesh.size) == ((), 1)
    assert manager.get_mesh_info(mesh) == {"total_devices": 1, "axes": {}}


def test_too_few_devices_is_an_error_with_both_numbers() -> None:
    manager = DeviceMeshManager()
    with pytest.raises(
        ValueError, match=r"Not enough devices: mesh \{'data': 4, 'model': 4\} needs 16, 8 available.*simulate\(16\):`"
    ):
        manager.create_device_mesh({"data": 4, "model": 4})
    with pytest.raises(ValueError, match="needs 9, 8 available"):
        manager.create_data_parallel_mesh(9)
    with pytest.raises(ValueError, match="needs 2, 1 available"):
        manager.create_device_mesh({"a": 2}, ad.devices()[:1])
    with pytest.raises(ValueError, match=f"needs {10**30}, 8 available"):
        manager.create_device_mesh({"a": 10**15, "b": 10**15})


def test_a_manager_may_have_no_devices_but_its_meshes_may_not() -> None:
    manager = DeviceMeshManager([])
    assert manager.num_devices == 0
    for make in (manager.create_data_parallel_mesh, manager.create_hybrid_mesh, lambda: manager.create_device_mesh({})):
        with pytest.raises(ValueError, match=r"Not enough devices: .* needs 1, 0 available"):
            make()


@pytest.mark.parametrize(
    ("spec", "error", "text"),
    [
        ({"a": -1}, ValueError, "size -1 of axis 'a' is below 1"),
        ({"a": -1, "b": 2}, ValueError, "size -1 of axis 'a' is below 1"),
        ({"a": 0}, ValueError, "size 0 of axis 'a' is below 1"),
        ([("a", 2), ("a", 2)], ValueError, "axis 'a' comes twice"),
        ({"a": 2.0}, TypeError, "size 2.0 of axis 'a' is not an integer"),
        ({"a": "2"}, TypeError, "size '2' of axis 'a' is not an integer"),
        ({None: 2}, TypeError, "axis name None"),
        ([(["a"], 2)], TypeError, r"axis name \['a'\]"),
        ([("a", 2, 3)], TypeError, r"entry 0 is \('a', 2, 3\)"),
        (["ab"], TypeError, "entry 0 is 'ab'"),
        ("data", TypeError, "mesh_shape is 'data'"),
        (8, TypeError, "mesh_shape is 8"),
        (None, TypeError, "mesh_shape is None"),
        (
            [("a", 0), ("b", -2), ("a", 1)],
            ValueError,
            "'a' is below 1; size -2 of axis 'b' is below 1; axis 'a' comes twice",
        ),
    ],
)
def test_shapes_that_are_none_are_errors(spec: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        DeviceMeshManager().create_device_mesh(spec)


def test_axis_names_may_be_any_hashable() -> None:
    mesh = DeviceMeshManager().create_device_mesh([(0, 2), (("x", 1), 2)])
    assert mesh.axis_names == (0, ("x", 1))


def test_data_parallel_is_one_axis() -> None:
    manager = DeviceMeshManager()
    assert dict(manager.create_data_parallel_mesh().shape) == {"data": 8}
    assert dict(manager.create_data_parallel_mesh(4, "batch").shape) == {"batch": 4}
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="below 1"):
            manager.create_data_parallel_mesh(wrong)


def test_model_parallel_is_one_axis() -> None:
    manager = DeviceMeshManager()
    assert dict(manager.create_model_parallel_mesh().shape) == {"model": 8}
    assert dict(manager.create_model_parallel_mesh(num_devices=2, axis_name="m").shape) == {"m": 2}


def test_hybrid_has_the_data_axis_first() -> None:
    manager = DeviceMeshManager()
    mesh = manager.create_hybrid_mesh(2, 3, "d", "m")
    assert mesh.axis_names == ("d", "m")
    assert ids(mesh) == [[0, 1, 2], [3, 4, 5]]
    assert ids(manager.create_hybrid_mesh()) == [[0]]
    with pytest.raises(ValueError, match="comes twice"):
        manager.create_hybrid_mesh(2, 2, "x", "x")


def test_mesh_info_is_a_plain_dict_in_the_order_of_the_axes() -> None:
    manager = DeviceMeshManager()
    info = manager.get_mesh_info(manager.create_device_mesh([("z", 2), ("a", 3)]))
    assert info == {"total_devices": 6, "axes": {"z": 2, "a": 3}}
    assert type(info["axes"]) is dict
    assert list(info["axes"]) == ["z", "a"]
    other = Mesh(np.array(ad.devices()[:2]), ("q",))
    assert manager.get_mesh_info(other) == {"total_devices": 2, "axes": {"q": 2}}
    with pytest.raises(TypeError, match="mesh is 3"):
        manager.get_mesh_info(3)  # type: ignore[arg-type]
