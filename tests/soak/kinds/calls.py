# SPDX-License-Identifier: Apache-2.0
"""pmap and jit."""

import numpy as np

from soak import participants
from soak.checking import NANS, TOLERANCE, ambiguous
from soak.kinds import Kind
from soak.kinds.elementwise import usable
from soak.kinds.mapping import MAPPED, flushes, operation_text
from soak.kinds.placing import DELETED, uses_jax
from soak.model import Grid, Outcome, UnusableError, Value, place_text

EXACT = [name for name in MAPPED if name not in ("float16", "bfloat16")]


class Pmap(Kind):
    name = "pmap"
    weight = 4

    def draw(self, dice, state):
        names = [
            name
            for name, (host, _) in state.hosts.items()
            if host.ndim and host.dtype.name in EXACT and 0 < len(host) <= state.devices + 2
        ]
        if not names:
            return None
        source = dice.choice(names)
        host = state.host(source)
        with np.errstate(all="ignore"):
            body, _ = Kind.ALL["shard_map"].body(dice, host, grid_of(host))
        return {"out": dice.name("v"), "in": source, "body": body, "executor": dice.choice(("cooperative", "threads"))}

    def lines(self, step, library):
        body = [f"    b = {operation_text(operation)}" for operation in step["body"]]
        call = f"pmap(body, axis_name='i', executor={step['executor']!r})"
        return ["def body(b):", *body, "    return b", f"{step['out']} = {call}({step['in']})"]

    def expect(self, step, state):
        host = state.host(step["in"])
        if not host.ndim or not len(host) or host.dtype.name not in EXACT:
            raise UnusableError("no rows")
        if len(host) > state.devices:
            return Outcome(error=("ValueError",), jax=False)
        try:
            with np.errstate(all="ignore"):
                result = participants.run(step["body"], host, grid_of(host))
        except (ValueError, IndexError) as error:
            raise UnusableError("a body that does not fit the shrunk rows") from error
        chosen = any(each[0] in ("pmax", "pmin") for each in step["body"])
        slack = ambiguous(result, chosen) if step["body"] else 0.0
        sums = any(each[0] in ("psum", "pmean", "psum_scatter") for each in step["body"])
        jax = state.hosts[step["in"]][1] and slack != NANS and (not sums or host.dtype.kind in "biu")
        jax = jax and not flushes(Value(host, None), step["body"])
        made = Value(result, None, None, slack, in_jax=jax and 0 not in host.shape and 0 not in result.shape)
        return Outcome(values={step["out"]: made}, jax=made.in_jax, jax_places=False)


def grid_of(host):
    return Grid(np.arange(len(host)), ("i",), False)


class Jit(Kind):
    """A function whose result is placed, and whose argument may be donated."""

    name = "jit"
    weight = 3

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(10), where=lambda value: usable(value) and "mesh" in value.place)
        if source is None:
            return None
        value = state.array(source)
        grid = state.grid(value.place["mesh"])
        spec = dice.spec(grid.names, value.host.ndim, shape=value.host.shape, sizes=grid.sizes)
        place = {"mesh": value.place["mesh"], "spec": spec}
        return {"out": dice.name("v"), "in": source, "place": place, "donate": dice.one_in(5)}

    def lines(self, step, library):
        more = ", donate_argnums=0" if step["donate"] else ""
        call = f"L.jit(lambda x: x == x, out_shardings={place_text(step['place'])}{more})"
        return [f"{step['out']} = {call}({step['in']})"]

    def expect(self, step, state):
        value = state.array(step["in"])
        if not usable(value) or "mesh" not in value.place or value.place["mesh"] != step["place"].get("mesh"):
            raise UnusableError("another mesh")
        if value.dead:
            return Outcome(error=DELETED, jax=False)
        if state.shape_error(step["place"], value.host.shape):
            raise UnusableError("spec")
        jax = value.in_jax and uses_jax(value.place) and not step["donate"] and value.host.dtype.name in TOLERANCE
        jax = jax and 0 not in value.host.shape and not state.grid(value.place["mesh"]).explicit
        with np.errstate(all="ignore"):
            made = Value(np.asarray(value.host == value.host), step["place"], True, in_jax=jax)
        if step["donate"]:
            value.dead = True
        # The sharding is the one that was asked for, unless the result had it already by another name.
        return Outcome(values={step["out"]: made}, jax=jax, computed=True)
