# SPDX-License-Identifier: Apache-2.0
"""Guards, default devices and x64 in both libraries: the same calls under the same scopes."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import artifex_devices as ad
import jax
import numpy as np
import pytest
from both import JAX, LIBRARIES, OURS, assert_agree, plain
from hypothesis import given
from hypothesis import strategies as st

TOP = {"artifex_devices": ad, "jax": jax}
LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit", None)
GUARDS = (
    "transfer_guard",
    "transfer_guard_host_to_device",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
)
X = np.arange(64, dtype=np.float32).reshape(16, 4)


def top(lib: SimpleNamespace) -> Any:
    return TOP[lib.name]


def line(lib: SimpleNamespace, *entries: Any) -> Any:
    return lib.NamedSharding(lib.Mesh(np.array(lib.devices), ("x",)), lib.P(*entries))


def grid(lib: SimpleNamespace, *entries: Any) -> Any:
    return lib.NamedSharding(lib.Mesh(np.array(lib.devices).reshape(2, 4), ("a", "b")), lib.P(*entries))


# What is there before the guard, then what is done under it.
PLACES: dict[str, Callable[[Any], Any]] = {
    "uncommitted": lambda lib: None,
    "first": lambda lib: lib.devices[0],
    "third": lambda lib: lib.devices[3],
    "cut": lambda lib: line(lib, "x"),
    "cut with None": lambda lib: line(lib, "x", None),
    "cut by the grid": lambda lib: grid(lib, ("a", "b")),
    "half": lambda lib: grid(lib, "a", "b"),
    "whole": lambda lib: line(lib),
    "single": lambda lib: lib.SingleDeviceSharding(lib.devices[3]),
}


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    """The process's options are the defaults again."""
    yield
    for name in ("jax_transfer_guard", "jax_default_device"):
        ad.config.update(name, None)
        jax.config.update(name, None)
    ad.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("place", PLACES)
def test_host_data(guard: str, level: str | None, place: str) -> None:
    def ask(lib: SimpleNamespace) -> Any:
        target = PLACES[place](lib)
        with getattr(top(lib), guard)(level):
            return lib.device_put(X, target)

    assert_agree(ask)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("guard", GUARDS)
def test_reading(guard: str, level: str | None) -> None:
    def ask(lib: SimpleNamespace) -> Any:
        x = lib.device_put(X, line(lib, "x"))
        with getattr(top(lib), guard)(level):
            return lib.device_get(x), np.asarray(x), str(x)

    assert_agree(ask)


def is_refused(lib: SimpleNamespace, source: str, target: str, guard: str, level: str, **options: Any) -> bool:
    x = lib.device_put(X, PLACES[source](lib))
    with getattr(top(lib), guard)(level):
        try:
            y = lib.device_put(x, PLACES[target](lib), **options)
        except RuntimeError:
            return True
    assert plain(y) == plain(X)
    return False


# What JAX calls host-to-device or lets pass by an accident of its way; here bytes that go from a device to another are
# a transfer between devices, and a device that has its part already needs none.
BY_HOST = {
    (source, target)
    for source in ("cut", "cut with None", "cut by the grid", "half", "whole")
    for target in PLACES
    if target != source
}


@pytest.mark.parametrize("level", ["allow", "disallow", "disallow_explicit"])
@pytest.mark.parametrize(("source", "target"), list(itertools.product(PLACES, PLACES)))
def test_from_array_to_array(source: str, target: str, level: str) -> None:
    """Refused or not is the same under the guard of all directions."""
    assert is_refused(OURS, source, target, "transfer_guard", level) == is_refused(
        JAX, source, target, "transfer_guard", level
    )


@pytest.mark.parametrize(
    ("source", "target"), [pair for pair in itertools.product(PLACES, PLACES) if pair not in BY_HOST]
)
@pytest.mark.parametrize("guard", GUARDS)
def test_from_array_to_array_by_direction(source: str, target: str, guard: str) -> None:
    assert is_refused(OURS, source, target, guard, "disallow_explicit") == is_refused(
        JAX, source, target, guard, "disallow_explicit"
    )


@pytest.mark.parametrize("source", ["first", "third", "cut", "whole"])
def test_a_copy_in_place_is_a_transfer(source: str) -> None:
    for level in ("disallow", "disallow_explicit"):
        ours, theirs = (is_refused(lib, source, source, "transfer_guard", level, may_alias=False) for lib in LIBRARIES)
        assert ours == theirs == (level == "disallow_explicit")


@pytest.mark.parametrize(("outer", "inner", "innermost"), list(itertools.product(LEVELS, LEVELS, (None, "allow"))))
def test_nested_guards(outer: str | None, inner: str | None, innermost: str | None) -> None:
    def ask(lib: SimpleNamespace) -> Any:
        module = top(lib)
        answers = []

        def put() -> None:
            try:
                answers.append(plain(lib.device_put(X)))
            except RuntimeError:
                answers.append("refused")
            answers.append([getattr(module.config, "jax_" + name) for name in GUARDS[1:]])

        with module.transfer_guard(outer):
            put()
            with module.transfer_guard_host_to_device(inner):
                put()
                with module.transfer_guard(innermost):
                    put()
            put()
        put()
        return answers

    assert_agree(ask)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["jax_" + guard for guard in GUARDS])
def test_the_processs_guard_in_threads(name: str, level: str | None) -> None:
    def ask(lib: SimpleNamespace) -> Any:
        module = top(lib)
        module.config.update(name, level)
        answers: list[Any] = []

        def put() -> None:
            try:
                answers.append(plain(lib.device_put(X)))
            except RuntimeError:
                answers.append("refused")

        with module.transfer_guard("disallow_explicit"):
            thread = threading.Thread(target=put)
            thread.start()
            thread.join()
        put()
        values = [module.config.values["jax_" + guard] for guard in GUARDS]
        module.config.update("jax_transfer_guard", None)
        module.config.update(name, None)
        return answers, values

    assert_agree(ask)


@pytest.mark.parametrize("value", ["Disallow", "", 3, True, "disallow ", b"log"])
@pytest.mark.parametrize("guard", GUARDS)
def test_what_is_not_a_level(guard: str, value: Any) -> None:
    assert_agree(lambda lib: top(lib).config.update("jax_" + guard, value))
    assert_agree(lambda lib: getattr(top(lib), guard)(value).__enter__())


# Default device: a number is the device of that id.
DEFAULTS = (None, 0, 3, 7, "cpu")
BAD_DEFAULTS = ("cpu:1", "", "bogus", 3.5, np.float32)


def as_default(lib: SimpleNamespace, value: Any) -> Any:
    return lib.devices[value] if type(value) is int else value


def where(lib: SimpleNamespace) -> Any:
    module = top(lib)
    x, y = lib.device_put(1.5), lib.device_put({"a": X}, {"a": None})["a"]
    assert x.devices() == y.devices()
    assert not x.committed
    assert not y.committed
    return plain(next(iter(x.devices()))), len(module.devices()), plain(lib.make_mesh((8,), ("x",)).devices)


@pytest.mark.parametrize(("of_process", "outer", "inner"), list(itertools.product(DEFAULTS, repeat=3)))
def test_default_devices(of_process: Any, outer: Any, inner: Any) -> None:
    def ask(lib: SimpleNamespace) -> Any:
        module = top(lib)
        module.config.update("jax_default_device", as_default(lib, of_process))
        answers = [where(lib)]
        placed = lib.device_put(X, lib.devices[5])
        with module.default_device(as_default(lib, outer)):
            answers.append(where(lib))
            answers.append(plain(lib.device_put(placed).device))
            with module.default_device(as_default(lib, inner)):
                answers.append(where(lib))
                answers.append(plain(module.config.jax_default_device))
            answers.append(where(lib))
            thread = threading.Thread(target=lambda: answers.append(where(lib)))
            thread.start()
            thread.join()
        answers.append(where(lib))
        decorated = module.default_device(as_default(lib, inner))(lambda: where(lib))
        return [*answers, decorated(), where(lib)]

    assert_agree(ask)


@pytest.mark.parametrize("value", BAD_DEFAULTS)
def test_what_is_not_a_default_device(value: Any) -> None:
    assert_agree(lambda lib: top(lib).config.update("jax_default_device", value))
    assert_agree(lambda lib: top(lib).default_device(value).__enter__())


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
def test_an_absent_default_platform(platform: str) -> None:
    def ask(lib: SimpleNamespace) -> Any:
        with top(lib).default_device(platform):
            return lib.device_put(1.0)

    assert_agree(ask)


WIDE = (np.int64, np.uint64, np.float64, np.complex128)
WHOLE = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**40 + 3, 0, -1]),
)


@st.composite
def wide_arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = np.dtype(draw(st.sampled_from(WIDE)))
    count = draw(st.integers(0, 12))
    words = draw(st.lists(WHOLE, min_size=count, max_size=count))
    if dtype.kind in "iu":
        return np.array(words, np.int64).view(dtype)
    reals = st.floats(width=64) | st.sampled_from([1e300, -1e300, 1 + 2.0**-30, 3.4028235e38, 3.4028236e38, 1e-46])
    values = np.array(draw(st.lists(reals, min_size=count, max_size=count)), np.float64)
    return values if dtype.kind == "f" else np.stack([values, values[::-1]], -1).view(dtype).reshape(-1)


@given(wide_arrays(), st.sampled_from([True, False]))
def test_values_of_64_bit_data(values: np.ndarray, x64: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def ask(lib: SimpleNamespace) -> Any:
            with top(lib).enable_x64(x64):
                return lib.device_put(values), lib.device_put({"a": values}, lib.devices[3])["a"]

        assert_agree(ask)


NUMBERS = (
    *(2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40, 2**70, 0, -7, 1.5, 1e300, float("nan"), 1e300 + 1j, True),
    *(np.float64(1.1), np.int64(2**40 + 3), np.uint64(2**33 + 5), np.float16(3), np.bool_(1), np.int8(-3)),
)


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: f"{type(value).__name__}({value})")
def test_values_of_numbers(value: Any, x64: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def ask(lib: SimpleNamespace) -> Any:
            with top(lib).enable_x64(x64):
                placed = lib.device_put(value)
                return placed, placed.dtype.name

        assert_agree(ask)


def test_x64_in_contexts_threads_and_arrays() -> None:
    def ask(lib: SimpleNamespace) -> Any:
        module = top(lib)
        wide = lib.device_put(np.arange(3))
        answers: list[Any] = []

        def put() -> None:
            answers.append((lib.device_put(1).dtype.name, bool(module.config.jax_enable_x64)))

        with module.enable_x64(False):
            put()
            answers.append(lib.device_put(wide).dtype.name)
            answers.append(lib.device_put(wide, lib.devices[1]).dtype.name)
            with module.enable_x64(True):
                put()
            thread = threading.Thread(target=put)
            thread.start()
            thread.join()
        put()
        module.config.update("jax_enable_x64", False)
        thread = threading.Thread(target=put)
        thread.start()
        thread.join()
        module.config.update("jax_enable_x64", True)
        put()
        module.enable_x64(False)(put)()
        return answers

    assert_agree(ask)


@pytest.mark.parametrize("name", ["jax_platforms", "jax_platform_name"])
def test_platforms_change_nothing_once_the_devices_are_there(name: str) -> None:
    before = ad.config.values[name], jax.config.values[name]

    def ask(lib: SimpleNamespace) -> Any:
        for platform in ("cpu", "gpu", "tpu"):
            top(lib).config.update(name, platform)
        return top(lib).config.values[name]

    try:
        assert_agree(ask)
        assert len(ad.devices()) == 8
    finally:
        ad.config.update(name, before[0])
        jax.config.update(name, before[1])


def test_unknown_options() -> None:
    assert_agree(lambda lib: top(lib).config.update("jax_transfer_gard", "allow"))
    assert_agree(lambda lib: top(lib).config.read("jax_transfer_gard"))
    assert_agree(lambda lib: top(lib).config.jax_transfer_gard)


def blocks_of(lib: SimpleNamespace) -> list[Any]:
    return [lib.device_put(X[2 * i : 2 * i + 2], device) for i, device in enumerate(lib.devices)]


def by_callback(lib: SimpleNamespace, sharding: Any, block: Callable[[Any], Any], **options: Any) -> Any:
    return top(lib).make_array_from_callback((16, 4), sharding, block, **options)


def constrained(lib: SimpleNamespace, x: Any, sharding: Any) -> Any:
    return top(lib).lax.with_sharding_constraint(x, sharding)


# What is made before the guard, and what is done with it under the guard.
OPERATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "callback gives ndarrays": (
        lambda lib: line(lib, "x"),
        lambda lib, sharding: by_callback(lib, sharding, lambda index: X[index]),
    ),
    "callback gives the whole": (
        lambda lib: line(lib),
        lambda lib, sharding: by_callback(lib, sharding, lambda index: X[index]),
    ),
    "callback gives Arrays of their devices": (
        lambda lib: (line(lib, "x"), blocks_of(lib)),
        lambda lib, made: by_callback(lib, made[0], lambda index: made[1][index[0].start // 2]),
    ),
    "callback gives Arrays of other devices": (
        lambda lib: (grid(lib, "a"), [lib.device_put(X[:8], lib.devices[0]), lib.device_put(X[8:], lib.devices[0])]),
        lambda lib, made: by_callback(lib, made[0], lambda index: made[1][index[0].start // 8]),
    ),
    "assembly of Arrays": (
        lambda lib: (line(lib, "x"), blocks_of(lib)),
        lambda lib, made: top(lib).make_array_from_single_device_arrays((16, 4), *made),
    ),
    "data of the process": (
        lambda lib: line(lib, "x"),
        lambda lib, sharding: top(lib).make_array_from_process_local_data(sharding, X),
    ),
    "constraint on the same devices": (
        lambda lib: lib.device_put(X, line(lib, "x")),
        lambda lib, x: constrained(lib, x, line(lib)),
    ),
    "constraint cuts what is whole": (
        lambda lib: lib.device_put(X, line(lib)),
        lambda lib, x: constrained(lib, x, grid(lib, "a", "b")),
    ),
    "constraint of an uncommitted Array": (
        lambda lib: lib.device_put(X),
        lambda lib, x: constrained(lib, x, line(lib, "x")),
    ),
    "constraint of an ndarray": (lambda lib: X, lambda lib, x: constrained(lib, x, line(lib, "x"))),
    "sum with an ndarray": (lambda lib: lib.device_put(X, line(lib, "x")), lambda lib, x: x + X),
    "sum with an uncommitted Array": (
        lambda lib: (lib.device_put(X, line(lib, "x")), lib.device_put(X)),
        lambda lib, made: made[0] + made[1],
    ),
    "sum with one that lies alike": (
        lambda lib: (lib.device_put(X, line(lib, "x")), lib.device_put(X, line(lib, "x"))),
        lambda lib, made: made[0] + made[1],
    ),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations(operation: str, guard: str, level: str | None) -> None:
    before, under = OPERATIONS[operation]

    def ask(lib: SimpleNamespace) -> Any:
        made = before(lib)
        with getattr(top(lib), guard)(level):
            return under(lib, made)

    assert_agree(ask)


@pytest.mark.parametrize("dtype", [None, np.float64, np.float32])
@pytest.mark.parametrize("spec", [("x",), ()])
@pytest.mark.parametrize("x64", [True, False])
def test_assembled_64_bit_data(x64: bool, spec: tuple[str, ...], dtype: Any) -> None:
    values = np.linspace(0, 1, 64).reshape(16, 4).astype(dtype or np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def ask(lib: SimpleNamespace) -> Any:
            with top(lib).enable_x64(x64):
                made = by_callback(lib, line(lib, *spec), lambda index: values[index], dtype=dtype)
                return made, top(lib).make_array_from_process_local_data(line(lib, *spec), values)

        assert_agree(ask)
