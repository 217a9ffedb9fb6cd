# SPDX-License-Identifier: Apache-2.0
"""Objects of bound classes whose __init__ has not run: a TypeError wherever their value is asked for, never a crash.

What is asked of them is asked in a child process, which forks for each class, so that a crash is the failure of a test.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import _core
from artifex_devices._core import internal
from artifex_devices.sharding import Mesh, NamedSharding, P, SingleDeviceSharding

BOUND = _core.Device.__mro__[-2]  # the base of all bound classes
NAMES = {**vars(_core), **vars(internal)}
CLASSES = {name: each for name, each in NAMES.items() if isinstance(each, type) and issubclass(each, BOUND)}
UNMADE = "TypeError: artifex_devices: an object has no value, because its __init__ has not run"
OTHERS = {"__new__", "__init__", "__class__", "__dict__", "__doc__", "__module__", "__init_subclass__"}


def bare(cls: type) -> Any:
    """Without a value: by Python's __new__, or that of the base where one of ours (Mesh) makes a value."""
    return cls.__new__(cls) if getattr(cls.__new__, "__self__", None) is cls else BOUND.__new__(cls)


def is_property(cls: type, name: str) -> bool:
    return type(inspect.getattr_static(cls, name)) is property  # those of classes are of a derived type


def member_names(cls: type) -> list[str]:
    return sorted({name for base in cls.__mro__[:-2] for name in vars(base)} - OTHERS)


def derived(cls: type) -> Any:
    """Asks for its value before it has one."""

    def init(self: Any) -> None:
        raise LookupError(answer(lambda: self.num_devices if isinstance(self, _core.Sharding) else self.id))

    return type("Derived", (cls,), {"__init__": init})()


def given() -> dict[str, Callable[[Any], Any]]:
    """Calls that get such an object as an argument, in a world of four devices."""
    mesh = ad.make_mesh((4,), ("x",))
    rows = NamedSharding(mesh, P("x"))
    value = np.arange(8.0)
    placed = ad.device_put(value, rows)
    device = ad.devices()[0]
    grid = np.array([device, None])

    def mesh_with(at: int, it: Any) -> Any:
        devices = grid.copy()
        devices[1 - at] = device
        devices[at] = it
        return Mesh(devices, ("x",))

    def program(**specs: Any) -> Any:
        return ad.shard_map(lambda x: x, **({"mesh": mesh, "in_specs": P("x"), "out_specs": P("x")} | specs))(placed)

    return {
        "repr": repr,
        "hash": hash,
        "pickle.dumps": pickle.dumps,
        "copy.copy": copy.copy,
        "copy.deepcopy": copy.deepcopy,
        "==": lambda it: it == bare(type(it)),
        "!=": lambda it: it != 1,
        "in a set": lambda it: {it},
        "with": lambda it: it.__enter__(),
        "derived": lambda it: derived(type(it)),
        "list": list,
        "memoryview": memoryview,
        "+": lambda it: it + placed,
        "np.add": lambda it: np.add(placed, it),
        "device_put(it)": lambda it: ad.device_put(it, rows),
        "device_put(x, it)": lambda it: ad.device_put(value, it),
        "device_put(tree, it)": lambda it: ad.device_put([value, value], [rows, it]),
        "Mesh(it)": lambda it: Mesh(it, ("x",)),
        "Mesh([it])": lambda it: Mesh([it], ("x",)),
        "Mesh(ndarray, first)": lambda it: mesh_with(0, it),
        "Mesh(ndarray, last)": lambda it: mesh_with(1, it),
        "make_mesh": lambda it: ad.make_mesh((1,), ("x",), devices=[it]),
        "set_mesh": lambda it: ad.set_mesh(it).__enter__(),
        "NamedSharding(it, P)": lambda it: NamedSharding(it, P()),
        "NamedSharding(mesh, it)": lambda it: NamedSharding(mesh, it),
        "SingleDeviceSharding": SingleDeviceSharding,
        "DeviceList": lambda it: _core.DeviceList((it,)),
        "device_index": lambda it: rows.device_index(it, (8,)),
        "devices_indices_map": lambda it: rows.devices_indices_map(it),
        "is_equivalent_to": lambda it: rows.is_equivalent_to(it, 1),
        "rows ==": lambda it: rows == it,
        "mesh ==": lambda it: mesh == it,
        "device ==": lambda it: device == it,
        "shard_map(mesh=it)": lambda it: program(mesh=it),
        "shard_map(in_specs=it)": lambda it: program(in_specs=it),
        "shard_map(out_specs=it)": lambda it: program(out_specs=it),
        "jit(in_shardings=it)": lambda it: ad.jit(lambda x: x, in_shardings=it)(placed),
        "default_device": lambda it: ad.default_device(it).__enter__(),
        "reshard_bytes": lambda it: internal.reshard_bytes(it, rows, (8,), 4),
        "visualize_sharding": lambda it: ad.debug.visualize_sharding((8,), it),
        "make_array": lambda it: ad.make_array_from_callback((8,), it, lambda index: value[index]),
        "make_array of shards": lambda it: ad.make_array_from_single_device_arrays((8,), rows, [it] * 4),
    }


def questions(cls: type) -> dict[str, Callable[[], Any]]:
    made: dict[str, Callable[[], Any]] = {}
    for name in member_names(cls):
        if is_property(cls, name):
            made[f".{name}"] = functools.partial(getattr, bare(cls), name)
            continue
        for arguments in ((), (bare(cls),), (0,), ((8, 8),), (bare(cls), bare(cls))):
            # Looked up in the call, as it may raise as well.
            ask = lambda name=name, arguments=arguments: getattr(bare(cls), name)(*arguments)  # noqa: E731
            made[f".{name}({', '.join('it' if isinstance(each, cls) else repr(each) for each in arguments)})"] = ask
    return made | {name: functools.partial(call, bare(cls)) for name, call in given().items()}


def answer(ask: Callable[[], Any]) -> str:
    try:
        return repr(ask() is NotImplemented or "an answer")
    except Exception as error:
        return "".join(traceback.format_exception_only(error)).strip()


def ask_all(cls: type, pipe: int) -> None:
    """Writes a line before each question and one after it."""
    for name, ask in questions(cls).items():
        os.write(pipe, (json.dumps(name) + "\n").encode())
        os.write(pipe, (json.dumps(answer(ask)) + "\n").encode())


def main() -> None:
    """Prints {class: [status of the child, question, answer, question, ...]}."""
    found = {}
    for name, cls in CLASSES.items():
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            ad.config.update("jax_num_cpu_devices", 4)
            ask_all(cls, writing)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            lines = [json.loads(line) for line in pipe]
        found[name] = [os.waitpid(child, 0)[1], *lines]
    print(json.dumps(found))


@pytest.fixture(scope="module")
def asked() -> dict[str, list[Any]]:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def answers(asked, name) -> dict[str, str]:
    status, *lines = asked[name]
    assert status == 0, f"{name}: ended by signal {os.WTERMSIG(status)} at {lines[-1]}"
    return dict(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize("name", CLASSES)
def test_properties_raise_a_type_error(name, answers):
    cls = CLASSES[name]
    for each in member_names(cls):
        if is_property(cls, each):
            assert answers[f".{each}"].startswith(UNMADE), each


@pytest.mark.parametrize("name", CLASSES)
def test_own_text_hash_and_pickle_raise_a_type_error(name, answers):
    cls = CLASSES[name]
    if cls.__repr__ is not object.__repr__:
        assert answers["repr"].startswith(UNMADE)
    if cls.__hash__ is not object.__hash__:
        assert answers["hash"].startswith("TypeError")
        text = answers["hash"].removeprefix("TypeError: ")
        assert answers["in a set"].endswith((f": {text}", f" ({text})"))  # the second since Python 3.14
    assert answers["pickle.dumps"].startswith("TypeError")


@pytest.mark.parametrize("name", CLASSES)
def test_are_equal_to_nothing_else(name, answers):
    for each in ("==", "!=", "rows ==", "mesh ==", "device =="):
        assert answers[each] == "'an answer'" or answers[each].startswith(UNMADE), each


# Where such an object is of the right class, so that its value is asked for.
SHARDED = [
    "device_put(x, it)",
    "device_put(tree, it)",
    "is_equivalent_to",
    "jit(in_shardings=it)",
    "reshard_bytes",
    "visualize_sharding",
    "make_array",
]
ASKED = {
    "Device": [
        "Mesh([it])",
        "Mesh(ndarray, first)",
        "Mesh(ndarray, last)",
        "make_mesh",
        "SingleDeviceSharding",
        "DeviceList",
        "device_index",
        "default_device",
        "device_put(x, it)",
    ],
    "Mesh": ["NamedSharding(it, P)", "set_mesh", "shard_map(mesh=it)", "with"],
    "PartitionSpec": ["NamedSharding(mesh, it)", "shard_map(in_specs=it)", "shard_map(out_specs=it)"],
    "AbstractMesh": ["NamedSharding(it, P)"],
    "Array": ["device_put(it)", "memoryview", "+", "np.add", "make_array of shards", "list"],
    "Sharding": SHARDED,
    "NamedSharding": SHARDED,
    "SingleDeviceSharding": SHARDED,
}


@pytest.mark.parametrize("name", ASKED)
def test_are_refused_as_arguments(name, answers):
    assert {each: answers[each].split(";")[0] for each in ASKED[name]} == dict.fromkeys(ASKED[name], UNMADE)


@pytest.mark.parametrize("name", ["NamedSharding"])
def test_the_error_says_how_to_make_one(name, answers):
    assert answers[".spec"] == (
        f"{UNMADE}; expected an object that its class or a function of this package returned; call the class, for "
        "example NamedSharding(mesh, spec), not NamedSharding.__new__(NamedSharding)"
    )


@pytest.mark.parametrize("name", ["Device", "NamedSharding", "SingleDeviceSharding"])
def test_a_class_derived_in_python_may_ask_before_its_init(name, answers):
    assert answers["derived"].startswith(f"LookupError: {UNMADE}")


if __name__ == "__main__":
    main()
