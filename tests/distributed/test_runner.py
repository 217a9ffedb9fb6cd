# SPDX-License-Identifier: Apache-2.0
"""Which package the processes of a job import."""

import os
import pickle
import subprocess
import sys

import pytest
from launching import HERE, Outcome, environment_of, package_file

pytestmark = pytest.mark.real_processes


def imported_file():
    import artifex_devices

    return artifex_devices.__file__


def test_each_process_imports_the_package_of_the_tests(processes):
    assert processes(2, imported_file).values == [package_file(), package_file()]


def test_jobs_find_packages_where_the_tests_find_them(monkeypatch):
    for paths in ("/first:/second", None):
        if paths is None:
            monkeypatch.delenv("PYTHONPATH")
        else:
            monkeypatch.setenv("PYTHONPATH", paths)
        assert environment_of(2, {}).get("PYTHONPATH") == os.environ.get("PYTHONPATH") == paths


def test_a_process_that_would_import_another_package_is_refused(tmp_path):
    other = str(tmp_path / "artifex_devices" / "__init__.py")
    call = {"package": other, "path": __file__, "body": "imported_file", "arguments": (), "timeout": 30}
    (tmp_path / "call").write_bytes(pickle.dumps({**call, "initialize": False}))
    command = [sys.executable, str(HERE / "runner.py"), str(tmp_path)]
    assert subprocess.run(command, env=environment_of(2, {}), capture_output=True, check=False).returncode == 1
    assert Outcome(tmp_path, 0).value == (
        "ImportError",
        f"artifex_devices is {package_file()} in this process; expected that of the tests, {other}; take it off "
        "PYTHONPATH, or install one only",
    )
