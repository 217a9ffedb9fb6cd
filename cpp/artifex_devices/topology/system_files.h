// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// A fact about the system that this process cannot read.
struct MissingFact {
  std::string fact;     // the missing fact: "cores, caches and packages"
  std::string reason;   // the file, and why it cannot be read
  std::string assumed;  // the value used instead
};

/// Returns the facts that cannot be read from the running system under `root`. Reads files only.
std::vector<MissingFact> missing_facts(const std::string& root = "");

/// Returns the facts that were missing when the live machine was loaded.
std::vector<MissingFact> missing_facts(const Machine& live);

/// Returns why hwloc must not read `root`/sys (it would terminate the process or write to standard error), or "".
std::string sysfs_problem(const CpuSet& affinity, const std::string& root = "");

/// Returns the name of an environment variable that is set and makes hwloc show another machine, or "".
std::string variable_that_replaces_machine();

/// The NUMA policy for new pages of this thread, as set by numactl.
struct MemoryPolicy {
  std::string name;        // "default", "preferred", "bind", "interleave", "local", ...; "" if unreadable
  std::vector<int> nodes;  // node numbers of the operating system; empty if the policy names none
  std::string problem;     // why it cannot be read
};
MemoryPolicy memory_policy();

/// Returns the memory of the host that is available without swapping (MemAvailable of `root`/proc/meminfo, less free
/// memory of GPUs), or nothing if unreadable.
std::optional<int64_t> available_memory_bytes(const std::string& root = "");

/// Returns the resident memory of this process, including shared pages; 0 if unreadable. Does not allocate.
int64_t resident_memory_bytes() noexcept;

}  // namespace artifex_devices
