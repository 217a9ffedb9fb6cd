# SPDX-License-Identifier: Apache-2.0
"""The inputs of tests/fuzz that Python reads, without a fuzzer: whole, cut off and with single bits changed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import artifex_devices as ad
import pytest
from artifex_devices import cluster, xla_client
from artifex_devices.device_manager.process_settings import merged_flags

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
TARGETS = sorted(
    path.stem for path in (FUZZ / "python").glob("*.py") if re.search(r"^def one_input\b", path.read_text(), re.M)
)


def replayed(target, folder):
    """Inputs and how many are accepted, in a process of its own: `variables` must be there before the first device."""
    done = subprocess.run(
        [sys.executable, FUZZ / "python" / "run.py", "--replay", target, folder],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = re.match(rf"{target}: (\d+) files, (\d+) accepted", done.stdout)
    assert found, done.stdout
    return int(found[1]), int(found[2])


def test_each_target_has_inputs():
    folders = {path.name for path in (FUZZ / "corpus").iterdir()}
    assert {*TARGETS, *(path.stem for path in FUZZ.glob("*.cpp") if path.stem != "replay")} == folders


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_is_a_fault(target):
    files, accepted = replayed(target, FUZZ / "corpus" / target)
    assert files == len(os.listdir(FUZZ / "corpus" / target))
    assert 2 <= accepted < files  # some of each, else the inputs are of another version


def test_a_fault_is_found(tmp_path):
    """The replay of a parser that lets another exception out fails."""
    (tmp_path / "one").write_bytes(b"mx=2")
    broken = (
        "import sys; sys.path.insert(0, sys.argv[1]); import mesh_text, run\n"
        "def read(option, text): raise KeyError(text)\n"
        "mesh_text.read_sizes = read\n"
        "run.main(['--replay', 'mesh_text', sys.argv[2]])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", broken, FUZZ / "python", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "KeyError: 'x=2'" in done.stderr


# What the core's targets are given, as Python hands it on.
CORE = {
    "device_assignment": lambda data, path: xla_client.DeviceAssignment.deserialize(data),
    "device_topology": lambda data, path: xla_client.DeviceTopology.deserialize(data),
    "layout_text": lambda data, path: xla_client.Layout.parse(data.decode("latin-1")),
    "machine_xml": lambda data, path: ad.Machine.from_xml(str(path)),
    "synthetic": lambda data, path: ad.Machine.from_synthetic(data.decode("latin-1")),
}


@pytest.mark.parametrize("target", CORE)
def test_python_hands_on_what_the_core_refuses(target):
    accepted, errors = 0, []
    for path in sorted((FUZZ / "corpus" / target).iterdir()):
        try:
            CORE[target](path.read_bytes(), path)
            accepted += 1
        except (ValueError, RuntimeError) as error:
            errors.append(error)
    assert accepted >= 1
    assert all(type(error) in (ValueError, RuntimeError) and ": " in str(error) for error in errors), errors


def test_hundreds_of_wrong_keys_are_found_at_once(tmp_path):
    """Looking for their lines took 30 s for 200 of them, and with the cube of their number."""
    path = tmp_path / "lab.toml"
    path.write_text("".join(f"k{i} = 1\n" for i in range(1990)) + '[chip]\nname = "h100"\n[slice]\nchips = 8\n')
    with pytest.raises(
        ValueError, match=r"line 1: k0 is not a key; .*line 50: k49 is not a key; .* and 1940 others; correct"
    ):
        cluster.from_toml(path)


def test_flags_follow_a_quote_that_is_not_closed():
    assert merged_flags('--a="1 2', "--b=3") == ('--a="1 2" --b=3', [])
    assert merged_flags("--a='\"1", "--b='2 ") == ("--a='\"1' --b='2 '", [])


def test_a_path_that_is_not_utf8_is_refused():
    for read in (cluster.from_toml, cluster.from_xml):
        with pytest.raises(ValueError, match=r"path is b'l\\xffab'; expected a path in UTF-8; rename it"):
            read(b"l\xffab")
    with pytest.raises(ValueError, match=r"cluster\.gpus: gpu is 'h\\udcff'; expected characters that can be printed"):
        cluster.gpus("h\udcff")


def test_what_is_not_a_file_of_moderate_size_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "largest.toml").write_bytes(b"#" * (256 << 10))
    for name in ("/dev/zero", tmp_path / "pipe.toml"):
        with pytest.raises(ValueError, match="is not a regular file; expected a TOML file"):
            cluster.from_toml(name)
    with pytest.raises(ValueError, match=r"\[chip\] and \[slice\] are missing"):
        cluster.from_toml(tmp_path / "largest.toml")
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        cluster.from_toml(tmp_path)
