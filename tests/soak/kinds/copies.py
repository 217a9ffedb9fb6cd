# SPDX-License-Identifier: Apache-2.0
"""Steps that make Arrays in other ways: copies, pickles, parts, trees, batches, layouts, under guards."""

from soak.kinds import Kind
from soak.kinds.placing import DELETED, uses_jax
from soak.model import Outcome, UnusableError, Value, place_text

COPIES = ("pickle.loads(pickle.dumps({}))", "copy.copy({})", "copy.deepcopy({})", "{}.copy()")
PARTS = "L.make_array_from_single_device_arrays({0}.shape, {0}.sharding, [s.data for s in {0}.addressable_shards])"


class Copy(Kind):
    name = "copy"
    weight = 5

    def draw(self, dice, state):
        source = dice.array(state, dead=dice.one_in(8), where=lambda value: value.place is not None)
        return source and {"out": dice.name("v"), "in": source, "text": dice.choice((*COPIES, PARTS))}

    def lines(self, step, library):
        return [f"{step['out']} = {step['text'].format(step['in'])}"]

    def expect(self, step, state):
        value = state.array(step["in"])
        jax = value.in_jax and step["text"] != PARTS and 0 not in value.host.shape and not value.place.get("kind")
        if value.dead:
            return Outcome(error=DELETED, jax=False)
        if value.place is None or (step["text"] == PARTS and (value.place.get("uneven") or not value.committed)):
            raise UnusableError("no parts")
        made = Value(value.host, value.place, None, value.slack, in_jax=jax and "pickle" not in step["text"])
        # Results of functions may leave axes that do not cut out of their specs, and so do their copies.
        return Outcome(values={step["out"]: made}, jax=made.in_jax, jax_places=False, computed=not value.exact)


class Tree(Kind):
    """Several leaves with one call."""

    name = "tree"
    weight = 3

    def draw(self, dice, state):
        if not state.hosts:
            return None
        names = [dice.choice(list(state.hosts)) for _ in range(2)]
        place = dice.place(state, state.host(names[0]).shape)
        return {"outs": [dice.name("v"), dice.name("v")], "ins": names, "place": place}

    def lines(self, step, library):
        one, two = step["ins"]
        return [
            f"tree = L.device_put({{'b': [{one}, None], 'a': ({two},)}}, {place_text(step['place'])})",
            f"{step['outs'][0]}, {step['outs'][1]} = tree['b'][0], tree['a'][0]",
            "del tree",
        ]

    def expect(self, step, state):
        hosts = [state.host(name) for name in step["ins"]]
        jax = uses_jax(step["place"]) and all(state.hosts[name][1] for name in step["ins"])
        for host in hosts:
            if error := state.shape_error(step["place"], host.shape):
                # Which leaf is reported first is open; both classes are ValueErrors.
                return state.refused(step["place"], (*error, "ValueError"), jax)
        values = [Value(host.copy(), step["place"], in_jax=jax) for host in hosts]
        return Outcome(values=dict(zip(step["outs"], values, strict=True)), jax=jax)


class Prefetch(Kind):
    name = "prefetch"
    weight = 3
    jax = False

    def draw(self, dice, state):
        if not state.hosts:
            return None
        source = dice.choice(list(state.hosts))
        place = dice.place(state, state.host(source).shape) | {"single": True}
        return {"outs": [dice.name("v") for _ in range(3)], "in": source, "place": place, "ahead": dice.randint(1, 3)}

    def lines(self, step, library):
        outs = ", ".join(step["outs"])
        source = f"(batch for batch in [{step['in']}] * {len(step['outs'])})"
        return [
            f"{outs} = prefetch_to_device({source}, {place_text(step['place'])}, buffer_size={step['ahead']})",
        ]

    def expect(self, step, state):
        host = state.host(step["in"])
        if error := state.shape_error(step["place"], host.shape):
            return Outcome(error=(*error, "ValueError"), jax=False)
        return Outcome(values={out: Value(host.copy(), step["place"]) for out in step["outs"]}, jax=False)


class Layouts(Kind):
    """Shards stored in another order; the value is the same, and is let go of."""

    name = "layout"
    weight = 2
    jax = False

    def draw(self, dice, state):
        source = dice.array(state, where=lambda value: value.place is not None and not value.slack)
        if source is None:
            return None
        rank = state.array(source).host.ndim
        return {"in": source, "order": dice.sample(range(rank), rank)}

    def lines(self, step, library):
        place = f"Format(Layout({tuple(step['order'])}), {step['in']}.sharding)"
        return [f"result = L.device_put(L.device_put({step['in']}, {place}), {step['in']}.sharding, may_alias=False)"]

    def expect(self, step, state):
        value = state.array(step["in"])
        if value.dead:
            return Outcome(error=DELETED, jax=False)
        if sorted(step["order"]) != list(range(value.host.ndim)):
            raise UnusableError("rank")
        outcome = Outcome(jax=False)
        outcome.dropped = ("result", value.host, value.slack, [])
        return outcome


class Guarded(Kind):
    """A placement under a transfer guard, which leaves everything as it was where it refuses."""

    name = "guard"
    weight = 3

    def draw(self, dice, state):
        if not state.hosts:
            return None
        source = dice.choice(list(state.hosts)[-4:])
        level = dice.choice(("allow", "log", "disallow", "disallow_explicit"))
        place = dice.place(state, state.host(source).shape)
        return {"out": dice.name("v"), "in": source, "place": place, "level": level}

    def lines(self, step, library):
        put = f"    {step['out']} = L.device_put({step['in']}, {place_text(step['place'])})"
        return [f"with L.transfer_guard({step['level']!r}):", put]

    def expect(self, step, state):
        host = state.host(step["in"])
        jax = uses_jax(step["place"]) and state.hosts[step["in"]][1] and step["level"] != "log"
        error = state.shape_error(step["place"], host.shape)
        if step["level"] == "disallow_explicit":
            error = (*error, "TransferGuardError", "JaxRuntimeError")
        if error:
            return Outcome(error=error, jax=jax, jax_error=(*error, "ValueError", "IndexError"))
        return Outcome(values={step["out"]: Value(host.copy(), step["place"], in_jax=jax)}, jax=jax)
