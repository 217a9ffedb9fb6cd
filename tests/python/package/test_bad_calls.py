# SPDX-License-Identifier: Apache-2.0
"""Bad calls of every public function: class and words, what they suggest works, nothing is lost, the next call works.

The tables are in bad_input, one file an area. test_bad_input.py has what takes more than a line.
"""

import collections
import gc
import inspect
import operator
import re
import types
import warnings

import artifex_devices as ad
import numpy as np
import pytest
from bad_input.areas import AREAS, EXEMPT
from bad_input.world import X, names

TABLE = {f"{area}: {calls.name}": calls for area, tables in AREAS.items() for calls in tables}
ROWS = [row for calls in TABLE.values() for row in calls.bad]
OWN = ("builtins", "artifex_devices")
# Texts of pybind11. The first two are about the number and names of arguments; rows that expect them name them.
RAW = ("incompatible function arguments", "incompatible constructor arguments", "Unable to cast", "std::bad_")


def run(text, calls, folder):
    """The value of the text, over the names of the tables and those of its function's."""
    known = names(folder)
    if calls.where:
        exec(calls.where, known)
    return eval(text, known)


def failure(row, calls, folder):
    """Class and text of what the call raises; the exception itself, with its frames, is let go."""
    try:
        run(row.call, calls, folder)
    except BaseException as error:
        kind, text = type(error), str(error)
    else:
        pytest.fail(f"{row.call} raised nothing")
    return kind, text


def repaired(row, text, calls, folder):
    """Runs what the message suggests."""
    found = re.search(row.repair, text)
    assert found, f"{row.call}: {row.repair!r} is not in {text!r}"
    known = names(folder)
    exec(calls.where, known)
    known.update({name: getattr(ad, name) for name in ad.__all__}, artifex_devices=ad)  # as the messages call them
    exec(row.given, known)
    eval(row.then.replace("{}", found.group(1)).replace("{!r}", repr(found.group(1))), known)
    known.clear()  # free-threaded Python 3.13 never frees a lambda at the top of a text, nor its namespace


def in_use():
    return [device.memory_stats()["bytes_in_use"] for device in ad.devices()]


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.usefixtures("settled_module", "nothing_left")
def test_bad_calls(name, tmp_path, capsys):
    calls = TABLE[name]
    devices = ad.devices()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(calls.good, calls, tmp_path)
        gc.collect()
        before = in_use()
        for row in calls.bad:
            kind, text = failure(row, calls, tmp_path)
            assert issubclass(kind, row.error), f"{row.call}: {kind.__name__}: {text}"
            exact = kind.__module__.split(".")[0] not in OWN or kind is row.error
            assert exact, f"{row.call}: {kind.__name__} for {row.error.__name__}: {text}"
            for word in row.words:
                assert word in text, f"{row.call}: {word!r} is not in {text!r}"
            for raw in RAW:
                assert raw not in text or raw in row.words, f"{row.call}: {text}"
            if row.repair is not None:
                repaired(row, text, calls, tmp_path)
            run(calls.good, calls, tmp_path)
            assert ad.devices() == devices, row.call
        array = ad.device_put(X, ad.NamedSharding(ad.make_mesh((8,), ("x",)), ad.P("x")))
        assert np.array_equal(np.asarray(array), X)
        array.delete()
        gc.collect()
        assert in_use() == before


def test_the_table_is_as_big_as_it_was():
    assert len(ROWS) >= 1720
    assert len({row.call + calls.where for calls in TABLE.values() for row in calls.bad}) == len(ROWS)
    assert sum(row.repair is not None for row in ROWS) >= 112


def test_every_function_has_three_rows():
    rows = collections.Counter()
    for calls in TABLE.values():
        rows[calls.name] += len(calls.bad)
    assert [name for name, count in rows.items() if count < 3] == []


def takes_arguments(function):
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        signature = re.match(r"\w+\((.*)\)", (getattr(function, "__doc__", None) or "").split("\n")[0])
        parameters = re.findall(r"(?:^|, )\*{0,2}(\w+)", signature.group(1)) if signature else []
    return bool([each for each in parameters if each != "self"])


DUNDERS = ("__call__", "__getitem__", "__setitem__", "__contains__", "__array__", "__dlpack__")


def public():
    """(names, object) of each public function, class and method that takes arguments."""
    modules, seen, found = [("", ad)], set(), {}
    for prefix, module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, types.ModuleType):
                if value.__name__.startswith("artifex_devices") and value not in seen:
                    seen.add(value)
                    modules.append((f"{prefix}{name}.", value))
            elif callable(value) and getattr(value, "__module__", "").split(".")[0] == "artifex_devices":
                found.setdefault(id(value), ([], value))[0].append(prefix + name)
    for labels, value in list(found.values()):
        if not inspect.isclass(value):
            if takes_arguments(value):
                yield labels, value
            continue
        if issubclass(value, BaseException):
            continue
        yield labels, value
        for name, method in vars(value).items():
            if name.startswith("_") and name not in DUNDERS:
                continue
            bound = getattr(value, name, None)  # None: a name that is only a hint
            if not isinstance(method, property) and callable(bound) and takes_arguments(bound):
                yield [f"{label}.{name}" for label in labels], bound
    config = ad.config
    yield ["config.update"], config.update


def test_every_public_function_is_in_a_table():
    covered = {calls.name for calls in TABLE.values()}
    wanted, missing, short = set(), [], {}
    for labels, _ in public():
        wanted.update(labels)
        lasts = frozenset(label.rsplit(".", 1)[-1] for label in labels)
        short.update(dict.fromkeys(labels, lasts))
        if not covered & set(labels) and not set(EXEMPT) & set(labels):
            missing.append(labels[0])
    assert sorted(missing) == []
    assert sorted(set(EXEMPT) - wanted) == []
    for name in covered:
        operator.attrgetter(name)(ad)  # no table is of what is not public any more
    for calls in TABLE.values():
        words = short.get(calls.name, {calls.name.rsplit(".", 1)[-1]})
        if not any(word.startswith("__") for word in words):
            assert calls.where or any(word in row.call for row in calls.bad for word in words), calls.name
