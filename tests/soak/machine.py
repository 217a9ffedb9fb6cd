# SPDX-License-Identifier: Apache-2.0
"""Random programs: each rule is a step on Arrays whose values NumPy knows.

With JAX beside it, placed and mapped values must have JAX's values, and the same shards on the same devices.
"""

import copy
import gc
import itertools
import math
import pickle

import artifex_devices as ad
import numpy as np
from artifex_devices import AxisType, NamedSharding, P, SingleDeviceSharding, lax
from artifex_devices.errors import IndivisibleError, ShardingTypeError
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, multiple, rule

from soak.checking import accounts, ambiguous, check, entry_axes, numbers, same, together

DTYPES = ["bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]
SIZES = [(1,), (2,), (4,), (8,), (2, 2), (2, 4), (4, 2), (2, 2, 2)]
EXACT = ["negative", "abs", "positive", "square", "isfinite", "isnan", "logical_not", "sign", "signbit", "conj"]
NEAR = ["sqrt", "exp", "tanh", "sin", "log1p"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum", "equal", "less", "logical_and", "not_equal"]
REDUCTIONS = ["sum", "max", "min", "any", "all", "argmax", "count_nonzero", "prod"]
TAME = ["bool", "int32", "int64", "float32", "float64"]  # sums of small multiples of 1/4 are exact in any order
WORLDS = [2, "2 nodes x 2", {"cpu": 2, "gpu": 2}]


class Value:
    """An Array, the ndarray that it must equal, and JAX's Array."""

    def __init__(self, array, host, theirs=None):
        self.array, self.host, self.theirs = array, host, theirs


class Place:
    """A device or a sharding, and what NumPy needs to know of it."""

    def __init__(self, mesh=None, spec=(), device=None):
        self.mesh, self.spec, self.device = mesh, spec, device

    def __repr__(self):
        return f"device {self.device}" if self.mesh is None else f"P{self.spec} over {self.mesh}"

    def ours(self):
        if self.mesh is None:
            return ad.devices()[self.device]
        return NamedSharding(self.mesh, P(*self.spec))

    def theirs(self, jax):
        if self.mesh is None:
            return jax.devices()[self.device]
        grid = np.vectorize(lambda each: jax.devices()[each.id])(self.mesh.devices)
        mesh = jax.sharding.Mesh(grid, self.mesh.axis_names)
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*self.spec))

    def fits(self, shape):
        sizes = {} if self.mesh is None else self.mesh.shape
        parts = (math.prod(sizes[axis] for axis in entry_axes(entry)) for entry in self.spec)
        return all(size % part == 0 for size, part in zip(shape, parts, strict=False))

    def check(self, array, host):
        if self.mesh is None:
            check(array, host, device=self.device)
        else:
            ids = np.vectorize(lambda each: each.id, otypes=[int])(self.mesh.devices).tolist()
            check(array, host, ids=ids, names=self.mesh.axis_names, spec=self.spec)


@st.composite
def hosts(draw, dtypes=DTYPES):
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 8, 16]), max_size=3)))
    style = draw(st.sampled_from(["tame", "bits"])) if dtypes is DTYPES else "tame"
    return numbers(shape, draw(st.sampled_from(dtypes)), draw(st.integers(0, 99)), style)


def specs(draw, mesh, rank):
    """Entries for `rank` dimensions, in which each axis of the mesh occurs at most once."""
    left = draw(st.permutations(mesh.axis_names))
    spec = []
    for _ in range(rank):
        count = min(len(left), draw(st.sampled_from([0, 0, 1, 1, 2])))
        axes, left = tuple(left[:count]), left[count:]
        spec.append(None if not axes else axes[0] if count == 1 else axes)
    return tuple(spec)


class Programs(RuleBasedStateMachine):
    """Programs of one process with 8 CPU devices."""

    jax = None  # the module, to run beside it
    meshes = Bundle("meshes")
    values = Bundle("values")
    alive = values.filter(lambda value: not value.array.is_deleted())  # one Array may have several names

    def __init__(self):
        super().__init__()
        gc.collect()
        self.before = ad.live_arrays()  # what a failed program left
        self.known = {}

    def keep(self, array, host, theirs=None):
        """The Value of an Array, which is an older one where the call returned the same object."""
        same(array, host)
        return self.known.setdefault(id(array), Value(array, host, theirs))

    def beside(self, value, what):
        """JAX must agree about the shards of a value and what is in them."""
        if value.theirs is None:
            return
        shards = {shard.device.id: shard for shard in value.theirs.addressable_shards}
        assert shards.keys() == {device.id for device in value.array.devices()}, f"{what}: devices of JAX {shards}"
        for shard in value.array.addressable_shards:
            same(shard.data, np.asarray(shards[shard.device.id].data), what=f"{what} beside JAX, {shard.device}")

    def place(self, data, meshes, rank):
        if not meshes or data.draw(st.integers(0, 3)) == 0:
            return Place(device=data.draw(st.integers(0, 7)))
        mesh = data.draw(st.sampled_from(meshes))
        return Place(mesh, specs(data.draw, mesh, rank))

    @rule(target=meshes, sizes=st.sampled_from(SIZES), ids=st.permutations(range(8)))
    def mesh(self, sizes, ids):
        grid = np.array(ad.devices())[ids[: math.prod(sizes)]].reshape(sizes)
        return ad.Mesh(grid, tuple("xyz"[: len(sizes)]), axis_types=(AxisType.Auto,) * len(sizes))

    @rule(target=values, host=hosts(), meshes=st.lists(meshes, max_size=1), data=st.data())
    def put(self, host, meshes, data):
        place = self.place(data, meshes, host.ndim)
        return self.placed(host, place, lambda lib, there, x: lib.device_put(x, there), host)

    def placed(self, host, place, call, ours, theirs=None):
        if not place.fits(host.shape):
            try:
                call(ad, place.ours(), ours)
            except IndivisibleError:
                return multiple()  # nothing for the bundle
            raise AssertionError(f"{place} of {host.shape} was accepted")
        array = call(ad, place.ours(), ours)
        place.check(array, host)
        theirs = host if theirs is None else theirs
        return self.result(array, host, lambda jax: call(jax, place.theirs(jax), theirs), "placed")

    def result(self, array, host, by_jax, what):
        value = self.keep(array, host)
        if self.jax is not None and value.theirs is None and host.size:
            value.theirs = by_jax(self.jax)
            self.beside(value, what)
        return value

    @rule(target=values, value=alive, meshes=st.lists(meshes, max_size=1), data=st.data())
    def move(self, value, meshes, data):
        place = self.place(data, meshes, value.host.ndim)
        theirs = value.host if value.theirs is None else value.theirs
        return self.placed(value.host, place, lambda lib, there, x: lib.device_put(x, there), value.array, theirs)

    @rule(
        target=values,
        value=consumes(values).filter(lambda value: not value.array.is_deleted()),
        meshes=st.lists(meshes, max_size=1),
        data=st.data(),
    )
    def donate(self, value, meshes, data):
        place = self.place(data, meshes, value.host.ndim)
        if not place.fits(value.host.shape):
            return value
        moved = ad.device_put(value.array, place.ours(), donate=True)
        assert moved is value.array or value.array.is_deleted()
        place.check(moved, value.host)
        return self.keep(moved, value.host)

    @rule(value=consumes(values).filter(lambda value: not value.array.is_deleted()))
    def delete(self, value):
        value.array.delete()
        for call in (np.asarray, ad.device_get, lambda x: x + x, lambda x: ad.device_put(x, ad.devices()[0])):
            try:
                call(value.array)
            except RuntimeError as error:
                assert "deleted" in str(error), error  # noqa: PT017
            else:
                raise AssertionError("a deleted Array was used")

    @rule(value=alive, how=st.sampled_from(["asarray", "device_get", "async", "iterated"]))
    def read(self, value, how):
        if how == "async":
            found = ad.copy_to_host_async(value.array).result()
        elif how == "iterated" and value.host.ndim:
            found = np.array([np.asarray(each) for each in value.array], value.host.dtype).reshape(value.host.shape)
        else:
            found = np.asarray(value.array) if how == "asarray" else ad.device_get(value.array)
        same(found, value.host, what=how)

    @rule(target=values, value=alive, how=st.sampled_from([copy.copy, copy.deepcopy, lambda x: x.clone()]))
    def copied(self, value, how):
        return self.keep(how(value.array), value.host)

    @rule(target=values, value=alive)
    def pickled(self, value):
        found = pickle.loads(pickle.dumps(value.array))
        assert found.sharding == value.array.sharding
        return self.keep(found, value.host)

    @rule(target=values, host=hosts(), meshes=st.lists(meshes, min_size=1, max_size=1), data=st.data())
    def from_callback(self, host, meshes, data):
        place = Place(meshes[0], specs(data.draw, meshes[0], host.ndim))
        make = "make_array_from_callback"
        return self.placed(host, place, lambda lib, there, x: getattr(lib, make)(x.shape, there, x.__getitem__), host)

    @rule(target=values, value=alive, function=st.sampled_from(EXACT + NEAR))
    def unary(self, value, function):
        return self.computed(getattr(np, function), [value], near=function in NEAR)

    @rule(target=values, x=alive, other=hosts(), function=st.sampled_from(BINARY), swap=st.booleans())
    def binary(self, x, other, function, swap):
        y = ad.device_put(np.broadcast_to(other.ravel()[0], x.host.shape), x.array.sharding) if other.size else x.array
        pair = [x, Value(y, np.array(y))]
        return self.computed(getattr(np, function), pair[::-1] if swap else pair)

    @rule(target=values, value=alive, number=st.sampled_from([2, -3, 0.5, True]), function=st.sampled_from(BINARY))
    def with_number(self, value, number, function):
        return self.computed(lambda x: getattr(np, function)(x, number), [value])

    def computed(self, function, values, near=False):
        """NumPy's result with the same bits; functions that are rounded may differ in the last bits."""
        hosts = [value.host for value in values]
        with np.errstate(all="ignore"):
            try:
                expected = np.asarray(function(*hosts))
            except (TypeError, ValueError, IndexError, OverflowError) as error:
                try:
                    function(*(value.array for value in values))
                except (*type(error).__mro__[-4:-1], type(error)):
                    return multiple()
                raise AssertionError(f"no error; NumPy has {error!r}") from error
            try:
                found = function(*(value.array for value in values))
            except (ShardingTypeError, IndivisibleError):  # the result could not be sharded; nothing is moved silently
                return multiple()
        if isinstance(found, ad.Array):
            slack = 1e-30 if near else ambiguous(expected, zeros=True)
            same(found, expected, slack)
            return self.keep(found, np.array(found))
        same(found, expected)
        return self.keep(ad.device_put(expected), expected)

    @rule(target=values, host=hosts(TAME), meshes=st.lists(meshes, max_size=1), data=st.data())
    def reduced(self, host, meshes, data):
        place = self.place(data, meshes, host.ndim)
        if not place.fits(host.shape):
            place = Place(device=0)
        axis = data.draw(st.sampled_from([None, *range(host.ndim)]))
        function = getattr(np, data.draw(st.sampled_from(REDUCTIONS)))
        if function is np.prod and host.size > 15:
            function = np.sum
        return self.computed(lambda x: function(x, axis=axis), [Value(ad.device_put(host, place.ours()), host)])

    @rule(target=values, value=alive, data=st.data())
    def shaped(self, value, data):
        rank, size = value.host.ndim, value.host.size
        calls = [lambda x: x.reshape(-1), lambda x: x.T, lambda x: np.expand_dims(x, 0), np.ravel, np.atleast_2d]
        if rank:
            at = data.draw(st.integers(-1, value.host.shape[0] - 1)) if value.host.shape[0] else 0
            step = data.draw(st.sampled_from([1, 2, -1]))
            calls += [lambda x: x[::step], lambda x: x[at : at + 2]]
            calls += [lambda x: np.roll(x, 1, 0), lambda x: np.flip(x, 0)]
            calls += [lambda x: np.concatenate([x, x], axis=rank - 1), lambda x: np.stack([x, x])]
            calls += [lambda x: x[at]] if value.host.shape[0] else []
        calls += [lambda x: x.reshape(2, -1)] if size and size % 2 == 0 else []
        return self.computed(data.draw(st.sampled_from(calls)), [value])

    @rule(target=values, value=alive, how=st.sampled_from(["set", "add", "multiply", "max"]), data=st.data())
    def updated(self, value, how, data):
        if not (value.host.ndim and value.host.shape[0] and value.host.dtype.name in TAME):
            return multiple()
        at, number = data.draw(st.integers(0, value.host.shape[0] - 1)), value.host.dtype.type(1)
        expected = value.host.copy()
        with np.errstate(all="ignore"):
            old = {"set": number, "add": expected[at] + number, "multiply": expected[at] * number}
            expected[at] = old[how] if how in old else np.maximum(expected[at], number)
            found = getattr(value.array.at[at], how)(number)
        same(found, expected, ambiguous(expected, zeros=True))
        return self.keep(found, np.array(found))

    @rule(
        target=values,
        mesh=meshes,
        dtype=st.sampled_from(["int32", "float32", "float64"]),
        executor=st.sampled_from(["cooperative", "threads"]),
        body=st.sampled_from(["psum", "pmax", "all_gather", "ppermute", "axis_index", "psum_scatter", "all_to_all"]),
        data=st.data(),
    )
    def mapped(self, mesh, dtype, executor, body, data):
        axis = data.draw(st.sampled_from(mesh.axis_names))
        size, every = mesh.shape[axis], P(mesh.axis_names)
        host = numbers((mesh.size * size, 3), dtype, data.draw(st.integers(0, 99)), "tame")

        def function(lib):
            bodies = {
                "psum": lambda x: lib.psum(x, axis),
                "pmax": lambda x: lib.pmax(x, axis),
                "all_gather": lambda x: lib.all_gather(x, axis, tiled=True),
                "ppermute": lambda x: lib.ppermute(x, axis, [(i, (i + 1) % size) for i in range(size)]),
                "axis_index": lambda x: x + lib.axis_index(axis).astype(x.dtype),
                "psum_scatter": lambda x: lib.psum_scatter(x, axis, tiled=True),
                "all_to_all": lambda x: lib.all_to_all(x, axis, 0, 0, tiled=True),
            }
            return bodies[body]

        spec = NamedSharding(mesh, every)
        found = ad.shard_map(function(lax), mesh=mesh, in_specs=every, out_specs=every, executor=executor)(
            ad.device_put(host, spec)
        )
        expected = self.by_blocks(host, mesh, axis, body)
        same(found, expected, what=f"{body} over {axis!r}")

        def by_jax(jax):
            there = Place(mesh, (mesh.axis_names,)).theirs(jax)
            call = jax.shard_map(
                function(jax.lax), mesh=there.mesh, in_specs=there.spec, out_specs=there.spec, check_vma=False
            )
            return call(jax.device_put(host, there))

        return self.result(found, expected, by_jax, body)

    def by_blocks(self, host, mesh, axis, body):
        """What NumPy makes of the blocks of all devices, in the order of the mesh."""
        size, at = mesh.shape[axis], mesh.axis_names.index(axis)
        blocks = host.reshape(*mesh.devices.shape, size, 3)
        results = np.empty(mesh.devices.shape, object)
        for index in itertools.product(*map(range, mesh.devices.shape)):
            group = [blocks[(*index[:at], i, *index[at + 1 :])] for i in range(size)]
            mine = index[at]
            results[index] = {
                "psum": lambda g, i: sum(g[1:], start=g[0]),
                "pmax": lambda g, i: np.max(g, axis=0),
                "all_gather": lambda g, i: np.concatenate(g),
                "ppermute": lambda g, i: g[(i - 1) % len(g)],
                "axis_index": lambda g, i: g[i] + np.asarray(i, host.dtype),
                "psum_scatter": lambda g, i: sum(g[1:], start=g[0])[i : i + 1],
                "all_to_all": lambda g, i: np.stack([each[i] for each in g]),
            }[body](group, mine)
        return np.concatenate(list(results.ravel()))

    @rule(mesh=meshes, values=st.lists(alive, min_size=2, max_size=3))
    def threads(self, mesh, values):
        def work(value):
            there = ad.device_put(value.array, NamedSharding(mesh, P()))
            same(there, value.host, what="in a thread")
            same(np.positive(there) if value.host.dtype != bool else there, value.host, what="in a thread")

        together(*(lambda value=value: work(value) for value in values))

    @rule(host=hosts(), world=st.sampled_from(WORLDS), seed=st.sampled_from([None, 3]))
    def other_world(self, host, world, seed):
        with ad.simulate(world, **({} if seed is None or isinstance(world, dict) else {"seed": seed})) as simulated:
            del simulated
            for device in ad.devices():
                same(ad.device_put(ad.device_put(host), device), host, what="in another world")

    @rule(value=alive, device=st.integers(0, 7))
    def fails_and_goes_on(self, value, device):
        def body(x):
            raise ZeroDivisionError("of the program")

        mesh = ad.make_mesh((2,), ("q",), devices=ad.devices()[:2])
        try:
            ad.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P())(np.ones(2))
        except ZeroDivisionError:
            same(ad.device_put(value.array, SingleDeviceSharding(ad.devices()[device])), value.host)
        else:
            raise AssertionError("the error of a body was lost")

    def teardown(self):
        for value in self.known.values():
            if not value.array.is_deleted():
                same(value.array, value.host, what="at the end")
            value.array = None
        self.known.clear()
        gc.collect()
        before = {id(array) for array in self.before}
        left = [array for array in ad.live_arrays() if id(array) not in before]
        assert not left, f"{len(left)} Arrays are left, such as {left[0].describe()}"
        if not before:
            accounts(ad, ad.devices(), [])
