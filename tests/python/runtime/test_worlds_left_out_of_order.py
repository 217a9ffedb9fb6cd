# SPDX-License-Identifier: Apache-2.0
"""Worlds whose `with` block ends in another world, as that of a generator may."""

from __future__ import annotations

import contextvars
import gc
import sys
import threading
import warnings
import weakref

import artifex_devices as ad
import pytest
from many_threads import INHERITS_CONTEXT


def world_of(count):
    with ad.simulate(count):
        yield ad.device_count()


def test_a_generator_that_is_closed_in_another_world_ends_its_own():
    outside = ad.device_count()
    own = world_of(3)
    assert next(own) == 3
    assert ad.device_count() == 3  # a generator runs in the context of its caller
    with ad.simulate(2):
        with pytest.raises(RuntimeError, match="worlds were left in the wrong order"):
            own.close()
        assert ad.device_count() == 2
    assert ad.device_count() == outside


def test_generators_that_are_closed_in_the_order_in_which_they_began():
    outside = ad.device_count()
    running = [world_of(count) for count in (2, 3, 5)]
    assert [next(each) for each in running] == [2, 3, 5]
    for each in running[:2]:
        with pytest.raises(RuntimeError, match="innermost"):
            each.close()
        assert ad.device_count() == 5
    running[2].close()
    assert ad.device_count() == outside
    with ad.simulate(7):
        assert ad.device_count() == 7
    assert ad.device_count() == outside


def test_a_generator_that_is_collected_in_another_world_ends_its_own(monkeypatch):
    outside = ad.device_count()
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: errors.append(str(raised.exc_value)))
    own = world_of(3)
    next(own)
    with ad.simulate(2):
        del own
        gc.collect()
        assert ad.device_count() == 2
    assert ad.device_count() == outside
    assert len(errors) == 1
    assert "innermost" in errors[0]


def test_a_generator_that_is_closed_in_another_thread_ends_its_world():
    outside = ad.device_count()
    own = world_of(3)
    next(own)
    errors = []

    def close():
        try:
            own.close()
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
    assert len(errors) == (0 if INHERITS_CONTEXT else 1)
    assert ad.device_count() == outside


def test_a_world_that_is_left_in_a_copy_of_its_context_is_left_everywhere():
    outside = ad.device_count()
    scope = ad.simulate(3)
    scope.__enter__()
    contextvars.copy_context().run(scope.__exit__, None, None, None)
    assert ad.device_count() == outside


def test_both_worlds_of_a_simulation_with_cpus_and_gpus_end():
    def own_world():
        with ad.simulate({"cpu": 2, "gpu": 4}):
            yield len(ad.devices("cpu"))

    outside = ad.devices("cpu")
    own = own_world()
    assert next(own) == 2
    with ad.simulate(3):
        with pytest.raises(RuntimeError, match="innermost"):
            own.close()
        assert len(ad.devices()) == 3
    assert ad.devices("cpu") == outside


def test_an_error_of_the_block_is_the_context_of_the_refusal():
    def failing():
        with ad.simulate(3):
            yield 1
            raise KeyError("own")

    outside = ad.device_count()
    own = failing()
    next(own)
    with ad.simulate(2), pytest.raises(RuntimeError, match="innermost") as raised:
        next(own)
    assert isinstance(raised.value.__context__, KeyError)
    raised.value.__context__ = raised.value.__traceback__ = None
    assert ad.device_count() == outside


def test_the_memory_of_a_world_that_was_left_out_of_order_is_released():
    own = world_of(3)
    next(own)
    client = weakref.ref(ad.devices()[0].client)
    with ad.simulate(2):
        with pytest.raises(RuntimeError, match="innermost"):
            own.close()
        del own
    gc.collect()
    assert client() is None


def test_a_world_that_is_entered_by_a_method_stays_open():
    def enter():
        ad.simulate(3).__enter__()  # the object is released at once
        with ad.simulate(2):
            pass
        return ad.device_count()

    assert contextvars.Context().run(enter) == 3


def test_a_world_that_is_dropped_warns_at_its_line():
    with pytest.warns(UserWarning, match=r"the world was not opened; write `with ad\.simulate\(4\):` around") as seen:
        ad.simulate(4)
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ad.simulate(4):
            pass
        ad.simulate(2)(len)
        with pytest.raises(ValueError, match="simulate"):
            ad.simulate("")
        gc.collect()
