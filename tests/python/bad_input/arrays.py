# SPDX-License-Identifier: Apache-2.0
"""Bad calls: Arrays, their methods and indexing."""

from numpy.exceptions import AxisError

from bad_input.rows import Calls, bad

CALLS = [
    Calls(
        "Array",
        "put(X).shape",
        [
            bad("ad.Array()", TypeError, "Array:", "expected", repair="use (device_put\\(x\\))", given="x = X"),
            bad("ad.Array(X)", TypeError, "Array:", "expected"),
        ],
    ),
    Calls(
        "Array.__getitem__",
        "put(X, 'x')[0, 0].item()",
        [
            bad(
                "put(X, 'x')[99]",
                IndexError,
                "index:",
                "99",
                repair="got 99; (np\\.take\\(.*?\\)) takes",
                given="x = put(X); i = [99]; axis = 0",
            ),
            bad("put(X, 'x')[-9]", IndexError, "index:", "-9"),
            bad("put(X, 'x')[2**63]", IndexError, "index:", "expected"),
            bad("put(X, 'x')[0, 0, 0]", IndexError, "index:", "expected"),
            bad(
                "put(X, 'x')[0.5]",
                IndexError,
                "index:",
                "0.5",
                repair="by (int\\(i\\))",
                then="put(X, 'x')[{}]",
                given="i = 0.5",
            ),
            bad("put(X, 'x')['x']", IndexError, "index:", "'x'"),
            bad("put(X, 'x')[NAN]", IndexError, "index:", "expected"),
            bad("put(X, 'x')[{}]", IndexError, "index:", "expected"),
            bad("put(X, 'x')[..., ...]", IndexError, "index:", "expected"),
            bad("put(X, 'x')[BAD_INDEX]", ZeroDivisionError, "no int"),
            bad("put(X, 'x')[[99]]", IndexError, "index:", "99"),
            bad("put(X, 'x')[::0]", ValueError, "slice step cannot be zero"),
            bad("put(X, 'x')[np.ones((3, 3), bool)]", IndexError, "index:", "3"),
            bad("put(X, 'x')[BAD_ARRAY]", IndexError, "index:", "expected"),
            bad(
                "put(X, 'x')['a':'b']", TypeError, "slice indices must be integers or None or have an __index__ method"
            ),
        ],
    ),
    Calls(
        "Array.__setitem__",
        "X.copy()[0, 0]",
        [
            bad(
                "operator.setitem(put(X), 0, 1.0)",
                TypeError,
                "Array:",
                "expected",
                repair="place it: (.*)$",
                then="exec({!r})",
                given="i = 0; v = 1.0; x = put(X)",
            ),
            bad("operator.setitem(put(X), 'x', 1.0)", TypeError, "Array:", "expected"),
            bad("operator.setitem(put(X), slice(None), NO_REPR)", TypeError, "Array:", "expected"),
        ],
    ),
    Calls(
        "Array.__contains__",
        "3.0 in put(X)",
        [
            bad("put(X).__contains__()", TypeError, "value"),
            bad("put(X).__contains__(1, 2)", TypeError, "2"),
        ],
    ),
    Calls(
        "Array.__array__",
        "np.asarray(put(X))",
        [
            bad("put(X).__array__(copy='yes')", TypeError, "__array__:", "expected"),
            bad("put(X).__array__(np.int32, copy=False)", ValueError, "__array__:", "expected"),
            bad("put(X).__array__(3)", TypeError, "3"),
            bad("put(X).__array__(None, None, None)", TypeError, "Array.__array__:", "expected"),
        ],
    ),
    Calls(
        "Array.__dlpack__",
        "ad.device_put(X, d).__dlpack__() is not None",
        [
            bad("ad.device_put(X, d).__dlpack__(stream='x')", RuntimeError, "__dlpack__:", "'x'"),
            bad("ad.device_put(X, d).__dlpack__(max_version='1')", TypeError, "__dlpack__:", "'1'"),
            bad("ad.device_put(X, d).__dlpack__(max_version=(1,))", TypeError, "__dlpack__:", "1"),
            bad("ad.device_put(X, d).__dlpack__(dl_device='cpu')", TypeError, "__dlpack__:", "'cpu'"),
            bad("ad.device_put(X, d).__dlpack__(dl_device=(2, 0))", BufferError, "__dlpack__:", "2", "0"),
            bad("ad.device_put(X, d).__dlpack__(copy='yes')", TypeError, "__dlpack__:", "'yes'"),
            bad("ad.device_put(X, d).__dlpack__(3)", TypeError, "Array.__dlpack__:", "expected"),
            bad(
                "put(X, 'x').__dlpack__()",
                BufferError,
                "__dlpack__:",
                "expected",
                repair=r"its value, (np\.asarray\(x\)), or",
                then="{}.__dlpack__(max_version=(1, 0))",
                given="x = put(X, 'x')",
            ),
        ],
    ),
    Calls(
        "Array.addressable_data",
        "put(X).addressable_data(0)",
        [
            bad("put(X, 'x').addressable_data(8)", IndexError, "addressable_data:", "8"),
            bad("put(X, 'x').addressable_data(-1)", IndexError, "addressable_data:", "-1"),
            bad("put(X, 'x').addressable_data(2**63)", TypeError, "Array.addressable_data:", "expected"),
            bad("put(X, 'x').addressable_data(1.5)", TypeError, "Array.addressable_data:", "1.5"),
            bad("put(X, 'x').addressable_data('0')", TypeError, "Array.addressable_data:", "'0'"),
            bad("put(X, 'x').addressable_data(None)", TypeError, "Array.addressable_data:", "None"),
            bad("put(X, 'x').addressable_data(BAD_INDEX)", TypeError, "Array.addressable_data:", "expected"),
        ],
    ),
    Calls(
        "Array.all",
        "put(X).all().item()",
        [
            bad("put(X).all(9)", AxisError, "axis", "out"),
            bad("put(X).all(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).all(axis=(0, 0))", ValueError, "axis"),
            bad("put(X).all(out='x')", TypeError, "all:", "out"),
        ],
    ),
    Calls(
        "Array.any",
        "put(X).any().item()",
        [
            bad("put(X).any(9)", AxisError, "axis", "out"),
            bad("put(X).any(axis=0.5)", TypeError, "'float' object is not iterable"),
            bad("put(X).any(axis=(0, 0))", ValueError, "axis"),
            bad("put(X).any(out='x')", TypeError, "any:", "out"),
        ],
    ),
    Calls(
        "Array.argmax",
        "put(X).argmax().item()",
        [
            bad("put(X).argmax(9)", AxisError, "axis", "out"),
            bad("put(X).argmax(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).argmax(axis=0.5)", TypeError, "integer argument expected, got float"),
            bad("put(X).argmax(out='x')", TypeError, "argmax:", "out"),
            bad("put(X[:0]).argmax()", ValueError, "argmax:", "0"),
        ],
    ),
    Calls(
        "Array.argmin",
        "put(X).argmin().item()",
        [
            bad("put(X).argmin(-3)", AxisError, "axis", "out"),
            bad("put(X).argmin(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).argmin(axis=(0, 1))", TypeError, "'tuple' object cannot be interpreted as an integer"),
            bad("put(X[:0]).argmin()", ValueError, "argmin:", "0"),
        ],
    ),
    Calls(
        "Array.argpartition",
        "put(X).argpartition(3)",
        [
            bad("put(X).argpartition(99)", ValueError, "kth", "99"),
            bad("put(X).argpartition('x')", TypeError, "Partition index must be integer"),
            bad("put(X).argpartition(1.5)", TypeError, "Partition index must be integer"),
            bad("put(X).argpartition(3, axis=9)", AxisError, "axis", "9"),
        ],
    ),
    Calls(
        "Array.argsort",
        "put(X).argsort()",
        [
            bad("put(X).argsort(9)", AxisError, "axis", "9"),
            bad("put(X).argsort(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).argsort(order='x')", TypeError, "argsort:", "order", "'x'"),
        ],
    ),
    Calls(
        "Array.astype",
        "put(X).astype('int32')",
        [
            bad("put(X).astype('spam')", TypeError, "'spam'"),
            bad(
                "put(X).astype(object)",
                TypeError,
                "astype:",
                "dtype",
                "device",
                repair="say by (x\\.astype\\(np\\.float32\\))",
                given="x = np.array([1, 2], object)",
            ),
            bad("put(X).astype(3)", TypeError, "3"),
            bad(
                "put(X).astype('>f4')",
                TypeError,
                "astype:",
                "dtype",
                repair="first: (x\\.astype\\(.*\\))$",
                then="ad.device_put({})",
                given="x = X.astype('>f4')",
            ),
            bad("put(X).astype('U3')", TypeError, "astype:", "dtype", "device"),
            bad("put(X).astype('int32', device='gpu')", TypeError, "to_device:", "'gpu'"),
        ],
    ),
    Calls(
        "Array.clip",
        "put(X).clip(0, 5)",
        [
            bad("put(X).clip('a', 'b')", TypeError, "ufunc 'maximum' did not contain a loop with signature matchi"),
            bad("put(X).clip(np.zeros(3), None)", ValueError, "maximum:", "3"),
            bad("put(X).clip(0, 1, out='x')", TypeError, "positive:", "out"),
            bad("put(X).clip(NO_REPR, 1)", ZeroDivisionError, "no text"),
        ],
    ),
    Calls(
        "Array.compress",
        "put(X).compress([True, False], axis=0)",
        [
            bad("put(X).compress([True, False], axis=9)", AxisError, "take:", "axis", "out"),
            bad("put(X).compress('x')", ValueError, "compress:", "condition"),
            bad("put(X).compress([[True]], axis=0)", ValueError, "compress:", "condition"),
            bad("put(X).compress([True] * 99, axis=0)", IndexError, "index:", "axis", "out"),
        ],
    ),
    Calls(
        "Array.cumprod",
        "put(X).cumprod(0)",
        [
            bad("put(X).cumprod(9)", AxisError, "axis", "out"),
            bad("put(X).cumprod('x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).cumprod(0, dtype='spam')", TypeError, "'spam'"),
            bad("put(X).cumprod(0, out='x')", TypeError, "cumprod:", "out"),
        ],
    ),
    Calls(
        "Array.cumsum",
        "put(X).cumsum(0)",
        [
            bad("put(X).cumsum(9)", AxisError, "axis", "out"),
            bad("put(X).cumsum(0.5)", TypeError, "integer argument expected, got float"),
            bad("put(X).cumsum(0, dtype='spam')", TypeError, "'spam'"),
            bad("put(X).cumsum(0, out='x')", TypeError, "cumsum:", "out"),
        ],
    ),
    Calls(
        "Array.diagonal",
        "put(X).diagonal()",
        [
            bad("put(X).diagonal('x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).diagonal(0, 9, 1)", AxisError, "axis1:", "9"),
            bad("put(X).diagonal(0, 1, 1)", ValueError, "diagonal:", "axis1", "axis2"),
            bad("put(X[0]).diagonal()", ValueError, "diagonal:", "expected"),
        ],
    ),
    Calls(
        "Array.dot",
        "put(X).dot(X)",
        [
            bad("put(X).dot('x')", TypeError, "ufunc 'multiply' did not contain a loop with signature match"),
            bad("put(X).dot(np.zeros(3))", ValueError, "dot:", "3"),
            bad("put(X).dot(X, out='x')", TypeError, "dot:", "out"),
            bad("put(X).dot(NO_REPR)", ZeroDivisionError, "no text"),
        ],
    ),
    Calls(
        "Array.flatten",
        "put(X).flatten()",
        [
            bad(
                "put(X).flatten('Z')", TypeError, "flatten:", "order", "'Z'", repair="first: (.*)$", given="x = put(X)"
            ),
            bad("put(X).flatten(3)", TypeError, "flatten:", "order"),
            bad("put(X, None, 'x').flatten('F')", TypeError, "flatten:", "order", "'F'"),
        ],
    ),
    Calls(
        "Array.item",
        "put(X).item(3)",
        [
            bad("put(X).item()", ValueError, "can only convert an array of size 1 to a Python scalar"),
            bad("put(X).item(99)", IndexError, "item:", "99"),
            bad("put(X).item('x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).item(0, 9)", IndexError, "item:", "9"),
            bad("put(X).item(1.5)", TypeError, "'float' object cannot be interpreted as an integer"),
            bad("put(X).item(2**63)", IndexError, "item:", "63"),
        ],
    ),
    Calls(
        "Array.max",
        "put(X).max().item()",
        [
            bad("put(X).max(9)", AxisError, "axis", "out"),
            bad("put(X).max(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).max(out='x')", TypeError, "max:", "out"),
            bad("put(X[:0]).max()", ValueError, "max:", "initial"),
            bad("put(X).max(initial='x')", ValueError, "'x'"),
            bad("put(X).max(where=[True] * 3)", ValueError, "max:", "initial", "where"),
        ],
    ),
    Calls(
        "Array.mean",
        "put(X).mean().item()",
        [
            bad("put(X).mean(9)", AxisError, "axis", "out"),
            bad("put(X).mean(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).mean(dtype='spam')", TypeError, "'spam'"),
            bad("put(X).mean(out='x')", TypeError, "mean:", "out"),
        ],
    ),
    Calls(
        "Array.min",
        "put(X).min().item()",
        [
            bad("put(X).min(9)", AxisError, "axis", "out"),
            bad("put(X).min(axis=(0, 0))", ValueError, "axis"),
            bad("put(X).min(out='x')", TypeError, "min:", "out"),
            bad("put(X[:0]).min()", ValueError, "min:", "initial"),
        ],
    ),
    Calls(
        "Array.prod",
        "put(X).prod().item()",
        [
            bad("put(X).prod(9)", AxisError, "axis", "out"),
            bad("put(X).prod(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).prod(dtype='spam')", TypeError, "'spam'"),
            bad("put(X).prod(out='x')", TypeError, "prod:", "out"),
        ],
    ),
    Calls(
        "Array.ptp",
        "put(X).ptp().item()",
        [
            bad("put(X).ptp(9)", AxisError, "axis", "out"),
            bad("put(X).ptp(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X[:0]).ptp()", ValueError, "ptp:", "0"),
        ],
    ),
    Calls(
        "Array.ravel",
        "put(X).ravel()",
        [
            bad("put(X).ravel('Z')", TypeError, "ravel:", "order", "'Z'", repair="first: (.*)$", given="x = put(X)"),
            bad("put(X).ravel(3)", TypeError, "ravel:", "order"),
            bad("put(X, None, 'x').ravel('F')", TypeError, "ravel:", "order", "'F'"),
        ],
    ),
    Calls(
        "Array.repeat",
        "put(X).repeat(2, 0)",
        [
            bad("put(X).repeat(-1, 0)", ValueError, "negative dimensions are not allowed"),
            bad(
                "put(X).repeat('x', 0)",
                TypeError,
                "Cannot cast scalar from dtype('<U1') to dtype('int64') according to the rule 'safe'",
            ),
            bad("put(X).repeat(2, 9)", AxisError, "repeat:", "axis"),
            bad("put(X).repeat([1, 2], 0)", ValueError, "2"),
            bad(
                "put(X).repeat(1.5, 0)",
                TypeError,
                "Cannot cast scalar from dtype('float64') to dtype('int64') according to the rule 'safe'",
            ),
            bad("put(X).repeat(2**62, 0)", ValueError, "repeat:", "repeats"),
            bad("put(X).repeat([2**61] * 8, 0)", ValueError, "repeat:", "repeats"),
        ],
    ),
    Calls(
        "Array.reshape",
        "put(X).reshape(64)",
        [
            bad("put(X).reshape(63)", ValueError, "reshape:", "63"),
            bad("put(X).reshape(-1, -1)", ValueError, "reshape:", "-1"),
            bad("put(X).reshape('x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).reshape(8.0, 8)", TypeError, "'float' object cannot be interpreted as an integer"),
            bad("put(X).reshape(-2)", ValueError, "reshape:", "-2"),
            bad("put(X).reshape(2**63)", ValueError, "reshape:", "expected"),
            bad("put(X).reshape(2**32, 2**32)", ValueError, "reshape:", "expected"),
            bad("put(X).reshape(BAD_INDEX)", ZeroDivisionError, "no int"),
            bad(
                "put(X).reshape(64, order='Z')",
                TypeError,
                "reshape:",
                "order",
                "'Z'",
                repair=r"first: (.*)$",
                given="x = put(X); shape = (64,)",
            ),
            bad("put(X).reshape()", ValueError, "reshape:", "expected"),
        ],
    ),
    Calls(
        "Array.round",
        "put(X).round(1)",
        [
            bad("put(X).round('x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).round(1.5)", TypeError, "'float' object cannot be interpreted as an integer"),
            bad("put(X).round(1, out='x')", TypeError, "positive:", "out"),
        ],
    ),
    Calls(
        "Array.searchsorted",
        "put(X[0]).searchsorted(3.0)",
        [
            bad("put(X).searchsorted(3.0)", ValueError, "object too deep for desired array"),
            bad("put(X[0]).searchsorted('x')", TypeError, "searchsorted:", "expected"),
            bad("put(X[0]).searchsorted(3.0, side='up')", ValueError, "side", "'up'"),
            bad("put(X[0]).searchsorted(3.0, sorter=[0])", ValueError, "sorter"),
        ],
    ),
    Calls(
        "Array.sort",
        "put(X).sort()",
        [
            bad("put(X).sort(9)", AxisError, "axis", "9"),
            bad("put(X).sort(order='x')", TypeError, "sort:", "order", "'x'"),
        ],
    ),
    Calls(
        "Array.squeeze",
        "put(X[:1]).squeeze(0)",
        [
            bad("put(X).squeeze(0)", ValueError, "squeeze:", "axis"),
            bad("put(X).squeeze(9)", AxisError, "axis", "9"),
            bad("put(X).squeeze('x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X[:1]).squeeze((0, 0))", ValueError, "axis"),
        ],
    ),
    Calls(
        "Array.std",
        "put(X).std().item()",
        [
            bad("put(X).std(9)", AxisError, "axis", "out"),
            bad("put(X).std(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).std(ddof='x')", TypeError, "unsupported operand type(s) for -: 'int' and 'str'"),
            bad("put(X).std(dtype='spam')", TypeError, "'spam'"),
            bad("put(X).std(ddof=1, correction=2)", ValueError, "std:", "ddof", "correction"),
        ],
    ),
    Calls(
        "Array.sum",
        "put(X).sum().item()",
        [
            bad("put(X).sum(9)", AxisError, "axis", "out"),
            bad("put(X).sum(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).sum(axis=(0, 0))", ValueError, "axis"),
            bad("put(X).sum(axis=2**63)", OverflowError, "Python int too large to convert to C long"),
            bad("put(X).sum(dtype='spam')", TypeError, "'spam'"),
            bad("put(X).sum(out='x')", TypeError, "sum:", "out"),
            bad("put(X).sum(initial='x')", ValueError, "'x'"),
            bad("put(X).sum(where=[True] * 3)", ValueError, "sum:", "3"),
            bad("put(X).sum(axis=BAD_INDEX)", ZeroDivisionError, "no int"),
            bad("put(X).sum(axis=NAN)", TypeError, "'float' object is not iterable"),
        ],
    ),
    Calls(
        "Array.swapaxes",
        "put(X).swapaxes(0, 1)",
        [
            bad("put(X).swapaxes(0, 9)", AxisError, "axis2:", "9"),
            bad("put(X).swapaxes('x', 1)", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).swapaxes(0.5, 1)", TypeError, "integer argument expected, got float"),
        ],
    ),
    Calls(
        "Array.take",
        "put(X).take([0, 1], 0)",
        [
            bad("put(X).take([99], 0)", IndexError, "index:", "axis", "out"),
            bad(
                "put(X).take('x', 0)",
                TypeError,
                "take:",
                "indices",
                repair="them: (i\\.astype\\(int\\))",
                then="put(X).take({}, 0)",
                given="i = np.array([1.0])",
            ),
            bad("put(X).take([0], 9)", AxisError, "take:", "axis", "out"),
            bad("put(X).take([0.5], 0)", TypeError, "take:", "indices"),
            bad("put(X).take([0], 0, mode='spam')", ValueError, "take:", "mode", "'spam'"),
        ],
    ),
    Calls(
        "Array.to_device",
        "put(X).to_device(d)",
        [
            bad(
                "put(X).to_device('gpu')",
                TypeError,
                "to_device:",
                "'gpu'",
                repair="one from (artifex_devices\\.devices\\(\\)) or",
                then="put(X).to_device({}[0])",
            ),
            bad("put(X).to_device(3)", TypeError, "to_device:", "3"),
            bad("put(X).to_device(None)", TypeError, "to_device:", "None"),
            bad("put(X).to_device(d, stream=3)", ValueError, "to_device:", "3"),
            bad("put(X).to_device(NO_REPR)", ZeroDivisionError, "no text"),
        ],
    ),
    Calls(
        "Array.trace",
        "put(X).trace().item()",
        [
            bad("put(X).trace('x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).trace(0, 9, 1)", AxisError, "axis1:", "out"),
            bad("put(X[0]).trace()", ValueError, "trace:", "expected"),
            bad("put(X).trace(dtype='spam')", TypeError, "'spam'"),
        ],
    ),
    Calls(
        "Array.transpose",
        "put(X).transpose(1, 0)",
        [
            bad("put(X).transpose(0, 0)", ValueError, "axes"),
            bad("put(X).transpose(0)", ValueError, "transpose:", "axes"),
            bad("put(X).transpose('x', 'y')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).transpose(0, 9)", AxisError, "axes:", "9"),
            bad("put(X).transpose(0.5, 1)", TypeError, "integer argument expected, got float"),
        ],
    ),
    Calls(
        "Array.var",
        "put(X).var().item()",
        [
            bad("put(X).var(9)", AxisError, "axis", "out"),
            bad("put(X).var(axis='x')", TypeError, "'str' object cannot be interpreted as an integer"),
            bad("put(X).var(ddof='x')", TypeError, "unsupported operand type(s) for -: 'int' and 'str'"),
            bad("put(X).var(dtype='spam')", TypeError, "'spam'"),
        ],
    ),
    Calls(
        "Array.conj",
        "put(X).conj()",
        [
            bad("put(X).conj(3)", TypeError, "Array.conjugate() takes 1 positional argument but 2 were given"),
        ],
    ),
    Calls(
        "Array.delete",
        "put(X).delete() is None",
        [
            bad("ad.Array.delete(3)", TypeError, "Array.delete:", "3"),
            bad("ad.Array.delete(None)", TypeError, "Array.delete:", "None"),
            bad("ad.Array.delete(ad.Array.__new__(ad.Array))", TypeError, "artifex_devices:", "expected"),
        ],
    ),
]
