# SPDX-License-Identifier: Apache-2.0
"""tools/older_libraries.py: what is linked with its folder needs glibc 2.28 and the libstdc++ of GCC 8, and works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"
# Compiler, and what runs its programs.
TARGETS = {
    "this machine": (os.environ.get("CXX", "c++"), []),
    "aarch64": ("aarch64-linux-gnu-g++", ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]),
}

# Each line calls functions that are newer than these libraries, or older ones in newer versions.
SOURCE = r"""
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <future>
#include <mutex>
#include <string_view>
#include <thread>
#include <sys/stat.h>

extern "C" int number_of_failures(const char* folder, double two) {
  int failures = 0;
  double parsed = 0;
  const std::string_view text = "2.5";
  failures += std::from_chars(text.data(), text.data() + text.size(), parsed).ec != std::errc() || parsed != 2.5;
  failures += !std::filesystem::is_directory(folder) || std::filesystem::path(folder).filename() != "a b";
  struct stat one, other;
  failures += stat(folder, &one) != 0 || lstat(folder, &other) != 0;
  failures += one.st_ino != other.st_ino || !S_ISDIR(one.st_mode);
  failures += std::pow(two, 10.0) != 1024 || std::log2(two) != 1;

  std::exception_ptr error;
  std::thread([&] {
    try {
      throw std::out_of_range("thrown in a thread");
    } catch (...) {
      const std::exception_ptr copy = std::current_exception();
      error = copy;
    }
  }).join();
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    failures += std::string_view(caught.what()) != "thrown in a thread";
  }
  error = nullptr;

  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  const auto start = std::chrono::steady_clock::now();
  failures += condition.wait_for(lock, std::chrono::milliseconds(20), [] { return false; });
  failures += std::chrono::steady_clock::now() - start < std::chrono::milliseconds(20);
  failures += std::async(std::launch::async, [] { return 7; }).get() != 7;
  return failures;
}
"""

# As glibc before 2.30, which has no pthread_cond_clockwait: a wait of 20 ms by the monotonic clock. Prints its end.
WAIT = r"""
#define dlsym(library, name) NULL
#include "older_glibc.c"
#undef dlsym
#include <errno.h>
#include <stdio.h>
int main(void) {
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  struct timespec start, end, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  end.tv_sec = start.tv_sec + (start.tv_nsec >= 980000000);
  end.tv_nsec = (start.tv_nsec + 20000000) % 1000000000;
  pthread_mutex_lock(&mutex);
  const int result = pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &end);
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double waited = now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) / 1e9;
  printf("%d %d", result == ETIMEDOUT, waited > 0.0199 && waited < 10);
}
"""

MAIN = r"""
extern "C" int number_of_failures(const char* folder, double two);
int main(int, char** arguments) { return number_of_failures(arguments[1], 2); }
"""

pytestmark = pytest.mark.timeout(600)  # 4 s of compiling, on a machine that compiles other things


class Target:
    """Compiles in a folder for an architecture, and runs programs of it."""

    def __init__(self, name, folder):
        self.compiler, self.runs = TARGETS[name]
        self.folder = folder
        if missing := [tool for tool in (self.compiler, *self.runs[:1]) if shutil.which(tool) is None]:
            pytest.skip(f"missing: {', '.join(missing)}")

    def compiled(self, name, source, *options):
        (self.folder / name).write_text(source, encoding="utf-8")
        subprocess.run([self.compiler, *options, name, "-o", f"{name}.out"], cwd=self.folder, check=True)
        return self.folder / f"{name}.out"

    def run(self, *command):
        return subprocess.run([*self.runs, *command], check=False, capture_output=True, text=True)


@pytest.fixture(params=TARGETS)
def target(request, tmp_path):
    return Target(request.param, tmp_path)


@pytest.mark.parametrize("optimization", ["-O0", "-O1"])  # inline functions of headers are called, or are inline
def test_a_library_needs_only_the_versions_of_manylinux_2_28_and_works(target, tmp_path, optimization):
    environment = {**os.environ, "CXX": target.compiler}
    subprocess.run([sys.executable, TOOLS / "older_libraries.py", tmp_path / "older"], check=True, env=environment)
    options = [
        "-std=c++20",
        optimization,
        "-shared",
        "-fPIC",
        "-D_GLIBCXX_ASSERTIONS",
        "-Wl,-z,defs",
        "-Wl,--gc-sections",
    ]
    library = target.compiled("library.cpp", SOURCE, *options, f"-L{tmp_path / 'older'}")

    needed = subprocess.run(["readelf", "-VW", library], check=True, capture_output=True, text=True).stdout
    newest = {}
    for family, number in re.findall(r"Name: ([A-Z]+)_([\d.]+)", needed):
        newest[family] = max(newest.get(family, ()), tuple(map(int, number.split("."))))
    assert newest["GLIBC"] <= (2, 28)
    assert newest["GLIBCXX"] <= (3, 4, 24)
    assert newest["CXXABI"] <= (1, 3, 11)

    (tmp_path / "a b").mkdir()
    program = target.compiled("main.cpp", MAIN, "-Wl,--no-as-needed", library, f"-Wl,-rpath,{tmp_path}")
    done = target.run(program, tmp_path / "a b")
    assert (done.returncode, done.stderr) == (0, "")


def test_waits_by_another_clock_end_in_time(target):
    program = target.compiled("wait.c", WAIT, "-x", "c", f"-I{TOOLS}", "-pthread", "-lstdc++")
    assert target.run(program).stdout == "1 1"
