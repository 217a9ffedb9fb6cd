// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// Something that the system does not show to this process.
struct MissingFact {
  std::string fact;     // what is not known: "cores, caches and packages"
  std::string reason;   // which file, and why
  std::string assumed;  // what is taken instead
};

/// What cannot be read of the running system under `root`; empty on a machine that shows all. Reads files only.
std::vector<MissingFact> missing_facts(const std::string& root = "");

/// The same of the machine that we run on, as it was loaded.
std::vector<MissingFact> missing_facts(const Machine& live);

/// Why hwloc must not be shown `root`/sys: it would end the process, or complain on standard error. "" when it may.
std::string sysfs_problem(const CpuSet& affinity, const std::string& root = "");

/// Name of a set variable by which hwloc would show another machine, whatever its caller asks for; "" when there is
/// none.
std::string variable_that_replaces_machine();

/// Where new pages of this thread come from, as numactl sets it.
struct MemoryPolicy {
  std::string name;        // "default", "preferred", "bind", "interleave", "local", ...; "" when it cannot be read
  std::vector<int> nodes;  // by the system's numbers; empty where the policy names none
  std::string problem;     // why it cannot be read
};
MemoryPolicy memory_policy();

/// What the system could give to this process now, without that others lose theirs (MemAvailable of
/// `root`/proc/meminfo); nothing if it does not say.
std::optional<int64_t> available_memory_bytes(const std::string& root = "");

/// Memory that this process has in RAM, shared pages included; 0 where the system does not say. Allocates nothing.
int64_t resident_memory_bytes() noexcept;

/// The hwloc that was built against: "2.9.0".
std::string hwloc_version();

}  // namespace artifex_devices
