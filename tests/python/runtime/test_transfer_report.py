# SPDX-License-Identifier: Apache-2.0
"""The report of transfers.record: when it counts, its tables, its dict and its HTML."""

from __future__ import annotations

import json
import os
import threading

import artifex_devices as ad
import numpy as np
import pytest


@pytest.fixture
def gpus():
    with ad.simulate(8, platform="gpu"):
        yield ad.devices()


def put(devices, count=4):
    return ad.device_put(np.ones(count), devices[0])


def test_nothing_is_counted_before_and_after_the_block(gpus):
    put(gpus)
    with ad.transfers.record() as report:
        assert (report.calls(), report.bytes(), report.routes, report.lines) == (0, 0, (), ())
        put(gpus)
        assert report.bytes() == 32
    put(gpus)
    assert (report.calls(), report.bytes()) == (1, 32)


def test_reports_nest_and_overlap(gpus):
    with ad.transfers.record() as outer:
        put(gpus)
        with ad.transfers.record() as inner:
            put(gpus, 2)
    assert (outer.bytes(), inner.bytes()) == (48, 16)


def test_all_threads_and_worlds_are_counted(gpus):
    def move():
        with ad.simulate(2):
            put(ad.devices())

    with ad.transfers.record() as report:
        thread = threading.Thread(target=move)
        thread.start()
        thread.join()
        put(gpus)
    assert [(route.destination, route.bytes) for route in report.routes] == [("cpu:0", 32), ("gpu:0", 32)]


def test_a_failed_transfer_is_not_counted():
    with ad.simulate(1, platform="gpu", bytes_limit=8), ad.transfers.record() as report, pytest.raises(MemoryError):
        ad.device_put(np.ones(4), ad.devices()[0])
    assert report.calls() == 0


def test_a_report_records_one_block(gpus):
    report = ad.transfers.record()
    assert repr(report) == "<TransferReport: not entered>"
    with pytest.raises(RuntimeError, match=r"left without having been entered; .* write `with transfers.record\(\)"):
        report.__exit__(None, None, None)
    with report:
        pass
    with pytest.raises(RuntimeError, match="has recorded a block already"), report:
        pass


def test_an_unknown_direction_is_refused(gpus):
    with ad.transfers.record() as report:
        put(gpus)
    with pytest.raises(ValueError, match=r"TransferReport.bytes: direction is 'up'; expected 'host-to-device', 'd"):
        report.bytes("up")


def test_the_table_names_routes_and_lines(gpus, monkeypatch, tmp_path):
    monkeypatch.chdir(os.path.dirname(__file__))
    mesh = ad.Mesh(np.array(gpus), ("x",))
    with ad.transfers.record() as report:
        array = ad.device_put(np.ones((8, 128)), ad.NamedSharding(mesh, ad.P("x")))
        float(array.sum())
    first = test_the_table_names_routes_and_lines.__code__.co_firstlineno + 4
    assert str(report).splitlines() == [
        "Transfers: 2 calls, 8.0 KiB",
        "",
        "route               routes  calls   bytes",
        "host -> gpu:0 (+7)  8       1 each  1.0 KiB",
        "gpu:0 -> host       1       1       8 bytes",
        "",
        "line                        direction       calls  bytes",
        f"test_transfer_report.py:{first}  host-to-device  1      8.0 KiB",
        f"test_transfer_report.py:{first + 1}  device-to-host  1      8 bytes",
    ]


def test_the_report_names_copies_of_64_mib_that_could_be_shared(monkeypatch):
    monkeypatch.chdir(os.path.dirname(__file__))
    value = np.zeros(1 << 23)
    with ad.simulate(2), ad.transfers.record() as report:
        cpu = ad.devices()[0]
        ad.device_put(value, cpu).block_until_ready()
        ad.device_put(value[1:], cpu).block_until_ready()
        ad.device_put(value[::-1], cpu).block_until_ready()
        ad.device_put(value, cpu, may_alias=False).block_until_ready()
        ad.device_put(value, ad.NamedSharding(ad.make_mesh((2,), ("x",)), ad.P("x"))).block_until_ready()
        ad.device_put({"w": value}, cpu)["w"].block_until_ready()
        ad.device_put(value, cpu, may_alias=True)
    first = test_the_report_names_copies_of_64_mib_that_could_be_shared.__code__.co_firstlineno + 5
    shareable = {row.line - first: row.shareable_bytes for row in report.lines}
    assert shareable == {0: 1 << 26, 1: 0, 2: 0, 3: 0, 4: 0, 5: 1 << 26}
    text = (
        f"test_transfer_report.py:{first} copies 64.0 MiB that device_put(x, device, may_alias=True) would share; the "
        "ndarray becomes read-only"
    )
    assert text in " ".join(str(report).split())
    assert text in report._repr_html_()
    assert max(map(len, str(report).splitlines())) <= 80


def test_copies_to_gpus_cannot_be_shared(gpus):
    with ad.transfers.record() as report:
        ad.device_put(np.zeros(1 << 23), gpus[0]).block_until_ready()
    assert [(row.bytes, row.shareable_bytes) for row in report.lines] == [(1 << 26, 0)]
    assert "may_alias" not in str(report) + report._repr_html_()


def test_the_table_fits_80_columns(gpus):
    mesh = ad.Mesh(np.array(gpus).reshape(2, 4), ("x", "y"))
    rows = ad.NamedSharding(mesh, ad.P(("x", "y")), memory_kind="unpinned_host")
    with ad.transfers.record() as report:
        for number, kind in enumerate(("device", "pinned_host", "unpinned_host")):
            array = ad.device_put(np.ones((8, 1024)), ad.NamedSharding(mesh, ad.P("x", "y"), memory_kind=kind))
            ad.device_put(array, rows).block_until_ready()
            for i, gpu in enumerate(gpus):
                ad.device_put(np.ones(8 * number + i + 1), ad.SingleDeviceSharding(gpu, memory_kind=kind))
        exec(compile("ad.device_put(np.ones(4))", "/a/folder/" * 9 + "program.py", "exec"), {"ad": ad, "np": np})
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("all others") for line in lines)


def test_the_dict_can_be_written_as_json(gpus):
    with ad.transfers.record() as report:
        put(gpus)
    found = json.loads(json.dumps(report.as_dict()))
    assert found["directions"] == {
        "host-to-device": {"calls": 1, "bytes": 32},
        "device-to-device": {"calls": 0, "bytes": 0},
        "device-to-host": {"calls": 0, "bytes": 0},
    }
    assert found["routes"] == [
        {
            "direction": "host-to-device",
            "source": "host",
            "source_kind": "",
            "destination": "gpu:0",
            "destination_kind": "emulated GPU",
            "calls": 1,
            "bytes": 32,
        }
    ]
    assert [(line["file"], line["calls"], line["bytes"]) for line in found["lines"]] == [(__file__, 1, 32)]


def test_the_html_has_the_tables_and_escapes_names(gpus):
    with ad.transfers.record() as report:
        exec(compile("ad.device_put(np.ones(4))", "<b>.py", "exec"), {"ad": ad, "np": np})
    page = report._repr_html_()
    assert "Transfers: 1 call, 32 bytes" in page
    assert "host -&gt; gpu:0" in page
    assert "emulated GPU" in page
    assert "&lt;b&gt;.py:1" in page
    assert "<b>" not in page


def test_lines_beyond_the_twelfth_are_one_row(gpus):
    code = "\n".join(f"ad.device_put(np.ones({number}), gpus[0]).block_until_ready()" for number in range(1, 16))
    with ad.transfers.record() as report:
        exec(compile(code, "program.py", "exec"), {"ad": ad, "np": np, "gpus": gpus})
    lines = str(report).splitlines()
    assert lines[-2].split() == ["program.py:4", "host-to-device", "1", "32", "bytes"]
    assert lines[-1].split() == ["3", "others", "3", "48", "bytes"]  # of 1, 2 and 3 numbers
