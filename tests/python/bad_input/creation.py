# SPDX-License-Identifier: Apache-2.0
"""Bad calls: creation functions of artifex_devices.numpy."""

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "numpy.array",
        "ad.numpy.array([1, 2])",
        [
            bad("ad.numpy.array(X, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.array('text')", TypeError, "device_put:", "dtype"),
            bad("ad.numpy.array(X, device=ad.devices()[0], out_sharding=ad.SingleDeviceSharding(ad.devices()[0]))", ValueError, "asarray:", "device and out_sharding"),
        ],
    ),
    Calls(
        "numpy.asarray",
        "ad.numpy.asarray([1, 2])",
        [
            bad("ad.numpy.asarray(X, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.asarray(X, device='gpu')", TypeError, "asarray:", "device", "'gpu'"),
            bad("ad.numpy.asarray(X, order='F')", TypeError, "asarray:", "order"),
        ],
    ),
    Calls(
        "numpy.zeros",
        "ad.numpy.zeros(8)",
        [
            bad("ad.numpy.zeros(-1)", ValueError, "zeros:", "-1"),
            bad("ad.numpy.zeros(8, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.zeros(8, device='gpu')", TypeError, "zeros:", "device", "'gpu'"),
        ],
    ),
    Calls(
        "numpy.ones",
        "ad.numpy.ones(8)",
        [
            bad("ad.numpy.ones(-1)", ValueError, "ones:", "-1"),
            bad("ad.numpy.ones(8, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.ones(8, device='gpu')", TypeError, "ones:", "device", "'gpu'"),
        ],
    ),
    Calls(
        "numpy.empty",
        "ad.numpy.empty(8)",
        [
            bad("ad.numpy.empty(-1)", ValueError, "empty:", "-1"),
            bad("ad.numpy.empty(8, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.empty(8, device='gpu')", TypeError, "empty:", "device", "'gpu'"),
        ],
    ),
    Calls(
        "numpy.full",
        "ad.numpy.full(8, 2)",
        [
            bad("ad.numpy.full(-1, 2)", ValueError, "full:", "-1"),
            bad("ad.numpy.full(8, 'text')", TypeError, "full:", "dtype <U4"),
            bad("ad.numpy.full(8, 2, device='gpu')", TypeError, "full:", "device"),
        ],
    ),
    Calls(
        "numpy.arange",
        "ad.numpy.arange(8)",
        [
            bad("ad.numpy.arange('x')", TypeError, "supported", "StrDType"),
            bad("ad.numpy.arange(0, 8, 0)", ZeroDivisionError, "division by zero"),
            bad("ad.numpy.arange(8, out_sharding='x')", TypeError, "arange:", "out_sharding", "'x'"),
        ],
    ),
    Calls(
        "numpy.linspace",
        "ad.numpy.linspace(0, 1, 8)",
        [
            bad("ad.numpy.linspace(0, 1, 8, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.linspace(0, 1, -1)", ValueError, "non-negative"),
            bad("ad.numpy.linspace(0, 1, 8, device='gpu')", TypeError, "linspace:", "device"),
        ],
    ),
    Calls(
        "numpy.eye",
        "ad.numpy.eye(8)",
        [
            bad("ad.numpy.eye(8, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.eye('x')", TypeError, "'str'", "integer"),
            bad("ad.numpy.eye(8, device='gpu')", TypeError, "eye:", "device"),
        ],
    ),
    Calls(
        "numpy.identity",
        "ad.numpy.identity(8)",
        [
            bad("ad.numpy.identity('x')", TypeError, "'str'", "integer"),
            bad("ad.numpy.identity(8, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.numpy.identity(8, device='gpu')", TypeError, "eye:", "device"),
        ],
    ),
]
