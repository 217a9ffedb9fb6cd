# SPDX-License-Identifier: Apache-2.0
"""A program as Python text: the steps with what must come of them. The soak runs this text, and writes it when it fails."""

from pathlib import Path

import numpy as np

from soak.kinds import Kind
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
        self.skipped = 0

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


def apply(outcome, state):
    """The names that a step makes."""
    for value in outcome.values.values():
        value.exact = value.exact and not outcome.computed
    state.arrays.update(outcome.values)
    state.hosts.update({name: (host, outcome.jax) for name, host in outcome.hosts.items()})
    state.grids.update(getattr(outcome, "grids", {}))


def write(program, text, state=None, indent=""):
    """Adds the text of the steps; steps that name what there is not are left out. Returns the steps that remain."""
    state = state or State()
    kept = []
    for step in program:
        kind = Kind.ALL[step["kind"]]
        number = len(kept)
        try:
            outcome = kind.expect(step, state)
        except UnusableError:
            continue
        kept.append(step)
        apply(outcome, state)
        if text.library == JAX and not (kind.jax and outcome.jax):
            text.skipped += 1
            continue
        if outcome.error:
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
    for name, (host, in_jax) in state.hosts.items():
        if text.library == OURS or in_jax:
            text.add([f"same({name}, {text.keep(host)}, what={name!r})"], len(kept) - 1, "end", indent)
    return kept


def literal(value):
    """An ndarray as Python text."""
    kind = value.dtype
    plain = kind.isbuiltin == 1
    name = f"{kind.name!r}" if plain else f"ml_dtypes.{kind.name}"
    if np.isin(value.astype(np.complex128), []).any() or not value.size:
        return f"onp.zeros({value.shape}, {name})"
    with np.errstate(all="ignore"):
        tame = plain and kind.kind in "biu"
        tame = tame or (kind.kind != "c" and np.array_equal(value.astype(np.float64), np.round(value.astype(np.float64), 4)))
    if tame and not (kind.kind not in "biu" and np.signbit(value.astype(np.float64)).any() and (value == 0).any()):
        return f"onp.array({value.tolist()}, {name})"
    raw = np.ascontiguousarray(value).tobytes()
    return f"onp.frombuffer(bytes.fromhex({raw.hex()!r}), {name}).reshape({value.shape})"


PRELUDE = {
    OURS: """
import artifex_devices as L
import numpy as np
import numpy as onp
from artifex_devices import AxisType, Mesh, NamedSharding, P, SingleDeviceSharding, copy_to_host_async, lax
from artifex_devices import reshard, shard_map, with_sharding_constraint
""",
    JAX: """
import jax as L
import jax.numpy as np
import numpy as onp
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

L.config.update("jax_enable_x64", True)


def shard_map(f, executor=None, **options):
    return L.shard_map(f, check_vma=False, **options)
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
