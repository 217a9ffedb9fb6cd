# SPDX-License-Identifier: Apache-2.0
"""The bound on BLAS threads: set for a block, restored however the block ends."""

import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl
from artifex_devices._base import blas_threads as module
from artifex_devices._base.blas_threads import shared_cores


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture
def three():
    """BLAS with three threads, a number that no bound here gives."""
    if not blas_threads():
        pytest.skip("this NumPy's BLAS is none that threadpoolctl can set")
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        yield


def test_the_bound_holds_in_the_block_and_ends_with_it(three):
    with shared_cores(10_000):
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {3}


def test_blocks_inside_and_beside_change_nothing(three):
    with shared_cores(10_000):
        with shared_cores(1):
            assert set(blas_threads()) == {1}
        beside = threading.Thread(target=lambda: shared_cores(1).__enter__())
        beside.start()
        beside.join()
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {3}


def test_a_block_whose_end_was_interrupted_restores_when_it_is_dropped(three):
    block = shared_cores(10_000)
    block.__enter__()  # Ctrl-C as __exit__ begins: its first line never runs
    del block
    assert set(blas_threads()) == {3}
    with shared_cores(10_000):
        assert set(blas_threads()) == {1}  # nobody is left that holds the bound


def test_no_code_runs_when_a_block_that_has_ended_is_dropped(three):
    """Python drops a Ctrl-C that comes in a finalizer."""
    ran = []
    block = shared_cores(10_000)
    with block, shared_cores(1):
        pass
    sys.setprofile(lambda frame, event, _: ran.append(frame.f_code.co_name) if event == "call" else None)
    del block
    sys.setprofile(None)
    assert ran == []


def test_an_error_on_the_way_in_leaves_nothing_set(three, monkeypatch):
    with shared_cores(10_000):
        pass  # the module knows the BLAS libraries from here on

    libraries = [library for library in module._controller.lib_controllers if library.user_api == "blas"]

    class Interrupted:
        """A BLAS library in whose setting Ctrl-C comes."""

        user_api = "blas"

        def __init__(self):
            self.set = []

        def get_num_threads(self):
            return 3

        def set_num_threads(self, number):
            self.set.append(number)
            if number == 1:
                raise KeyboardInterrupt

    interrupted = Interrupted()
    controller = SimpleNamespace(lib_controllers=[*libraries, interrupted])
    monkeypatch.setattr(module, "_controller", controller)
    block = shared_cores(10_000)
    with pytest.raises(KeyboardInterrupt):
        block.__enter__()
    assert interrupted.set == [1, 3]
    assert set(blas_threads()) == {3}
    monkeypatch.undo()
    with shared_cores(10_000):  # `block` lives, and holds nothing
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {3}


@pytest.mark.parametrize("value", [None, "FALSE"])
def test_the_variable_that_threadpoolctl_sets_is_removed_unless_it_was_set_before(value, monkeypatch):
    name = "KMP_DUPLICATE_LIB_OK"
    monkeypatch.delitem(sys.modules, "threadpoolctl", raising=False)
    monkeypatch.setenv(name, value or "")
    if value is None:
        monkeypatch.delenv(name)
    module._new_controller()
    assert os.environ.get(name) == value
