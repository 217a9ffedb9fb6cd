# SPDX-License-Identifier: Apache-2.0
"""What newcomers type by guessing: each guess works, or its error says in one line what to write."""

import contextlib
import dataclasses
import io

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import NamedSharding, P, lax, models, planner, prefetch  # noqa: F401 - guesses name them
from artifex_devices.command_line import main

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
    ("ad.device_put(X, 'cuda:0')", "write ad.devices()[0]; this world has no GPU"),
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
IMPORTS = [
    ("run_text('from artifex_devices import numpy as jnp')", WORKS),
    ("run_text('from artifex_devices.experimental.shard_map import shard_map')", WORKS),
    ("run_text('from artifex_devices.lax import psum, scan')", "write a loop: for x in xs: carry, y = f(carry, x)"),
    ("run_text('from artifex_devices import jit, vmap')", "use NumPy's broadcasting, or pmap and shard_map"),
    ("run_text('from artifex_devices import random')", "np.random.default_rng(0)"),
    ("run_text('from artifex_devices import ones')", "write ad.numpy.ones((8, 8), device=sharding)"),
    ("run_text('from artifex_devices import psum')", "write ad.lax.psum"),
    ("run_text('from artifex_devices.experimental import pallas')", "needs JAX's compiler"),
    ("run_text('from artifex_devices.testing import simulate')", "write `with ad.simulate(8):`"),
    ("run_text('from artifex_devices.lax import psumm')", "did you mean psum?"),
    ("run_text('import artifex_devices.random')", "artifex_devices.random does not exist: write rng = np.random"),
    ("run_text('from artifex_devices.random import normal')", "np.random.default_rng(0)"),
    ("run_text('import artifex_devices.nn as nn')", "np.maximum(x, 0) is relu"),
    ("run_text('import artifex_devices.scipy.special')", "write import scipy"),
    ("run_text('import artifex_devices.jit')", "it is not a module; write from artifex_devices import jit"),
    ("run_text('import artifex_devices.experimental.pallas')", "needs JAX's compiler"),
]
ARGUMENTS = [
    ("ad.shard_map(same, mesh, P('x'), P('x'))(X)", WORKS),
    ("ad.device_put(x=X, device=sharding)", WORKS),
    ("ad.device_put(X, sharding=sharding)", "sharding is not an argument; write ad.device_put(x, sharding)"),
    ("ad.device_put(X, mesh=mesh)", "write ad.device_put(x, ad.NamedSharding(mesh, ad.P('x')))"),
    ("ad.device_put(X, devices=mesh)", "devices is not an argument (did you mean device?); expected x, device, src"),
    ("ad.reshard(x, sharding=sharding)", "write ad.reshard(x, sharding)"),
    ("ad.reshard(x)", "out_shardings is missing; write ad.reshard(x, ad.NamedSharding(mesh, ad.P('x')))"),
    ("ad.make_mesh(shape=(4, 2), axis_names=('a', 'b'))", "write ad.make_mesh((4, 2), ('data', 'model'))"),
    ("ad.make_mesh(axis_names=('a', 'b'))", "write ad.make_mesh((2, 4), ('data', 'model'))"),
    ("ad.make_mesh(data=4, model=2)", "or ad.make_mesh({'data': 4, 'model': 2})"),
    ("ad.Mesh(shape=(4, 2))", "shape is not an argument; write ad.make_mesh((4, 2), ('data', 'model'))"),
    ("ad.Mesh()", "devices is missing; write ad.make_mesh((4, 2), ('data', 'model'))"),
    ("ad.Mesh(ad.devices(), 'x', None, 3)", "got 4 positional arguments; expected devices, axis_names, axis_types"),
    ("ad.AbstractMesh()", "axis_sizes is missing; write ad.AbstractMesh((4, 2), ('data', 'model'))"),
    ("ad.AbstractMesh(shape=(4,))", "shape is not an argument; write ad.AbstractMesh((4, 2), ('data', 'model'))"),
    ("NamedSharding(mesh, pspec=P('x'))", "pspec is not an argument; write ad.NamedSharding(mesh, ad.P('data'"),
    ("NamedSharding(mesh, P('x'), memory='pinned_host')", "memory_kind='pinned_host'"),
    ("NamedSharding(mesh, 'x', None)", "got 3 positional arguments; expected mesh, spec, *, memory_kind, uneven"),
    ("P(x='data')", "x is not an argument; write ad.P('data', 'model'), one entry for each dimension"),
    ("ad.shard_map(same, mesh=mesh, in_spec=P('x'), out_specs=P('x'))", "write in_specs=ad.P('x')"),
    ("ad.shard_map(same, mesh=mesh, in_specs=P('x'), out_specs=P('x'), axis_name='x')", "write axis_names={'x'}"),
    ("ad.jit(same, in_specs=P('x'))", "write in_shardings=ad.NamedSharding(mesh, ad.P('x'))"),
    ("ad.jit(same, donate=0)", "write donate_argnums=0"),
    ("ad.pmap(same, axis='i')", "write axis_name='i'"),
    ("run(lambda b: lax.psum(b), P('x'))(X)", "axis_name is missing; write ad.lax.psum(x, 'x')"),
    ("ad.pmap(lambda b: lax.pmean(b))(X)", "axis_name is missing; write ad.lax.pmean(x, 'x')"),
    ("run(lambda b: lax.psum(b, axis='x'), P('x'))(X)", "axis is not an argument; write ad.lax.psum(x, 'x')"),
    ("run(lambda b: lax.all_gather(b, 'x', dim=0), P('x'))(X)", "write axis=0"),
    ("run(lambda b: lax.ppermute(b, 'x', shift=1), P('x'))(X)", "write perm=[(i, (i + 1) % n) for i in range(n)]"),
    ("run(lambda b: lax.ppermute(b, 'x'), P('x'))(X)", "perm is missing; write perm=[(0, 1), (1, 0)]"),
    ("lax.psum(X, 'x')", "call psum in f of ad.shard_map(f, mesh=mesh, in_specs=ad.P('x'), out_specs=ad.P())(x)"),
    ("ad.simulate(num_devices=8)", "num_devices is not an argument; write `with ad.simulate(8):`"),
    ("ad.simulate()", "world is missing; write `with ad.simulate(8):`"),
    ("ad.simulate('eight')", 'simulate: "eight" is not a world; write simulate(8)'),
    ("ad.numpy.zeros((8, 8), sharding=sharding)", "write device=sharding"),
    ("x.sum(dim=0)", "dim is not an argument; write axis=0"),
    ("x.max(axis=0, keepdim=True)", "keepdim is not an argument; write keepdims=True"),
    ("prefetch.prefetch_to_device([X], sharding=sharding)", "write prefetch_to_device(batches, sharding)"),
    ("ad.checkpoint.save('c', {'x': x}, step=1)", "write ad.checkpoint.Manager(folder).save(step, tree)"),
    ("ad.checkpoint.restore('c', target={})", "write ad.checkpoint.restore(folder, like=tree)"),
    ("ad.distributed.initialize(rank=0, world_size=2)", "write process_id=0"),
]
MEMBERS = [
    ("x.device", WORKS),
    ("x.clone()", WORKS),
    ("x.numpy()", "write np.asarray(x)"),
    ("x.detach().cpu()", "functions are not differentiated here; leave it out"),
    ("x.cpu()", "write np.asarray(x), or ad.device_put(x, ad.devices('cpu')[0])"),
    ("x.cuda()", "write ad.device_put(x, ad.devices()[0])"),
    ("x.to('cpu')", "write ad.device_put(x, sharding), or x.astype(dtype)"),
    ("x.contiguous()", "each shard is contiguous"),
    ("x.view(-1)", "write x.reshape(-1)"),
    ("x.fill(0)", "write ad.numpy.full(x.shape, value, device=x.sharding)"),
    ("x.flags.writeable", "write np.asarray(x).flags"),
    ("x.tofile('x.bin')", "write np.asarray(x).tofile(file)"),
    ("x.to_local()", "write x.addressable_shards[0].data"),
    ("x.aval", "write ad.typeof(x)"),
    ("x.addressable_shards[0].numpy()", "write np.asarray(shard.data)"),
    ("mesh.ndim", "write len(mesh.axis_names)"),
    ("sharding.partition_spec", "write s.spec"),
    ("P('x').axes", "write tuple(spec)"),
    ("ad.devices()[0].type", "write d.platform"),
    ("ad.Array.numpy", "write np.asarray(x)"),
    ("ad.checkpoint.Manager('c').close()", WORKS),
    ("ad.checkpoint.Manager('c').wait_until_finished()", WORKS),
    ("ad.checkpoint.Manager('c').__enter__().all_steps()", WORKS),
]
COMMANDS = [
    ("command('plan model')", "'model' is not a command (did you mean models?)"),
    ("command('list-models')", "write artifex_devices plan models"),
    ("command('clusters')", "write artifex_devices plan clusters"),
    ("command('plan suggest llama-2-7b')", "leave it out: artifex_devices plan llama-2-7b"),
    (
        "planner.suggest_training('llama-2-7b')",
        "write planner.suggest('llama-3-70b', '64 x h100', batch=512, sequence=8192)",
    ),
    ("command('run script.py')", "write JAX_NUM_CPU_DEVICES=8 python script.py, or mpiexec -n 2 python script.py"),
]
OTHERS = [
    ("ad.rank()", "write ad.process_index()"),
    ("ad.visualize_array_sharding(x)", "write ad.debug.visualize_array_sharding"),
    ("ad.config.jax_enable_x65", "'jax_enable_x65' is not an option (did you mean jax_enable_x64?)"),
    ("ad.make_mesh((2, 2, 2), ('a', 'b'))", "write ad.make_mesh((2, 2, 2), ('a', 'b', 'axis2'))"),
    ("ad.set_mesh((8,))", "write ad.set_mesh(ad.make_mesh((8,), ('x',)))"),
    ("prefetch.prefetch_to_device([X], 2)", "write ad.devices()[2], or prefetch_to_device(batches, buffer_size=2)"),
    ("ad.profiler.trace('/').__enter__()", "write ad.profiler.trace('/trace.json')"),
    ("ad.tensor([1.0])", "write ad.device_put(np.array([1, 2]), sharding)"),
    ("ad.cuda.is_available()", "ad.default_backend()"),
    ("ad.device('cpu')", "write ad.devices()[0]"),
    ("ad.DataLoader([X])", "write `for batch in prefetch_to_device(batches, sharding):`"),
    ("ad.run_processes(2, same)", "write from artifex_devices.testing import run_processes"),
    ("ad.distributed.all_reduce(x)", "write ad.lax.psum(x, 'x')"),
    ("ad.checkpoint.load('c')", "write ad.checkpoint.restore(folder)"),
    ("ad.checkpoint.CheckpointManager('c')", "write ad.checkpoint.Manager(folder, max_to_keep=3)"),
    ("models.llama_2_7b", "write ad.models.transformer('llama-2-7b', batch=64, sequence=4096)"),
    ("planner.suggest('llama-2-7b', None)", "expected a Cluster or a text that describes one; write '64 x h100'"),
    ("planner.suggest('llama-2-7b', '8 x h100')", "write batch=512, sequence=8192"),
]
ROWS = [*MESHES, *PLACES, *ARRAYS, *PROGRAMS, *NAMES, *IMPORTS, *ARGUMENTS, *MEMBERS, *COMMANDS, *OTHERS]


@dataclasses.dataclass
class Weights:
    w: np.ndarray


class Plain:
    pass


def assign(x, index, value):
    x[index] = value


def run_text(code):
    exec(code, {})


def command(words):
    """Runs a command; raises its usage error as a ValueError."""
    with contextlib.redirect_stderr(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        main(words.split())
    raise ValueError(printed.getvalue().strip())


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
            "sharding": NamedSharding(mesh, P("x")),
            "x": ad.device_put(X, NamedSharding(mesh, P("x"))),
            "same": lambda block: block,
        }
        yield {**globals(), **known}


@pytest.mark.parametrize(("guess", "answer"), ROWS, ids=[guess for guess, _ in ROWS])
def test_a_guess_works_or_names_the_way(guess, answer, names, capsys):
    if answer is WORKS:
        eval(guess, names)
        return
    with pytest.raises(
        (AttributeError, ImportError, NameError, OSError, RuntimeError, TypeError, ValueError)
    ) as caught:
        eval(guess, names)
    text = str(caught.value)
    assert answer in text
    assert "\n" not in text


def test_there_are_enough_guesses():
    assert len(ROWS) == len(dict(ROWS)) >= 210
