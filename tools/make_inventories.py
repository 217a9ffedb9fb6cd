#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/inventories: the names in the documentation of Python, NumPy and JAX that our reference links.

    tools/make_inventories.py                                       Python's names from its site
    tools/make_inventories.py /usr/share/doc/python3.11/html/objects.inv    from the package python3.11-doc

The files are committed, because the site is built without a network. The names of Python are taken from its inventory.
NumPy's and JAX's are those of the installed NumPy and of this file: both sites have a page for each function, whose
address follows from its name. The format is that of Sphinx's objects.inv.
"""

from __future__ import annotations

import sys
import urllib.request
import zlib
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "inventories"
PYTHON = "https://docs.python.org/3/objects.inv"
# Of Python only names with these beginnings: a word such as `copy` or `max` in a docstring is a parameter.
MODULES = (
    "collections.",
    "contextlib.",
    "contextvars.",
    "dataclasses.",
    "enum.",
    "os.PathLike",
    "queue.",
    "types.",
    "typing.",
)
NUMPY_MODULES = ("fft", "linalg", "random", "testing")
CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")

# Names of JAX by the page that describes them; "$" in a page stands for the name.
JAX = {
    "_autosummary/jax.$.html": """
        block_until_ready default_backend device_count device_get device_put devices disable_jit jit
        live_arrays local_device_count local_devices make_array_from_callback make_array_from_process_local_data
        make_array_from_single_device_arrays make_mesh pmap process_count process_index shard_map transfer_guard typeof
        Array ShapeDtypeStruct debug.inspect_array_sharding debug.print debug.visualize_array_sharding
        debug.visualize_sharding distributed.initialize distributed.shutdown dlpack.from_dlpack
        experimental.multihost_utils.broadcast_one_to_all experimental.multihost_utils.process_allgather
        experimental.multihost_utils.sync_global_devices experimental.shard_map.shard_map
        lax.all_gather lax.all_to_all lax.axis_index lax.axis_size lax.pmax lax.pmean lax.pmin lax.ppermute lax.pshuffle
        lax.psum lax.psum_scatter lax.pswapaxes lax.with_sharding_constraint numpy.array profiler.start_trace
        profiler.stop_trace profiler.trace tree.flatten tree.leaves tree.map tree.reduce tree.structure tree.transpose
        tree.unflatten tree_util.register_dataclass tree_util.register_pytree_node tree_util.tree_flatten
        tree_util.tree_map
    """,
    "jax.sharding.html": """
        sharding.AbstractMesh sharding.AxisType sharding.Mesh sharding.NamedSharding sharding.PartitionSpec
        sharding.Sharding sharding.SingleDeviceSharding sharding.reshard sharding.set_mesh
    """,
}
JAX_MODULES = "debug experimental experimental.multihost_utils lax numpy profiler sharding tree tree_util"

Row = tuple[str, str, str]  # name, kind of object, address


def python_rows(inventory: bytes) -> list[Row]:
    """The names of Python that MODULES chooses, and its exceptions."""
    *_, packed = inventory.split(b"\n", 4)
    rows = []
    for line in zlib.decompress(packed).decode().splitlines():
        name, kind, _, address, _ = line.split(" ", 4)
        is_exception = kind == "py:exception" and "." not in name
        if kind.startswith("py:") and (name.startswith(MODULES) or is_exception) and name.count(".") <= 2:
            # Annotations refer to classes, and typing.Any and its neighbours are data.
            rows.append((name, "py:class" if kind == "py:data" else kind, address))
    return rows


def numpy_rows() -> list[Row]:
    """The functions, classes and scalar types of NumPy."""
    types = ("ArrayLike", "DTypeLike", "NDArray")
    rows = [(f"numpy.typing.{name}", "py:class", "reference/typing.html#$") for name in types]
    rows += [(f"numpy.{name}", "py:data", "reference/constants.html#$") for name in CONSTANTS]
    for prefix in ("", *(f"{module}." for module in NUMPY_MODULES)):
        namespace = getattr(np, prefix[:-1]) if prefix else np
        folder = "random/" if prefix == "random." else ""
        for name in namespace.__all__:
            value = getattr(namespace, name)
            if isinstance(value, type) and issubclass(value, np.generic):
                rows.append((f"numpy.{name}", "py:class", "reference/arrays.scalars.html#$"))
            elif callable(value):
                kind = "py:class" if isinstance(value, type) else "py:function"
                path = f"numpy.{prefix}{name}"
                rows.append((path, kind, f"reference/{folder}generated/{path}.html#$"))
    return rows


def jax_rows() -> list[Row]:
    """The names of JAX that this package has, and its modules."""
    rows = [(f"jax.{module}", "py:module", f"jax.{module}.html#module-$") for module in JAX_MODULES.split()]
    for page, names in JAX.items():
        for name in names.split():
            kind = "py:class" if name.rpartition(".")[2][0].isupper() else "py:function"
            rows.append((f"jax.{name}", kind, f"{page.replace('jax.$', f'jax.{name}')}#$"))
    return rows


def written(project: str, rows: list[Row]) -> bytes:
    """An inventory in version 2 of the format: a head of four lines, and compressed rows."""
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    text = "".join(f"{name} {kind} 1 {address} -\n" for name, kind, address in sorted(set(rows)))
    return head.encode() + zlib.compress(text.encode(), 9)


def main() -> None:
    """Writes the three files."""
    if len(sys.argv) > 1:
        inventory = Path(sys.argv[1]).read_bytes()
    else:
        with urllib.request.urlopen(PYTHON, timeout=60) as answer:
            inventory = answer.read()
    FOLDER.mkdir(exist_ok=True)
    for project, rows in {"python": python_rows(inventory), "numpy": numpy_rows(), "jax": jax_rows()}.items():
        (FOLDER / f"{project}.inv").write_bytes(written(project, rows))
        print(f"docs/inventories/{project}.inv: {len(set(rows))} names")


if __name__ == "__main__":
    main()
