# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the user's code reach the caller as they are, also those of classes that refuse attributes."""

import dataclasses

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices._base.raised_exceptions import add_note, context_manager, copy_of, set_attribute
from artifex_devices.testing import run_processes
from artifex_devices.xla_client import Client


@dataclasses.dataclass(frozen=True)
class FrozenError(Exception):
    code: int


class UnreadableError(Exception):
    def __getattribute__(self, name):
        raise ValueError(name)

    def __setattr__(self, name, value):
        raise ValueError(name)


class OwnNotesError(Exception):
    __notes__ = property(lambda self: ("mine",))


def failing(*_):
    raise FrozenError(7)


class FailingArray:
    def __array__(self, *args, **kwargs):
        raise FrozenError(8)


def test_notes_are_added_after_those_that_are_there():
    error = ValueError("text")
    for note in ("first", "second"):
        add_note(error, note)
    assert error.__notes__ == ["first", "second"]
    frozen = FrozenError(1)
    add_note(frozen, "note")
    assert frozen.__notes__ == ["note"]


@pytest.mark.parametrize("kind", [UnreadableError, OwnNotesError])
def test_an_exception_that_cannot_be_changed_stays_as_it_is(kind):
    error = kind()
    add_note(error, "note")
    set_attribute(error, "no slot", 1)


def test_a_copy_has_what_the_exception_has():
    try:
        try:
            raise KeyError("cause")
        except KeyError as cause:
            raise FileNotFoundError(2, "missing", "file") from cause
    except FileNotFoundError as raised:
        error = raised
    error.own = 1
    set_attribute(error, "strerror", "missing; write another name")
    add_note(error, "note")
    copied = copy_of(error)
    assert copied is not error
    assert str(copied) == "[Errno 2] missing; write another name: 'file'"
    assert (type(copied), copied.filename, copied.own) == (FileNotFoundError, "file", 1)
    assert copied.__notes__ == ["note"]
    assert copied.__traceback__ is error.__traceback__
    assert (copied.__cause__, copied.__suppress_context__) == (error.__cause__, True)
    copied.with_traceback(None)
    assert error.__traceback__ is not None


class NoCopyError(Exception):
    def __init__(self, code, name):
        super().__init__(f"{name}: {code}")


@pytest.mark.parametrize("create", [UnreadableError, lambda: NoCopyError(1, "x")], ids=["unreadable", "two arguments"])
def test_an_exception_that_cannot_be_copied_stands_for_its_copies(create):
    error = create()
    assert copy_of(error) is error


def test_attributes_are_set_whatever_the_class_allows():
    error = FrozenError(1)
    set_attribute(error, "args", ("text",))
    assert (str(error), error.code) == ("text", 1)


@pytest.mark.parametrize("error", [FrozenError(1), StopIteration(2), KeyboardInterrupt(), GeneratorExit()])
def test_an_exception_passes_through_a_context_unchanged(error):
    steps = []

    @context_manager
    def context(name):
        try:
            yield name
        finally:
            steps.append(name)

    with pytest.raises(type(error)) as caught, context("block") as value:  # noqa: PT012
        assert value == "block"
        raise error
    assert caught.value is error
    assert steps == ["block"]


def test_a_context_may_raise_another_exception():
    @context_manager
    def context():
        try:
            yield
        except FrozenError as error:
            raise ValueError(error.code) from None

    with pytest.raises(ValueError, match="3"), context():
        raise FrozenError(3)


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_a_frozen_exception_of_a_body_reaches_the_caller_with_the_table(executor):
    def body(block):
        if ad.lax.axis_index("x") == 2:
            raise FrozenError(2)
        return ad.lax.psum(block, "x")

    with ad.simulate(4):
        mesh = ad.Mesh(np.array(ad.devices()), ("x",))
        with pytest.raises(FrozenError) as caught:
            ad.shard_map(body, mesh, ad.P("x"), ad.P(), executor=executor)(np.arange(4.0))
    assert caught.value.code == 2
    assert "cpu:2: raised" in caught.value.__notes__[0]


def test_frozen_exceptions_of_processes_callbacks_and_arrays():
    with pytest.raises(FrozenError) as caught:
        run_processes(failing, processes=2)
    assert "raised by simulated process" in caught.value.__notes__[0]
    with ad.simulate(4):
        sharding = ad.NamedSharding(ad.Mesh(np.array(ad.devices()), ("x",)), ad.P("x"))
        client = ad.devices()[0].client
        assert isinstance(client, Client)
        for call in (
            lambda: ad.make_array_from_callback((4,), sharding, failing),
            lambda: ad.device_put(FailingArray()),
            lambda: client.buffer_from_pyval(FailingArray()),
            lambda: ad.jit(failing)(np.zeros(4)),
            lambda: ad.pmap(failing)(np.zeros(4)),
        ):
            with pytest.raises(FrozenError):
                call()
