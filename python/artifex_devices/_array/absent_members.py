# SPDX-License-Identifier: Apache-2.0
"""Members of other libraries' arrays, meshes and devices: reading one raises AttributeError that says what to write.

They are descriptors, because a `__getattr__` would slow down every attribute of an Array.
"""

from __future__ import annotations

from typing import NoReturn

from artifex_devices._core import Array, Device, Mesh, NamedSharding, PartitionSpec, Shard

_NO_GRADIENT = "functions are not differentiated here; leave it out"
_IMMUTABLE = "Arrays are immutable"
_IN_PLACE = f"{_IMMUTABLE}; write x = x + y, or x = x.at[i].set(y)"
_MEMORY = "shards are in the memory of devices; write np.asarray(x).{}"

# By class: names, separated by blanks, and what to write.
HINTS = {
    Array: {
        "numpy full_tensor compute": "write np.asarray(x)",
        "cpu get": "write np.asarray(x), or ad.device_put(x, ad.devices('cpu')[0]) for an Array",
        "cuda": "write ad.device_put(x, ad.devices()[0]), a GPU where there is one",
        "to": "write ad.device_put(x, sharding), or x.astype(dtype)",
        "detach requires_grad requires_grad_ grad retain_grad": _NO_GRADIENT,
        "backward": "functions are not differentiated here; write the gradient as a function of its own",
        "contiguous is_contiguous": "each shard is contiguous; leave it out",
        "is_cuda is_cpu platform": "write ad.default_backend(), or x.devices()",
        "numel": "write x.size",
        "dim": "write x.ndim",
        "permute": "write x.transpose(1, 0)",
        "unsqueeze": "write x[None], or np.expand_dims(x, axis)",
        "expand expand_as": "write np.broadcast_to(x, shape)",
        "float": "write x.astype(np.float32)",
        "double": "write x.astype(np.float64)",
        "half": "write x.astype(np.float16)",
        "bfloat16": "write x.astype(ml_dtypes.bfloat16)",
        "int long": "write x.astype(np.int64)",
        "type": "write x.dtype, or x.astype(dtype)",
        "bool": "write x.astype(bool)",
        "t": "write x.T",
        "mm bmm matmul": "write x @ y",
        "exp": "write np.exp(x)",
        "log": "write np.log(x)",
        "sqrt": "write np.sqrt(x)",
        "abs": "write abs(x)",
        "pow": "write x**2",
        "norm": "write np.linalg.norm(x)",
        "chunk split": "write np.split(x, 2)",
        "gather index_select": "write np.take(x, indices, axis=0)",
        "masked_fill": "write np.where(mask, value, x)",
        "add_ sub_ mul_ div_ copy_ zero_ fill_": _IN_PLACE,
        "redistribute rechunk": "write ad.reshard(x, ad.NamedSharding(mesh, ad.P('x')))",
        "to_local": "write x.addressable_shards[0].data",
        "placements chunks": "write x.sharding.spec",
        "device_mesh": "write x.sharding.mesh",
        "persist": "write x.block_until_ready()",
        "fill": f"{_IMMUTABLE}; write ad.numpy.full(x.shape, value, device=x.sharding)",
        "put setfield": f"{_IMMUTABLE}; write x = x.at[i].set(y)",
        "resize": f"{_IMMUTABLE}; write np.resize(x, shape)",
        "partition": f"{_IMMUTABLE}; write np.partition(x, kth)",
        "setflags flags": _MEMORY.format("flags"),
        "strides": _MEMORY.format("strides"),
        "base data ctypes": _MEMORY.format("ctypes"),
        "tofile": _MEMORY.format("tofile(file)") + ", or ad.checkpoint.save(folder, {'x': x})",
        "dump dumps": "write pickle.dumps(x), or ad.checkpoint.save(folder, {'x': x})",
        "getfield byteswap": _MEMORY.format("byteswap()"),
        "nonzero": "write np.nonzero(x)",
        "choose": "write np.choose(x, choices)",
        "flat": "write x.ravel()",
        "aval": "write ad.typeof(x)",
        "device_buffer device_buffers": "write x.addressable_shards",
        "traceback": "nothing is traced here; leave it out",
    },
    Device: {
        "name": "write d.device_kind, or str(d)",
        "type": "write d.platform",
        "index": "write d.id",
    },
    Mesh: {
        "ndim": "write len(mesh.axis_names)",
        "axes names mesh_dim_names dim_names": "write mesh.axis_names",
        "mesh": "write mesh.devices",
        "device_type": "write mesh.devices.flat[0].platform",
        "get_group get_rank get_local_rank get_coordinate": "write ad.lax.axis_index('x') in the body of ad.shard_map",
    },
    NamedSharding: {
        "partition_spec pspec specs placements": "write s.spec",
        "devices": "write s.device_set, or s.mesh.devices",
        "axes axis_names": "write s.mesh.axis_names",
        "shape": "write s.mesh.shape, or s.shard_shape(x.shape)",
    },
    PartitionSpec: {"axes entries names": "write tuple(spec)"},
    Shard: {
        "numpy": "write np.asarray(shard.data)",
        "shape dtype": "write shard.data.shape, shard.data.dtype",
        "block": "write shard.data",
    },
}


class AbsentMember:
    """Raises AttributeError for an attribute of an object or of its class."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint
        self.__doc__ = None  # documentation leaves it out

    def __get__(self, instance: object, owner: type) -> NoReturn:
        found = owner if instance is None else instance
        raise AttributeError(f"{owner.__name__}.{self._name} does not exist: {self._hint}", name=self._name, obj=found)


def _list_names(self: object) -> list[str]:
    absent = {name for base in type(self).__mro__ for name, each in vars(base).items() if type(each) is AbsentMember}
    return [name for name in object.__dir__(self) if name not in absent]


for _class, _rows in HINTS.items():
    for _names, _hint in _rows.items():
        for _name in _names.split():
            setattr(_class, _name, AbsentMember(_name, _hint))
    _class.__dir__ = _list_names  # type: ignore[assignment]
