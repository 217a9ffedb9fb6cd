# SPDX-License-Identifier: Apache-2.0
"""Assertions on values and shardings, whose failures show the shard, the index and the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import artifex_devices as ad
from artifex_devices._base.checks import check_number, check_type, wrong_type
from artifex_devices._base.text import shortened

_MAX_ROWS = 8

_Index = tuple[slice, ...]


def assert_allclose(
    actual: object, expected: object, rtol: float = 1e-7, atol: float = 0.0, *, equal_nan: bool = True
) -> None:
    """Fails unless all elements are within `atol + rtol * abs(expected)`, as `numpy.testing.assert_allclose`.

    The shards of an Array are compared one by one, without a gather; of replicas the first in this process.

    Args:
        actual: An Array, or anything that `np.asarray` takes.
        expected: The same, of the same shape, or one number.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether NaN equals NaN.

    Raises:
        AssertionError: With the number of elements that differ, and the largest difference in each shard.
        TypeError: A value is not an array of numbers, or a tolerance is not a number.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     x = ad.device_put(np.arange(4.0), ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x")))
        ...     assert_allclose(x, [0, 1, 2.5, 3])
        Traceback (most recent call last):
        AssertionError: assert_allclose: 1 of 4 elements differ by more than rtol=1e-07, atol=0.0
          cpu:1 [2:4]: 1 of 2, most at [2]: got 2.0, expected 2.5; difference 0.5, relative 0.2
    """
    __tracebackhide__ = True
    got = actual if isinstance(actual, ad.Array) else _numbers("actual", actual)
    want = _numbers("expected", expected)
    check_number("assert_allclose", "rtol", rtol, "write rtol=1e-5")
    check_number("assert_allclose", "atol", atol, "write atol=1e-8")
    if want.shape != got.shape and want.ndim:
        raise AssertionError(f"assert_allclose: the shape is {got.shape}, expected {want.shape}")
    want = np.broadcast_to(want, got.shape)
    is_wrong = np.zeros(got.shape, bool)
    lines = []
    for device, index, values in _parts(got):
        target = want[index]
        difference = _difference(values, target, equal_nan)
        size = abs(_widened(target))
        wrong = (difference != 0) & ~(np.isfinite(size) & (difference <= atol + rtol * size))
        is_wrong[index] |= wrong
        if wrong.any():
            lines.append(
                f"  {device}{wrong.sum()} of {wrong.size}, {_largest(values, target, difference, wrong, index)}"
            )
    if lines:
        raise AssertionError(
            f"assert_allclose: {is_wrong.sum()} of {got.size} elements differ by more than rtol={rtol}, atol={atol}\n"
            + "\n".join(shortened(lines, _MAX_ROWS, "  and {} more shards"))
        )


def _numbers(name: str, value: object) -> NDArray[Any]:
    """Returns the value as an ndarray; raises TypeError if it does not hold numbers."""
    try:
        array = np.asarray(value)
        _widened(array.reshape(-1)[:1])
    except (TypeError, ValueError):
        fix = "compare a tree leaf by leaf: ad.tree.map(assert_allclose, actual, expected)"
        raise wrong_type("assert_allclose", name, value, "an Array or numbers of one shape", fix) from None
    return array


def _parts(value: ad.Array | NDArray[Any]) -> Iterator[tuple[str, _Index, NDArray[Any]]]:
    """Returns text, index and values of each distinct shard of this process; an ndarray is one part without a text."""
    if not isinstance(value, ad.Array):
        yield "", (slice(None),) * value.ndim, value
        return
    distinct = {_index_text(shard.index, value.shape): shard for shard in reversed(value.addressable_shards)}
    for text, shard in reversed(distinct.items()):
        yield f"{shard.device.platform}:{shard.device.id} {text}: ", shard.index, np.asarray(shard.data)


def _widened(values: NDArray[Any]) -> NDArray[Any]:
    """Returns the values in a dtype that can represent all of them: float64 or complex128."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _difference(values: NDArray[Any], target: NDArray[Any], equal_nan: bool) -> NDArray[np.float64]:
    """Returns absolute differences; 0 for equal infinities, and for two NaN where they are equal."""
    wide, wide_target = _widened(values), _widened(target)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = abs(wide - wide_target)
    is_same = wide == wide_target
    if equal_nan:
        is_same |= np.isnan(wide) & np.isnan(wide_target)
    return np.where(is_same, 0.0, difference)


def _largest(
    values: NDArray[Any],
    target: NDArray[Any],
    difference: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    index: _Index,
) -> str:
    """Describes the wrong element with the largest difference; NaN is larger than all."""
    place = np.unravel_index(np.argmax(np.where(wrong, np.nan_to_num(difference, nan=np.inf), -1.0)), values.shape)
    position = ", ".join(str((part.start or 0) + int(i)) for part, i in zip(index, place, strict=True))
    text = f"most at [{position}]: got {values[place]}, expected {target[place]}"
    amount, size = difference[place], abs(_widened(target)[place])
    if not np.isfinite(amount):
        return text
    return f"{text}; difference {amount:.4g}" + (f", relative {amount / size:.4g}" if size else "")


def assert_same_sharding(actual: ad.Array | ad.ShapeDtypeStruct, expected: object) -> None:
    """Fails unless the devices, the part that each of them holds, and the memory kind are as expected.

    Args:
        actual: An Array or a ShapeDtypeStruct.
        expected: A Sharding; an Array, for its sharding; or a PartitionSpec, on the mesh of `actual`.

    Raises:
        AssertionError: With the index of each device that holds another part.
        TypeError: An argument is of another type.

    Example:
        >>> import artifex_devices as ad
        >>> with ad.simulate(2):
        ...     x = ad.device_put(np.zeros((4, 2)), ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x", None)))
        ...     assert_same_sharding(x, ad.P(None, "x"))
        Traceback (most recent call last):
        AssertionError: assert_same_sharding: an array of shape (4, 2) is sharded otherwise
          got P('x', None), expected P(None, 'x')
          cpu:0: got [0:2, 0:2], expected [0:4, 0:1]
          cpu:1: got [2:4, 0:2], expected [0:4, 1:2]
    """
    __tracebackhide__ = True
    fix = "pass an Array"
    check_type("assert_same_sharding", "actual", actual, (ad.Array, ad.ShapeDtypeStruct), "an Array", fix)
    got: ad.Sharding | None = actual.sharding
    want: ad.Sharding | None
    shape = actual.shape
    if isinstance(expected, ad.PartitionSpec):
        if not isinstance(got, ad.NamedSharding):
            raise AssertionError(f"assert_same_sharding: the sharding is {got}, expected {expected} on a mesh")
        want = ad.NamedSharding(got.mesh, expected, memory_kind=got.memory_kind)
    elif isinstance(expected, (ad.Array, ad.ShapeDtypeStruct)):
        want = expected.sharding
    elif isinstance(expected, ad.Sharding):
        want = expected
    else:
        raise wrong_type(
            "assert_same_sharding", "expected", expected, "a Sharding, an Array or a PartitionSpec", "write P('x')"
        )
    if got == want or (got is not None and want is not None and got.is_equivalent_to(want, len(shape))):
        return
    lines = [f"  got {_sharding_text(got, want)}, expected {_sharding_text(want, got)}"]
    if got is not None and want is not None:
        lines += shortened(_device_lines(got, want, shape), _MAX_ROWS, "  and {} more devices")
    raise AssertionError(f"assert_same_sharding: an array of shape {shape} is sharded otherwise\n" + "\n".join(lines))


def _sharding_text(sharding: ad.Sharding | None, other: ad.Sharding | None) -> str:
    """Formats the spec alone where the rest is as in the other sharding."""
    named = (sharding, other)
    if all(isinstance(each, ad.NamedSharding) for each in named):
        meshes, kinds = ({each.mesh for each in named}, {each.memory_kind for each in named})  # type: ignore[union-attr]
        if len(meshes) == len(kinds) == 1:
            return str(sharding.spec)  # type: ignore[union-attr]
    return repr(sharding)


def _device_lines(got: ad.Sharding, want: ad.Sharding, shape: tuple[int, ...]) -> list[str]:
    """Formats one line for each device whose index differs."""
    try:
        indices = [each.devices_indices_map(shape) for each in (got, want)]
    except ValueError as error:  # the expected sharding does not divide the shape, or has no devices
        return [f"  {error}"]
    lines = []
    for device in sorted({*indices[0], *indices[1]}, key=lambda each: each.id):
        texts = [_index_text(each[device], shape) if device in each else "nothing" for each in indices]
        if texts[0] != texts[1]:
            lines.append(f"  {device.platform}:{device.id}: got {texts[0]}, expected {texts[1]}")
    return lines


def _index_text(index: _Index, shape: tuple[int, ...]) -> str:
    """Formats an index with its bounds: "[0:2, 0:8]"."""
    bounds = (part.indices(size) for part, size in zip(index, shape, strict=True))
    return f"[{', '.join(f'{start}:{stop}' for start, stop, _ in bounds)}]"


def assert_same_bits(actual: object, expected: object) -> None:
    """Fails unless both have the same shape, dtype and bits: NaN payloads and the sign of zero count.

    Args:
        actual: An Array, or anything that `np.asarray` takes.
        expected: The same.

    Raises:
        AssertionError: With the first element that differs and the number of differences.

    Example:
        >>> assert_same_bits(np.float32([0.0]), np.float32([-0.0]))
        Traceback (most recent call last):
        AssertionError: 1 of 1 elements differ; first at (0,): got 0.0, expected -0.0 (bytes 00000000, 00000080)
    """
    __tracebackhide__ = True
    got, want = np.asarray(actual), np.asarray(expected)
    if got.shape != want.shape or got.dtype != want.dtype:
        raise AssertionError(f"got {got.dtype}{got.shape}, expected {want.dtype}{want.shape}")
    if not got.size:
        return
    side = got.dtype.itemsize
    got_bytes = np.frombuffer(got.tobytes(), np.uint8).reshape(-1, side)
    want_bytes = np.frombuffer(want.tobytes(), np.uint8).reshape(-1, side)
    wrong = np.flatnonzero((got_bytes != want_bytes).any(axis=1))
    if wrong.size:
        first = int(wrong[0])
        index = tuple(int(i) for i in np.unravel_index(first, got.shape))
        raise AssertionError(
            f"{wrong.size} of {got.size} elements differ; first at {index}: got {got[index]}, expected {want[index]} "
            f"(bytes {got_bytes[first].tobytes().hex()}, {want_bytes[first].tobytes().hex()})"
        )


def assert_shards_tile(sharding: ad.Sharding, shape: Sequence[int]) -> None:
    """Fails unless the shards cover every element of an array equally often, as replicas should.

    Args:
        sharding: The sharding.
        shape: Shape of the array.

    Raises:
        AssertionError: With an element that is covered too often or too rarely.

    Example:
        >>> mesh = ad.Mesh(np.array(ad.devices()[:1]), ("x",))
        >>> assert_shards_tile(ad.NamedSharding(mesh, ad.PartitionSpec("x")), (8, 2))
    """
    __tracebackhide__ = True
    indices = sharding.devices_indices_map(tuple(shape))
    if len(indices) != sharding.num_devices:
        raise AssertionError(f"{len(indices)} devices have an index, expected {sharding.num_devices}")
    boxes = [tuple((part.start, part.stop) for part in index) for index in indices.values()]
    full = [box for box in boxes if all(start is None or start < stop for start, stop in box)]
    replicas = len(full) // max(len(set(full)), 1)
    covered = np.zeros(tuple(shape), np.int64)
    for index in indices.values():
        covered[index] += 1
    wrong = np.argwhere(covered != replicas) if covered.size else np.empty((0, len(shape)), np.int64)
    if len(wrong):
        element = tuple(int(i) for i in wrong[0])
        raise AssertionError(f"element {element} is on {covered[element]} devices, expected {replicas} replicas")
