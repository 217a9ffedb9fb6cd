# SPDX-License-Identifier: Apache-2.0
"""From how much work on an element-wise function is worth several cores."""

from __future__ import annotations

from typing import Any

import numpy as np

from artifex_devices._base.clearable_cache import remembered

__all__ = ["SPREAD_BYTES", "spread_from"]

# Three classes, by what a loop of NumPy costs an element: a cycle; functions with vector loops; the rest. Measured
# on 2 quiet cores with AVX-512, 8 shards: us on one core and spread, by MiB of an operand. Bytes read and written
# are twice that for one operand, three times for x + x.
#                   2          4           6           8           12         16          32          64
#   x + x   f32              212  404    326  478    566  649   1162  966  1377 1243   2744 2349
#           f64                          339  472    420  587    767  837  1555 1149
#   -x      f32              200  387    268  418    612  630   1162 1012  1588 1218   2529 2359
#   exp     f32   378  497   681  705   1033  909   1514 1196   2127 1513  2774 1733   5246 3340  10581 6168
#           f64   318  446   587  605   1013  777   1107  870              2219 1562   5695 3456   7648 5336
#   log     f32   316  443   570  600               1162  902              2211 1573   4895 3046   8187 5461
#           f64   349  450   566  626               1144  928              1858 1579   4774 3003   9118 5550
#   sin     f32   474  556   907  765               1838 1373              3532 2295   5530 3999  12976 6432
#           f64  3606 2155  6995 4025              13695 7460             24107 14009 40557 26119     (1: 1723 1280)
#   tanh    f32   296  423   507  578    743  728    996  872   1503 1151  1944 1488   3885 2821   7425 5113
#           f64   606  583  1266  887               2371 1586              4158 3811   7060 4604  15132 9138
#   sqrt    f32   268  389   458  513    684  701    923  967   1437 1148  1809 1419   3788 2676   7157 5341
#           f64   406  495   752  617   1092  865   1476 1085              2894 1812   5375 3511
SPREAD_BYTES = 2 << 20
_OF_VECTOR_LOOPS = 8 << 20
_OF_SIMPLE = 24 << 20
_SIMPLE = frozenset(
    (  # about a cycle an element
        np.add,
        np.subtract,
        np.multiply,
        np.divide,
        np.negative,
        np.positive,
        np.absolute,
        np.fabs,
        np.square,
        np.conjugate,
        np.copysign,
        np.sign,
        np.signbit,
        np.rint,
        np.trunc,
        np.floor,
        np.ceil,
        np.maximum,
        np.minimum,
        np.fmax,
        np.fmin,
        np.equal,
        np.not_equal,
        np.less,
        np.less_equal,
        np.greater,
        np.greater_equal,
        np.isfinite,
        np.isinf,
        np.isnan,
        np.logical_and,
        np.logical_or,
        np.logical_xor,
        np.logical_not,
        np.bitwise_and,
        np.bitwise_or,
        np.bitwise_xor,
        np.invert,
    )
)
_VECTORS = frozenset(  # 0.3 to 0.9 ns an element in float32, 0.9 to 3 in float64, but for sin and cos
    (
        np.sqrt,
        np.cbrt,
        np.exp,
        np.exp2,
        np.expm1,
        np.log,
        np.log2,
        np.log10,
        np.log1p,
        np.sin,
        np.cos,
        np.tan,
        np.sinh,
        np.cosh,
        np.tanh,
        np.arcsin,
        np.arccos,
        np.arctan,
        np.arcsinh,
        np.arctanh,
        np.arctan2,
        np.power,
    )
)
_FAST = frozenset("?bhilqBHILQfd")  # dtypes that NumPy has vector loops for; divide and rounding of integers convert
_OF_FLOATS = frozenset({np.divide, np.rint, np.trunc, np.floor, np.ceil, np.copysign, np.fabs})


@remembered(maxsize=4096)
def spread_from(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> int:
    """From how many bytes read and written on a ufunc is spread over cores.

    Args:
        ufunc: What is called.
        kinds: Its operands' dtypes, or types of Python numbers.
    """
    dtypes = {kind for kind in kinds if not isinstance(kind, type)}
    if len(dtypes) != 1 or complex in kinds:
        return SPREAD_BYTES
    (dtype,) = dtypes
    if ufunc in _VECTORS:
        is_vector = dtype.char == "f" or (dtype.char == "d" and ufunc not in (np.sin, np.cos))
        return _OF_VECTOR_LOOPS if is_vector else SPREAD_BYTES
    converts = dtype.kind != "f" and (float in kinds or ufunc in _OF_FLOATS)
    is_simple = ufunc in _SIMPLE and dtype.char in _FAST and not converts
    return _OF_SIMPLE if is_simple else SPREAD_BYTES
