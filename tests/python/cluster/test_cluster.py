# SPDX-License-Identifier: Apache-2.0
"""Clusters: what their numbers are and where from, their devices, and what cannot be."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import artifex_devices as ad
import numpy as np
import pytest
from artifex_devices import Mesh, NamedSharding, P, cluster, xla_client
from artifex_devices.roofline.measured import Conditions, MeasuredRoofline, Rate


def test_a_tpu_slice_has_the_catalogues_numbers():
    pod = cluster.tpu("v5p", (8, 8, 16))
    assert (pod.name, pod.platform, pod.device_kind) == ("TPU v5p 8x8x16", "tpu", "TPU v5")
    assert (pod.device_count, pod.chip_count, pod.process_count, pod.slices) == (1024, 1024, 256, 1)
    assert (pod.network, pod.dims, pod.wraps) == ("torus", (8, 8, 16), (True, True, True))
    parts = pod.parts
    assert parts["bandwidth"] == (9e10, "S3 S5")
    assert parts["latency"] == (1e-6, "S5")
    assert parts["peak_flops"]["bfloat16"] == (4.59e14, "S3 S5 S7")
    assert parts["memory_bytes"] == (95 * 2**30, "S3 S5 S7")
    assert parts["network_bandwidth"] == (6.25e9, "S3 S5")
    assert parts["host_shape"] == (2, 2, 1)


def test_gpu_nodes_have_the_catalogues_numbers():
    pod = cluster.dgx("h100", nodes=64)
    assert (pod.device_count, pod.process_count, pod.network, pod.dims) == (512, 64, "switch", (8,))
    assert pod.parts["bandwidth"] == (4.5e11, "S8")
    assert pod.parts["network_bandwidth"] == (5e10, "S8")
    assert cluster.mi300x(nodes=2).parts["bandwidth"] == (6.4e10, "S12")
    assert cluster.nvl72(racks=2).process_count == 36
    assert cluster.dgx("v100").dims == (16,)
    assert cluster.gpus("v100", network_bandwidth=1e10).parts["network_bandwidth"] == (1e10, "given")


def test_devices_report_their_places():
    devices = cluster.tpu("v4", (2, 2, 4), slices=2).devices()
    assert len(devices) == 32
    device = devices[21]
    assert repr(device) == "TpuDevice(id=21, process_index=5, coords=(1,0,1), core_on_chip=0)"
    assert (device.coords, device.core_on_chip, device.slice_index, device.process_index) == ((1, 0, 1), 0, 1, 5)
    assert (device.platform, device.device_kind, device.memory_bytes) == ("tpu", "TPU v4", 32 * 2**30)
    assert (device.local_hardware_id, device.is_compile_only, str(device)) == (1, True, "tpu:21")
    assert (device.cpuset, device.client.platform) == ("", "tpu")


def test_the_platform_of_a_simulated_cluster_is_its_own():
    for pod, platform in ((cluster.tpu("v5e", (2, 2)), "tpu"), (cluster.dgx("a100"), "gpu")):
        for given in (None, platform):
            with ad.simulate(pod, platform=given):
                assert {device.platform for device in ad.devices()} == {platform}


def test_cores_are_devices_where_jax_has_them_so():
    devices = cluster.tpu("7x", (2, 2, 1)).devices()
    assert [(device.coords, device.core_on_chip) for device in devices[:3]] == [
        ((0, 0, 0), 0),
        ((0, 0, 0), 1),
        ((1, 0, 0), 0),
    ]
    assert {device.memory_bytes for device in devices} == {96 * 2**30}


def test_devices_behind_switches_have_slices_but_no_coordinates():
    device = cluster.dgx("h100", nodes=2).devices()[9]
    assert repr(device) == "GpuDevice(id=9, process_index=1)"
    assert (device.slice_index, device.local_hardware_id, device.platform) == (1, 1, "gpu")
    assert not hasattr(device, "coords")
    with pytest.raises(
        AttributeError,
        match=r"core_on_chip: GpuDevice\(id=9, process_index=1\) does not have it; expected a device of a cluster",
    ):
        _ = device.core_on_chip
    with ad.simulate(1):
        assert not hasattr(ad.devices()[0], "coords")
        assert not hasattr(ad.devices()[0], "slice_index")


def test_the_devices_of_a_cluster_are_the_same_at_each_call():
    pod = cluster.tpu("v5e", (2, 2))
    first = pod.devices()
    assert pod.devices() == first
    with ad.simulate(pod):
        assert ad.devices() == first
        assert ad.devices("tpu") == first
        assert ad.default_backend() == "tpu"
        with pytest.raises(
            RuntimeError, match=r"unknown or absent backend 'cpu': .* expected one of: tpu \(4 devices\)"
        ):
            ad.devices("cpu")
    assert cluster.tpu("v5e", (2, 2)).devices() != first


def test_meshes_and_shardings_have_these_devices():
    devices = cluster.tpu("v5e", (4, 4)).devices()
    mesh = Mesh(np.array(devices).reshape(4, 4), ("x", "y"))
    sharding = NamedSharding(mesh, P("y", "x"))
    assert sharding.shard_shape((8, 12)) == (2, 3)
    assert sharding.device_index(devices[6], (8, 12)) == (slice(4, 6), slice(3, 6))
    with ad.simulate(cluster.dgx("a100", nodes=2)):
        assert ad.make_mesh((4, 4), ("x", "y")).size == 16


def test_placing_data_is_refused():
    devices = cluster.tpu("v5e", (2, 2)).devices()
    rows = NamedSharding(Mesh(np.array(devices), ("x",)), P("x"))
    for place in (devices[0], rows):
        with pytest.raises(RuntimeError, match="tpu:0 has no memory: it is for planning only"):
            ad.device_put(np.ones(4), place)


def test_a_cluster_is_a_value():
    pod = cluster.tpu("v4", (4, 4, 8), slices=3)
    assert pod == cluster.tpu("v4", (4, 4, 8), slices=3)
    assert pod != cluster.tpu("v4", (4, 4, 8), slices=2)
    assert hash(pod) == hash(cluster.tpu("v4", (4, 4, 8), slices=3))
    assert pickle.loads(pickle.dumps(pod)) == pod
    assert copy.deepcopy(pod) is pod
    assert repr(pod) == "<Cluster 3 x TPU v4 4x4x8: 384 tpu devices>"


def test_describe_lists_each_number_with_its_source():
    assert cluster.tpu("v5e", (4, 4), slices=2).describe().splitlines() == [
        "<Cluster 2 x TPU v5e 4x4: 32 tpu devices>",
        "  chip          TPU v5e, 32 in all, 1 device each, 16.0 GiB [S2 S5 S7]",
        "  bfloat16      197 TFLOP/s [S2 S5 S7]",
        "  int8          394 TFLOP/s [S2 S5 S7]",
        "  int4          788 TFLOP/s [S2 S5 S7]",
        "  memory        819 GB/s [S2 S5 S7]",
        "  inside        torus of 4x4 chips, no wraparound; ICI",
        "  a link        45 GB/s [S2 S5], 1 us [S5]",
        "  hosts         4 of 4x2 chips [S2 S5], to a chip 16 GB/s [S2 S5]",
        "  host memory   384.0 GiB a host [S2]",
        "  between       2 slices: 3.125 GB/s [S2 S5] a chip, 9.6 us [S22]",
        "  note          bandwidth: 819 GB/s or 800 GiB/s (8.59e11 B/s) by version of Google's page, 8.2e11 in "
        "JAX, 8.1e11 in the book",
        "  note          the step between slices is NCCL's on its network, not Google's",
        '  [S2]          Google Cloud, "TPU v5e", https://docs.cloud.google.com/tpu/docs/v5e',
        '  [S5]          "How to Scale Your Model", chapters Rooflines, TPUs and Sharding, '
        "https://jax-ml.github.io/scaling-book",
        "  [S7]          JAX, jax/_src/tpu_info.py, development version of 2026-08-08, https://github.com/jax-ml/jax",
        "  [S22]         NVIDIA/nccl, src/graph/tuning.cc (an older version), https://github.com/NVIDIA/nccl",
    ]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: cluster.tpu("v5e", (3, 3)), ValueError, "expected one of 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"),
        (lambda: cluster.tpu("v5p", (4, 4, 6)), ValueError, "three multiples of 4, ascending, up to 16x20x28"),
        (lambda: cluster.tpu("v4", (4, 4)), ValueError, "expected 3 numbers of chips"),
        (lambda: cluster.tpu("v2", (4, 4)), ValueError, "expected one of v4, v5e, v5p, v6e, 7x"),
        (lambda: cluster.tpu("v4", 64), TypeError, "expected a sequence of ints"),
        (lambda: cluster.tpu(4, (2, 2, 1)), TypeError, r"generation is 4 \(int\)"),
        (lambda: cluster.tpu("v4", (2, 2, 1), slices=0), ValueError, "slices is 0; expected 1 to 16777216"),
        (lambda: cluster.tpu("v4", (2**40, 2, 1)), ValueError, "below 2"),
        (lambda: cluster.tpu("v4", (2**31, 2, 1)), ValueError, "expected numbers of chips below 2"),
        (lambda: cluster.tpu("v4", (2, -(2**31), 1)), ValueError, "expected numbers of chips below 2"),
        (lambda: cluster.tpu("v4", (2**31 - 1, 2, 1)), ValueError, "TPU v4 has no slices of 2147483647x2x1"),
        (lambda: cluster.tpu("v4", (16, 16, 16), slices=2**24), ValueError, "16777216 at most"),
        (lambda: cluster.dgx("mi300x"), ValueError, "expected one of v100, a100"),
        (lambda: cluster.gpus("Tesla V100-SXM2-16GB"), ValueError, "expected chips_per_node"),
        (lambda: cluster.dgx(nodes=True), TypeError, r"nodes is True \(bool\)"),
        (lambda: cluster.dgx(network_bandwidth=-1), ValueError, "network_bandwidth is -1"),
        (lambda: cluster.describe(3), TypeError, r"cluster is 3 \(int\); expected a Cluster"),
        (lambda: cluster.this_machine(measured=3), TypeError, "expected a MeasuredRoofline or None"),
        (lambda: cluster.this_machine(latency=-1.0), ValueError, "latency is -1.0"),
        (lambda: ad.simulate(cluster.dgx(), bytes_limit=1), ValueError, "bytes_limit is given for a Cluster"),
        (
            lambda: ad.simulate(cluster.dgx(), platform="cpu"),
            ValueError,
            "platform is 'cpu'; expected 'gpu', the platform of <Cluster 8 h100: 8 gpu devices>; leave it out",
        ),
        (
            lambda: ad.simulate(cluster.tpu("v5e", (2, 2)), platform="gpu"),
            ValueError,
            "expected 'tpu', the platform",
        ),
    ],
)
def test_invalid_arguments_are_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


LAB = """
name = "lab"
slices = 4

[chip]
name = "NVIDIA H100 SXM"
memory_bytes = 8.5e10

[slice]
chips = 4
bandwidth = 4.0e11
latency = 2e-6

[host]
nics = 2
nic_bandwidth = 5e10

[network]
latency = 1e-5
"""


def test_a_file_adds_to_the_catalogue(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text(LAB)
    lab = cluster.from_toml(path)
    source = str(path)
    assert (lab.name, lab.device_count, lab.network, lab.process_count) == ("lab", 16, "switch", 4)
    parts = lab.parts
    assert parts["memory_bytes"] == (8.5e10, source)
    assert parts["memory_bandwidth"] == (3.35e12, "S8 S10 S12")
    assert parts["bandwidth"] == (4e11, source)
    assert parts["network_bandwidth"] == (2.5e10, source)  # two NICs of 5e10 for four chips
    assert parts["network_latency"] == (1e-5, source)
    assert parts["device_kind"] == "NVIDIA H100 80GB HBM3"


def test_a_file_describes_chips_and_tori_of_its_own(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        '[chip]\nname = "mine"\nplatform = "tpu"\ndevices_per_chip = 2\n[chip.peak_flops]\nbfloat16 = 1e15\n'
        "[slice]\ndims = [6, 4]\nwraps = [true, false]\nbandwidth = 1e11\n[host]\nshape = [2, 2]\n"
    )
    own = cluster.from_toml(str(path))
    assert (own.dims, own.wraps, own.device_count, own.process_count) == ((6, 4), (True, False), 48, 6)
    assert own.parts["peak_flops"] == {"bfloat16": (1e15, str(path))}
    assert own.parts["memory_bytes"] is None
    assert own.devices()[0].memory_bytes == 0
    assert own.devices()[47].coords == (5, 3, 0)
    assert own.devices()[0].device_kind == "mine"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[chip\n", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML: maximum recursion depth exceeded"),
        ("\n[chip]\na" + ". a" * 30_000 + " = 1\n", "is not TOML: line 3 has a dotted key of more than 16 parts"),
        ("[" + "'a'.b." * 10_000 + "c]\n", "is not TOML: line 1 has a dotted key of more than 16 parts"),
        ("a" * 200_000 + "\n", "is not TOML: Expected '='"),
        ("#" * 300_000, "has more than 256 KiB; expected a TOML file"),
        (
            "[chip]\nname = 3\nspeed = 1\n",
            r"line 2: name of \[chip\] is 3; expected a text; line 3: speed of \[chip\] is not a key; .*",
        ),
        (
            "# lab\r\n[chip]\r\nmemry_bytes = 3\r\n",
            r"line 3: memry_bytes of \[chip\] is not a key \(did you mean memory_bytes\?\); expected name, platform",
        ),
        (
            '[chip]\nname = "H100 SXM"\n[slice]\nchips = 2\n',
            r"line 2: \[chip\] has the name 'H100 SXM', .* \(did you mean NVIDIA H100 SXM\?\), and no platform",
        ),
        (
            'slices = 0\n[slice]\ndims = [\n  4,\n  -2,\n]\nlatency = -1\n[chip]\nname = "x"\nplatform = "q"\n',
            r'line 10: platform of \[chip\] is "q"; .*line 3: dims\[1\] is -2; .*line 7: the slice\'s latency is -1; .*'
            "line 1: slices is 0; expected 1 or more",
        ),
        ("[chip]\nname = 3\n", r"\[slice\] is missing"),
        ('[chip]\nname = "x"\n[slice]\nchips = 2\n', r"and no platform; expected \"tpu\", \"gpu\" or \"cpu\""),
        ('[chip]\nname = "h100"\n[slice]\n', r"line 3: \[slice\] has no size"),
        (
            '[chip]\nname = "h100"\n[slice]\nchips = 2\nkind = "star"\n',
            r'line 5: kind of \[slice\] is "star"; expected "torus"',
        ),
        (
            '[chip]\nname = "mine"\nplatform = "tpuu"\n[slice]\nchips = 2\n',
            r'line 3: platform of \[chip\] is "tpuu" \(did you mean tpu\?\); expected "tpu", "gpu" or "cpu"; correct',
        ),
        (
            '[chip]\nname = "h100"\n[slice]\nchips = 2\nkind = "torsu"\n',
            r'line 5: kind of \[slice\] is "torsu" \(did you mean torus\?\); expected "torus", "switch" or ',
        ),
        ("", r"\[chip\] and \[slice\] are missing; expected these tables; correct the file$"),
        (
            '[chip]\nname = "h100"\n[slice]\nchips = 4\nlatency = 1e300\nbandwidth = 1e-300\n',
            r"line 5: latency of \[slice\] is 1e\+300; expected 1e-30 to 1e30; "
            r"line 6: bandwidth of \[slice\] is 1e-300; expected 1e-30 to 1e30; correct the file$",
        ),
        (
            '[chip]\nname = "h100"\n[chip.peak_flops]\nbfloat16 = 1e200\n[slice]\nchips = 4\n',
            r"line 4: bfloat16 of \[chip.peak_flops\] is 1e\+200; expected 1e-30 to 1e30",
        ),
        (
            'name = "a\\u001b[31m"\n[chip]\nname = "h100"\ndevice_kind = "b\\n"\n[slice]\nchips = 4\n',
            r"line 1: name is 'a\\x1b\[31m'; expected characters that can be printed; "
            r"line 4: device_kind of \[chip\] is 'b\\n'",
        ),
        ('"na\\u001bme" = 3\n[chip]\nname = "h100"\n[slice]\nchips = 4\n', r"line 1: 'na\\x1bme' is not a key"),
        ('[chip]\nname = "h100"\n[slice]\nchips = 2\nbandwidth = -1\n', "bandwidth is -1; expected a finite number"),
        (
            '[chip]\nname = "h100"\nplatform = "tpu"\n[slice]\nchips = 4\n',
            r"line 2: \[chip\] has the name 'NVIDIA H100 SXM' and the platform 'tpu'; expected 'gpu', as in the",
        ),
        (
            '[chip]\nname = "TPU v5p"\ndevice_kind = "NVIDIA H200"\n[slice]\ndims = [4, 4, 4]\n',
            r"line 2: \[chip\] has the name 'TPU v5p' and the device_kind 'NVIDIA H200', which belongs to 'NVIDIA H2",
        ),
        (
            '[chip]\nname = "h100"\n[slice]\nkind = "torus"\nchips = 4\n',
            r"line 3: \[slice\] has the kind 'torus' and chips; expected dims with a torus, chips with the other kinds",
        ),
        (
            '[chip]\nname = "h100"\n[slice]\nkind = "switch"\ndims = [8]\n',
            r"line 3: \[slice\] has the kind 'switch' and dims; expected dims with a torus, chips with the other kinds",
        ),
        (
            '[chip]\nname = "h100"\n[slice]\nchips = 1000000\n',
            r"line 4: dims is \[1000000\]; expected at most 1024 chips joined by one switch; plan with several slices",
        ),
        (
            '[chip]\nname = "h100"\n[slice]\nchips = 4\n[host]\nchips = 3\n',
            r"line 6: host_shape\[0\] is 3; expected a divisor",
        ),
        ('[chip]\nname = "h100"\n[slice]\nchips = 4\n[host]\nnics = 3\n', "expected nic_bandwidth too"),
        (
            '[chip]\nname = "h100"\n[slice]\nchips = 4\n[host]\nnics = -2\nnic_bandwidth = -5e10\n',
            "expected 1 or more, above 0 bytes/s",
        ),
        ('[chip]\nname = "h100"\n[slice]\nchips = 4\nbandwidth = 1' + 400 * "0" + "\n", "expected a number"),
        ('[chip]\nname = "h100"\n[chip.peak_flops]\nint7 = 1.0\n[slice]\nchips = 4\n', 'peak_flops names "int7"'),
        ('slices = 99999999999999999999\n[chip]\nname = "h100"\n[slice]\nchips = 4\n', "expected an integer"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, says):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=says) as caught:
        cluster.from_toml(path)
    assert str(caught.value).startswith("cluster.from_toml: ")
    assert str(path) in str(caught.value)


def test_a_file_may_repeat_what_the_catalogue_has(tmp_path):
    path = tmp_path / "same.toml"
    path.write_text(
        '[chip]\nname = "h100"\nplatform = "gpu"\ndevice_kind = "NVIDIA H100 80GB HBM3"\n[slice]\nkind = "switch"\n'
        "chips = 4\n"
    )
    assert cluster.from_toml(path).parts["device_kind"] == "NVIDIA H100 80GB HBM3"
    path.write_text('[chip]\nname = "h100"\ndevice_kind = "our H100"\n[slice]\nchips = 4\n')
    assert cluster.from_toml(path).parts["device_kind"] == "our H100"


def test_a_byte_order_mark_is_taken(tmp_path):
    text = '[chip]\nname = "h100"\n[slice]\nchips = 4\n'
    (tmp_path / "lab.toml").write_text(text, encoding="utf-8-sig")
    assert cluster.from_toml(tmp_path / "lab.toml").device_count == 4


def test_numbers_that_nothing_has_are_refused_as_arguments_too():
    for bandwidth in (1e-300, 1e300):
        with pytest.raises(
            ValueError, match=r"^cluster.gpus: network_bandwidth is 1e.300; expected 1e-30 to 1e30; cor"
        ):
            cluster.dgx("h100", nodes=2, network_bandwidth=bandwidth)


def test_the_nearest_name_is_suggested():
    for make, says in (
        (
            lambda: cluster.tpu("v5ee", (4, 4)),
            r"is not a generation with known links \(did you mean v5e\?\); expected",
        ),
        (lambda: cluster.dgx("h1000"), r"gpu is 'h1000' \(did you mean h100\?\); expected"),
        (lambda: cluster.gpus("mi300"), r"\"mi300\" is not a GPU of the catalogue \(did you mean mi300x\?\); expected"),
    ):
        with pytest.raises(ValueError, match=says):
            make()


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"^cluster.from_toml: '.*none.toml' cannot be read: No such file or .*;"
    ):
        cluster.from_toml(tmp_path / "none.toml")
    with pytest.raises(
        IsADirectoryError, match=r"^cluster.from_toml: '.*' cannot be read: Is a directory; expected a "
    ):
        cluster.from_toml(tmp_path)
    with pytest.raises(
        ValueError, match=r"^cluster.from_toml: 'a\\x00' is not a path: it has a null character; expected a TOML"
    ):
        cluster.from_toml("a\0")
    with pytest.raises(FileNotFoundError):
        cluster.from_xml(tmp_path / "none.xml")


def test_this_machine_is_its_cpu_domains():
    here = cluster.this_machine()
    assert here.platform == "cpu"
    assert here.dims == (len(ad.Machine.live().cpu_domains),)
    assert here.parts["bandwidth"] is None
    assert here.devices()[0].device_kind == "cpu"
    assert repr(here.devices()[0]) == "CpuDevice(id=0, process_index=0)"


def test_measured_rates_are_shared_out_among_the_domains():
    conditions = Conditions(
        date="", cpu_model="", isa="avx2", workers=2, bound_workers=2, devices_sharing=1, together=True,
        load_average=None, frequency_hz=None, cpu_quota=None, array_bytes=1, cache_bytes=None, numpy_version="",
        library_version="",
    )  # fmt: skip
    rate = Rate(8e10, 8e10, 0.0, 0.1, 5, "gemm")
    stream = Rate(2e10, 2e10, 0.0, 0.1, 5, "copy")
    found = MeasuredRoofline.from_rates("all CPU devices", {"float32": [rate], "float64": [rate]}, [stream], conditions)
    here = cluster.this_machine(measured=found)
    domains = here.device_count
    assert here.parts["peak_flops"] == {"float32": (8e10 / domains, "measured")}
    assert here.parts["memory_bandwidth"] == (2e10 / domains, "measured")
    assert here.parts["bandwidth"] == (1e10 / domains, "measured")


def test_cluster_devices_have_no_cores_memory_or_topology_file():
    device = cluster.tpu("v5e", (2, 2)).devices()[1]
    assert (device.cpuset, device.numa_nodes) == ("", [])
    assert repr(device.default_memory()) == "TPU_DEVICE_3"
    assert device.memory_stats()["bytes_limit"] == 16 * 2**30
    assert device.client.cluster == cluster.tpu("v5e", (2, 2))
    assert ad.devices()[0].client.cluster is None
    with pytest.raises(
        RuntimeError, match=r"the devices are of the cluster \"TPU v5e 2x2\"; expected devices of a machine"
    ):
        xla_client.get_topology_for_devices([device])


@pytest.mark.parametrize(
    "nodes", [cluster.dgx("a100", nodes=2), cluster.dgx("a100-40gb", nodes=2), cluster.mi300x(nodes=2)]
)
def test_networks_without_a_source_are_marked(nodes):
    assert nodes.parts["network_bandwidth"][1] == "unverified"
    assert "B/s [unverified] a chip" in nodes.describe()
    assert cluster.gpus("a100", nodes=2, network_bandwidth=1e10).parts["network_bandwidth"] == (1e10, "given")
    assert cluster.dgx("h100", nodes=2).parts["network_bandwidth"] == (5e10, "S8")


def test_short_names_of_the_v100():
    assert cluster.gpus("v100-32gb") == cluster.gpus("v100")
    assert cluster.gpus("v100-32gb").name == "16 v100"


def test_recorded_machines_become_nodes(shared_topologies):
    by_pci = "GPUs are taken to be joined by PCI Express: the file has no NVLink or xGMI links that join all of them"
    p100 = cluster.from_xml(shared_topologies / "xeon-2s-2xP100.xml", nodes=3, network_bandwidth=1e10)
    assert (p100.platform, p100.device_count, p100.slices) == ("gpu", 6, 3)
    assert p100.parts["network_bandwidth"] == (1e10, "given")
    mi250 = cluster.from_xml(shared_topologies / "epyc-1s-nps4-8xMI250X.xml")
    assert (mi250.device_count, mi250.network, mi250.dims) == (8, "full mesh", (8,))
    # The file's matrix XGMIBandwidth has 100,000 MB/s for each pair.
    assert mi250.parts["bandwidth"] == (1e11, str(shared_topologies / "epyc-1s-nps4-8xMI250X.xml"))
    assert (mi250.parts["link_kind"], by_pci in mi250.parts["notes"]) == ("xGMI", False)
    dgx2 = cluster.from_xml(shared_topologies / "dgx2-16xV100.xml", nodes=2)
    assert (dgx2.device_count, dgx2.parts["bandwidth"]) == (32, (1.5e11, "S8"))
    assert dgx2.parts["memory_bytes"] == (32 * 2**30, "S8 S9 S12")
    power9 = cluster.from_xml(shared_topologies / "power9-2s-4xV100.xml", bandwidth=7.5e10).parts
    assert (power9["dims"], power9["bandwidth"], power9["link_kind"]) == ((4,), (7.5e10, "given"), "")
    notes = cluster.from_xml(shared_topologies / "power9-2s-4xV100.xml").parts["notes"]
    about = dgx2.parts["notes"]  # what the catalogue says of the chip, whose numbers are taken
    assert "numbers of the SXM modules; the PCIe card" in about[0]
    v100 = cluster.from_xml(shared_topologies / "dgx2-16xV100.xml", bandwidth=1e11).parts
    assert v100["notes"] == about
    assert notes[-1] == by_pci
    assert by_pci not in power9["notes"]
    knl = cluster.from_xml(shared_topologies / "knl-snc4-flat-mcdram.xml")
    assert (knl.platform, knl.device_count, knl.dims) == ("cpu", 4, (4,))


def machine_xml(pci_devices: str, distances: str = "") -> str:
    """A machine of one NUMA node and two CPUs, with devices on its PCI bus."""
    sets = 'cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1"'
    one = 'nodeset="0x1" complete_nodeset="0x1"'
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" {sets} allowed_cpuset="0x3" allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" {sets} gp_index="2" local_memory="8000000000"/>
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" {one} gp_index="3"/>
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" {one} gp_index="4"/>
    <object type="Bridge" gp_index="5" bridge_type="0-1" depth="0" bridge_pci="0000:[00-ff]">
{pci_devices}
    </object>
  </object>
{distances}
</topology>
"""


def pci_device(bus: int, kind: str, backend: str = "", name: str = "") -> str:
    inside = f'<info name="PCIDevice" value="{name}"/>' if name else ""
    if backend:
        info = f'<info name="Backend" value="{backend}"/>'
        inside += f'<object type="OSDev" gp_index="{100 + bus}" name="dev{bus}" osdev_type="1">{info}</object>'
    return (
        f'<object type="PCIDev" gp_index="{10 + bus}" pci_busid="0000:{bus:02x}:00.0" '
        f'pci_type="{kind} [0000:0000] a1" pci_link_speed="31.500000">{inside}</object>'
    )


SCREEN = "0300 [10de:128b]"  # a GeForce GT 710
A100 = "0302 [10de:20b2]"


@pytest.mark.parametrize(
    ("devices", "platform", "count"),
    [
        (pci_device(1, SCREEN, name="GK208B"), "cpu", 1),
        (pci_device(1, "0300 [8086:9a49]", "OpenCL"), "cpu", 1),  # a processor's own graphics
        (pci_device(1, SCREEN, "CUDA"), "gpu", 1),  # programs compute on it
        (pci_device(1, SCREEN) + pci_device(2, A100, "NVML") + pci_device(3, A100, "NVML"), "gpu", 2),
        (pci_device(1, "0300 [1002:66a1]", "OpenCL"), "gpu", 1),  # an MI50, which has a VGA controller's class
    ],
    ids=["display", "own graphics", "CUDA", "beside A100", "MI50"],
)
def test_display_cards_of_recorded_machines_are_not_devices(tmp_path, devices, platform, count):
    path = tmp_path / "machine.xml"
    path.write_text(machine_xml(devices))
    made = cluster.from_xml(path)
    assert (made.platform, made.device_count) == (platform, count)


def nvlink_matrix(buses: list[int], values: list[list[int]]) -> str:
    names = " ".join(f"PCIDev:{10 + bus}" for bus in buses)
    rows = " ".join(str(value) for row in values for value in row)
    return (
        f'<distances2hetero nbobjs="{len(buses)}" kind="25" name="NVLinkBandwidth">'
        f'<indexes length="{len(names)}">{names}</indexes><u64values length="{len(rows)}">{rows}</u64values>'
        "</distances2hetero>"
    )


GPUS = [1, 2, 3]
PAIRS = [[0, 50_000, 75_000], [50_000, 0, 50_000], [75_000, 50_000, 0]]
LINE = [[0, 50_000, 0], [50_000, 0, 50_000], [0, 50_000, 0]]  # the first and the last are not joined
SWITCHED = [[0, 0, 0, 200, 100], [0, 0, 0, 100, 150], [0, 0, 0, 200, 200], [0] * 5, [0] * 5]  # and two switches


@pytest.mark.parametrize(
    ("buses", "values", "network", "kind", "bandwidth"),
    [
        (GPUS, PAIRS, "full mesh", "NVLink", 5e10),
        ([*GPUS, 4, 5], SWITCHED, "switch", "NVLink", 2.5e8),
        (GPUS, LINE, "switch", "PCI Express", 3.15e10),
    ],
    ids=["pairs", "switches", "some pairs only"],
)
def test_links_between_gpus_are_read_from_the_file(tmp_path, buses, values, network, kind, bandwidth):
    switches = "".join(pci_device(bus, "0680 [10de:1af1]") for bus in (4, 5))
    path = tmp_path / "machine.xml"
    gpus = "".join(pci_device(bus, A100, "NVML") for bus in GPUS)
    path.write_text(machine_xml(gpus + switches, nvlink_matrix(buses, values)))
    made = cluster.from_xml(path)
    assert (made.device_count, made.network, made.parts["link_kind"]) == (3, network, kind)
    assert made.parts["bandwidth"] == (pytest.approx(bandwidth, rel=1e-6), str(path))
    assert made.parts["host_bandwidth"] == (pytest.approx(3.15e10, rel=1e-6), str(path))
    by_pci = [note for note in made.parts["notes"] if "PCI Express" in note]
    assert len(by_pci) == (kind == "PCI Express")
    given = cluster.from_xml(path, bandwidth=1e11)  # out of a chip
    assert (given.network, given.parts["bandwidth"], given.parts["link_kind"]) == ("switch", (1e11, "given"), "")


@pytest.mark.parametrize("name", ["latency", "network_latency"])
def test_recorded_machines_take_a_latency_of_zero_and_none_below(shared_topologies, name):
    path = shared_topologies / "xeon-2s-2xP100.xml"
    assert cluster.from_xml(path, nodes=2, **{name: 0.0}).parts[name] == (0.0, "given")
    with pytest.raises(ValueError, match=rf"^cluster\.from_xml: {name} is -0\.5"):
        cluster.from_xml(path, nodes=2, **{name: -0.5})


# In a process of its own, as memory is measured.
MILLION = """
import resource
import numpy as np
import artifex_devices as ad
from artifex_devices import NamedSharding, P, cluster

ad.devices()  # the base world, and what else is loaded once
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
pod = cluster.tpu("v5p", (16, 16, 16), slices=256)
before = resident()
with ad.simulate(pod) as client:
    assert client.device_count() == 1 << 20
    mesh = ad.make_mesh((1024, 1024), ("x", "y"))
    last = ad.make_mesh((4,), ("z",)).devices[3]
    assert last.coords == (3, 0, 0)
    rows = NamedSharding(mesh, P(("x", "y")))
    assert rows.device_index(last, (1 << 20, 8)) == (slice(3, 4), slice(None))
    bytes_each = (resident() - before) / (1 << 20)
    assert bytes_each < 300, bytes_each
    far = client.devices()[-1]
    assert (far.coords, far.slice_index, far.process_index) == ((15, 15, 15), 255, 262143)
print(round(bytes_each))
"""


def test_a_million_devices_take_little():
    done = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, timeout=100)
    assert done.stderr == ""
    assert 0 < int(done.stdout) < 300
