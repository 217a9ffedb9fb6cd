// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// A control file of a cgroup and what stands in it: {"/sys/fs/cgroup/cpu.max", "50000 100000"}.
struct CgroupFile {
  std::string path;
  std::string text;
};

/// The limits of the process's cgroups, and where they are from.
struct CgroupReport {
  CgroupLimits limits;
  std::string cpus_from;    // file of the tightest limit, "" without one
  std::string memory_from;  // the same for memory
  std::string cpuset;       // CPUs that the group may run on, "0-3,8"; "" where its file cannot be seen
  std::string cpuset_from;
  std::vector<CgroupFile> files;      // every control file that was read, limit or not
  std::vector<std::string> problems;  // what could not be read, and why
};

/// As read_cgroup_limits, with the files. Paths begin with `root`.
CgroupReport read_cgroup_report(const std::string& root = "");

}  // namespace artifex_devices
