# SPDX-License-Identifier: Apache-2.0
"""The measured roofline: its numbers are sane, its cache survives any file content."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import artifex_devices as ad
import numpy as np
import pytest
import threadpoolctl
from artifex_devices._core import internal
from artifex_devices.roofline import measure_roofline, roofline
from artifex_devices.roofline import measurement as roofline_measurement
from artifex_devices.roofline.cache import cache_directory
from artifex_devices.roofline.measured import MeasuredRoofline, Rate, rate_of
from notebook_pages import Page

SHORT = 0.1


@pytest.fixture
def fresh(monkeypatch):
    """Nothing is clearable_cache of earlier measurements of this process."""
    monkeypatch.setattr(roofline_measurement, "_measurements", {})


@pytest.fixture(scope="module")
def measured():
    return measure_roofline(seconds=SHORT, cache=False)


def test_numbers_are_plausible_and_name_their_method(measured):
    assert set(measured.peak_flops) == {"float32", "float64"}
    for dtype, rates in measured.products.items():
        assert measured.peak_flops[dtype] is max(rates, key=lambda rate: rate.best)
        assert rates[-1].how.startswith("np.matmul of 1024 x 1024, NumPy ")
        assert all("Eigen" in rate.how for rate in rates[:-1])
    for rate in (*measured.peak_flops.values(), measured.bandwidth, *measured.streams):
        assert 1e6 < rate.best < 1e16
        assert 0 <= rate.median <= rate.best
        assert rate.relative_error >= 0.05
        assert rate.repeats >= 1
    assert {rate.how.split(",")[0] for rate in measured.streams} == {"STREAM copy", "STREAM triad"}
    conditions = measured.conditions
    assert 1 <= conditions.workers <= ad.Machine.live().usable_cpus
    assert conditions.isa in internal.supported_isas()
    assert conditions.together
    assert conditions.date.startswith("20")
    assert conditions.date.endswith("+00:00")
    assert conditions.array_bytes <= ad.Machine.live().usable_memory_bytes
    assert not measured.from_cache
    assert "not stored: cache=False" in measured.notes
    assert "GFLOP/s" in str(measured)


@pytest.mark.parametrize("isa", internal.supported_isas())
def test_the_instruction_set_can_be_chosen(isa):
    found = measure_roofline(isa=isa, seconds=0.04, cache=False)
    assert found.conditions.isa == isa
    assert f"Eigen, {isa}, " in found.products["float32"][0].how
    assert len(found.products["float32"]) == 2


def test_bad_arguments_are_named():
    with pytest.raises(
        ValueError, match=r"^measure_roofline: isa is 'mmx'; expected None or a set that this processor"
    ):
        measure_roofline(isa="mmx")
    with pytest.raises(TypeError, match=r"^measure_roofline: isa is 512"):
        measure_roofline(isa=512)  # type: ignore[arg-type]
    for wrong in (0, -1.0, float("nan"), float("inf"), 1e9):
        with pytest.raises(ValueError, match=r"^measure_roofline: seconds is "):
            measure_roofline(seconds=wrong)
    with pytest.raises(TypeError, match=r"^measure_roofline: seconds is 'a'"):
        measure_roofline(seconds="a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^measure_roofline: device is 3 \(int\)"):
        measure_roofline(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^measure_roofline: cache is 3 \(int\)"):
        measure_roofline(cache=3)  # type: ignore[arg-type]
    for path in ("", "a\0b"):
        with pytest.raises(ValueError, match=r"^measure_roofline: cache is '.*'; expected the path of a directory"):
            measure_roofline(cache=path, seconds=0.02)


def test_simulated_devices_report_how_many_share_their_cores(fresh, tmp_path):
    alone = measure_roofline(ad.devices()[0], seconds=SHORT, cache=tmp_path)
    with ad.simulate(8):
        last = ad.devices()[-1]
        shared = measure_roofline(last, seconds=SHORT, cache=tmp_path)
        on_its_cores = sum(1 for each in ad.devices() if each.cpuset == last.cpuset)
    assert shared.conditions.devices_sharing == on_its_cores
    assert shared.scope == "cpu:7"
    if len(ad.Machine.live().cpu_domains) == 1:
        assert shared.from_cache  # the same cores
        assert shared.peak_flops == alone.peak_flops


def test_a_compile_only_device_has_nothing_to_measure():
    with (
        ad.simulate(4, compile_only=True),
        pytest.raises(RuntimeError, match=r"^measure: cpu:0 is compile-only"),
    ):
        measure_roofline(ad.devices()[0], seconds=SHORT, cache=False)


def test_the_roofline_of_a_cpu_device_is_measured(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", str(tmp_path))
    found = measure_roofline(ad.devices()[0], seconds=SHORT)
    line = roofline(ad.devices()[0])
    assert line.dtype == "float32"
    assert (line.peak_flops, line.memory_bandwidth) == (found.peak_flops["float32"].best, found.bandwidth.best)
    assert (line.peak_from.kind, line.bandwidth_from.kind) == ("measured", "measured")
    assert found.conditions.date in line.peak_from.text
    for rate, provenance in ((found.peak_flops["float32"], line.peak_from), (found.bandwidth, line.bandwidth_from)):
        assert f"±{100 * rate.relative_error:.0f} %" in provenance.text
    assert roofline(found, "float64").weight_bytes == 8
    assert line.critical_batch == pytest.approx(2 * line.ridge_point)
    with pytest.raises(ValueError, match=r"^roofline: the bfloat16 FLOP/s of cpu:0 are not measured"):
        roofline(found, "bfloat16")
    assert roofline("cpu").peak_from.kind == roofline(ad.HardwareType.CPU).peak_from.kind == "measured"


def test_two_measurements_agree_within_their_errors():
    def rates():
        found = measure_roofline(seconds=0.6, cache=False)
        return found.peak_flops["float32"], found.peak_flops["float64"], found.bandwidth

    found = [rates()]
    for _ in range(4):  # other work that begins between two measurements changes the rates themselves
        found.append(rates())
        if all(one.agrees_with(two) for one, two in zip(*found[-2:], strict=True)):
            return
    pytest.fail(f"no two of these agree: {found}")


def test_errors_grow_with_what_disturbs():
    quiet = rate_of([100, 99, 98.5, 97], [1, 1, 1, 1], expected_share=1, floor=0.05, how="x")
    assert (quiet.best, quiet.median, quiet.relative_error, quiet.repeats) == (100, 98.75, 0.05, 4)
    assert quiet.spread == pytest.approx(1.125)
    apart = rate_of([100, 99, 60, 50], [1, 1, 1, 1], expected_share=1, floor=0.05, how="x")
    assert apart.relative_error == pytest.approx(0.4)
    starved = rate_of([100, 99, 98.5], [0.5, 1, 1], expected_share=1, floor=0.05, how="x")
    assert starved.relative_error == pytest.approx(1.0)
    quota = rate_of([100, 99, 98.5], [0.5, 0.5, 0.5], expected_share=0.5, floor=0.05, how="x")
    assert quota.relative_error == 0.05
    assert rate_of([100], [1], expected_share=1, floor=0.05, how="x").relative_error == 0.25
    with pytest.raises(RuntimeError, match="no repeat of 'x' ended in time"):
        rate_of([], [], expected_share=1, floor=0.05, how="x")
    assert quiet.agrees_with(Rate(108, 108, 0, 0.05, 3, "y"))
    assert not quiet.agrees_with(Rate(120, 120, 0, 0.05, 3, "y"))


def test_values_survive_dicts_and_pickles(measured):
    for again in (MeasuredRoofline.from_dict(json.loads(json.dumps(measured.to_dict()))), copy.deepcopy(measured)):
        assert again.to_dict() == measured.to_dict()
    again = pickle.loads(pickle.dumps(measured))
    assert (again.notes, again.from_cache) == (measured.notes, measured.from_cache)


def test_a_second_measurement_is_read_from_the_file(fresh, tmp_path, monkeypatch):
    first = measure_roofline(seconds=SHORT, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    assert f"stored in {path}" in first.notes
    monkeypatch.setattr(roofline_measurement, "_measurements", {})
    begin = time.process_time()
    second = measure_roofline(seconds=60, cache=tmp_path)
    assert time.process_time() - begin < 30
    assert second.from_cache
    assert second.notes == (*first.notes[:-1], f"read from {path}")  # the last of the first one says where it is kept
    assert second.to_dict() == first.to_dict()
    third = measure_roofline(seconds=SHORT, cache=tmp_path, refresh=True)
    assert not third.from_cache
    assert [each.name for each in tmp_path.iterdir()] == [path.name]  # nothing half-written is left
    assert json.loads(path.read_text())["measurement"] == third.to_dict()


def spoilt_files(text: str) -> dict[str, bytes]:
    content = json.loads(text)

    def changed(**entries):
        return json.dumps({**content, **entries}).encode()

    measurement = content["measurement"]
    rate = measurement["streams"][0]
    return {
        "empty": b"",
        "cut short": text[: len(text) // 2].encode(),
        "no JSON": b"\x00\xff\xfe not json",
        "a list": b"[]",
        "deep": b"[" * 60000,
        "too large": b" " * 70000,
        "another format": changed(format=1),
        "another machine": changed(fingerprint={**content["fingerprint"], "cpu_model": "Another"}),
        "more entries": changed(extra=1),
        "notes that are none": changed(notes="all is well"),
        "many notes": changed(notes=["x"] * 1000),
        "a note of terminal codes": changed(notes=["\x1b[31m"]),
        "no streams": changed(measurement={**measurement, "streams": []}),
        "no number": changed(measurement={**measurement, "streams": [{**rate, "best": "fast"}]}),
        "infinite": changed(measurement={**measurement, "streams": [{**rate, "best": float("inf")}]}),
        "not a number": changed(measurement={**measurement, "streams": [{**rate, "best": float("nan")}]}),
        "slower than any machine": changed(
            measurement={**measurement, "streams": [{**rate, "best": 999.5, "median": 1.0, "spread": 0.0}]}
        ),
        "negative": changed(measurement={**measurement, "streams": [{**rate, "best": -1.0}]}),
        "huge": changed(measurement={**measurement, "streams": [{**rate, "repeats": 10**400}]}),
        "terminal codes": changed(measurement={**measurement, "streams": [{**rate, "how": "\x1b[31m"}]}),
        "no date": changed(measurement={**measurement, "conditions": {**measurement["conditions"], "date": "today"}}),
    }


def test_a_damaged_file_is_reported_and_measured_again(fresh, tmp_path, monkeypatch, measured):
    monkeypatch.setattr(
        roofline_measurement, "_measured", lambda *_: measured
    )  # each measured again would take a minute
    measure_roofline(cache=tmp_path)
    (path,) = tmp_path.iterdir()
    for name, content in spoilt_files(path.read_text()).items():
        monkeypatch.setattr(roofline_measurement, "_measurements", {})
        path.write_bytes(content)
        found = measure_roofline(cache=tmp_path)
        assert not found.from_cache, name
        assert any(note.startswith(f"{path} is not used: ") for note in found.notes), (name, found.notes)
        assert json.loads(path.read_text())["measurement"] == found.to_dict()
        assert name != "too large" or any("has more than 64 KiB" in note for note in found.notes)


def test_caveats_of_a_measurement_are_stored_with_it(fresh, tmp_path, monkeypatch):
    series = {"shares": [1.0, 0.5], "workers": 1, "bound_workers": 1}
    monkeypatch.setattr(internal, "measured_scope", lambda device: ([0], 2, 2))  # two workers, and one more lane
    monkeypatch.setattr(internal, "cgroup_report", lambda: {"cpus": None})
    monkeypatch.setattr(internal, "measure_gemm", lambda *_: {"rates": [5e9, 9e9], **series})
    monkeypatch.setattr(
        internal, "measure_streams", lambda *_: ({"copy": {"rates": [9e9], **series}}, 1 << 20, 1 << 25)
    )
    first = measure_roofline(ad.devices()[0], cache=tmp_path)
    caveats = first.notes[:-1]
    assert any("only 1 of 2 workers could run" in note for note in caveats)
    assert any("are not well above the caches" in note for note in caveats)
    assert any("an error of 100 %; measure again on a quiet machine" in note for note in caveats)
    monkeypatch.setattr(roofline_measurement, "_measurements", {})
    kept = measure_roofline(ad.devices()[0], cache=tmp_path)
    assert kept.from_cache
    assert kept.notes[:-1] == caveats


def test_a_relative_directory_is_that_of_the_first_moment(fresh, tmp_path, monkeypatch, measured):
    monkeypatch.setattr(roofline_measurement, "_measured", lambda *_: measured)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found = measure_roofline(cache="kept")
        assert not found.from_cache
        (path,) = (tmp_path / name / "kept").iterdir()
        assert f"stored in {path}" in found.notes


def test_files_of_others_are_reported(fresh, tmp_path, monkeypatch):
    measure_roofline(seconds=0.04, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    monkeypatch.setattr(roofline_measurement, "_measurements", {})
    found = measure_roofline(seconds=0.02, cache=tmp_path)
    assert any(note.startswith(f"{path} is not used: ") for note in found.notes)
    assert not path.is_symlink()  # replaced, and what it pointed to is as it was
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(roofline_measurement, "_measurements", {})
    found = measure_roofline(seconds=0.02, cache=tmp_path)  # does not wait for a writer
    assert f"{path} is not used: it is not a regular file" in found.notes


def test_a_directory_that_is_not_writable_is_reported(fresh, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    found = measure_roofline(seconds=0.04, cache=blocked / "below")
    assert not found.from_cache
    assert any(note.startswith("not stored: ") for note in found.notes)
    again = measure_roofline(seconds=60, cache=blocked / "below")
    assert again.from_cache  # of this process, at least


def test_directory_of_stored_measurements(monkeypatch, tmp_path):
    monkeypatch.delenv("ARTIFEX_DEVICES_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory(None) == cache_directory(True) == (tmp_path / "artifex_devices", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_directory(None) == (Path("/home/somebody/.cache/artifex_devices"), "")
    monkeypatch.setenv("HOME", "")
    assert cache_directory(None)[0] is None
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", "/somewhere")
    assert cache_directory(None) == (Path("/somewhere"), "")
    assert cache_directory("/else") == (Path("/else"), "")
    monkeypatch.setenv("ARTIFEX_DEVICES_CACHE", "OFF")
    assert cache_directory(None) == (None, "not stored: ARTIFEX_DEVICES_CACHE=OFF")
    assert cache_directory(False) == (None, "not stored: cache=False")


def test_several_threads_measure_one_after_the_other(fresh, tmp_path):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(measure_roofline(seconds=SHORT, cache=tmp_path))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.from_cache for each in found) == [False, True, True]


def test_ctrl_c_ends_a_long_measurement_and_the_next_one_works():
    code = """
import artifex_devices as ad
from artifex_devices.roofline import measure_roofline
ad.devices()
try:
    print("ready", flush=True)
    while True:
        measure_roofline(seconds=300, isa="baseline", cache=False)
except KeyboardInterrupt:
    print("interrupted", measure_roofline(seconds=0.02, cache=False).bandwidth.best > 0, flush=True)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)  # well inside, or before, the first measurement: both must end
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=60)[0] == "interrupted True\n"
        assert child.returncode == 0
    finally:
        child.kill()


def test_a_forked_child_can_measure():
    measure_roofline(seconds=0.02, cache=False)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if measure_roofline(seconds=0.02, cache=False).bandwidth.best > 0 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_picture_has_a_level_for_each_format_the_fastest_first(measured):
    def rate(best, how):
        return Rate(best=best, median=best, spread=0.01, relative_error=0.07, repeats=3, how=how)

    found = MeasuredRoofline.from_dict(
        measured.to_dict()
        | {
            "scope": "2 cores",
            "products": {
                "float64": [dataclasses.asdict(rate(1e10, "by Eigen"))],
                "float32": [dataclasses.asdict(rate(4e10, "by NumPy")), dataclasses.asdict(rate(2e10, "by Eigen"))],
            },
            "streams": [dataclasses.asdict(rate(2e10, "STREAM copy"))],
        }
    )
    ax = found.plot()
    assert ax.get_title() == f"roofline of 2 cores ({found.conditions.cpu_model})"
    labels = [text.get_text().partition(":")[0] for text in ax.get_legend().get_texts()]
    assert labels == ["float32", "float64", "memory"]
    (notes,) = ax.texts
    assert notes.get_text().splitlines() == [
        "float32: ±7 %, by NumPy",
        "float64: ±7 %, by Eigen",
        "memory: ±7 %, STREAM copy",
        f"measured {found.conditions.date}",
    ]
    page = Page(found._repr_html_())
    assert "2 cores" in page.letters


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (["/lib/libblas.so", "/x/numpy.libs/libopenblas.so"], "openblas 1.1, 4 threads"),
        (["/x/numpy.libs/libopenblas.so", "/lib/libblas.so"], "openblas 1.0, 4 threads"),
        (["/lib/libblas.so", "/lib/libmkl.so"], "openblas 1.0, 4 threads"),
        ([], "BLAS unknown"),
    ],
)
def test_the_blas_of_numpy_is_named_where_there_are_several(monkeypatch, files, name):
    found = [
        {"user_api": "blas", "filepath": path, "internal_api": "openblas", "version": f"1.{i}", "num_threads": 4}
        for i, path in enumerate(files)
    ]
    openmp = {"user_api": "openmp", "filepath": "/x/numpy.libs/libgomp.so", "internal_api": "openmp"}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [openmp, *found])
    assert roofline_measurement._blas_name() == name


def test_the_rate_of_numpys_products_is_flops_over_seconds(monkeypatch):
    now, calls = [0.0], []

    def matmul(a, b, *, out):
        assert a.shape == b.shape == out.shape == (8, 8)
        calls.append(out.dtype)
        now[0] += 0.25 if len(calls) > 1 else 100.0  # the first one warms up

    cores = len(os.sched_getaffinity(0))
    clock = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: now[0] * cores * 0.75)
    monkeypatch.setattr(roofline_measurement, "time", clock)
    monkeypatch.setattr(roofline_measurement, "_NUMPY_SIDE", 8)
    monkeypatch.setattr(np, "matmul", matmul)
    rate = roofline_measurement._numpy_product("float64", 3.0, 0.75, 0.75)
    # Windows of three calls, each of 2 * 8**3 FLOP, in 0.75 s; four of them end after 3 s.
    assert len(calls) == 1 + 4 * 3
    assert set(calls) == {np.dtype("float64")}
    assert (rate.best, rate.median, rate.repeats) == (4096.0, 4096.0, 4)
    assert rate.relative_error == 0.05  # three quarters of the cores are what it was to have
    assert rate.how.startswith(f"np.matmul of 8 x 8, NumPy {np.__version__} (")


SERIES = {"rates": [1e9] * 3, "shares": [1.0] * 3, "workers": 1, "bound_workers": 1}


class Recorded:
    """The core, but its kernels only record the seconds that they are to run."""

    def __init__(self):
        self.seconds = {}

    def __getattr__(self, name):
        return getattr(internal, name)

    def measure_gemm(self, device, isa, dtype, seconds, window):
        self.seconds[isa, dtype] = seconds
        return SERIES

    def measure_streams(self, device, seconds, window):
        self.seconds["streams"] = seconds
        return {"copy": SERIES}, 1 << 20, 0


@pytest.mark.parametrize(("quota", "factor"), [(None, 1), (0.5, 10)])
def test_the_time_is_divided_among_the_kernels(monkeypatch, quota, factor):
    core = Recorded()

    def product(dtype, seconds, window, share):
        core.seconds["NumPy", dtype] = seconds
        return rate_of([1e9] * 3, [1.0] * 3, expected_share=1.0, floor=0.0, how="NumPy")

    conditions = {**roofline_measurement.conditions_before(), "cpu_quota": quota}
    monkeypatch.setattr(roofline_measurement, "internal", core)
    monkeypatch.setattr(roofline_measurement, "_numpy_product", product)
    monkeypatch.setattr(roofline_measurement, "_measurements", {})
    monkeypatch.setattr(roofline_measurement, "conditions_before", lambda: conditions)
    measure_roofline(seconds=2.4, cache=False)
    isas = internal.supported_isas()
    isas = isas[1:] or isas
    kernels = {(isa, dtype): 0.6 * factor / len(isas) for isa in isas for dtype in roofline_measurement._DTYPES}
    numpy = {("NumPy", dtype): 0.3 * factor for dtype in roofline_measurement._DTYPES}
    assert core.seconds == pytest.approx({**kernels, **numpy, "streams": 0.8 * factor})
