# SPDX-License-Identifier: Apache-2.0
"""tools/make_wheels.sh and tools/debian_sysroot.sh: which targets there are, and the packages that one needs."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"


@pytest.fixture
def run(tmp_path):
    """run(tool, *arguments, **environment): exit code and errors, with a few commands and those of `fakes`."""
    tools, commands = tmp_path / "tools", tmp_path / "commands"
    tools.mkdir()
    commands.mkdir()
    for command in ("dirname", "mkdir", "realpath", "rm", "ln", "mv", "tar", "cat"):
        (commands / command).symlink_to(shutil.which(command))

    def call(tool, *arguments, fakes=None, **environment):
        shutil.copy(TOOLS / tool, tools)
        for name, text in (fakes or {}).items():
            path = tmp_path / name
            path.write_text(f"#!{shutil.which('bash')}\n{text}\n", encoding="utf-8")
            path.chmod(0o755)
        done = subprocess.run(
            [shutil.which("bash"), tools / tool, *arguments],
            env={"PATH": str(commands), "HOME": str(tmp_path), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    return call


def test_a_target_is_aarch64(run):
    assert run("make_wheels.sh", TARGET="riscv64") == (
        1,
        "wheel: TARGET is 'riscv64'; expected aarch64, or nothing for this machine's architecture\n",
    )


def test_missing_packages_are_named(run):
    fakes = {"commands/id": "echo 1000", "commands/qemu-aarch64-static": ""}
    assert run("make_wheels.sh", fakes=fakes, TARGET="aarch64") == (
        1,
        "wheel: packages are missing; install them: apt-get install g++-aarch64-linux-gnu\n",
    )


@pytest.mark.skipif("VERSION_CODENAME" not in platform.freedesktop_os_release(), reason="not a Debian release")
def test_packages_of_another_architecture_are_unpacked_and_not_installed(run, tmp_path):
    log, content = tmp_path / "log", tmp_path / "content"
    for folder in ("lib", "usr/bin"):
        (content / folder).mkdir(parents=True)
        (content / folder / "file").write_text(folder, encoding="utf-8")
    fakes = {
        "tools/debian_mirror.sh": "echo http://near/debian",
        "commands/apt-get": f"""
            arguments="$*"
            cache=${{arguments#*Dir::Cache=}} list=${{arguments#*Dir::Etc::sourcelist=}}
            echo "${{arguments##* }}" >>{log}
            [[ $arguments == *install* ]] || {{ cat "${{list%% *}}" >>{log}; exit; }}
            echo package >"${{cache%% *}}/archives/some.deb"
        """,
        "commands/dpkg-deb": f"tar -c -C {content} .",
    }
    root = tmp_path / "root"
    assert run("debian_sysroot.sh", "arm64", root, "some", "other", fakes=fakes) == (0, "")
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    signed = "signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
    assert log.read_text(encoding="utf-8").splitlines() == [
        "update",
        f"deb [{signed} arch=arm64] http://near/debian {suite} main",
        "other",
    ]
    assert (root / "usr/lib/file").read_text(encoding="utf-8") == "lib"
    assert (root / "usr/bin/file").read_text(encoding="utf-8") == "usr/bin"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("root")) == ["root"]
