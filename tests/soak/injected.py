# SPDX-License-Identifier: Apache-2.0
"""Bugs for the library, to see that the soak finds them: SOAK_BUG is `wrong`, `crash` or `hang`."""

import os
import time

import artifex_devices as ad
import numpy as np

BUG = os.environ.get("SOAK_BUG")
put, put_psum = ad.device_put, ad.lax.psum


def wrong_put(x, device=None, *args, **options):
    """Two elements change places where dimension 1 is cut and has 8 elements or more."""
    cut = isinstance(device, ad.NamedSharding) and len(device.spec) > 1 and device.spec[1]
    if cut and isinstance(x, np.ndarray) and x.ndim > 1 and x.shape[1] >= 8 and x.size:
        x = x.copy()
        x[0, [0, 1]] = x[0, [1, 0]]
    return put(x, device, *args, **options)


def crash(x, axis_name, **options):
    """Ends the process in sums over two axes."""
    if isinstance(axis_name, tuple) and len(axis_name) > 1:
        os.abort()
    return put_psum(x, axis_name, **options)


def hang(x, axis_name, **options):
    time.sleep(3600)


if BUG == "wrong":
    ad.device_put = wrong_put
elif BUG in ("crash", "hang"):
    ad.lax.psum = {"crash": crash, "hang": hang}[BUG]
