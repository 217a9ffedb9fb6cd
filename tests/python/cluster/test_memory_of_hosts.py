# SPDX-License-Identifier: Apache-2.0
"""Memory of the hosts of a cluster: published, given, of files and of older pickles."""

import pickle

import pytest
from artifex_devices import cluster, unpickle
from artifex_devices.command_line.plan.cluster_argument import read_cluster

GIB = 2**30


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (cluster.tpu("v5e", (16, 16)), (384 * GIB, "S2")),
        (cluster.tpu("v5e", (2, 2)), (192 * GIB, "S2")),  # a machine of 4 chips
        (cluster.tpu("v5e", (1, 1)), (48 * GIB, "S2")),
        (cluster.tpu("v6e", (4, 4)), (1536 * GIB, "S4")),
        (cluster.dgx("v100"), (1536 * GIB, "S24")),
        (cluster.dgx("a100-40gb"), (2048 * GIB, "S24")),
        (cluster.dgx("a100"), (2048 * GIB, "S25")),
        (cluster.dgx("h100", nodes=4), (2048 * GIB, "S26")),
        (cluster.dgx("h200"), (2048 * GIB, "S13")),
        (cluster.mi300x(), (1536 * GIB, "S15")),
        (cluster.tpu("v4", (2, 2, 4)), None),
        (cluster.tpu("v5p", (2, 2, 4)), None),
        (cluster.dgx("b200"), None),
        (cluster.nvl72(), None),
        (cluster.gpus("h800"), None),
        (cluster.gpus("h100", chips_per_node=4), None),  # not a DGX
        (cluster.this_machine(), None),
    ],
)
def test_published_memory_has_a_source(pod, expected):
    assert pod.parts["host_memory_bytes"] == expected
    assert ("host memory" in pod.describe()) == (expected is not None)


def test_an_argument_replaces_the_catalogue():
    for pod in (
        cluster.tpu("v5p", (2, 2, 4), host_memory=448e9),
        cluster.dgx("h100", host_memory=448e9),
        cluster.gpus("h800", host_memory=448e9),
        cluster.nvl72(host_memory=448e9),
        cluster.mi300x(host_memory=448e9),
        read_cluster("dgx h100 nodes=2 host_memory=448e9"),
        read_cluster("tpu v5e 4x4 host_memory=448e9"),
    ):
        assert pod.parts["host_memory_bytes"] == (448e9, "given")
    with pytest.raises(ValueError, match=r"cluster\.gpus: host_memory is -1"):
        cluster.dgx("h100", host_memory=-1)
    with pytest.raises(TypeError, match=r"cluster\.tpu: host_memory is 'all'"):
        cluster.tpu("v5e", (4, 4), host_memory="all")


def test_a_file_may_have_it(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text('[chip]\nname = "NVIDIA H100 SXM"\n[slice]\nchips = 4\n[host]\nmemory_bytes = 1e12\n')
    assert cluster.from_toml(path).parts["host_memory_bytes"] == (1e12, str(path))
    path.write_text(path.read_text().replace("1e12", "-1e12"))
    with pytest.raises(ValueError, match="line 6: host_memory_bytes is -1000000000000"):
        cluster.from_toml(path)


def test_pickles_keep_it_and_older_ones_get_that_of_the_catalogue():
    pod = cluster.dgx("h100", host_memory=1e12)
    assert pickle.loads(pickle.dumps(pod)) == pod != cluster.dgx("h100")
    older = dict(cluster.dgx("h100").parts)
    del older["host_memory_bytes"]
    assert unpickle.cluster(older) == cluster.dgx("h100")
    assert unpickle.cluster({**pod.parts, "host_memory_bytes": None}).parts["host_memory_bytes"] is None
