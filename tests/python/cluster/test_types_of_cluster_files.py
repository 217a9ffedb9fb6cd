# SPDX-License-Identifier: Apache-2.0
"""Types of the values of a cluster file, and what is not known of a described cluster."""

import pytest
from artifex_devices import cluster
from artifex_devices.planner import suggest

GOOD = {
    "chip": {
        "name": '"mine"',
        "platform": '"tpu"',
        "devices_per_chip": "2",
        "memory_bandwidth": "1e12",
        "peak_flops": "{bfloat16 = 1e15}",
    },
    "slice": {"dims": "[6, 4]", "wraps": "[true, false]", "bandwidth": "1e11"},
}


def write(path, table=None, key=None, value=None):
    lines = []
    for name, rows in GOOD.items():
        lines.append(f"[{name}]")
        lines += [f"{each} = {value if (name, each) == (table, key) else text}" for each, text in rows.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_file_without_a_change_is_read(tmp_path):
    found = cluster.from_toml(write(tmp_path / "lab.toml"))
    assert (found.dims, found.wraps, found.device_count) == ((6, 4), (True, False), 48)


@pytest.mark.parametrize(
    ("table", "key", "value", "shown"),
    [
        ("chip", "name", "true", "True"),
        ("chip", "devices_per_chip", "true", "True"),
        ("chip", "devices_per_chip", "2.0", "2.0"),
        ("chip", "devices_per_chip", str(2**31), str(2**31)),
        ("chip", "memory_bandwidth", "true", "True"),
        ("chip", "memory_bandwidth", '"1e12"', "'1e12'"),
        ("chip", "peak_flops", "1e15", "1000000000000000.0"),
        ("slice", "dims", "[6, true]", "[6, True]"),
        ("slice", "dims", "6", "6"),
        ("slice", "wraps", "[true, 1]", "[True, 1]"),
        ("slice", "bandwidth", "false", "False"),
    ],
)
def test_values_of_other_types_are_named_with_their_lines(tmp_path, table, key, value, shown):
    path = write(tmp_path / "lab.toml", table, key, value)
    line = path.read_text().splitlines().index(f"{key} = {value}") + 1
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared
        cluster.from_toml(path)
    assert f"line {line}: {key} of [{table}] is {shown}; expected " in str(caught.value)


def test_a_search_needs_the_memory_of_a_device(tmp_path):
    lab = cluster.from_toml(write(tmp_path / "lab.toml"))
    with pytest.raises(RuntimeError) as caught:
        suggest("llama-2-7b", lab, batch=8, sequence=1024, progress=False)
    assert str(caught.value) == (
        f"suggest: the memory of a device of {lab.name} is not known; expected it in the cluster; give the "
        "cluster's chip its memory_bytes"
    )
