# SPDX-License-Identifier: Apache-2.0
"""Programs that Ctrl-C interrupts, or that the system refuses a thread or memory."""

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import P, _core, lax
from artifex_devices._base.daemon_thread import DaemonThread
from artifex_devices._spmd import threaded

X = np.arange(32, dtype=np.float32).reshape(8, 4)


@pytest.fixture(autouse=True)
def eight_devices():
    with ad.simulate(8):
        yield


def test_a_thread_that_cannot_be_started_is_the_error_of_the_call(monkeypatch):
    ran, started = [], []
    start = DaemonThread.start

    def start_three(thread):
        if thread.name == "artifex-participant":
            if len(started) == 3:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    def body(block):
        ran.append(block)
        return block + lax.psum(block, "x")

    mesh = ad.Mesh(np.array(ad.devices()), ("x",))
    f = ad.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), executor="threads")
    threaded.shutdown()  # else threads of earlier calls are used
    with monkeypatch.context() as patch:
        patch.setattr(DaemonThread, "start", start_three)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            f(X)
    assert (len(started), ran) == (3, [])
    np.testing.assert_array_equal(np.asarray(f(X)), X + X.sum(0))
    assert len(ran) == 8
    assert all(thread.is_alive() for thread in started)  # they were used by the second call


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_ctrl_c_as_a_collective_completes_is_the_error_of_the_call(monkeypatch, executor):
    """The bodies that have their results by then must not hide it by errors of their own."""

    def interrupted():
        raise KeyboardInterrupt

    f = ad.shard_map(
        lambda block: lax.psum(lax.psum(block, "x") * 2, "x"),
        mesh=ad.Mesh(np.array(ad.devices()), ("x",)),
        in_specs=P("x"),
        out_specs=P("x"),
        executor=executor,
    )
    with monkeypatch.context() as patch:
        patch.setattr(_core.internal, "is_tracing", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(X)
    np.testing.assert_array_equal(np.asarray(f(X)), np.tile(X.sum(0) * 16, (8, 1)))


@pytest.mark.parametrize("executor", ["cooperative", "threads"])
def test_ctrl_c_in_a_body_comes_before_errors_of_others(executor):
    def body(block):
        if lax.axis_index("x") == 5:
            raise KeyboardInterrupt
        try:
            return lax.psum(block, "x")
        finally:
            raise ValueError("on the way out")

    f = ad.shard_map(
        body, mesh=ad.Mesh(np.array(ad.devices()), ("x",)), in_specs=P("x"), out_specs=P("x"), executor=executor
    )
    with pytest.raises(KeyboardInterrupt):
        f(X)
