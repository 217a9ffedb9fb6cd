# SPDX-License-Identifier: Apache-2.0
"""What the calls of the tables are written with: the names that their text may use."""

import functools
import json
import operator
import pathlib
import pickle
import sys
from typing import Any

import artifex_devices as ad
import ml_dtypes
import numpy as np
from artifex_devices import lax, mesh_utils, models, planner, render, roofline, tree, tree_util, xla_client
from artifex_devices.layout import Format, Layout
from artifex_devices.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, P, SingleDeviceSharding, make_mesh

from bad_input import hostile

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def names(folder: pathlib.Path) -> dict[str, Any]:
    """The names, created for each call; `folder` is an empty folder for files."""
    devices = ad.devices()
    grid = Mesh(np.array(devices).reshape(2, 4), ("x", "y"))
    line = Mesh(np.array(devices), ("x",))

    def named(*entries, **options):
        return NamedSharding(grid, P(*entries), **options)

    def put(value, *entries):
        return ad.device_put(value, named(*entries))

    def explicit(*entries):
        return ad.device_put(X, NamedSharding(make_mesh((2, 4), ("x", "y")), P(*entries)))

    def body(function, **options):
        """Runs `function` on 8 participants along axis x, each with one row of X."""
        return ad.shard_map(function, mesh=line, in_specs=P("x"), out_specs=P("x"), **options)(X)

    def within(context, function):
        with context:
            return function()

    return {
        "ad": ad,
        "np": np,
        "ml_dtypes": ml_dtypes,
        "functools": functools,
        "operator": operator,
        "pickle": pickle,
        "json": json,
        "sys": sys,
        "lax": lax,
        "mesh_utils": mesh_utils,
        "models": models,
        "planner": planner,
        "render": render,
        "roofline": roofline,
        "step_model": models,
        "tree": tree,
        "tree_util": tree_util,
        "xla_client": xla_client,
        "Layout": Layout,
        "Format": Format,
        "AbstractMesh": AbstractMesh,
        "AxisType": AxisType,
        "Mesh": Mesh,
        "NamedSharding": NamedSharding,
        "SingleDeviceSharding": SingleDeviceSharding,
        "P": P,
        "make_mesh": make_mesh,
        "X": X,
        "devices": devices,
        "d": devices[0],
        "client": devices[0].client,
        "grid": grid,
        "line": line,
        "named": named,
        "put": put,
        "explicit": explicit,
        "body": body,
        "within": within,
        "folder": folder,
        "NAN": float("nan"),
        "INF": float("inf"),
        "NO_REPR": hostile.NoRepr(),
        "BAD_INDEX": hostile.BadIndex(),
        "BAD_ARRAY": hostile.BadArray(),
        "BAD_EQ": hostile.BadEq(),
        "BAD_ITER": hostile.BadIter(),
        "BAD_LEN": hostile.BadLen(),
        "TEXT": hostile.Text("x"),
        "Tensor": hostile.Tensor,
    }
