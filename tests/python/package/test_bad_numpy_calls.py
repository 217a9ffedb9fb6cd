# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions with bad arguments: what NumPy refuses of an ndarray is refused of an Array too, in words.

The class is one of those that NumPy raises for arguments. Which of them need not agree: to text in place of a number
NumPy itself says ValueError in some functions and TypeError in others.
"""

import inspect
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import array_api

X = np.arange(64, dtype=np.float32).reshape(8, 8)
EXPECTED = (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError)
BAD = {
    "axis": [99, "x", 0.5, 2**63],
    "axis1": [99, "x"],
    "axis2": [99],
    "axes": [(0, 9), "x"],
    "bins": ["x"],
    "ddof": ["x"],
    "decimals": ["x"],
    "destination": [99],
    "dtype": ["spam"],
    "indices_or_sections": [0, "x"],
    "initial": ["x"],
    "k": ["x"],
    "kth": [99, "x"],
    "mode": ["spam"],
    "n": ["x"],
    "offset": ["x"],
    "ord": ["spam"],
    "order": ["Z"],
    "out": ["x"],
    "q": ["x", 2.0],
    "repeats": [-1, "x"],
    "reps": ["x", -1],
    "shape": ["x", (-5,), (2.5,)],
    "shift": ["x"],
    "side": ["up"],
    "source": [99],
    "subscripts": ["?"],
}
GOOD = {
    "axis": 0,
    "axis1": 0,
    "axis2": 1,
    "condition": [True],
    "decimals": 1,
    "destination": 1,
    "dtype": "int32",
    "fill_value": 1.0,
    "indices": [0],
    "indices_or_sections": 2,
    "kth": 1,
    "max": 1,
    "min": 0,
    "q": 0.5,
    "repeats": 2,
    "reps": 2,
    "shape": (8, 8),
    "shift": 1,
    "source": 0,
}
SEVERAL = ("arrays", "tup", "seq")


def calls():
    """(function, argument, bad value) for each that one of NumPy's functions of Arrays has."""
    spaces = ((array_api, np), (array_api.fft, np.fft), (array_api.linalg, np.linalg))
    found = {getattr(source, name, None) for space, source in spaces for name in dir(space)}
    functions = [each for each in found if type(each) is type(np.sum)]  # they dispatch on the classes of arguments
    for function in sorted(functions, key=lambda each: (each.__module__, each.__name__)):
        for name in inspect.signature(function).parameters:
            for value in BAD.get(name, ()):
                yield function, name, value


def outcome(function, name, value, x):
    """What the call raises; None where it raises nothing."""
    positional, named = [], {}
    for each, parameter in inspect.signature(function).parameters.items():
        if each != name and (parameter.default is not parameter.empty or parameter.kind == parameter.VAR_KEYWORD):
            continue
        given = value if each == name else [x, x] if each in SEVERAL else GOOD.get(each, x)
        if parameter.kind == parameter.POSITIONAL_ONLY or (parameter.kind == parameter.VAR_POSITIONAL):
            positional.append(given)
        else:
            named[each] = given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*positional, **named)
        except Exception as error:
            return type(error), str(error)
    return None


@pytest.mark.usefixtures("settled", "nothing_left")
def test_what_numpy_refuses_of_an_ndarray_is_refused_of_an_array():
    x = ad.device_put(X)
    wrong, refused = [], 0
    for function, name, value in calls():
        theirs, ours = outcome(function, name, value, X), outcome(function, name, value, x)
        if theirs is None:
            continue
        refused += 1
        if ours is None or not issubclass(ours[0], EXPECTED) or not ours[1]:
            wrong.append(f"{function.__name__}({name}={value!r}): {ours}, and NumPy {theirs}")
    assert wrong == []
    assert refused > 350
    assert np.array_equal(np.asarray(x), X)
    assert np.array_equal(np.sum(x, axis=0), X.sum(axis=0))
