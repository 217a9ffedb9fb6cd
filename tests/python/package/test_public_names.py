# SPDX-License-Identifier: Apache-2.0
"""Public names: what dir() lists, and small functions that have JAX's names."""

import contextlib
import importlib
import importlib.util
import inspect
import io

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P
from artifex_devices._array.absent_members import AbsentMember

X = np.arange(8.0)

LISTED = """artifex_devices checkpoint compat config debug distributed doctor errors experimental lax layout memory
mesh_utils planner profiler sharding transfers tree tree_util xla_client"""


@pytest.mark.parametrize("name", LISTED.split())
def test_dir_lists_public_names(name):
    module = ad if name == "artifex_devices" else importlib.import_module(f"artifex_devices.{name}")
    assert set(dir(module)) <= {*module.__all__, "__version__"}
    assert all(hasattr(module, each) for each in dir(module))


def test_names_of_artifex_are_in_a_module_of_their_own():
    from artifex_devices.compat import artifex

    listed = dir(ad)
    for name in ("JAXDeviceManager", "configure_for_generative_models", "get_default_device", "CUDADetector"):
        assert name not in listed
        assert getattr(ad, name) is getattr(artifex, name) is getattr(ad.device_manager, name)
    assert {"DevicePlacement", "DeviceMeshManager", "HardwareType"} <= set(dir(artifex))
    assert {"devices", "simulate", "make_mesh", "device_put", "shard_map", "lax", "P"} <= set(listed)


@pytest.fixture
def x():
    with ad.simulate(8):
        yield ad.device_put(X, NamedSharding(ad.make_mesh((8,), ("x",)), P("x")))


def test_hasattr_is_false_for_missing_names():
    for module in (ad, ad.lax, ad.experimental):
        assert not hasattr(module, "scan")
        assert getattr(module, "scan", 3) == 3
    with pytest.raises(ImportError, match="write a loop"):
        exec("from artifex_devices.lax import scan")
    with pytest.raises(AttributeError, match="write a loop"):
        exec("import artifex_devices.lax as lax; lax.scan")


def test_imports_of_other_packages_are_as_before():
    for name in ("artifex_devicess", "artifex_devices.no_such_module", "no_such_package.random"):
        assert importlib.util.find_spec(name.partition(".")[0]) is None or importlib.util.find_spec(name) is None
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("artifex_devices.random")
    assert caught.value.name == "artifex_devices.random"


def test_members_of_other_libraries_are_absent_and_not_listed(x):
    sharding = x.sharding
    for value in (x, sharding, sharding.mesh, sharding.spec, x.addressable_shards[0], ad.devices()[0]):
        names = [name for name, each in vars(type(value)).items() if type(each) is AbsentMember]
        assert names
        assert not set(names) & set(dir(value))
        for name in names:
            assert (getattr(value, name, 3), getattr(type(value), name, 3)) == (3, 3)
            with pytest.raises(AttributeError, match=rf"{type(value).__name__}\.{name} does not exist: \w+"):
                getattr(value, name)


def test_signatures_do_not_have_unknown_arguments():
    for function in (ad.device_put, ad.make_mesh, ad.jit, ad.lax.psum, ad.checkpoint.save, ad.simulate.__init__):
        assert function.__code__.co_flags & inspect.CO_VARKEYWORDS
        assert "_unknown" not in inspect.signature(function).parameters


def test_typeof_is_written_as_in_jax(x):
    assert str(ad.typeof(x)) == "float64[8@x]"
    both = ad.make_mesh((4, 2), ("a", "b"))
    y = ad.device_put(np.ones((8, 4), np.float32), NamedSharding(both, P(("a", "b"))))
    assert repr(ad.typeof(y)) == "ShapedArray(float32[8@(a,b),4])"
    assert ad.typeof(y).sharding == NamedSharding(both.abstract_mesh, P(("a", "b"), None))
    auto = ad.device_put(y, NamedSharding(ad.make_mesh((8,), ("x",), axis_types="auto"), P("x")))
    assert str(ad.typeof(auto)) == "float32[8,4]"
    assert ad.typeof(y) == ad.typeof(y) != ad.typeof(auto)
    assert [str(ad.typeof(each)) for each in (1.5, True, np.int8(1), X)] == [
        "~float64[]", "bool[]", "int8[]", "float64[8]",
    ]  # fmt: skip
    assert ad.typeof(ad.ShapeDtypeStruct((2, 3), "int8")) == ad.typeof(np.ones((2, 3), np.int8))
    with pytest.raises(TypeError, match=r"typeof: x is \[1\] .list.; .* write ad.tree.map"):
        ad.typeof([1])


def test_debug_print_formats_values(x, capsys):
    ad.debug.print("{} {x} {y:.2f}", 1, x=x, y=ad.device_put(1.234))
    ad.debug.print(ordered=True)("two {}", 2)
    ad.debug.print("{x}", x=x, partitioned=True)
    assert capsys.readouterr().out.splitlines()[:2] == ["1 [0. 1. 2. 3. 4. 5. 6. 7.] 1.23", "two 2"]
    with pytest.raises(ValueError, match="the text does not use 3"):
        ad.debug.print("x", 3)
    with pytest.raises(KeyError):
        ad.debug.print("{y}", x=3)
    with pytest.raises(TypeError, match="values are given without a text"):
        ad.debug.print(x=3)
    with pytest.raises(TypeError, match="fmt is 3"):
        ad.debug.print(3)


def test_environment_info_names_versions_and_devices(x, capsys, monkeypatch):
    monkeypatch.setenv("JAX_SPAM", "1")
    text = ad.print_environment_info(return_string=True)
    assert text.startswith(f"artifex_devices: {ad.__version__}\nnumpy:  {np.__version__}\npython: ")
    assert "-8, 8 local devices\nprocess_count: 1\n" in text
    assert "\nJAX_SPAM=1" in text
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert ad.print_environment_info() is None
    assert out.getvalue() == text + "\n"


def test_disable_jit_is_a_block_and_a_decorator():
    with ad.disable_jit(), ad.disable_jit(False):
        assert ad.jit(lambda x: x)(1) == 1
    assert ad.disable_jit()(len)([1]) == 1
    with pytest.raises(TypeError, match="disable is 3"):
        ad.disable_jit(3)
