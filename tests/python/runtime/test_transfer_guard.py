# SPDX-License-Identifier: Apache-2.0
"""Transfer guards: what each level refuses and logs, where a level comes from, and that nothing moves when refused."""

from __future__ import annotations

import logging
import threading

import artifex_devices as ad
import numpy as np
import pytest
from many_threads import INHERITS_CONTEXT

GUARD_OPTIONS = [name for name in ad.config.values if name.startswith("jax_transfer_guard")]


@pytest.fixture
def options():
    """Gives the process's options back as they were."""
    before = {name: ad.config.read(name) for name in GUARD_OPTIONS}
    yield
    for name, value in before.items():
        ad.config.update(name, value)


def test_a_put_to_where_the_array_is_is_not_a_transfer(line, devices):
    cut = ad.NamedSharding(line, ad.P("x"))
    whole = ad.NamedSharding(line, ad.P())
    x = ad.device_put(np.arange(8.0), cut)
    replicated = ad.device_put(np.arange(8.0), whole)
    uncommitted = ad.device_put(np.arange(8.0))
    with ad.transfer_guard("disallow_explicit"):
        assert ad.device_put(x) is x
        assert ad.device_put(x, cut) is x
        assert ad.device_put(uncommitted, devices[0]).committed is True
        assert np.asarray(ad.device_put(replicated, devices[0])).tolist() == list(range(8))
        for target in (whole, devices[0], ad.NamedSharding(ad.Mesh(np.array(devices[::-1]), ("x",)), ad.P("x"))):
            with pytest.raises(ad.errors.TransferGuardError, match="device-to-device"):
                ad.device_put(x, target)
        with pytest.raises(ad.errors.TransferGuardError, match="device-to-device"):
            ad.device_put(x, cut, may_alias=False)


def test_the_refusal_says_what_and_how_to_repair(line, devices):
    placed = ad.device_put(np.ones(8, np.float32), devices[1])
    sharding = ad.NamedSharding(line, ad.P("x"))
    with ad.transfer_guard("disallow_explicit"), pytest.raises(RuntimeError) as caught:
        ad.device_put({"w": np.ones((8, 2), np.float32)}, sharding)
    assert type(caught.value) is ad.errors.TransferGuardError
    assert isinstance(caught.value, ad.errors.JaxRuntimeError)
    assert str(caught.value) == (
        "leaf ['w']: device_put: disallowed explicit host-to-device transfer of a (8, 2) float32 from a numpy.ndarray "
        f"of the host to {sharding!r}; expected a level that allows explicit transfers, got the guard level "
        '"disallow_explicit"; put it under `with transfer_guard_host_to_device("allow"):`'
    )
    with ad.transfer_guard("disallow"), pytest.raises(ad.errors.TransferGuardError) as caught:
        placed + np.ones(8, np.float32)
    assert str(caught.value) == (
        "add: disallowed implicit host-to-device transfer of a (8,) float32 from host to "
        f"{placed.sharding!r}; expected an explicit transfer, got the guard level "
        '"disallow"; move the data by device_put first, or put it under '
        '`with transfer_guard_host_to_device("allow"):`'
    )


def test_a_refused_put_leaves_nothing(settled, nothing_left, devices):
    source = ad.device_put(np.ones(4), devices[0])
    with ad.transfer_guard("disallow_explicit"), ad.transfers.record() as report:
        for call in (
            lambda: ad.device_put([source, np.ones(3)], devices[0]),
            lambda: ad.device_put(source, devices[1], donate=True),
            lambda: ad.device_put(np.ones(3), may_alias=True),
        ):
            with pytest.raises(ad.errors.TransferGuardError):
                call()
    assert not source.is_deleted()
    assert report.bytes() == 0


def test_directions_are_apart(devices):
    x = ad.device_put(np.ones(4), devices[0])
    with ad.transfer_guard_host_to_device("disallow_explicit"):
        assert ad.device_put(x, devices[1]).devices() == {devices[1]}
        with pytest.raises(ad.errors.TransferGuardError):
            ad.device_put(np.ones(4))
    with ad.transfer_guard_device_to_device("disallow_explicit"):
        assert ad.device_put(np.ones(4)).committed is False
        with pytest.raises(ad.errors.TransferGuardError):
            ad.device_put(x, devices[1])


def test_an_error_inside_ends_the_scope():
    with pytest.raises(KeyError), ad.transfer_guard("disallow_explicit"):
        raise KeyError
    ad.device_put(1.0)


def test_a_guard_decorates_and_can_be_entered_again():
    guard = ad.transfer_guard("disallow_explicit")

    @guard
    def place(value, *, depth):
        """Places."""
        return ad.device_put(value) if depth == 0 else place(value, depth=depth - 1)

    assert place.__doc__ == "Places."
    for _ in range(2):
        with pytest.raises(ad.errors.TransferGuardError):
            place(1.0, depth=3)
        ad.device_put(1.0)
    with guard, guard:
        assert ad.config.jax_transfer_guard == "disallow_explicit"
    assert ad.config.jax_transfer_guard is None


def in_a_thread(call):
    """What the call gives, or raises, in a new thread."""
    out = []

    def run():
        try:
            out.append(call())
        except Exception as error:
            out.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return out[0]


def test_a_new_thread_has_no_scope_but_the_processs_setting(options):
    with ad.transfer_guard("disallow_explicit"):
        expected = ad.errors.TransferGuardError if INHERITS_CONTEXT else ()
        assert in_a_thread(lambda: ad.device_put(1.0).shape) == expected
    ad.config.update("jax_transfer_guard", "disallow_explicit")
    assert in_a_thread(lambda: ad.device_put(1.0).shape) is ad.errors.TransferGuardError
    with ad.transfer_guard("allow"):
        ad.device_put(1.0)


def test_one_guard_object_in_many_threads():
    guard = ad.transfer_guard("disallow_explicit")
    barrier = threading.Barrier(4)
    refused = []

    def run():
        with guard:
            barrier.wait(60)
            try:
                ad.device_put(1.0)
            except ad.errors.TransferGuardError:
                refused.append(True)
            barrier.wait(60)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == [True] * 4


def test_scopes_are_left_in_reverse_order():
    outer, inner = ad.transfer_guard("log"), ad.transfer_guard_host_to_device("allow")
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="transfer_guard: scopes were left in the wrong order"):
        outer.__exit__(None, None, None)
    assert ad.config.jax_transfer_guard == "log"  # nothing was left of it
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    assert ad.config.jax_transfer_guard is None


def test_prefetching_is_in_the_consumers_scope():
    with ad.transfer_guard("disallow_explicit"):
        batches = ad.DevicePlacement().prefetch_to_device(iter([np.ones(3)]))
        with pytest.raises(ad.errors.TransferGuardError):
            next(batches)
        batches.close()


def test_the_option_for_all_sets_each_direction(options):
    ad.config.update("jax_transfer_guard", "log")
    assert {ad.config.read(name) for name in GUARD_OPTIONS} == {"log"}
    ad.config.update("jax_transfer_guard_device_to_device", "disallow_explicit")
    with pytest.raises(ad.errors.TransferGuardError):
        ad.device_put(ad.device_put(1.0), ad.devices()[1])
    ad.config.update("jax_transfer_guard", None)
    assert {ad.config.read(name) for name in GUARD_OPTIONS} == {None}


def test_the_log_names_the_transfer_and_the_users_line(caplog, devices):
    with ad.transfer_guard("log_explicit"):
        ad.device_put([np.ones(2)], devices[3])
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("artifex_devices", logging.WARNING)
    assert record.getMessage() == (
        "device_put: explicit host-to-device transfer of a (2,) float64 from a numpy.ndarray of the host to "
        f"{ad.SingleDeviceSharding(devices[3])!r}"
    )
    assert record.pathname == __file__


def test_a_log_handler_may_place_data_itself(devices):
    class Placing(logging.Handler):
        def __init__(self):
            super().__init__()
            self.placed = []

        def emit(self, record):
            self.placed.append(ad.device_put(np.ones(2)))

    handler = Placing()
    logger = logging.getLogger("artifex_devices")
    logger.addHandler(handler)
    try:
        with ad.transfer_guard("log_explicit"):
            ad.device_put(np.zeros(3), devices[1])
    finally:
        logger.removeHandler(handler)
    (placed,) = handler.placed
    assert np.asarray(placed).tolist() == [1, 1]


@pytest.mark.parametrize("value", ["Disallow", "", 3, True, b"log"])
@pytest.mark.parametrize(
    "guard",
    [
        ad.transfer_guard,
        ad.transfer_guard_host_to_device,
        ad.transfer_guard_device_to_device,
        ad.transfer_guard_device_to_host,
    ],
)
def test_what_is_not_a_level(guard, value):
    with pytest.raises(ValueError, match=rf"{guard.__name__}: jax_.* is .*; expected None or one of allow, log, dis"):
        guard(value)


def test_assembly_and_constraints_are_implicit(line, devices):
    sharding = ad.NamedSharding(line, ad.P("x"))
    source = np.arange(8.0)
    blocks = [ad.device_put(source[i : i + 1], device) for i, device in enumerate(devices)]
    placed = ad.device_put(source, sharding)
    whole = ad.NamedSharding(line, ad.P())
    with ad.transfer_guard("disallow"):
        with pytest.raises(
            ad.errors.TransferGuardError,
            match=r"^the block of cpu:0: make_array_from_callback: disallowed implicit host-to",
        ):
            ad.make_array_from_callback((8,), sharding, lambda index: source[index])
        made = ad.make_array_from_callback((8,), sharding, lambda index: blocks[index[0].start])
        assert np.asarray(made).tolist() == source.tolist()
        with pytest.raises(ad.errors.TransferGuardError, match="device-to-device"):
            ad.make_array_from_callback((8,), whole, lambda index: ad.device_put(source, devices[0]))
        assert ad.make_array_from_single_device_arrays((8,), sharding, blocks).shape == (8,)
        assert ad.make_array_from_process_local_data(sharding, source).shape == (8,)
        assert np.asarray(ad.reshard(placed, whole)).tolist() == source.tolist()
        with pytest.raises(ad.errors.TransferGuardError, match="reshard: disallowed implicit host-to-device"):
            ad.reshard(source, sharding)
        with pytest.raises(ad.errors.TransferGuardError, match="disallowed implicit device-to-device"):
            ad.lax.with_sharding_constraint(ad.device_put(source), sharding)


def test_what_cannot_be_placed_is_that_error_and_not_logged(line, caplog):
    for level in ("disallow_explicit", "log_explicit"):
        with ad.transfer_guard(level), pytest.raises(ad.errors.IndivisibleError):
            ad.device_put(np.ones(7), ad.NamedSharding(line, ad.P("x")))
    assert caplog.records == []


def test_new_arrays_are_not_transfer(devices):
    xp = ad.device_put(1.0).__array_namespace__()
    with ad.transfer_guard("disallow_explicit"), ad.default_device(devices[2]):
        zeros = xp.zeros(3)
        assert zeros.devices() == {devices[2]}
        assert zeros.committed is False
        assert xp.__array_namespace_info__().default_device() == devices[2]
