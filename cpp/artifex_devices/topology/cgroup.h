// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// A control file of a cgroup and its content: {"/sys/fs/cgroup/cpu.max", "50000 100000"}.
struct CgroupFile {
  std::string path;
  std::string text;
};

/// The limits of the process's cgroups, and their files.
struct CgroupReport {
  CgroupLimits limits;
  std::string cpus_from;    // file of the tightest limit on CPUs, or ""
  std::string memory_from;  // file of the tightest limit on memory, or ""
  std::string cpuset;       // CPUs that the group may run on, "0-3,8"; "" if unreadable
  std::string cpuset_from;
  std::vector<CgroupFile> files;      // all control files that were read
  std::vector<std::string> problems;  // files that could not be read, and why
};

/// Like read_cgroup_limits, and returns the files. Paths begin with `root`.
CgroupReport read_cgroup_report(const std::string& root = "");

}  // namespace artifex_devices
