# SPDX-License-Identifier: Apache-2.0
"""Steps that place, move, read and delete."""

import math

import numpy as np

from soak.kinds import Kind
from soak.model import Outcome, UnusableError, Value, place_text

DELETED = ("RuntimeError",)


def uses_jax(place):
    """Whether JAX has such a place on CPU devices."""
    return not (place and (place.get("kind") or place.get("uneven")))


class Put(Kind):
    name = "put"
    weight = 12

    def draw(self, dice, state):
        if not state.hosts:
            return None
        source = dice.choice(list(state.hosts)[-4:])
        place = None if dice.one_in(12) else dice.place(state, state.host(source).shape)
        return {"out": dice.name("v"), "in": source, "place": place}

    def lines(self, step, library):
        return [f"{step['out']} = L.device_put({step['in']}, {place_text(step['place'])})"]

    def expect(self, step, state):
        host, place = state.host(step["in"]), step["place"]
        jax = uses_jax(place) and state.hosts[step["in"]][1]
        error = state.shape_error(place or {"device": 0}, host.shape)
        if error:
            return state.refused(place, error, jax)
        value = Value(host.copy(), place or {"device": 0}, committed=place is not None, in_jax=jax)
        return Outcome(values={step["out"]: value}, jax=jax)


class Move(Kind):
    name = "move"
    weight = 12

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(8))
        if source is None:
            return None
        verb = dice.choice(("device_put", "device_put", "device_put", "reshard", "with_sharding_constraint"))
        place = dice.place(state, state.array(source).host.shape)
        if verb != "device_put" and "device" in place:
            verb = "device_put"
        donate = verb == "device_put" and dice.one_in(8)
        return {"out": dice.name("v"), "in": source, "place": place, "verb": verb, "donate": donate}

    def lines(self, step, library):
        verb = "L.device_put" if step["verb"] == "device_put" else step["verb"]
        more = ", donate=True" if step["donate"] else ""
        return [f"{step['out']} = {verb}({step['in']}, {place_text(step['place'])}{more})"]

    def expect(self, step, state):
        value, place = state.array(step["in"]), step["place"]
        # What JAX's two other verbs take depends on the type of axes; donation on CPU is its own affair.
        jax = value.in_jax and uses_jax(place) and step["verb"] == "device_put" and not step["donate"]
        jax = jax and 0 not in value.host.shape
        if value.dead:
            return Outcome(error=DELETED, jax=jax)
        error = state.shape_error(place, value.host.shape)
        if error:
            return state.refused(place, error, jax)
        if step["verb"] == "reshard" and len(place["spec"]) < value.host.ndim:
            place = place | {"spec": place["spec"] + [None] * (value.host.ndim - len(place["spec"]))}
        stays = value.place is not None and not step["donate"] and state.same_place(value, place)
        if value.place is None or (stays and value.committed is None):
            raise UnusableError("it may be the same object or not")
        if stays and value.committed:
            return Outcome(values={step["out"]: value}, jax=jax)
        # In JAX it keeps its mesh of Explicit axes on one device, where nothing can be computed with it then.
        stuck = "device" in place and "mesh" in value.place and state.grid(value.place["mesh"]).explicit
        moved = Value(value.host, place, True, value.slack, in_jax=jax and not stuck)
        if step["donate"]:
            value.dead = True
        return Outcome(values={step["out"]: moved}, jax=jax)


class Delete(Kind):
    name = "delete"
    weight = 3

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(6))
        return source and {"in": source}

    def lines(self, step, library):
        return [f"{step['in']}.delete()", f"assert {step['in']}.is_deleted()"]

    def expect(self, step, state):
        value = state.array(step["in"])
        value.dead = True
        for other in state.arrays.values():  # what it was moved to may be gone with it in JAX
            if other is not value and other.host is value.host:
                other.in_jax = False
        return Outcome(jax=value.in_jax)


class Read(Kind):
    """A view or a copy on the host, kept to the end of the program."""

    name = "read"
    weight = 6

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(8), where=lambda value: not value.slack)
        how = dice.choice(("onp.asarray({})", "L.device_get({})", "copy_to_host_async({}).result()"))
        return source and {"out": dice.name("a"), "in": source, "how": how}

    def lines(self, step, library):
        return [f"{step['out']} = {step['how'].format(step['in'])}"]

    def expect(self, step, state):
        value = state.array(step["in"])
        jax = value.in_jax and "async" not in step["how"]
        if value.dead:
            return Outcome(error=DELETED, jax=jax)
        if value.slack:
            raise UnusableError("bits that are not known")
        return Outcome(hosts={step["out"]: value.host}, jax=jax)


class OneShard(Kind):
    """The data of one shard, as an Array of its own device."""

    name = "shard"
    weight = 3

    def draw(self, dice, state):
        source = dice.array(state, where=lambda value: value.place is not None and not value.slack)
        if source is None:
            return None
        place = state.array(source).place
        number = dice.randrange(1 if "device" in place else state.grid(place["mesh"]).ids.size)
        return {"out": dice.name("a"), "in": source, "number": number}

    def lines(self, step, library):
        return [f"{step['out']} = onp.asarray({step['in']}.addressable_shards[{step['number']}].data)"]

    def expect(self, step, state):
        value = state.array(step["in"])
        if value.dead:
            return Outcome(error=DELETED, jax=False)
        if value.place is None or value.slack:
            raise UnusableError("parts or bits that are not known")
        boxes = state.blocks(value.place, value.host.shape)
        # Shards are listed in the order of the mesh.
        grid = None if "device" in value.place else state.grid(value.place["mesh"]).ids
        order = [value.place["device"]] if grid is None else grid.ravel().tolist()
        if step["number"] >= len(order):
            return Outcome(error=("IndexError",), jax=value.in_jax)
        return Outcome(hosts={step["out"]: value.host[boxes[order[step["number"]]]]}, jax=value.in_jax)


class FromCallback(Kind):
    name = "from_callback"
    weight = 2

    def draw(self, dice, state):
        if not state.hosts:
            return None
        source = dice.choice(list(state.hosts)[-4:])
        verb = dice.choice(("make_array_from_callback", "make_array_from_process_local_data"))
        return {
            "out": dice.name("v"),
            "in": source,
            "place": dice.place(state, state.host(source).shape) | {"single": True},
            "verb": verb,
        }

    def lines(self, step, library):
        place, source = place_text(step["place"]), step["in"]
        if step["verb"] == "make_array_from_callback":
            return [f"{step['out']} = L.{step['verb']}({source}.shape, {place}, {source}.__getitem__)"]
        return [f"{step['out']} = L.{step['verb']}({place}, {source})"]

    def expect(self, step, state):
        host, place = state.host(step["in"]), step["place"]
        jax = uses_jax(place) and state.hosts[step["in"]][1] and host.ndim > 0
        error = state.shape_error(place, host.shape)
        if error:
            return state.refused(place, error, jax)
        return Outcome(values={step["out"]: Value(host.copy(), place, in_jax=jax)}, jax=jax)


def bytes_of(value):
    return math.prod(np.shape(value))
