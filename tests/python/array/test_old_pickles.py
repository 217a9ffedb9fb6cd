# SPDX-License-Identifier: Apache-2.0
"""Pickles that versions of this library wrote (tools/make_pickles.py) are read, each as what is made now."""

import dataclasses
import functools
import importlib
import inspect
import io
import pickle
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import layout, unpickle, xla_client

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import make_pickles  # noqa: E402

FILES = sorted(make_pickles.DATA.glob("*/*.pickle"))


def alike(found, made, where=""):
    """Asserts that both are of one class and equal in all parts."""
    assert type(found) is type(made), where
    if isinstance(made, ad.Array):
        assert (found.dtype, found.sharding, found.committed) == (made.dtype, made.sharding, made.committed), where
        assert found.format == made.format, where
        assert np.asarray(found).tobytes() == np.asarray(made).tobytes(), where
    elif dataclasses.is_dataclass(made) and not isinstance(made, type):
        for field in dataclasses.fields(made):
            alike(getattr(found, field.name), getattr(made, field.name), f"{where}.{field.name}")
    elif isinstance(made, Mapping):
        assert list(found) == list(made), where
        for key in made:
            alike(found[key], made[key], f"{where}[{key!r}]")
    elif isinstance(made, (list, tuple)):
        assert len(found) == len(made), where
        for i, (one, other) in enumerate(zip(found, made, strict=True)):
            alike(one, other, f"{where}[{i}]")
    elif isinstance(made, np.ndarray):
        assert (found.dtype, found.tobytes()) == (made.dtype, made.tobytes()), where
    elif isinstance(made, float) and where.startswith("training"):  # fitted, which depends on the order of sums
        assert found == pytest.approx(made, rel=1e-9, nan_ok=True), where
    elif isinstance(made, BaseException):
        assert found.args == made.args, where
    elif isinstance(made, functools.partial):
        alike((found.func, found.args, found.keywords), (made.func, made.args, made.keywords), where)
    elif isinstance(made, ad.Mesh) and not made.empty and made.devices.flat[0].platform != "cpu":
        # Devices of a simulated cluster are those of one object; this is another, equal one.
        assert found.devices.flat[0].client is not made.devices.flat[0].client, where
        alike((found.axis_names, found.device_ids), (made.axis_names, made.device_ids), where)
        assert repr(found.devices.flat[:]) == repr(made.devices.flat[:]), where
    elif isinstance(made, xla_client.DeviceTopology):  # its version names the libraries of the writer
        alike(
            (found.platform, found.device_descriptions, str(found)),
            (made.platform, made.device_descriptions, str(made)),
        )
    elif isinstance(made, layout.Format):
        alike((found.layout, found.sharding), (made.layout, made.sharding), where)
    else:
        assert found == made, where


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_pickled_is_what_is_made_now(path):
    made = make_pickles.values()[path.stem]
    with path.open("rb") as file:
        for _ in make_pickles.PROTOCOLS:
            alike(pickle.load(file), made, path.stem)
        assert file.read() == b""


PUBLIC = (
    *("audit", "batch_measurement", "calibration", "checkpoint", "checkpoint.rules", "cluster", "device_manager"),
    *("device_placement", "distributed", "doctor", "errors", "layout", "memory", "mesh", "mesh_utils", "models"),
    *("planner", "prefetch", "roofline", "sharding", "tree_util", "xla_client"),
)


def public_classes():
    found = {}
    for name in ("", *(f".{each}" for each in PUBLIC)):
        module = importlib.import_module(f"artifex_devices{name}")
        for each in getattr(module, "__all__", None) or [word for word in vars(module) if not word.startswith("_")]:
            value = getattr(module, each)
            if inspect.isclass(value) and value.__module__.startswith("artifex_devices"):
                found[value] = each
    return found


class Wary(pickle.Unpickler):
    """Finds what its list allows, as careful programs do: exact pairs of a module and a name."""

    ALLOWED = frozenset(
        [
            *(("builtins", name) for name in ("bytes", "dict", "list", "max", "tuple", "type")),
            *(("numpy", "dtype"), ("numpy", "ndarray"), ("_codecs", "encode")),  # of bytes, in protocol 2
            *(("numpy._core.multiarray", "_reconstruct"), ("numpy.core.multiarray", "_reconstruct")),
            *(("numpy._core.numeric", "_frombuffer"), ("numpy.core.numeric", "_frombuffer")),
            *(("ml_dtypes", name) for name in ("bfloat16", "float8_e4m3fn", "int4")),
            *(("artifex_devices.unpickle", name) for name in unpickle.__all__),
            *(("artifex_devices.accelerators", name) for name in ("Source", "accelerator")),
            ("artifex_devices.tree_util", "default_registry"),
            *((kind.__module__, kind.__qualname__) for kind in public_classes()),
        ]
    )

    def find_class(self, module, name):
        if (module.replace("__builtin__", "builtins"), name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return super().find_class(module, name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_unpickler_with_a_list_of_what_it_allows_reads_them(path):
    made = make_pickles.values()[path.stem]
    with path.open("rb") as file:
        for _ in make_pickles.PROTOCOLS:
            alike(Wary(file).load(), made, path.stem)
    for protocol in make_pickles.PROTOCOLS:  # and what is written now
        alike(Wary(io.BytesIO(pickle.dumps(made, protocol))).load(), made, path.stem)


@pytest.mark.parametrize("other", [eval, getattr, exec, functools.partial, subprocess.run, __import__])
def test_it_refuses_what_is_not_on_its_list(other):
    for protocol in make_pickles.PROTOCOLS:
        with pytest.raises(pickle.UnpicklingError, match="is not allowed"):
            Wary(io.BytesIO(pickle.dumps(other, protocol))).load()


GUIDE = (ROOT / "docs" / "how_to" / "pickle_threads_and_forks.md").read_text(encoding="utf-8")
ESCAPES = [
    "__builtins__",
    "__builtins__.__getitem__",
    "__getattr__",
    "__getattr__.__globals__",
    "__getattr__.__globals__.get",
    "__getattr__.__builtins__.__getitem__",
    "__loader__.get_data",
    "__spec__.loader.get_data",
    "internal",
    "importlib",
    "importlib._bootstrap_external._os.system",
    "array.__self__",
    "array.__class__.__base__.__subclasses__",
    "calibration.__globals__",
    "calibration.__builtins__",
    "calibration.__globals__.__class__",
    "Aux.__init__.__globals__",
    "Aux.__reduce__.__globals__",
    "PlacedMesh.__init__.__builtins__.__getitem__",
]


def unpickler_of_the_guide():
    """The class in the code block of the guide."""
    (block,) = (text for text in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "find_class" in text)
    names = {"pickle": pickle, "x": ad.device_put(np.arange(8.0))}
    exec(block, names)  # the assertions of the guide hold too
    return names["CarefulUnpickler"]


def named(module, name):
    """A pickle of one name, which may have dots."""
    parts = b"".join(pickle.SHORT_BINUNICODE + bytes([len(text)]) + text.encode() for text in (module, name))
    return pickle.PROTO + b"\4" + parts + pickle.STACK_GLOBAL + pickle.STOP


def called(module, name, argument):
    """A pickle of a call with one text."""
    text = pickle.SHORT_BINUNICODE + bytes([len(argument)]) + argument.encode() + pickle.TUPLE1
    return named(module, name)[:-1] + text + pickle.REDUCE + pickle.STOP


@pytest.mark.parametrize("name", ESCAPES)
def test_no_dotted_or_unlisted_name_of_the_module_passes_a_list_of_exact_names(name):
    data = named("artifex_devices.unpickle", name)
    for unpickler in (Wary, unpickler_of_the_guide()):
        with pytest.raises(
            pickle.UnpicklingError, match=rf"^artifex_devices\.unpickle\.{re.escape(name)} is not allow"
        ):
            unpickler(io.BytesIO(data)).load()


def test_the_module_has_no_module_as_an_attribute(tmp_path):
    for name in unpickle.__all__:
        assert getattr(unpickle, name) is not None
    names = vars(unpickle)
    assert [name for name, value in names.items() if inspect.ismodule(value)] == []
    assert sorted(name for name in names if not name.startswith("_")) == sorted(unpickle.__all__)
    ran = tmp_path / "ran"
    data = called("artifex_devices.unpickle", "importlib._bootstrap_external._os.system", f"touch {ran}")
    with pytest.raises(AttributeError):
        pickle.loads(data)  # also where a program allows the whole module
    assert not ran.exists()


def test_the_unpickler_of_the_guide_loads_arrays_and_refuses_other_calls():
    careful = unpickler_of_the_guide()
    assert [name for _, name in careful.ALLOWED if "." in name] == []
    arrays = make_pickles.values()["arrays"]
    for key in ("float32", "bool", "uncommitted", "one device"):
        for protocol in (3, 4, 5):
            alike(careful(io.BytesIO(pickle.dumps(arrays[key], protocol))).load(), arrays[key], key)
    for other in (eval, getattr, subprocess.run, __import__):
        with pytest.raises(pickle.UnpicklingError, match="is not allowed"):
            careful(io.BytesIO(pickle.dumps(other))).load()


def test_this_version_has_written_all():
    """A value that is added later goes into the next version's folder, and is checked from then on."""
    versions = sorted({path.parent.name for path in FILES})
    assert versions == sorted({*versions, ad.__version__}), "python tools/make_pickles.py"
    latest = {path.stem for path in FILES if path.parent.name == ad.__version__}
    assert latest == set(make_pickles.values())


def test_each_is_pickled_as_what_it_is_in_each_protocol():
    for name, value in make_pickles.values().items():
        for protocol in make_pickles.PROTOCOLS:
            alike(pickle.loads(pickle.dumps(value, protocol)), value, name)


def test_differences_are_seen():
    made = make_pickles.values()
    for name, value in made.items():
        for other in (*made.values(), None):
            if other is not value:
                with pytest.raises(AssertionError):
                    alike(other, value, name)
    with pytest.raises(AssertionError, match="steps"):
        alike(dataclasses.replace(made["plans"][0], steps=()), made["plans"][0])


def test_a_version_is_written_once():
    done = subprocess.run([sys.executable, make_pickles.__file__], capture_output=True, text=True, timeout=60)
    caught = f"make_pickles: {ad.__version__} is there already; pickles of a version are written once\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, caught, "")


NOT_PICKLED = {
    "a handle of this process": {
        *("Client", "DeviceManager", "DeviceMeshManager", "DevicePlacement", "HostCopy", "JAXDeviceManager", "Machine"),
        *("Manager", "MemoryReport", "Prefetcher", "Reader", "SaveFuture", "Shard"),
    },
    "a scope": {
        *("default_device", "disable_jit", "enable_x64", "set_mesh", "simulate", "transfer_guard", "use_abstract_mesh"),
        *(f"transfer_guard_{way}" for way in ("device_to_device", "device_to_host", "host_to_device")),
    },
    "has no state": {"AutoLayout", "CUDADetector", "DeviceDetector", "MemoryMeter", "Sharding"},
    "made when asked of a plan": {"Copy"},
}


def classes_in(value, found):
    """Of all parts."""
    found.add(type(value))
    if dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    for part in parts:
        classes_in(part, found)
    return found


def test_each_public_class_is_pickled_or_said_not_to_be():
    pickled = classes_in(list(make_pickles.values().values()), set())
    excused = set().union(*NOT_PICKLED.values())
    public = public_classes()
    missing = sorted(name for kind, name in public.items() if kind not in pickled and name not in excused)
    assert missing == [], "add a value to tools/make_pickles.py, or say why there is none"
    assert sorted(name for kind, name in public.items() if kind in pickled and name in excused) == []
    assert sorted(excused - set(public.values())) == []


def test_a_pickle_that_is_cut_off_is_an_error():
    for name, value in make_pickles.values().items():
        data = pickle.dumps(value)
        for size in {0, 1, len(data) // 3, len(data) // 2, len(data) - 1}:
            with pytest.raises((EOFError, pickle.UnpicklingError)):
                pickle.load(io.BytesIO(data[:size]))
            assert name


@pytest.mark.parametrize("change", ["missing", "too much", "no dict", "another type"])
def test_a_state_that_does_not_fit_is_an_error_that_names_the_class(change):
    values = make_pickles.values()
    for value in (values["step_plan"], values["suggestions"].options[0], values["plans"][0]):
        state = value.__getstate__()
        first = {"StepPlan": "rules", "Suggestion": "mesh", "ReshardPlan": "bytes_by_link"}[type(value).__name__]
        changed = {
            "missing": {name: part for name, part in state.items() if name != first},
            "too much": {**state, "more": 1},
            "no dict": [state],
            "another type": {**state, first: 5},
        }[change]
        with pytest.raises(ValueError, match=f"^{type(value).__name__}: .*pickle"):
            type(value).__new__(type(value)).__setstate__(changed)


def test_a_suggestion_whose_mesh_is_of_other_devices_is_an_error():
    option = make_pickles.values()["suggestions"].options[0]
    shape, names, ids = option.__getstate__()["mesh"]
    for mesh in ((shape, names, [10**9 for _ in ids]), ((3, 5), names, ids), (shape, ("a", "a"), ids), (1, 2)):
        with pytest.raises(
            ValueError, match=r"^Suggestion: in the pickle's state mesh is not a shape.*pickle it again"
        ):
            type(option).__new__(type(option)).__setstate__({**option.__getstate__(), "mesh": mesh})


@pytest.mark.parametrize(
    ("node", "leaves"),
    [
        ((list, None, 2), 3),
        ((list, None, -1), -1),
        ((dict, ("a",), 2), 2),
        ((dict, ("a",), "x"), 1),
        ((int, None, 1), 1),
        ((type(None), None, 1), 1),
        ((list, None), 0),
        (5, 1),
        (None, True),
        ((list, None, ((list, None, 1), 5)), 2),
    ],
)
def test_a_forged_structure_of_a_tree_is_an_error(node, leaves):
    make, _ = ad.tree.structure([1]).__reduce__()
    with pytest.raises(
        ValueError, match=r"^PyTreeDef: the pickle's nodes or its number of leaves do not form a structure"
    ):
        make(node, leaves)


@pytest.mark.parametrize("caught", [None, [1], {"a": 1}, {1: -1}, {1: 2.5}, {-1: 1}, {1: 2**60}, {1: True}])
def test_forged_bytes_by_device_are_an_error(caught):
    make, _ = make_pickles.values()["plans"][0].bytes_by_device.__reduce__()
    with pytest.raises(ValueError, match=r"^(DeviceBytes: the counts|a device id|a number of bytes)"):
        make(caught)


LONE = "\ud800"  # half a character: has no UTF-8
WRONG_STATES = {
    "array without parts": ("array", (), TypeError, "unpickle: the state of an Array is damaged"),
    "array of a sharding": ("array", ([1.0], 5, True), ValueError, "device_put: device is 5 (int)"),
    "array of another layout": ("array", ([1.0], None, True, "{8}"), ValueError, "Layout: "),
    "assignment of text": (
        "device_assignment",
        ("a",),
        TypeError,
        "the state of a DeviceAssignment is damaged",
    ),
    "assignment of bytes": ("device_assignment", (b"a",), ValueError, "DeviceAssignment"),
    "topology of text": ("device_topology", ("a",), TypeError, "unpickle: the state of a DeviceTopology is damaged"),
    "topology of bytes": ("device_topology", (b"a",), ValueError, "DeviceTopology"),
    "list of no ids": ("device_list", ("cpu", 3), TypeError, "unpickle: the state of a DeviceList is damaged"),
    "list of an edge": ("device_list", ("cpu", [2**63 - 1]), ValueError, "unpickle: device cpu:922337203"),
    "device of an edge": (
        "device",
        ("cpu", 2**63 - 1),
        ValueError,
        "unpickle: device cpu:9223372036854775807 is",
    ),
    "device below": ("device", ("cpu", -(2**63)), ValueError, "unpickle: device cpu:-9223372036854775808 is not"),
    "device beyond": ("device", ("cpu", 2**63), TypeError, "unpickle: the state of a Device is damaged"),
    "device of half a character": ("device", (LONE, 0), TypeError, "unpickle: the state of a Device is damaged"),
    "memory of another kind": ("memory", ("cpu", 0, "vram"), RuntimeError, 'memory: kind "vram" is unknown'),
    "layout of a number": ("layout", (5,), TypeError, "unpickle: the state of a Layout is damaged"),
    "layout of other text": ("layout", ("{",), ValueError, "Layout"),
    "cluster of nothing": ("cluster", ({},), TypeError, "unpickle: the state of a Cluster is damaged; expected"),
    "cluster of a list": ("cluster", ([],), TypeError, "unpickle: the state of a Cluster is damaged"),
    "mesh of text": ("mesh", ("cpu", ["a"], ("x",), None), TypeError, "unpickle: the state of a Mesh is"),
    "mesh of large ids": ("mesh", ("cpu", [2**70], ("x",), None), TypeError, "the state of a Mesh is"),
    "mesh without names": ("mesh", ("cpu", [0], (), None), ValueError, "Mesh: "),
    "sharding of a class": (
        "named_sharding",
        (dict, None, None, None, None),
        TypeError,
        "unpickle: the state of a NamedSharding is damaged",
    ),
    "sharding of a function": (
        "single_device_sharding",
        (print, 1, None),
        TypeError,
        "unpickle: the state of a SingleDeviceSharding is damaged",
    ),
    "sharding of no device": (
        "single_device_sharding",
        (ad.SingleDeviceSharding, 1, None),
        TypeError,
        "unpickle: the state of a SingleDeviceSharding is damaged",
    ),
    "sharding of no mesh": (
        "named_sharding",
        (ad.NamedSharding, None, ad.P(), None, None),
        TypeError,
        "unpickle: the state of a NamedSharding is damaged",
    ),
}


@pytest.mark.parametrize("row", WRONG_STATES.values(), ids=WRONG_STATES)
def test_a_wrong_state_raises_a_clear_error(row):
    name, state, error, words = row

    class Forged:
        def __reduce__(self):
            return getattr(importlib.import_module("artifex_devices.unpickle"), name), state

    for protocol in make_pickles.PROTOCOLS:
        with pytest.raises(error, match=re.escape(words)) as caught:
            pickle.loads(pickle.dumps(Forged(), protocol))
        assert type(caught.value) is error


def test_derived_shardings_and_names_of_any_text_come_back():
    mesh = ad.Mesh(np.array(ad.devices()), (LONE,))
    for value in (ad.P(LONE), mesh, DerivedSharding(mesh, ad.P(LONE))):
        again = pickle.loads(pickle.dumps(value))
        assert (type(again), again) == (type(value), value)
    assert (tuple(ad.P(LONE)), repr(ad.P(LONE))) == ((LONE,), "P('\\ud800',)")
    assert ad.P(LONE) != ad.P("\\ud800")


class DerivedSharding(ad.NamedSharding):
    """A class of users, which its pickles name."""
