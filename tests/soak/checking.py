# SPDX-License-Identifier: Apache-2.0
"""What programs of the soak call: values to place, and checks of results.

It uses public attributes only, which both libraries have, and works out by itself where each shard must lie.
"""

import itertools
import math
import threading

import ml_dtypes
import numpy as np

# Relative tolerances of what is not exact: a few roundings of the dtype.
TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float64": 1e-12,
    "complex128": 1e-12,
}


# A slack that allows no other numbers, but NaN of any payload and zeros of either sign: max, min and arithmetic choose.
NANS = 5e-324


def numbers(shape, dtype, seed, style):
    """An ndarray. `tame`: multiples of 1/4 between -4 and 4, small integers; `bits`: any bits, NaN payloads too."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    count = math.prod(shape)
    if style == "bits" and kind.name != "bool" and "int4" not in kind.name and "int2" not in kind.name:
        drawn = np.frombuffer(rng.bytes(count * kind.itemsize), np.uint8)
        used = 0x0F if "float4" in kind.name else 0x3F if "float6" in kind.name else 0xFF  # JAX keeps no others
        return (drawn & used).view(kind).reshape(shape)
    small = rng.integers(-16, 17, size=shape)
    if kind.name == "bool":
        return np.asarray(small > 0)
    if "int4" in kind.name or "int2" in kind.name:
        return np.asarray(small % 2).astype(kind)
    if kind.kind in "iu":
        return np.asarray(abs(small) if kind.kind == "u" else small).astype(kind)
    if kind.kind == "c":
        return np.asarray(small / 4 + 1j * rng.integers(-16, 17, size=shape) / 4).astype(kind)
    return np.asarray(small / 4).astype(kind)


def entry_axes(entry):
    """The axes of one entry of a spec."""
    if entry is None:
        return ()
    return tuple(entry) if isinstance(entry, tuple | list) else (entry,)


def blocks_of(ids, names, spec, shape):
    """{device id: its slices of the value} for a grid of device ids; uneven parts are short at the end."""
    sizes = dict(zip(names, np.shape(ids), strict=True))
    found = {}
    for place in itertools.product(*map(range, np.shape(ids))):
        at = dict(zip(names, place, strict=True))
        box = []
        for dimension, size in enumerate(shape):
            axes = entry_axes(spec[dimension]) if dimension < len(spec) else ()
            part = 0
            for axis in axes:
                part = part * sizes[axis] + at[axis]
            step = -(-size // math.prod(sizes[axis] for axis in axes))
            box.append(slice(min(part * step, size), min((part + 1) * step, size)))
        found[int(np.asarray(ids)[place])] = tuple(box)
    return found


def canonical(spec, sizes, *, cutting=False):
    """Entries as tuples of axes, without trailing whole dimensions; `cutting`: only axes that do cut."""
    entries = [tuple(a for a in entry_axes(entry) if not cutting or sizes[a] > 1) for entry in spec]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def ambiguous(value, zeros=False):
    """NANS where a computed value has NaN, or zeros that max or min chose, whose bits are nobody's promise; else 0."""
    if value.dtype.kind in "biu":
        return 0.0
    with np.errstate(all="ignore"):
        return NANS if bool(((value != value) | (zeros & (value == 0))).any()) else 0.0


def bounds(index, shape):
    return tuple(piece.indices(size)[:2] for piece, size in zip(index, shape, strict=True))


def same(found, value, slack=0.0, what="value"):
    """The same dtype, shape and bits; with slack numbers may differ by that, and a few roundings."""
    found = np.asarray(found)
    assert found.dtype == value.dtype, f"{what}: dtype {found.dtype}, expected {value.dtype}"
    assert found.shape == value.shape, f"{what}: shape {found.shape}, expected {value.shape}"
    if found.tobytes() == np.ascontiguousarray(value).tobytes():
        return
    if slack:
        wide = np.complex128 if value.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            unit = 0.0 if slack == NANS else TOLERANCE.get(value.dtype.name, 0.1)
            near = np.allclose(found.astype(wide), value.astype(wide), rtol=unit, atol=slack, equal_nan=True)
        if near:
            return
    raise AssertionError(f"{what}: got {found.tolist()}, expected {value.tolist()}"[:2000])


def check(array, value, slack=0.0, *, ids=None, names=None, spec=None, device=None, computed=False, **facts):
    """An Array with this value; sharded by `spec` over the grid `ids` of device ids, or on `device`.

    `computed`: results of functions may leave axes out that do not cut. `facts` are `committed` and `memory_kind`.
    """
    assert not array.is_deleted(), "the Array is deleted"
    same(array, value, slack)
    sharding = array.sharding
    if ids is not None:
        at = np.vectorize(lambda each: each.id, otypes=[int])(sharding.mesh.devices)
        assert at.tolist() == ids, f"mesh: devices {at.tolist()}, expected {ids}"
        assert tuple(sharding.mesh.axis_names) == tuple(names), f"axes {sharding.mesh.axis_names}, expected {names}"
        sizes = dict(zip(names, np.shape(ids), strict=True))
        got, wanted = (canonical(each, sizes, cutting=computed) for each in (sharding.spec, spec))
        assert got == wanted, f"spec {sharding.spec}, expected {spec}"
        boxes = blocks_of(ids, names, spec, value.shape)
    elif device is not None:
        assert [each.id for each in array.devices()] == [device], f"devices {array.devices()}, expected {device}"
        boxes = {device: tuple(slice(0, size) for size in value.shape)}
    elif hasattr(sharding, "spec"):
        at = np.vectorize(lambda each: each.id, otypes=[int])(sharding.mesh.devices)
        boxes = blocks_of(at, sharding.mesh.axis_names, tuple(sharding.spec), value.shape)
    else:
        boxes = {each.id: tuple(slice(0, size) for size in value.shape) for each in array.devices()}
    for name, fact in facts.items():
        found = getattr(array if name == "committed" else sharding, name)
        assert found == fact, f"{name} is {found}, expected {fact}"
    found = {each.id: bounds(index, value.shape) for each, index in sharding.devices_indices_map(value.shape).items()}
    expected = {each: bounds(box, value.shape) for each, box in boxes.items()}
    assert found == expected, f"devices_indices_map {found}, expected {expected}"
    shards = array.addressable_shards
    assert len(shards) == len(boxes), f"{len(shards)} shards, expected {len(boxes)}"
    for shard in shards:
        box = boxes.pop(shard.device.id)
        assert bounds(shard.index, value.shape) == bounds(box, value.shape), f"index of {shard.device}: {shard.index}"
        same(shard.data, value[box], slack, f"shard of device {shard.device.id}")


def together(*work):
    """Runs functions in a thread each, at once; raises what the first of them raised."""
    start, errors = threading.Barrier(len(work)), []

    def run(function):
        start.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def accounts(library, devices, arrays, others=False):
    """live_arrays() has these Arrays and no others; each device counts the bytes of their shards.

    `others`: Arrays of another world may be alive.
    """
    mine = {id(array) for array in arrays}
    alive = {id(array) for array in library.live_arrays()}
    assert alive == mine or (others and mine <= alive), (
        f"{len(alive)} Arrays alive, of which {len(alive & mine)} are among the {len(mine)} expected"
    )
    expected = dict.fromkeys(range(len(devices)), 0)
    for array in {id(array): array for array in arrays}.values():
        if array.sharding.memory_kind == "device":
            for device, index in array.sharding.devices_indices_map(array.shape).items():
                sides = [stop - start for start, stop in bounds(index, array.shape)]
                expected[device.id] += math.prod(sides) * array.dtype.itemsize
    counted = {device.id: device.memory_stats()["bytes_in_use"] for device in devices}
    assert counted == expected, f"bytes_in_use {counted}, expected {expected}"
