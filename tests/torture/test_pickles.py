# SPDX-License-Identifier: Apache-2.0
"""Pickles that are damaged: an error or a value, never a crash, a hang or much memory.

A pickle may name any function, so that one of strangers is a program: pickle's own promise is none there. What is held
here is that our part of it checks what it is given.
"""

import builtins
import io
import pickle
import random
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
LIMIT = 4 << 30  # bytes of address space beside what is used
SLOW_S = 20.0


def made_values():
    sys.path.insert(0, str(TOOLS))
    import make_pickles

    return make_pickles.values()


class OurUnpickler(pickle._Unpickler):  # the one in Python: pickle's own C code is not what is tested
    """Finds what the undamaged pickle finds, so that chance names no function of others."""

    def __init__(self, file, known):
        super().__init__(file)
        self.known = known

    def find_class(self, module, name):
        if (module, name) not in self.known:
            raise pickle.UnpicklingError(f"{module}.{name} is not named by the undamaged pickle")
        return super().find_class(module, name)

    def load_build(self):
        value, state = self.stack[-2], self.stack[-1]
        # NumPy 2.4 believes what a dtype's state says, and crashes on some damaged ones.
        if isinstance(value, np.dtype) and repr(state) != repr(value.__reduce__()[2]):
            raise pickle.UnpicklingError(f"the state of {value!r} is damaged")
        super().load_build()

    dispatch = {**pickle._Unpickler.dispatch, pickle.BUILD[0]: load_build}  # noqa: RUF012 - as in pickle


def names_in(data):
    """All that a pickle names."""
    found = set()

    class Noting(pickle._Unpickler):
        def find_class(self, module, name):
            found.add((module, name))
            return super().find_class(module, name)

    Noting(io.BytesIO(data)).load()
    return found


def changed(data, chance):
    """One to three changes: a bit, a byte, an edge number, a piece lost, doubled or moved."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(made))
        size = chance.choice((1, 2, 4, 8, 30))
        kind = chance.randrange(6)
        if kind == 0:
            made[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            made[at] = chance.randrange(256)
        elif kind == 2:
            edge = chance.choice((b"\xff", b"\x7f", b"\x00", b"\x80"))
            made[at : at + size] = edge * min(size, len(made) - at)
        elif kind == 3:
            del made[at : at + size]
        elif kind == 4:
            made[at:at] = made[at : at + size]
        else:
            piece = bytes(made[at : at + size])
            to = chance.randrange(len(made))
            made[to : to + len(piece)] = piece
        made = made or bytearray(b"N")
    return bytes(made)


def check_words(error, what):
    """Errors that tell of a defect in the library are none; NumPy 2.4 has one in dtype.__setstate__."""
    text = f"{what}: {type(error).__name__}: {error}"
    is_numpys = "__setstate__ of numpy" in text
    assert is_numpys or type(error).__name__ not in ("SystemError", "InternalError", "AssertionError"), text
    assert "std::" not in text, text


def use(value):
    """Uses a loaded value: looks at it, compares it, pickles it."""
    for look in (repr, str, hash, lambda each: each == each, pickle.dumps, lambda each: each.to_svg()):
        try:
            look(value)
        except (MemoryError, RecursionError, KeyboardInterrupt, SystemExit):
            raise
        except Exception:
            continue


def damage(name, count):
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT + 2 * resident(), resource.RLIM_INFINITY))
    chance = random.Random(f"{name} {count}")
    values = made_values()[name]
    values = list(values.values()) if isinstance(values, dict) else values if isinstance(values, list) else [values]
    loaded = refused = 0
    classes = set()
    for i in range(int(count)):
        data = pickle.dumps(values[i % len(values)], chance.choice((2, 4, 5)))
        known = names_in(data)
        damaged = changed(data, chance)
        begin = time.monotonic()
        try:
            use(OurUnpickler(io.BytesIO(damaged), known).load())
            loaded += 1
        except Exception as error:
            refused += 1
            classes.add(type(error).__name__)
            check_words(error, damaged)
        assert time.monotonic() - begin < SLOW_S, damaged
    assert loaded + refused == int(count)
    assert refused > int(count) // 10, (loaded, refused)  # else nothing was damaged
    again()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def again():
    """Undamaged ones are read as before."""
    for value in made_values().values():
        assert type(pickle.loads(pickle.dumps(value))) is type(value)


NAMES = (
    *("arrays", "devices", "meshes", "shardings", "structs", "layouts", "assignments", "topologies", "clusters"),
    *("step_models", "step_plan", "suggestions", "plans", "mesh_explanation", "calibrations", "rooflines", "trees"),
)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_are_an_error_or_a_value(own_process, name):
    own_process(damage, name, 250)


FORGED = [
    *(None, True, -1, 2**31, 2**63, 2**63 - 1, -(2**63), 10**40, 1.5, float("nan"), "", "x" * 50, "\0", "\ud800"),
    *(b"", b"\xff" * 40, (), [], {}, (None,) * 3, [[[1]]], {"a": 1}, {1: 2**70}, builtins.int, object()),
]


def calls_in(value, found):
    """What the pickle of a value and of its parts calls, by class: (callable, arguments, state)."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        for part in value:
            calls_in(part, found)
    elif isinstance(value, dict):
        calls_in(list(value.values()), found)
    elif type(value).__module__.startswith("artifex_devices") and type(value) not in found:
        try:
            reduced = value.__reduce_ex__(2)
        except TypeError:
            return
        if isinstance(reduced, tuple):
            found[type(value)] = (reduced[0], reduced[1], reduced[2] if len(reduced) > 2 else None)
            calls_in(list(reduced[1]), found)
            if isinstance(found[type(value)][2], dict):
                calls_in(list(found[type(value)][2].values()), found)


def forge(group):
    """Each argument of each callable, each entry of a dict among them, and each entry of a state is another one."""
    found = {}
    calls_in(list(made_values().values()), found)
    found = {kind: found[kind] for i, kind in enumerate(sorted(found, key=repr)) if i % 4 == int(group)}
    assert len(found) > 5
    for kind, (make, arguments, state) in found.items():

        def remade(given, state_=state, make=make):
            value = make(*given)
            if state_ is not None:
                if hasattr(value, "__setstate__"):
                    value.__setstate__(state_)
                else:
                    vars(value).update(state_)
            return value

        tries = [lambda n=n, arguments=arguments: remade(arguments[:n]) for n in range(len(arguments))]
        for i, own in enumerate(arguments):
            kept = [own, *(own.items() if isinstance(own, dict) else ())]
            for bad in FORGED:
                tries.append(lambda i=i, bad=bad, a=arguments: remade((*a[:i], bad, *a[i + 1 :])))
                for key, _ in kept[1:]:
                    tries.append(
                        lambda i=i, bad=bad, a=arguments, key=key: remade((*a[:i], {**a[i], key: bad}, *a[i + 1 :]))
                    )
        if isinstance(state, dict):
            for key in state:
                for bad in FORGED:
                    tries.append(lambda key=key, bad=bad, a=arguments, s=state: remade(a, {**s, key: bad}))
        for each in tries:
            try:
                value = each()
            except Exception as error:
                check_words(error, kind)
                continue
            use(value)
    again()


@pytest.mark.parametrize("group", range(4))
def test_forged_arguments_are_an_error_or_a_value(own_process, group):
    own_process(forge, group)
