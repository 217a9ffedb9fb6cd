# SPDX-License-Identifier: Apache-2.0
"""Objects of callers whose special methods raise, in place of each argument of each public function.

Where a message wants their repr and that raises, the message is there all the same; what other methods raise is the
caller's own and arrives unchanged.
"""

import ast
import inspect
import operator
import re
import warnings

import artifex_devices as ad
import pytest
from bad_input.areas import AREAS
from bad_input.world import names

TEXTS = ("__repr__", "__str__", "__format__")
METHODS = ("__index__", "__array__", "__len__", "__iter__", "__getitem__", "__eq__", "__hash__", "__bool__", "__call__")
ALSO = ("__int__", "__float__", "__contains__", "__enter__", "__fspath__", "__dlpack__", "__array_ufunc__", "__lt__")


GIVEN = ((), *((each,) for each in METHODS), (*METHODS, *ALSO))


class OwnError(Exception):
    """What the caller's methods raise."""


def odd(*methods):
    """An object of which these methods raise OwnError, and each text of it; `raised` has what it has raised."""
    raised = []

    def method(name):
        def call(self, *arguments, **options):
            error = OwnError(name)
            if name not in TEXTS:
                raised.append(error)
            raise error

        return call

    kind = type("Odd", (), {name: method(name) for name in (*TEXTS, *methods)})
    return kind(), raised


class Put(ast.NodeTransformer):
    """Puts one node in place of another."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def parameters_of(name):
    """Names of a function's parameters, from its signature or the first line of its docstring."""
    function = operator.attrgetter(name)(ad)
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        line = (function.__doc__ or "").split("\n")[0]
        return re.findall(r"(?:\(|, )\*{0,2}(\w+)(?=[:,=)])", line)
    return [each.name for each in found if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def replaced(calls):
    """(parameter, text) of the table's good call with ODD for each of its arguments, and for each other parameter."""
    last = "P" if calls.name == "PartitionSpec" else calls.name.rsplit(".", 1)[-1]
    count = 0
    while True:
        tree = ast.parse(calls.good, mode="eval")
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        found = [node for node in found if last in (getattr(node.func, "attr", ""), getattr(node.func, "id", ""))]
        if not found:
            return
        call = found[0]
        places = [str(i) for i in range(len(call.args))] + [each.arg for each in call.keywords if each.arg]
        known = [each for each in parameters_of(calls.name) if each != "self" and not each.startswith("_")]
        places += [name for name in known[len(call.args) :] if name not in places]
        if count == len(places):
            return
        place = places[count]
        count += 1
        new = ast.Name("ODD", ast.Load())
        if place.isdecimal():
            call.args[int(place)] = new
        elif place in [each.arg for each in call.keywords]:
            next(each for each in call.keywords if each.arg == place).value = new
        else:
            call.keywords.append(ast.keyword(place, new))
        name = known[int(place)] if place.isdecimal() and int(place) < len(known) else place
        yield name, ast.unparse(tree)


def is_numpys(name, text):
    """Whether NumPy itself asks for the repr, for a message of its own: of an argument that should be a dtype."""
    return name.endswith("dtype") or text in (
        "client.get_default_layout(ODD, (4, 4), d)",
        "put(X).astype(ODD)",
    )


# They call what they are given, and say what came of it in their own words.
CALLERS = {"measure_batch_size"}


RAW = ("incompatible function arguments", "incompatible constructor", "Unable to cast", "std::bad_")


def check(name, text, calls, methods, folder):
    """Runs the text; says whether an error that was the caller's own arrived."""
    known = names(folder)
    if calls.where:
        exec(calls.where, known)
    known["ODD"], raised = odd(*methods)
    try:
        eval(text, known)
        return False
    except Exception as error:
        caught = error
    call = f"{text} with {methods}: {type(caught).__name__}"
    if isinstance(caught, OwnError):
        lost = caught.args[0] in TEXTS
        is_formatted = text.startswith("ad.debug.print(")  # which formats its values for the caller
        assert not lost or is_formatted or is_numpys(name, text), (
            f"{call}: its {caught.args[0]} raised, and the message is lost"
        )
        assert lost or any(caught is each for each in raised), f"{call}: {caught!r} is not the one that was raised"
        return not lost
    assert not raised or calls.name in CALLERS, f"{call}: {caught}, but the caller's own error is {raised[-1]!r}"
    assert not [raw for raw in RAW if raw in str(caught)], f"{call}: {caught}"
    return False


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.usefixtures("settled_module")
def test_no_argument_s_repr_costs_the_message_and_no_error_of_the_caller_s_is_lost(area, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = [
            check(name, text, calls, methods, tmp_path)
            for calls in AREAS[area]
            for name, text in replaced(calls)
            for methods in GIVEN
        ]
    assert True in own


def test_there_are_thousands_of_calls():
    texts = [text for tables in AREAS.values() for calls in tables for _, text in replaced(calls)]
    assert len(texts) * len(GIVEN) > 4500


MAIN = {
    "__array__": [
        "ad.device_put(ODD)",
        "ad.device_put([X, ODD])",
        "ad.device_put(ODD, named('x'))",
        "ad.reshard(ODD, named('x'))",
        "list(ad.DevicePlacement().prefetch_to_device(iter([ODD])))",
        "body(lambda x: lax.psum(ODD, 'x'))",
        "np.add(put(X), ODD)",
        "np.concatenate([put(X), ODD])",
        "np.matmul(put(X), ODD)",
        "np.where(put(X) > 0, ODD, 0)",
    ],
    "__index__": [
        "make_mesh((ODD,), ('x',))",
        "named('x').shard_shape((ODD,))",
        "put(X)[ODD]",
        "np.reshape(put(X), (ODD, 8))",
        "np.sum(put(X), axis=ODD)",
        "put(X, 'x').addressable_data(ODD)",
        "client.device_from_local_hardware_id(ODD)",
        "ad.simulate(ODD)",
        "body(lambda x: lax.all_gather(x, 'x', axis=ODD))",
    ],
    "__iter__": [
        "Mesh(devices, ODD)",
        "make_mesh(ODD, ('x',))",
        "make_mesh((8,), ODD)",
        "named('x').shard_shape(ODD)",
        "list(ad.DevicePlacement().prefetch_to_device(ODD))",
        "ad.DeviceMeshManager().create_device_mesh(ODD)",
        "xla_client.get_topology_for_devices(ODD)",
    ],
    "__hash__": ["P(ODD)", "P(('x', ODD))", "Mesh(devices, (ODD,))", "body(lambda x: lax.psum(x, ODD))"],
    "__eq__": ["ad.enable_x64(ODD)"],
}
"""Calls that ask this of the object: what it raises must arrive."""

REFUSED = [
    "ad.device_put(ODD)",
    "ad.device_put(X, ODD)",
    "ad.reshard(ODD, named('x'))",
    "ad.reshard(put(X), ODD)",
    "P([ODD, [1]])",
    "NamedSharding(ODD, P('x'))",
    "NamedSharding(grid, ODD)",
    "NamedSharding(grid, P(ODD))",
    "Mesh([ODD], 'x')",
    "Mesh(devices, 'x', axis_types=ODD)",
    "make_mesh((8,), ('x',), devices=[ODD])",
    "ad.DeviceManager(ODD)",
    "ad.DevicePlacement().place_on_device(X, ODD)",
    "ad.DevicePlacement().distribute_batch(X, ODD)",
    "ad.DeviceMeshManager().create_device_mesh([ODD])",
    "ad.shard_map(ODD, mesh=line, in_specs=P('x'), out_specs=P('x'))",
    "ad.shard_map(lambda x: x, mesh=ODD, in_specs=P('x'), out_specs=P('x'))",
    "ad.shard_map(lambda x: x, mesh=line, in_specs=ODD, out_specs=P('x'))(X)",
    "ad.shard_map(lambda x: x, mesh=line, in_specs=P('x'), out_specs=ODD)(X)",
    "ad.shard_map(lambda x: ODD, mesh=line, in_specs=P('x'), out_specs=P('x'))(X)",
    "ad.pmap(ODD)",
    "ad.pmap(lambda x: x)(ODD)",
    "ad.jit(ODD)",
    "ad.jit(lambda x: x)(ODD)",
    "body(lambda x: lax.psum(ODD, 'x'))",
    "body(lambda x: lax.ppermute(x, 'x', ODD))",
    "ad.DevicePlacement().prefetch_to_device(ODD)",
    "list(ad.DevicePlacement().prefetch_to_device(iter([ODD])))",
    "np.add(put(X), ODD)",
    "np.concatenate([put(X), ODD])",
    "np.reshape(put(X), (8, 8), order=ODD)",
    "ad.distributed.initialize(ODD)",
]
"""Calls that must be refused in words, with the class of the object at least."""

DESCRIPTION = r"(of type|is) Odd|<(Odd|list), whose repr raised OwnError>"


@pytest.mark.parametrize(("method", "call"), [(method, call) for method, calls in MAIN.items() for call in calls])
def test_what_a_method_of_the_caller_s_raises_arrives(method, call, tmp_path):
    known = names(tmp_path)
    known["ODD"], raised = odd(method)
    with pytest.raises(OwnError) as caught:
        eval(call, known)
    assert caught.value in raised
    assert caught.value.args == (method,)


@pytest.mark.parametrize("call", REFUSED)
def test_the_main_functions_say_what_is_wrong_with_an_object_without_a_text(call, tmp_path):
    known = names(tmp_path)
    known["ODD"], _ = odd()
    with pytest.raises((TypeError, ValueError), match=DESCRIPTION) as caught:
        eval(call, known)
    assert re.match(r"[\w().<>]+: ", str(caught.value).removeprefix("leaf (all) of ")), str(caught.value)
