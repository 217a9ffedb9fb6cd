# SPDX-License-Identifier: Apache-2.0
"""What newcomers type by guessing: each guess works, or its error says in one line what to write."""

import contextlib
import dataclasses
import gc
import importlib
import io
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P, lax  # noqa: F401 - guesses name it

WORKS = None
X = np.arange(8.0)

# (guess, WORKS or a part of the error's text)
MESHES = [
    ("ad.make_mesh({'data': 4, 'model': 2})", WORKS),
    ("ad.make_mesh({'data': 4, 'model': 2}, axis_types='auto')", WORKS),
    ("ad.make_mesh((4, 2), ('data', 'model'), axis_types='auto')", WORKS),
    ("ad.make_mesh((4, 2), ('data', 'model'), axis_types=('Auto', 'explicit'))", WORKS),
    ("ad.make_mesh(8, 'x')", WORKS),
    ("ad.Mesh(ad.devices(), 'x')", WORKS),
    ("ad.Mesh(ad.devices(), 'x', axis_types='explicit')", WORKS),
    ("ad.AbstractMesh((2,), 'x')", WORKS),
    ("ad.make_mesh((4, 2), ('a', 'b'), axis_types='atuo')", '\'atuo\' is not an axis type; write "auto", "explicit"'),
    ("ad.make_mesh({'data': 8}, ('data',))", "has names already; leave axis_names out"),
    ("ad.make_mesh((8,))", "write ad.make_mesh((2, 4), ('data', 'model'))"),
    ("ad.make_mesh((4, 4), ('x', 'y'))", "simulate more devices (`with ad.simulate(16):`)"),
    ("ad.make_mesh({'x': 4, 'y': 4})", "simulate more devices (`with ad.simulate(16):`)"),
    ("ad.Mesh(np.array(ad.devices()).reshape(4, 2))", "write ad.Mesh(ad.devices(), ('x',))"),
    ("ad.Mesh((4, 2), ('x', 'y'))", "np.array(devices()).reshape"),
    ("ad.AbstractMesh((2,))", "axis_names is missing; write ad.AbstractMesh((2,), ('axis0',))"),
    ("ad.AbstractMesh({'x': 2})", "axis_names is missing; write ad.AbstractMesh((2,), ('x',))"),
    ("ad.AbstractMesh((('x', 2), ('y', 4)))", "axis_names is missing; write ad.AbstractMesh((2, 4), ('x', 'y'))"),
    ("NamedSharding(mesh, 'x')", "write ad.P('x')"),
    ("NamedSharding(mesh, ('x', None))", "write ad.P('x', None)"),
    ("NamedSharding(mesh, None)", "write ad.P()"),
    ("NamedSharding(mesh)", "spec is missing; write ad.NamedSharding(mesh, ad.P('x'))"),
    ("NamedSharding(P('x'))", "mesh is missing; write ad.NamedSharding(mesh, ad.P('x',))"),
    ("NamedSharding(spec=P('x'))", "mesh is missing; write ad.NamedSharding(mesh, ad.P('x',))"),
    ("NamedSharding(P('x'), mesh)", "the mesh comes first; write ad.NamedSharding(mesh, ad.P('x',))"),
    ("NamedSharding()", "mesh and spec are missing; write ad.NamedSharding(mesh, ad.P('x'))"),
]
PLACES = [
    ("ad.device_put(X, P('x'))", "write `with ad.set_mesh(mesh):` around it"),
    ("ad.device_put(X, mesh)", "write ad.NamedSharding(mesh, ad.P('x'))"),
    ("ad.device_put(X, 'x')", "write ad.devices()[0], or ad.NamedSharding(mesh, ad.P('x')) for an axis"),
    ("ad.device_put(X, 'cpu:3')", "write ad.devices('cpu')[3]"),
    ("ad.device_put(X, 'cpu:64')", "write ad.devices('cpu')[0]"),
    ("ad.device_put(X, 'gpu')", "write ad.devices()[0]; this world has no GPU"),
    ("ad.device_put(X, 3)", "write ad.devices()[3]"),
    ("ad.device_put(X, ad.devices())", "write ad.NamedSharding(ad.Mesh(devices, ('x',)), ad.P('x'))"),
    ("ad.devices('gpu')", "expected one of: cpu (8 devices)"),
    ("ad.simulate('8 gpus')", 'write simulate(8, platform="gpu")'),
    ("ad.simulate('gpu:4')", 'write simulate(4, platform="gpu")'),
    ("ad.simulate('8 cpus')", "write simulate(8)"),
    ("ad.simulate('8 devices')", "write simulate(8)"),
    ("ad.simulate('4 h100')", 'write simulate("4 x h100")'),
]
ARRAYS = [
    ("x.at[0].set(3)", WORKS),
    ("other + x", "the operands are of different worlds"),
    ("np.add(x, other)", "cpu [0, 1, 2, 3] of another world"),
    ("ad.shard_map(same, mesh=mesh, in_specs=P('x'), out_specs=P('x'))(other)", "[0, 1, 2, 3] of another world"),
    (
        "ad.shard_map(same, mesh=auto, in_specs=P('x'), out_specs=P('x'))(other)",
        "of another world than the mesh",
    ),
    ("assign(x, 0, 3)", "write x = x.at[0].set(3)"),
    ("assign(x, slice(1, 3), X)", "write x = x.at[1:3].set(v)"),
    ("assign(x, (..., -1), 2.5)", "write x = x.at[..., -1].set(2.5)"),
    ("assign(x, [0, 1], 1)", "write x = x.at[i].set(1)"),
    ("ad.device_put(Weights(X))", "write @ad.tree_util.register_dataclass above the class Weights"),
    ("ad.device_put(Plain())", "a dataclass with @ad.tree_util.register_dataclass above it"),
    ("ad.array([1])", "write ad.numpy.array([[1, 2], [3, 4]], device=sharding)"),
    ("ad.zeros((8, 8))", "write ad.numpy.zeros((8, 8), device=sharding)"),
]
PROGRAMS = [
    ("run(lambda b, c: b + c, P('x'))(X, X)", WORKS),
    ("run(lambda b, c: b, (P('x'),))(X, X)", "in_specs has 1 entry, and the call has 2 positional arguments; write "),
    (
        "run(lambda b: (b, b), (P('x'),), (P('x'),))(X)",
        "out_specs has 1 entry, and the function returns 2 values; write ",
    ),
    ("run(add_one, P('x'))(X)", "or copy the block first: x = x.copy()"),
    ("run(lambda b: b.fill(0), P('x'))(X)", "or copy the block first: x = x.copy()"),
    ("run(lambda b: lax.psum(b, 'x').sort(), P('x'))(X)", "or copy the block first: x = x.copy()"),
    ("run(lambda b: b.at[0].set(1), P('x'))(X)", "write x = x.copy(); x[i] = v"),
    ("ad.pmap(add_one)(X)", "or copy the block first: x = x.copy()"),
    ("run(same, P('x'))(Weights(X))", "write @ad.tree_util.register_dataclass above the class Weights"),
    ("run(lambda b: lax.psum(b, 'y'), P('x'))(X)", "'y'"),
]
NAMES = [
    ("ad.typeof(x)", WORKS),
    ("ad.debug.print('x = {x}', x=x)", WORKS),
    ("ad.disable_jit()", WORKS),
    ("ad.print_environment_info()", WORKS),
    ("ad.grad", "write the gradient as a function of its own"),
    ("ad.value_and_grad", "write the gradient as a function of its own"),
    ("ad.jacfwd", "functions are not differentiated here"),
    ("ad.custom_vjp", "call the function itself"),
    ("ad.vmap", "use NumPy's broadcasting, or pmap and shard_map"),
    ("ad.checkpoint(same)", "call the function itself"),
    ("ad.remat", "call the function itself"),
    ("ad.eval_shape", "call the function and read x.shape"),
    ("ad.make_jaxpr", "nothing is traced here; call the function"),
    ("ad.named_scope", "write `with ad.profiler.annotate('name'):`"),
    ("ad.pure_callback", "call the function itself"),
    ("ad.experimental.io_callback", "call the function itself"),
    ("ad.random.normal", "np.random.default_rng(0)"),
    ("ad.nn.relu", "np.maximum(x, 0)"),
    ("ad.debug_nans", "np.errstate"),
    ("ad.psum", "write ad.lax.psum"),
    ("ad.tree_map", "write ad.tree.map"),
    ("ad.register_dataclass", "write ad.tree_util.register_dataclass"),
    ("ad.use_mesh", "write `with ad.set_mesh(mesh):`"),
    ("ad.device_putt", "did you mean device_put?"),
    ("lax.scan", "write a loop: for x in xs: carry, y = f(carry, x)"),
    ("lax.cond", "write y = f(x) if pred else g(x)"),
    ("lax.switch", "write y = branches[index](x)"),
    ("lax.fori_loop", "write a loop: for i in range(lower, upper)"),
    ("lax.while_loop", "write a loop: while cond(value)"),
    ("lax.map", "write np.stack([f(x) for x in xs])"),
    ("lax.stop_gradient", "leave it out"),
    ("lax.dot_general", "np.einsum"),
    ("lax.rsqrt", "write 1 / np.sqrt(x)"),
    ("lax.exp", "write np.exp"),
    ("lax.max", "write np.maximum(x, y); ad.lax.pmax"),
    ("lax.dynamic_slice", "write x[start:stop]"),
    ("lax.dynamic_update_slice", "write x.at[start:stop].set(value)"),
    ("lax.erf", "scipy.special"),
    ("lax.all_gatherr", "did you mean all_gather?"),
    ("ad.tree.mapp", "did you mean map?"),
    ("ad.tree_util.tree_multimap", "write ad.tree.map"),
    ("ad.sharding.PositionalSharding", "write ad.NamedSharding(mesh, ad.P('x'))"),
    ("ad.sharding.use_mesh", "write `with ad.set_mesh(mesh):`"),
    ("ad.distributed.init", "write ad.distributed.initialize()"),
    ("ad.distributed.barrier", "write ad.multihost_utils.sync_global_devices"),
    ("ad.debug.callback", "call the function itself"),
    ("ad.debug.breakpoint", "write breakpoint()"),
    ("ad.profiler.start_trace", "write `with ad.profiler.trace('trace.json'):`"),
    ("ad.profiler.TraceAnnotation", "write `with ad.profiler.annotate('name'):`"),
    ("ad.dlpack.to_dlpack", "torch.from_dlpack(x)"),
    ("ad.experimental.pjit", "write ad.jit"),
    ("ad.experimental.pallas", "needs JAX's compiler"),
]
ROWS = [*MESHES, *PLACES, *ARRAYS, *PROGRAMS, *NAMES]


@dataclasses.dataclass
class Weights:
    w: np.ndarray


class Plain:
    pass


def assign(x, index, value):
    x[index] = value


def add_one(block):
    block += 1
    return block


@pytest.fixture(scope="module")
def names():
    with ad.simulate(4):
        other = ad.device_put(X, NamedSharding(ad.make_mesh((4,), ("x",)), P("x")))
    with ad.simulate(8):
        mesh = ad.make_mesh((8,), ("x",))

        def run(body, in_specs, out_specs=None):
            return ad.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs or P("x"))

        known = {
            "auto": ad.make_mesh((8,), "x", axis_types="auto"),
            "mesh": mesh,
            "other": other,
            "run": run,
            "x": ad.device_put(X, NamedSharding(mesh, P("x"))),
            "same": lambda block: block,
        }
        yield {**globals(), **known}


@pytest.mark.parametrize(("guess", "answer"), ROWS, ids=[guess for guess, _ in ROWS])
def test_a_guess_works_or_names_the_way(guess, answer, names, capsys):
    if answer is WORKS:
        eval(guess, names)
        return
    with pytest.raises((AttributeError, RuntimeError, TypeError, ValueError, NameError)) as caught:
        eval(guess, names)
    text = str(caught.value)
    assert answer in text
    assert "\n" not in text


def test_there_are_enough_guesses():
    assert len(ROWS) == len(dict(ROWS)) >= 100


def test_a_world_that_is_dropped_warns_at_its_line():
    with pytest.warns(UserWarning, match=r"the world was not opened; write `with ad\.simulate\(4\):` around") as seen:
        ad.simulate(4)
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ad.simulate(4):
            pass
        ad.simulate(2)(len)
        with pytest.raises(ValueError, match="simulate"):
            ad.simulate("")
        gc.collect()


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


def test_typeof_is_written_as_in_jax(names):
    assert str(ad.typeof(names["x"])) == "float64[8@x]"
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


def test_debug_print_formats_values(names, capsys):
    ad.debug.print("{} {x} {y:.2f}", 1, x=names["x"], y=ad.device_put(1.234))
    ad.debug.print(ordered=True)("two {}", 2)
    ad.debug.print("{x}", x=names["x"], partitioned=True)
    assert capsys.readouterr().out.splitlines()[:2] == ["1 [0. 1. 2. 3. 4. 5. 6. 7.] 1.23", "two 2"]
    with pytest.raises(ValueError, match="the text does not use 3"):
        ad.debug.print("x", 3)
    with pytest.raises(KeyError):
        ad.debug.print("{y}", x=3)
    with pytest.raises(TypeError, match="values are given without a text"):
        ad.debug.print(x=3)
    with pytest.raises(TypeError, match="fmt is 3"):
        ad.debug.print(3)


def test_environment_info_names_versions_and_devices(names, capsys, monkeypatch):
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
