# SPDX-License-Identifier: Apache-2.0
"""Files of measurements that cannot be written or read, and the folder that they are in."""

import dataclasses
import os
import stat
from pathlib import Path

import pytest
from artifex_devices.roofline import cache


@dataclasses.dataclass(frozen=True)
class Value:
    number: int
    notes: tuple[str, ...] = ("a note",)

    def to_dict(self):
        return {"number": self.number}


def read(content):
    return Value(content["number"])


def test_a_file_is_read_again_with_its_notes(tmp_path):
    path = tmp_path / "new" / "kind-1.json"
    assert cache.write_measurement(path, {"cpu": "a"}, Value(3)) == f"stored in {path}"
    assert cache.read_measurement(path, {"cpu": "a"}, read) == (Value(3), "")
    assert cache.read_measurement(path, {"cpu": "b"}, read) == (None, f"{path} is not used: it is of another machine")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_file_has_no_reason(tmp_path):
    assert cache.read_measurement(tmp_path / "none.json", {}, read) == (None, "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"format": 99}', "it has another format"),
        ("[]", "it is not a measurement"),
        ("{}", "it is not a measurement"),
    ],
)
def test_other_files_are_not_used(tmp_path, content, reason):
    path = tmp_path / "kind-1.json"
    path.write_text(content)
    assert cache.read_measurement(path, {}, read) == (None, f"{path} is not used: {reason}")


def test_what_is_not_a_file_of_this_user_is_not_used(tmp_path, monkeypatch):
    path = tmp_path / "kind-1.json"
    before = len(os.listdir("/proc/self/fd"))
    os.mkfifo(path)
    assert cache.read_measurement(path, {}, read) == (None, f"{path} is not used: it is not a regular file")
    path.unlink()
    path.mkdir()
    assert cache.read_measurement(path, {}, read) == (None, f"{path} is not used: it is not a regular file")
    path.rmdir()
    assert len(os.listdir("/proc/self/fd")) == before
    path.write_text("{}")
    row = list(os.stat(path))
    row[stat.ST_UID] = os.geteuid() + 1
    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "fstat", lambda number: os.stat_result(row))
        found = cache.read_measurement(path, {}, read)
    assert found == (None, f"{path} is not used: it belongs to another user")


def test_the_largest_file(tmp_path, monkeypatch):
    path = tmp_path / "kind-1.json"
    monkeypatch.setattr(cache, "_LARGEST_FILE", 2)
    path.write_text("{}")
    assert cache.read_measurement(path, {}, read)[1] == f"{path} is not used: it is not a measurement"
    path.write_text("{ }")
    assert cache.read_measurement(path, {}, read)[1] == f"{path} is not used: it has more than 2 bytes"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, error):
    def replace(*_):
        raise error

    monkeypatch.setattr(cache.os, "replace", replace)
    path = tmp_path / "kind-1.json"
    if isinstance(error, OSError):
        assert cache.write_measurement(path, {}, Value(3)) == f"not stored: {error}"
    else:
        with pytest.raises(KeyboardInterrupt):
            cache.write_measurement(path, {}, Value(3))
    assert os.listdir(tmp_path) == []


def test_a_relative_folder_needs_the_current_one(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert cache.cache_directory("here") == (gone / "here", "")
    gone.rmdir()
    assert cache.cache_directory("here") == (
        None,
        "not stored: [Errno 2] No such file or directory: the current directory; pass an absolute path as cache",
    )
    assert cache.cache_directory("/there") == (Path("/there"), "")


@pytest.mark.parametrize(
    ("variables", "folder", "reason"),
    [
        ({"XDG_CACHE_HOME": "/x"}, "/x/artifex_devices", ""),
        ({"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/artifex_devices", ""),
        ({"HOME": ""}, None, f"not stored: there is no home directory; set {cache.VARIABLE} to a directory"),
        ({"HOME": "h"}, None, f"not stored: there is no home directory; set {cache.VARIABLE} to a directory"),
        ({cache.VARIABLE: "Off"}, None, f"not stored: {cache.VARIABLE}=Off"),
        ({cache.VARIABLE: "0"}, None, f"not stored: {cache.VARIABLE}=0"),
        ({cache.VARIABLE: "/c", "HOME": "/h"}, "/c", ""),
        ({cache.VARIABLE: "", "HOME": "/h"}, "/h/.cache/artifex_devices", ""),
    ],
)
def test_variables_choose_the_folder(monkeypatch, variables, folder, reason):
    for name in ("XDG_CACHE_HOME", "HOME", cache.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache.cache_directory(None) == (None if folder is None else Path(folder), reason)
    assert cache.cache_directory(False) == (None, "not stored: cache=False")
