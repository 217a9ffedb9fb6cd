# SPDX-License-Identifier: Apache-2.0
"""What to write instead of arguments that functions do not take, or for arguments that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artifex_devices._base.nearest_name import did_you_mean

_PLACE = "write ad.device_put(x, ad.NamedSharding(mesh, ad.P('x')))"
_MESH = "write ad.make_mesh((4, 2), ('data', 'model'))"
_SPECS = "write in_shardings=ad.NamedSharding(mesh, ad.P('x')) or out_shardings="
_SUM = "write ad.lax.{}(x, 'x') with the name of a mesh axis"

# By function: names of arguments, separated by blanks, and what to write. An empty name stands for all others.
_HINTS = {
    "device_put": {"sharding shardings device_or_sharding": "write ad.device_put(x, sharding)", "mesh spec": _PLACE},
    "reshard": {
        "sharding shardings out_sharding device": "write ad.reshard(x, sharding)",
        "": "write ad.reshard(x, ad.NamedSharding(mesh, ad.P('x')))",
    },
    "Mesh": {"": f"{_MESH}, or ad.Mesh(ad.devices(), ('x',))"},
    "AbstractMesh": {"": "write ad.AbstractMesh((4, 2), ('data', 'model'))"},
    "NamedSharding": {
        "memory memory_space": "write ad.NamedSharding(mesh, spec, memory_kind='pinned_host')",
        "": "write ad.NamedSharding(mesh, ad.P('data', 'model'))",
    },
    "PartitionSpec": {"": "write ad.P('data', 'model'), one entry for each dimension"},
    "make_mesh": {"": f"{_MESH}, or ad.make_mesh({{'data': 4, 'model': 2}})"},
    "shard_map": {
        "in_spec in_shardings": "write in_specs=ad.P('x')",
        "out_spec out_shardings": "write out_specs=ad.P('x')",
        "axis_name auto": "write axis_names={'x'} with the axes over which f sees shards",
    },
    "jit": {
        "in_specs in_spec out_specs out_spec in_axis_resources out_axis_resources": _SPECS,
        "static": "write static_argnames='n' or static_argnums=0",
        "donate": "write donate_argnums=0 or donate_argnames='x'",
        "mesh": "write `with ad.set_mesh(mesh):` around the call",
        "fullgraph dynamic mode": "nothing is compiled here; leave it out",
    },
    "pmap": {
        "axis": "write axis_name='i'",
        "in_specs out_specs mesh": "write ad.shard_map(f, mesh=mesh, in_specs=ad.P('x'), out_specs=ad.P('x'))",
        "num_devices n_devices": "write devices=ad.devices()[:4]",
    },
    "all_gather": {"dim": "write axis=0", "group": "write ad.lax.all_gather(x, 'x')"},
    "psum_scatter": {"axis dim": "write scatter_dimension=0"},
    "ppermute": {"shift": "write perm=[(i, (i + 1) % n) for i in range(n)]", "": "write perm=[(0, 1), (1, 0)]"},
    "simulate": {
        "backend": "write `with ad.simulate(8, platform='gpu'):`",
        "": "write `with ad.simulate(8):`",
    },
    "prefetch_to_device": {
        "sharding target": "write prefetch_to_device(batches, sharding)",
        "size num_batches depth prefetch_factor": "write buffer_size=2",
    },
    "checkpoint.save": {
        "step": "write ad.checkpoint.Manager(folder).save(step, tree)",
        "": "write ad.checkpoint.save(folder, {'x': x})",
    },
    "checkpoint.restore": {
        "target item abstract_state": "write ad.checkpoint.restore(folder, like=tree)",
        "sharding shardings": "write ad.checkpoint.restore(folder, sharding), or a tree of them",
        "step": "write ad.checkpoint.Manager(folder).restore(step)",
    },
    "distributed.initialize": {
        "rank": "write process_id=0",
        "world_size": "write num_processes=2",
        "init_method": "write coordinator_address='host:1234'",
        "backend": "leave it out: processes exchange data by MPI",
    },
    "zeros ones empty full arange eye array asarray linspace identity": {
        "sharding mesh out_shardings": "write device=sharding",
    },
    "sum prod max min mean std var any all argmax argmin cumsum cumprod sort argsort squeeze": {
        "dim": "write axis=0",
        "keepdim": "write keepdims=True",
    },
}
# Parameters of classes that are bound in C++, with "*" before those that have to be named.
_PARAMETERS = {
    "Mesh": ("devices", "axis_names", "axis_types"),
    "AbstractMesh": ("axis_sizes", "axis_names", "axis_types"),
    "NamedSharding": ("mesh", "spec", "*", "memory_kind", "uneven"),
    "PartitionSpec": (),
}
for _name in ("psum", "pmean", "pmax", "pmin"):
    _HINTS[_name] = {"": _SUM.format(_name)}


def hint_for(operation: str, name: str) -> str:
    """Returns what to write for an argument of a function, or an empty text."""
    for operations, rows in _HINTS.items():
        if operation in operations.split():
            return next((hint for names, hint in rows.items() if name in names.split() or not names), "")
    return ""


def text_for_unknown(operation: str, name: str, known: Sequence[str]) -> str:
    """Returns the text of the error for an argument that a function does not have."""
    hint = hint_for(operation, name)
    guess = "" if hint else did_you_mean(name, known)
    return f"{operation}: {name} is not an argument{guess}; {hint or 'expected ' + ', '.join(known)}"


def text_for_missing(operation: str, name: str) -> str:
    """Returns the text of the error for an argument that the caller left out."""
    return f"{operation}: {name} is missing; {hint_for(operation, '')}"


def explained_arguments(
    cls: type, error: Exception, positional: tuple[object, ...], named: Mapping[str, object] | None
) -> Exception:
    """Returns a sentence about the arguments of a class, for pybind11's list of overloads; other errors unchanged."""
    parameters = _PARAMETERS.get(cls.__name__)
    if parameters is None or "): incompatible " not in str(error):
        return error
    known = [name for name in parameters if name != "*"]
    for name in named or ():
        if name not in known:
            return TypeError(text_for_unknown(cls.__name__, name, known))
    if known and not positional and known[0] not in (named or ()):
        return TypeError(text_for_missing(cls.__name__, known[0]))
    most = parameters.index("*") if "*" in parameters else len(parameters)
    if len(positional) <= most:
        return error
    return TypeError(f"{cls.__name__}: got {len(positional)} positional arguments; expected {', '.join(parameters)}")
