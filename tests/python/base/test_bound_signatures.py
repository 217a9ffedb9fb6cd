# SPDX-License-Identifier: Apache-2.0
"""Signatures of bound classes and functions, and how the defaults of public functions are printed."""

import importlib
import inspect
import pkgutil

import artifex_devices as ad
import pytest
from artifex_devices import _core
from artifex_devices._base.bound_signatures import signature_of


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (ad.Mesh, "(devices, axis_names, axis_types=None)"),
        (ad.AbstractMesh, "(axis_sizes, axis_names, axis_types=None)"),
        (ad.P, "(*args)"),
        (ad.SingleDeviceSharding, "(device: 'Device', *, memory_kind: 'str | None' = None)"),
    ],
)
def test_bound_classes_have_signatures(bound, text):
    assert str(inspect.signature(bound)) == text


def test_a_named_sharding_has_the_parameters_of_its_constructor():
    assert list(inspect.signature(ad.NamedSharding).parameters) == ["mesh", "spec", "memory_kind", "uneven"]


def test_subclasses_and_instances_have_their_own_signatures():
    class Named(ad.NamedSharding):
        def __init__(self, mesh, axis):
            super().__init__(mesh, ad.P(axis))

    assert str(inspect.signature(Named)) == "(mesh, axis)"
    assert not hasattr(ad.P("x"), "__signature__")


def test_a_class_without_a_constructor_has_no_signature():
    with pytest.raises(ValueError, match="no signature found"):
        inspect.signature(ad.Array)


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (ad.Array.addressable_data, "(self, index)"),
        (ad.device_put(0.0).addressable_data, "(index)"),
        (ad.Array.devices, "(self, /)"),  # a fast path
        (ad.device_put(0.0).devices, "()"),
        (ad.Client.local_devices, "(self, process_index=None)"),
        (ad.Machine.from_synthetic, "(description)"),
    ],
)
def test_bound_methods_have_signatures(bound, text):
    assert str(inspect.signature(bound)) == text
    assert "--" not in bound.__doc__


def test_every_public_bound_method_has_a_signature():
    methods = 0
    for cls in vars(_core).values():
        if isinstance(cls, type) and not issubclass(cls, BaseException) and not cls.__name__.startswith("_"):
            for name, member in vars(cls).items():
                if type(member).__name__ in ("instancemethod", "method_descriptor", "staticmethod"):
                    if name.startswith("_"):
                        continue
                    inspect.signature(getattr(cls, name))
                    methods += 1
    assert methods > 60


def test_signatures_of_methods_come_from_the_stub():
    assert str(signature_of("Sharding.shard_shape")) == "(self, global_shape) -> 'tuple[int, ...]'"
    assert str(signature_of("Client.local_devices")) == "(self, process_index: 'int | None' = None) -> 'list[Device]'"
    with pytest.raises(KeyError, match="missing"):
        signature_of("Mesh.missing")


def test_every_bound_constructor_and_method_is_in_the_stub():
    for cls in vars(_core).values():
        if isinstance(cls, type) and not issubclass(cls, BaseException):
            for name, member in vars(cls).items():
                if type(member).__name__ == "instancemethod" and not name.startswith("_"):
                    assert next(iter(signature_of(f"{cls.__name__}.{name}").parameters)) == "self"


def test_defaults_are_printed_as_names():
    assert str(inspect.signature(ad.shard_map).parameters["out_specs"]) == "out_specs: 'Any' = UNSPECIFIED"
    seen = 0
    for found in pkgutil.iter_modules(ad.__path__, "artifex_devices."):
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isfunction(value) and value.__module__.startswith("artifex_devices"):
                text = str(inspect.signature(value))
                assert " at 0x" not in text, (module, name)
                assert "<class" not in text, (module, name)
                seen += 1
    assert seen > 150
