# SPDX-License-Identifier: Apache-2.0
"""shard_map with collectives."""

import numpy as np

from soak import participants
from soak.checking import NANS, TOLERANCE, ambiguous, entry_axes
from soak.kinds import Kind
from soak.kinds.elementwise import usable
from soak.kinds.placing import DELETED
from soak.model import Outcome, UnusableError, Value, entries, spec_text

COLLECTIVES = ("psum", "psum", "pmax", "pmin", "pmean", "ppermute", "all_gather", "psum_scatter", "all_to_all")
MAPPED = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint32", *TOLERANCE)


def operation_text(operation):
    name, argument, *rest = operation
    axes = repr(argument[0]) if isinstance(argument, list) and len(argument) == 1 else repr(entries([argument])[0])
    if name == "scale":
        return f"(b * onp.asarray({argument}, b.dtype)).astype(b.dtype)"
    if name == "flip":
        return f"b[{':, ' * argument}::-1]"
    if name == "add_index":
        return f"(b + lax.axis_index({argument!r}).astype(b.dtype)).astype(b.dtype)"
    if name == "ppermute":
        return f"lax.ppermute(b, {axes}, {[tuple(pair) for pair in rest[0]]})"
    if name == "all_gather":
        return f"lax.all_gather(b, {axes}, axis={rest[0]}, tiled={rest[1]})"
    if name == "psum_scatter":
        return f"lax.psum_scatter(b, {axes}, scatter_dimension={rest[0]}, tiled={rest[1]})"
    if name == "all_to_all":
        return f"lax.all_to_all(b, {axes}, {rest[0]}, {rest[1]}, tiled={rest[2]})"
    return f"lax.{name}(b, {axes})"


def devices_of(state, place):
    """Their ids in the order of the mesh: programs take committed Arrays of the same devices in the same order."""
    return [place["device"]] if "device" in place else state.grid(place["mesh"]).ids.ravel().tolist()


def flushes(value, body):
    """Whether JAX computes with subnormal numbers, which may be 0 there."""
    return not value.tame and any(each[0] in ("scale", "add_index") for each in body)


class ShardMap(Kind):
    name = "shard_map"
    weight = 10

    def draw(self, dice, state):
        source = dice.array(
            state,
            dead=dice.one_in(12),
            where=lambda value: usable(value) and value.host.dtype.name in MAPPED and not value.place.get("uneven"),
        )
        if source is None or not state.grids:
            return None
        value = state.array(source)
        mesh = dice.choice(list(state.grids))
        if value.committed and not dice.one_in(12):
            same = [name for name in state.grids if devices_of(state, {"mesh": name}) == devices_of(state, value.place)]
            if not same:
                return None
            mesh = dice.choice(same)
        if "mesh" in value.place and (state.grid(value.place["mesh"]).explicit or dice.random() < 0.6):
            mesh = value.place["mesh"]
        grid = state.grid(mesh)
        spec = dice.spec(grid.names, value.host.ndim, shape=value.host.shape, sizes=grid.sizes)
        if grid.explicit:
            if value.place.get("mesh") != mesh:
                return None
            spec = value.place["spec"]
        if grid.explicit is False and "mesh" in value.place and state.grid(value.place["mesh"]).explicit:
            return None
        blocks = participants.cut(value.host, grid, spec)
        with np.errstate(all="ignore"):
            body, blocks = self.body(dice, blocks, grid)
        out_spec = self.out_spec(dice, blocks, grid)
        if out_spec is None:
            body.append(["psum", list(grid.names)])
            out_spec = []
        return {
            "out": dice.name("v"),
            "in": source,
            "mesh": mesh,
            "in_spec": spec,
            "out_spec": out_spec,
            "body": body,
            "executor": dice.choice(("cooperative", "threads", "auto")),
        }

    def body(self, dice, blocks, grid):
        body, rank = [], len(grid.names)
        for _ in range(dice.randint(0, 4)):
            name = dice.choice(COLLECTIVES + participants.OWN)
            axes = dice.sample(list(grid.names), dice.randint(1, min(2, rank)))
            count = int(np.prod([grid.sizes[axis] for axis in axes]))
            block = blocks.shape[rank:]
            fit = [d for d, side in enumerate(block) if side % count == 0]
            equal = [d for d, side in enumerate(block) if side == count]
            dimension = dice.randrange(len(block) or 1)
            operation = [name, axes]
            if name == "scale":
                operation = [name, dice.choice((2, 1, 3))]
            elif name == "flip":
                operation = [name, dimension] if block else None
            elif name == "add_index":
                operation = [name, axes[0]]
            elif name == "ppermute":
                some = dice.sample(range(count), dice.randint(0, count))
                # Several axes must be named in the mesh's order here.
                operation = [name, sorted(axes, key=grid.names.index)]
                operation.append([list(pair) for pair in zip(some, dice.sample(range(count), len(some)), strict=True)])
            elif name == "all_gather":
                operation += [dimension, bool(block) and dice.one_in(2)]
            elif name == "psum_scatter":
                tiled = dice.one_in(2)
                operation = (
                    [*operation, dice.choice(fit if tiled else equal), tiled] if (fit if tiled else equal) else None
                )
            elif name == "all_to_all":
                tiled = dice.one_in(2)
                choice = fit if tiled else equal
                operation = [*operation, dice.choice(choice), dimension, tiled] if choice else None
            if operation is None or not participants.computes(name, blocks.dtype):
                continue
            made = participants.run([operation], blocks, grid)
            if made.size > 1 << 14:
                continue
            body.append(operation)
            blocks = made
        return body, blocks

    def out_spec(self, dice, blocks, grid):
        block = blocks.shape[len(grid.names) :]
        need = participants.differing(blocks, grid)
        more = [axis for axis in grid.names if axis not in need and dice.one_in(4)]
        if not block:
            return None if need else []
        spec = [[] for _ in block]
        for axis in dice.sample([*need, *more], len(need) + len(more)):
            dice.choice(spec).append(axis)
        return [each if len(each) > 1 else each[0] if each else None for each in spec]

    def lines(self, step, library):
        body = [f"    b = {operation_text(operation)}" for operation in step["body"]]
        specs = f"in_specs={spec_text(step['in_spec'])}, out_specs={spec_text(step['out_spec'])}"
        return [
            "def body(b):",
            *body,
            "    return b",
            f"mapped = shard_map(body, mesh={step['mesh']}, {specs}, executor={step['executor']!r})",
            f"{step['out']} = mapped({step['in']})",
        ]

    def expect(self, step, state):
        value, grid = state.array(step["in"]), state.grid(step["mesh"])
        if value.place is None or value.place.get("uneven") or value.slack:
            raise UnusableError("an operand that is not for programs")
        if value.dead:
            return Outcome(error=(*DELETED, "ValueError"), jax=False)  # it may be placed elsewhere, too
        elsewhere = devices_of(state, value.place) != grid.ids.ravel().tolist()
        if elsewhere and value.committed is None:
            raise UnusableError("it may be moved or refused")
        if elsewhere and value.committed:
            return Outcome(error=("ValueError",), jax=False)
        if state.shape_error({"mesh": step["mesh"], "spec": step["in_spec"]}, value.host.shape):
            raise UnusableError("in_spec")
        explicit = [grid.explicit, "mesh" in value.place and state.grid(value.place["mesh"]).explicit]
        if any(explicit) and (
            not value.exact or value.place.get("mesh") != step["mesh"] or value.place["spec"] != step["in_spec"]
        ):
            raise UnusableError("Explicit axes")
        try:
            with np.errstate(all="ignore"):
                blocks = participants.run(step["body"], participants.cut(value.host, grid, step["in_spec"]), grid)
                used = {axis for entry in step["out_spec"] for axis in entry_axes(entry)}
                if len(step["out_spec"]) > blocks.ndim - len(grid.names) or not used <= set(grid.names):
                    raise UnusableError("out_spec")
                result = participants.whole(blocks, grid, step["out_spec"])
        except (ValueError, IndexError, KeyError) as error:
            raise UnusableError("a body that does not fit the shrunk blocks") from error
        if set(participants.differing(blocks, grid)) - used:
            return Outcome(error=("ValueError",), jax=False)
        slack = ambiguous(result, any(each[0] in ("pmax", "pmin") for each in step["body"])) if step["body"] else 0.0
        sums = [each for each in step["body"] if each[0] in ("psum", "pmean", "psum_scatter")]
        # Sums of wide floats are taken in the devices' order: bit for bit. JAX has an order of its own.
        if sums and value.host.dtype.name in ("float16", "bfloat16"):
            with np.errstate(all="ignore"):
                scale = float(np.nanmax(np.abs(result.astype(np.float64)), initial=0.0))
                scale += float(np.sum(np.abs(value.host.astype(np.float64)))) * 3 ** len(step["body"])
            if not np.isfinite(scale) or scale > 60000:
                raise UnusableError("numbers too big to be compared")
            slack = TOLERANCE[value.host.dtype.name] * (scale + 1)
        exact = not sums or value.host.dtype.kind in "biu"
        exact = exact and not flushes(value, step["body"])
        jax = value.in_jax and exact and slack != NANS and 0 not in value.host.shape and 0 not in result.shape
        place = {"mesh": step["mesh"], "spec": step["out_spec"]}
        made = Value(result, place, True, slack, in_jax=jax)
        return Outcome(values={step["out"]: made}, jax=jax)
