# SPDX-License-Identifier: Apache-2.0
"""A program as Python text: the steps with what must come of them. The soak runs it, and writes it when it fails."""

from pathlib import Path

import numpy as np

from soak.kinds import Kind
from soak.kinds.enclosed import WORLDS
from soak.model import State, UnusableError

OURS, JAX = "artifex_devices", "jax"
CHECKING = Path(__file__).with_name("checking.py")


class Text:
    """Lines, what each step's lines are, and the expected values that they name."""

    def __init__(self, library):
        self.library = library
        self.lines = []
        self.steps = []  # for each line the number and kind of its step
        self.expected = {}
        self.defined = set()  # the names that this library has

    def add(self, lines, number, kind, indent=""):
        self.lines += [indent + line for line in lines]
        self.steps += [(number, kind)] * len(lines)

    def keep(self, value):
        name = f"E{len(self.expected)}"
        self.expected[name] = np.array(value, copy=True, order="C")
        return name


def check_line(name, value, outcome, state, text):
    parts = [name, text.keep(value.host)]
    if value.slack:
        parts.append(f"slack={value.slack!r}")
    place = value.place
    if place is not None and (text.library == OURS or outcome.jax_places):
        if "device" in place:
            parts.append(f"device={place['device']}")
        else:
            grid = state.grid(place["mesh"])
            spec = tuple(tuple(entry) if isinstance(entry, list) else entry for entry in place["spec"])
            parts.append(f"ids={grid.ids.tolist()}, names={grid.names}, spec={spec}")
            if outcome.computed:
                parts.append("computed=True")
        if value.committed is not None:
            parts.append(f"committed={value.committed}")
        if text.library == OURS:
            parts.append(f"memory_kind={place.get('kind', 'device')!r}")
    return f"check({', '.join(parts)})"


def names_in(step):
    """All words of a step, names among them."""
    if isinstance(step, str):
        return {step}
    if isinstance(step, list | dict):
        return set().union(*map(names_in, step.values() if isinstance(step, dict) else step))
    return set()


def apply(outcome, state):
    """The names that a step makes."""
    for value in outcome.values.values():
        value.exact = value.exact and not outcome.computed
    state.arrays.update(outcome.values)
    state.hosts.update({name: (host, outcome.jax) for name, host in outcome.hosts.items()})
    state.grids.update(outcome.grids)


def write(program, text, state=None, indent=""):
    """Adds the text of the steps; steps that name what there is not are left out. Returns the steps that remain."""
    state = state or State()
    kept = []
    for step in program:
        kind = Kind.ALL[step["kind"]]
        number = len(kept)
        alive = {name for name, value in state.arrays.items() if not value.dead}
        known = state.arrays.keys() | state.hosts.keys()
        try:
            outcome = kind.expect(step, state)
        except UnusableError:
            continue
        kept.append(step)
        apply(outcome, state)
        text.number = number
        if text.library == JAX and not (kind.jax and outcome.jax and known & names_in(step) <= text.defined):
            # What is deleted in such a step is still there in JAX: nobody asks for it.
            text.defined -= {name for name in alive if state.arrays[name].dead}
            continue
        text.defined |= {*outcome.values, *outcome.hosts}
        if "steps" in step or "programs" in step:
            step = enclosed(step, text, indent)
            kept[-1] = step
        elif outcome.dropped:
            name, host, slack, maybe = outcome.dropped
            maybe = ", ".join(map(repr, maybe)) if text.library == OURS else ""
            text.add([f"with Raises({maybe}, optional=True):"] if maybe else [], number, kind.name, indent)
            deeper = indent + "    " if maybe else indent
            text.add(kind.lines(step, text.library), number, kind.name, deeper)
            text.add([f"check({name}, {text.keep(host)}, {slack})"], number, kind.name, deeper)
            text.add([f"{name} = None"], number, kind.name, indent)
        elif outcome.error:
            names = outcome.error if text.library == OURS or not outcome.jax_error else outcome.jax_error
            text.add([f"with Raises({', '.join(map(repr, names))}):"], number, kind.name, indent)
            text.add(kind.lines(step, text.library), number, kind.name, indent + "    ")
        else:
            text.add(kind.lines(step, text.library), number, kind.name, indent)
            for name, value in outcome.values.items():
                text.add([check_line(name, value, outcome, state, text)], number, kind.name, indent)
            for name, host in outcome.hosts.items():
                text.add([f"same({name}, {text.keep(host)})"], number, kind.name, indent)
        if text.library == OURS and state.top:
            alive = {id(value): name for name, value in state.arrays.items() if not value.dead}
            text.add([f"accounts(L, devices, [{', '.join(alive.values())}])"], number, kind.name, indent)
    # Views and copies outlive what they were made of.
    for name, (host, _) in state.hosts.items():
        if text.library == OURS or name in text.defined:
            text.add([f"same({name}, {text.keep(host)}, what={name!r})"], len(kept) - 1, "end", indent)
    return kept


def enclosed(step, text, indent):
    """The text of a step that holds programs; its steps that remain."""
    number, kind, deeper = text.number, step["kind"], indent + "    "
    first = len(text.lines)
    if kind == "world":
        world = int(step["world"]) if step["world"].isdigit() else step["world"]
        text.add(["outer = devices", f"with L.simulate({world!r}):"], number, kind, indent)
        text.add(["devices = L.devices()"], number, kind, deeper)
        state = State(devices=WORLDS[step["world"]], top=False)
        step = step | {"steps": write(step["steps"], text, state, deeper)}
        made = [*state.arrays, *state.hosts, "mapped", "view"]
        text.add([f"{name} = None" for name in made], number, kind, deeper)
        text.add(["accounts(L, devices, [], others=True)", "devices = outer"], number, kind, deeper)
    else:
        programs, names = [], []
        for program in step["programs"]:
            names.append(f"work{len(text.lines)}")
            text.add([f"def {names[-1]}():"], number, kind, indent)
            programs.append(write(program, text, State(top=False), deeper))
            text.add(["return None"], number, kind, deeper)
        text.add([f"together({', '.join(names)})"], number, kind, indent)
        step = step | {"programs": programs}
    # A failure inside is the step's own.
    text.steps[first:] = [(number, kind)] * (len(text.steps) - first)
    return step


def literal(value):
    """An ndarray as Python text."""
    kind = value.dtype
    plain = kind.isbuiltin == 1
    name = f"{kind.name!r}" if plain else f"ml_dtypes.{kind.name}"
    if not value.size:
        return f"onp.zeros({value.shape}, {name})"
    if plain and kind.kind in "biu":
        return f"onp.array({value.tolist()}, {name})"
    raw = np.ascontiguousarray(value).tobytes()
    return f"onp.frombuffer(bytes.fromhex({raw.hex()!r}), {name}).reshape({value.shape})"


PRELUDE = {
    OURS: """
import copy
import pickle

import artifex_devices as L
import numpy as np
import numpy as onp
from artifex_devices import AxisType, Mesh, NamedSharding, P, SingleDeviceSharding, copy_to_host_async, lax
from artifex_devices import pmap, reshard, shard_map, with_sharding_constraint
from artifex_devices.layout import Format, Layout
from artifex_devices.prefetch import prefetch_to_device
""",
    JAX: """
import copy

import jax as L
import jax.numpy as np
import numpy as onp
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

L.config.update("jax_enable_x64", True)


def shard_map(f, executor=None, **options):
    return L.shard_map(f, check_vma=False, **options)


def pmap(f, executor=None, **options):
    return L.pmap(f, **options)
""",
}
ENVIRONMENT = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}


def standalone(program, library, why):
    """A script that needs only the library."""
    text = Text(library)
    write(program, text)
    checking = CHECKING.read_text(encoding="utf-8")
    code = checking[checking.index("import itertools") :]
    lines = [f'"""{why}"""', "", "import os", "", f"os.environ.update({ENVIRONMENT})", code]
    lines += [PRELUDE[library], "devices = L.devices()", ""]
    values = [f"{name} = {literal(value)}" for name, value in text.expected.items()]
    return "\n".join([*lines, *values, "", *text.lines, "print('nothing failed')", ""])
