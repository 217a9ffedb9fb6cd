# SPDX-License-Identifier: Apache-2.0
"""measure_batch_size on this machine's clock and memory: sharded Arrays, limits of devices, Ctrl-C, progress."""

import gc
import io
import mmap
import os
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices.batch_measurement.memory import ProcessMemory
from artifex_devices.batch_measurement.probe import BatchProbe
from artifex_devices.batch_measurement.report import progress_on

ROW = 1024
QUICK = {"progress": False, "max_seconds": 20, "probe_seconds": 0.0, "min_calls": 1}


def rows(size):
    return np.ones((size, ROW), np.uint8)


def on_first(batch):
    return ad.device_put(batch, ad.devices()[0])


def test_bytes_of_devices_are_counted_exactly():
    with ad.simulate(2):
        kept = ad.device_put(np.zeros(ROW, np.uint8), ad.devices()[0])
        found = ad.measure_batch_size(on_first, rows, max_batch_size=32, **QUICK)
        peaks = {probe.batch_size: probe.memory["cpu:0"].peak for probe in found.evidence}
        assert all(peak == (1 + size) * ROW for size, peak in peaks.items())
        assert "cpu:1" not in found.evidence[0].memory
        fit = next(fit for fit in found.memory if fit.memory == "cpu:0")
        assert (fit.base_bytes, fit.bytes_per_example, fit.residual_bytes) == (ROW, ROW, 0)
        assert "VmHWM" in found.evidence[0].memory["host"].source
        assert kept.nbytes == ROW


def test_the_limit_of_a_device_is_never_met(nothing_left):
    with ad.simulate(1, bytes_limit=200 * ROW):
        # The step that ran out would be evidence: none did.
        found = ad.measure_batch_size(on_first, rows, target=0.99, **QUICK)
        assert {probe.outcome for probe in found.evidence} == {"measured"}
        assert max(probe.batch_size for probe in found.evidence) <= 180
        assert found.max_memory_batch_size == 180  # nine tenths of what is free
        whole = ad.measure_batch_size(on_first, rows, memory_fraction=0.5, **QUICK)
        assert whole.max_memory_batch_size == 100


def test_running_out_gives_the_memory_back(nothing_left):
    def step(batch):
        first = on_first(batch)
        parts = [first]
        if len(batch) > 20:
            parts += [on_first(batch) for _ in range(100)]  # no probe before let this be foreseen
        return parts

    with ad.simulate(1, bytes_limit=400 * ROW):
        found = ad.measure_batch_size(step, rows, **QUICK)
        gc.collect()
        assert ad.devices()[0].memory_stats()["bytes_in_use"] == 0
    outcomes = {probe.batch_size: probe.outcome for probe in found.evidence}
    assert outcomes[32] == "out of memory"
    assert outcomes[16] == "measured"
    assert found.max_memory_batch_size <= 20


def test_sharded_batches_show_the_multiple(devices, line, nothing_left):
    sharding = ad.NamedSharding(line, ad.P("x"))

    def step(batch):
        return {"doubled": ad.device_put(batch, sharding) * 2, "loss": 1.0}

    found = ad.measure_batch_size(step, rows, max_batch_size=64, **QUICK)
    raised = [probe for probe in found.evidence if probe.outcome == "raised"]
    assert [probe.batch_size for probe in raised] == [1, 2, 4]
    assert raised[0].error.startswith("IndivisibleError: ")
    assert found.recommended_batch_size % 8 == 0
    assert set(found.evidence[3].memory) >= {str(device) for device in devices}
    again = ad.measure_batch_size(step, rows, max_batch_size=64, multiple_of=8, **QUICK)
    assert all(probe.outcome == "measured" for probe in again.evidence)


def test_results_are_waited_for(monkeypatch):
    """A copy that is still under way when the step returns is in the time."""
    waited = []
    from artifex_devices.batch_measurement import probe

    real = probe.block_until_ready
    monkeypatch.setattr(probe, "block_until_ready", lambda x: waited.append(x) or real(x))
    ad.measure_batch_size(lambda batch: {"y": on_first(batch)}, rows, max_batch_size=1, warmup_calls=0, **QUICK)
    assert [type(each) for each in waited] == [np.ndarray, dict]


def test_donated_batches_are_created_again():
    def make(size):
        return on_first(rows(size))

    def step(batch):
        return ad.device_put(batch, ad.devices()[1], donate=True)

    found = ad.measure_batch_size(step, make, max_batch_size=4, reuse_batch=False, **QUICK)
    assert {probe.outcome for probe in found.evidence} == {"measured"}


def test_interrupts_leave_nothing(nothing_left):
    def step(batch):
        held = on_first(batch)
        if len(batch) == 4:
            raise KeyboardInterrupt
        return held

    with ad.simulate(1):
        with pytest.raises(KeyboardInterrupt):
            ad.measure_batch_size(step, rows, **QUICK)
        assert ad.devices()[0].memory_stats()["bytes_in_use"] == 0


SIGNALLED = """
import os, signal, sys
import numpy as np, artifex_devices as ad

def step(batch):
    if len(batch) == 8:
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(10**6))
    return ad.device_put(batch)

try:
    ad.measure_batch_size(step, lambda n: np.ones((n, 4)), probe_seconds=0, min_calls=1)
except KeyboardInterrupt:
    print("stopped", len(ad.live_arrays()))
"""


def test_ctrl_c():
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "stopped 0\n"), done.stderr
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == ["batch 1", "batch 2", "batch 4"]


@pytest.mark.skipif("SANITIZED_CORE" in os.environ, reason="the address sanitizer has its own memory for each byte")
def test_the_peak_of_the_process_is_seen():
    meter = ProcessMemory(0.9)
    meter.start()
    with mmap.mmap(-1, 64 << 20) as block:  # not malloc, which may have memory that is resident already
        for page in range(0, len(block), 4096):
            block[page] = 1
    use = meter.stop()["host"]
    if use.source.endswith("not seen"):
        pytest.skip("this kernel lets nobody reset VmHWM (clear_refs)")
    assert use.peak - use.before == pytest.approx(64 << 20, rel=0.1)
    assert use.after < use.before + (16 << 20)
    bounds = meter.bounds()
    assert use.after < bounds["host"] <= ad.Machine.live().usable_memory_bytes
    with ad.simulate(1, bytes_limit=1000):
        assert meter.bounds()["cpu:0"] == 900


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_table_on_a_terminal():
    stream = Terminal()
    shown = progress_on(stream)
    probes = []
    ad.measure_batch_size(lambda batch: batch, rows, max_batch_size=2, on_probe=probes.append, **QUICK)
    shown.starting(1)
    for probe in probes:
        shown.finished(probe)
    assert "probing a batch of 1" in stream.getvalue()
    assert "examples/s" in stream.getvalue()
    shown.close()


@pytest.mark.parametrize("text", ["no [data] axis", "no [/data] axis", "a :smile: is [red]no[/red] axis"])
def test_what_a_step_raises_is_not_markup(text):
    stream = Terminal()
    shown = progress_on(stream)
    shown.finished(BatchProbe(8, "raised", error=text))
    shown.close()
    assert "".join(text.split()) in "".join(stream.getvalue().split())  # wrapped, but all there


def test_terminal_codes_of_an_error_are_spelt_out():
    def step(batch):
        raise ValueError("\x1b[2J\u202e gone")

    with pytest.raises(RuntimeError, match="raised for every batch size") as raised:
        ad.measure_batch_size(step, rows, max_batch_size=1, **QUICK)
    assert r"1: ValueError: \x1b[2J\u202e gone" in str(raised.value)
    assert str(raised.value).isprintable()


def test_lines_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    stream = Terminal()
    shown = progress_on(stream)
    probes = []
    ad.measure_batch_size(lambda batch: batch, rows, max_batch_size=1, on_probe=probes.append, **QUICK)
    shown.finished(probes[0])
    shown.close()
    assert stream.getvalue().startswith("measure_batch_size: batch 1: ")
