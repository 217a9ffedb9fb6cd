# SPDX-License-Identifier: Apache-2.0
"""Bad calls: processes and the array API."""

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "multihost_utils.assert_equal",
        "ad.multihost_utils.assert_equal({'a': 1})",
        [
            bad("ad.multihost_utils.assert_equal({1: 1, 'a': 2})", ValueError, "tree_flatten:", "'a'"),
            bad("ad.multihost_utils.assert_equal(BAD_ARRAY)", ZeroDivisionError, "no array"),
            bad("ad.multihost_utils.assert_equal()", TypeError, "in_tree"),
            bad("ad.multihost_utils.assert_equal(gone)", RuntimeError, "device_get:", "was deleted"),
        ],
        where="gone = put(X); gone.delete()",
    ),
    Calls(
        "multihost_utils.broadcast_one_to_all",
        "ad.multihost_utils.broadcast_one_to_all(X)",
        [
            bad("ad.multihost_utils.broadcast_one_to_all(BAD_ARRAY)", ZeroDivisionError, "no array"),
            bad(
                "ad.multihost_utils.broadcast_one_to_all(X, is_source='x')",
                TypeError,
                "broadcast_one_to_all:",
                "is_source",
                "'x'",
            ),
            bad(
                "ad.multihost_utils.broadcast_one_to_all(X, is_source=1)",
                TypeError,
                "broadcast_one_to_all:",
                "is_source",
                "1",
            ),
            bad("ad.multihost_utils.broadcast_one_to_all({1: X, 'a': X})", ValueError, "tree_flatten:", "'a'"),
            bad("ad.multihost_utils.broadcast_one_to_all(gone)", RuntimeError, "device_get:", "was deleted"),
        ],
        where="gone = put(X); gone.delete()",
    ),
    Calls(
        "multihost_utils.process_allgather",
        "ad.multihost_utils.process_allgather(X)",
        [
            bad("ad.multihost_utils.process_allgather(BAD_ARRAY)", ZeroDivisionError, "no array"),
            bad("ad.multihost_utils.process_allgather({1: X, 'a': X})", ValueError, "tree_flatten:", "'a'"),
            bad("ad.multihost_utils.process_allgather(X, tiled='x')", TypeError, "process_allgather:", "tiled", "'x'"),
            bad(
                "ad.multihost_utils.process_allgather(X, tiled=None)", TypeError, "process_allgather:", "tiled", "None"
            ),
            bad("ad.multihost_utils.process_allgather(gone)", RuntimeError, "device_get:", "was deleted"),
        ],
        where="gone = put(X); gone.delete()",
    ),
    Calls(
        "multihost_utils.sync_global_devices",
        "ad.multihost_utils.sync_global_devices('x')",
        [
            bad("ad.multihost_utils.sync_global_devices()", TypeError, "sync_global_devices", "positional"),
            bad("ad.multihost_utils.sync_global_devices('x', 'y')", TypeError, "sync_global_devices", "positional"),
            bad(
                "ad.multihost_utils.sync_global_devices(3)",
                TypeError,
                "sync_global_devices:",
                "name",
                "3",
                repair='write (sync_global_devices\\("loaded"\\))',
                given="sync_global_devices = ad.multihost_utils.sync_global_devices",
            ),
            bad("ad.multihost_utils.sync_global_devices(None)", TypeError, "sync_global_devices:", "None"),
            bad(
                "ad.multihost_utils.sync_global_devices(NO_REPR)",
                TypeError,
                "sync_global_devices:",
                "<NoRepr, whose repr raised ZeroDivisionError>",
            ),
        ],
    ),
    Calls(
        "distributed.initialize",
        "ad.distributed.is_initialized()",
        [
            bad("ad.distributed.initialize(3, 2, 0)", RuntimeError, "distributed.initialize:", "expected"),
            bad("ad.distributed.initialize('spam', 2, 0)", RuntimeError, "distributed.initialize:", "expected"),
            bad("ad.distributed.initialize('127.0.0.1:1', -1, 0)", RuntimeError, "distributed.initialize:", "expected"),
            bad("ad.distributed.initialize('127.0.0.1:1', 2, 5)", RuntimeError, "distributed.initialize:", "expected"),
            bad(
                "ad.distributed.initialize('127.0.0.1:1', 'x', 0)", RuntimeError, "distributed.initialize:", "expected"
            ),
            bad(
                "ad.distributed.initialize('127.0.0.1:1', 2, 0, initialization_timeout='x')",
                RuntimeError,
                "distributed.initialize:",
                "expected",
            ),
            bad(
                "ad.distributed.initialize(cluster_detection_method='spam')",
                RuntimeError,
                "distributed.initialize:",
                "expected",
            ),
        ],
    ),
    Calls(
        "array_api.arange",
        "ad.array_api.arange(8)",
        [
            bad("ad.array_api.arange('x')", TypeError, "supported", "StrDType"),
            bad("ad.array_api.arange(0, 8, 0)", ZeroDivisionError, "division by zero"),
            bad("ad.array_api.arange(8, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.array_api.arange(8, device='gpu')", TypeError, "device:", "'gpu'"),
            bad("ad.array_api.arange(NAN)", ValueError, "arange:"),
        ],
    ),
    Calls(
        "array_api.asarray",
        "ad.array_api.asarray(X)",
        [
            bad("ad.array_api.asarray('text')", TypeError, "device_put:", "dtype"),
            bad("ad.array_api.asarray(object())", TypeError, "device_put:", "dtype"),
            bad("ad.array_api.asarray(X, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.array_api.asarray(X, device='gpu')", TypeError, "asarray:", "device", "'gpu'"),
            bad("ad.array_api.asarray(BAD_ARRAY)", ZeroDivisionError, "no array"),
        ],
    ),
    Calls(
        "array_api.empty",
        "ad.array_api.empty((2,))",
        [
            bad("ad.array_api.empty((-2,))", ValueError, "empty:", "-2"),
            bad("ad.array_api.empty('x')", TypeError, "empty:", "shape", "'x'"),
            bad("ad.array_api.empty((2**63,))", ValueError, "empty:", "shape"),
            bad("ad.array_api.empty((2,), dtype='spam')", TypeError, "'spam'", "understood"),
            bad(
                "ad.array_api.empty((2,), device='gpu')",
                TypeError,
                "empty:",
                "device",
                "'gpu'",
                repair="one from (artifex_devices\\.devices\\(\\)) or",
                then="ad.array_api.empty((2,), device={}[0])",
            ),
        ],
    ),
    Calls(
        "array_api.eye",
        "ad.array_api.eye(2)",
        [
            bad("ad.array_api.eye(-1)", ValueError, "dimensions", "negative"),
            bad("ad.array_api.eye('x')", TypeError, "interpreted", "integer"),
            bad("ad.array_api.eye(2, 2.5)", TypeError, "interpreted", "integer"),
            bad("ad.array_api.eye(2, dtype='spam')", TypeError, "'spam'", "understood"),
        ],
    ),
    Calls(
        "array_api.from_dlpack",
        "ad.array_api.from_dlpack(X)",
        [
            bad("ad.array_api.from_dlpack(3)", AttributeError, "__dlpack__", "attribute"),
            bad("ad.array_api.from_dlpack('text')", AttributeError, "__dlpack__", "attribute"),
            bad("ad.array_api.from_dlpack(X, device='gpu')", TypeError, "asarray:", "device", "'gpu'"),
        ],
    ),
    Calls(
        "array_api.full",
        "ad.array_api.full((2,), 1)",
        [
            bad("ad.array_api.full((-2,), 1)", ValueError, "full:", "-2", "1"),
            bad("ad.array_api.full('x', 1)", TypeError, "full:", "shape", "'x'"),
            bad("ad.array_api.full((2,), 'x')", TypeError, "full:", "dtype", "device"),
            bad("ad.array_api.full((2,), 1, dtype='spam')", TypeError, "'spam'", "understood"),
            bad("ad.array_api.full((2,), 1, device=3)", TypeError, "full:", "device"),
        ],
    ),
    Calls(
        "array_api.linspace",
        "ad.array_api.linspace(0, 1, 3)",
        [
            bad("ad.array_api.linspace(0, 1, -3)", ValueError, "negative", "samples"),
            bad("ad.array_api.linspace('x', 1, 3)", TypeError, "_PyFloatDType", "_PyLongDType"),
            bad("ad.array_api.linspace(0, 1, 2.5)", TypeError, "interpreted", "integer"),
            bad("ad.array_api.linspace(0, 1, 3, dtype='spam')", TypeError, "'spam'", "understood"),
        ],
    ),
    Calls(
        "array_api.ones",
        "ad.array_api.ones((2,))",
        [
            bad("ad.array_api.ones((-2,))", ValueError, "ones:", "-2"),
            bad("ad.array_api.ones('x')", TypeError, "ones:", "shape", "'x'"),
            bad("ad.array_api.ones((2.5,))", TypeError, "ones:", "shape", "2.5"),
            bad("ad.array_api.ones((2,), dtype='spam')", TypeError, "'spam'", "understood"),
        ],
    ),
    Calls(
        "array_api.zeros",
        "ad.array_api.zeros((2,))",
        [
            bad("ad.array_api.zeros((-2,))", ValueError, "zeros:", "-2"),
            bad("ad.array_api.zeros(None)", TypeError, "zeros:", "shape"),
            bad("ad.array_api.zeros((2**62, 2**62))", ValueError, "zeros:", "expected"),
            bad("ad.array_api.zeros((2,), device='gpu')", TypeError, "zeros:", "device", "'gpu'"),
        ],
    ),
]
