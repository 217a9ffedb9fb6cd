# SPDX-License-Identifier: Apache-2.0
"""tools/debian_mirror.sh: packages come from the mirror that apt is set to use, and no file of the project names it."""

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MIRROR_HOSTS = re.compile(rb"(deb|ftp|security|snapshot|archive)\.(debian|ubuntu)\.(org|com)")


@pytest.fixture
def printed(tmp_path):
    """printed(uris): exit code, output and errors of the tool where apt-get prints these URIs."""

    def run(uris):
        apt = tmp_path / "apt-get"
        apt.write_text(f"#!/bin/sh\ncat <<'END'\n{uris}\nEND\n", encoding="utf-8")
        apt.chmod(0o755)
        done = subprocess.run(
            [ROOT / "tools" / "debian_mirror.sh"],
            env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.skipif("VERSION_CODENAME" not in platform.freedesktop_os_release(), reason="not a Debian release")
def test_the_first_source_of_the_suite_is_the_mirror(printed):
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    sources = [("others", f"cloud-{suite}"), ("security", f"{suite}-security"), ("near", suite), ("far", suite)]
    uris = [f"'http://{host}/debian/dists/{name}/InRelease' {host} 0" for host, name in sources]
    assert printed("\n".join(uris)) == (0, "http://near/debian\n", "")
    assert printed(uris[0]) == (1, "", f"no apt source of this machine has the suite {suite}\n")


def test_no_file_names_the_host_of_a_mirror():
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    paths = [ROOT / os.fsdecode(file) for file in files if file and ROOT / os.fsdecode(file) != Path(__file__)]
    assert [path for path in paths if path.is_file() and MIRROR_HOSTS.search(path.read_bytes())] == []
