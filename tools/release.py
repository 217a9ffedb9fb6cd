#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and checks a release: `make release`.

    tools/release.py            checks, sdist, wheels, metadata; then what is left to do by hand
    tools/release.py --check    the checks before the build, and nothing else

The version is that of CMakeLists.txt; CHANGELOG.md and CITATION.cff must have the same. tools/make_wheels.sh builds the
sdist, a wheel for each interpreter found and one for aarch64, and runs the README from each. Root runs the README on a
bare Debian 11 too (tools/test_oldest.sh). A pushed tag is published by .github/workflows/release.yml.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AGAIN = "Run `make release` again"  # a step of an incomplete release
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")  # each release has a wheel for these
# Commands that the wheel for aarch64 needs, and their packages.
CROSS_COMPILER = {"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", "qemu-aarch64-static": "qemu-user-static"}
VERSIONS = {
    "CMakeLists.txt": r"^project\(artifex_devices VERSION ([0-9.]+)",
    "CHANGELOG.md": r"^## \[([^\]]+)\]",
    "CITATION.cff": r"^version: (\S+)$",
}
DATES = {
    "CHANGELOG.md": (r"^## \[{version}\] - \d{{4}}-\d\d-\d\d$", "## [{version}] - YYYY-MM-DD"),
    "CITATION.cff": (r"^date-released: \d{{4}}-\d\d-\d\d$", "date-released: YYYY-MM-DD"),
}


def _found(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else ""


def version_of(root: Path) -> str:
    """The version that CMakeLists.txt declares."""
    return _found(root / "CMakeLists.txt", VERSIONS["CMakeLists.txt"])


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def problems(root: Path) -> list[str]:
    """Everything that makes a build from this checkout not a release."""
    version = version_of(root)
    found = [
        f"{name}: the newest version is {_found(root / name, pattern) or 'missing'}; expected {version}, as in "
        f"CMakeLists.txt; edit one of them"
        for name, pattern in VERSIONS.items()
        if _found(root / name, pattern) != version
    ]
    if changed := _git(root, "status", "--porcelain"):
        found.append(f"git: {len(changed.splitlines())} files differ from the commit; expected none; commit them")
    tagged = _git(root, "tag", "--list", "--format=%(*objectname)%(objectname)", f"v{version}")
    if tagged and not tagged.startswith(_git(root, "rev-parse", "HEAD")):
        found.append(
            f"git: another commit has the tag v{version}; expected a new version; raise it in {', '.join(VERSIONS)}"
        )
    return found


def left_to_do(root: Path, files: list[str]) -> list[str]:
    """The steps of a release that need a person, for the files of dist/."""
    version = version_of(root)
    dates = [
        f"Write the date into {name}: {shown.format(version=version)}"
        for name, (pattern, shown) in DATES.items()
        if not re.search(
            pattern.format(version=re.escape(version)), (root / name).read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    wheels = [file for file in files if file.endswith("_x86_64.whl")]
    missing = [
        python for python in PYTHONS if not any(f"-cp{python.replace('.', '')}-manylinux" in wheel for wheel in wheels)
    ]
    again = []
    if missing:
        again.append(f"Install Python {', '.join(missing)} with headers and venv: wheels for them are missing")
    if not any(file.endswith("_aarch64.whl") for file in files):
        again.append(f"Install {' and '.join(CROSS_COMPILER.values())}: the wheel for aarch64 is missing")
    if dates or again:
        again.append(AGAIN)
    return [
        *dates,
        *again,
        "Wait for CI (`.ci/run`) to pass on this commit",
        f"Tag it: git tag --sign v{version} --message 'artifex_devices {version}' && git push origin v{version}; "
        f"the workflow `release` builds from the tag, tests and uploads to PyPI",
        f"Publish a release for the tag with the section {version} of CHANGELOG.md",
        "Start the next version: CMakeLists.txt, CHANGELOG.md, CITATION.cff",
    ]


def main() -> int:
    """Checks and builds."""
    parser = argparse.ArgumentParser(description="builds and checks a release")
    parser.add_argument("--check", action="store_true", help="only the checks before the build")
    arguments = parser.parse_args()
    if found := problems(ROOT):
        print("\n".join(f"release: {problem}" for problem in found), file=sys.stderr)
        return 1
    if arguments.check:
        return 0
    make_wheels = ROOT / "tools" / "make_wheels.sh"
    subprocess.run([make_wheels], cwd=ROOT, check=True)
    if os.geteuid() == 0 or all(map(shutil.which, CROSS_COMPILER)):  # root installs what is missing
        subprocess.run([make_wheels], cwd=ROOT, check=True, env={**os.environ, "TARGET": "aarch64"})
    files = sorted(path.name for path in (ROOT / "dist").iterdir())
    command = [sys.executable, "-m", "twine", "check", "--strict", *(f"dist/{file}" for file in files)]
    subprocess.run(command, cwd=ROOT, check=True)
    if os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0:
        subprocess.run([ROOT / "tools" / "test_oldest.sh"], cwd=ROOT, check=True)
    else:
        print("release: the README on Debian 11 is left out, which needs root: sudo make wheel-oldest")
    print(f"\nartifex_devices {version_of(ROOT)} is built and checked. Left to do by hand:")
    steps = left_to_do(ROOT, files)
    for number, step in enumerate(steps, 1):
        print(f"  {number}. {step}")
    return int(AGAIN in steps)


if __name__ == "__main__":
    sys.exit(main())
