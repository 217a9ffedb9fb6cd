// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

/// Facts about a machine, without an hwloc topology.
struct MachineDescription {
  std::string source;            // Machine::source() of the described machine
  std::string platform_version;  // version of the library that described it
  MachineCounts counts;
  std::vector<NumaNode> numa_nodes;
  std::vector<CpuDomain> cpu_domains;
  int usable_cpus = 0;
  int64_t usable_memory_bytes = 0;

  static MachineDescription of(const Machine& machine, std::string platform_version);
};

/// A machine that is known by description only, and may be a remote machine. Never live.
class DescribedMachine final : public Machine {
 public:
  explicit DescribedMachine(MachineDescription description) noexcept : description_(std::move(description)) {}

  bool is_live() const noexcept override { return false; }
  const std::string& source() const noexcept override { return description_.source; }
  const MachineCounts& counts() const noexcept override { return description_.counts; }
  const std::vector<NumaNode>& numa_nodes() const noexcept override { return description_.numa_nodes; }
  const std::vector<CpuDomain>& cpu_domains() const noexcept override { return description_.cpu_domains; }
  const std::string& platform_version() const noexcept { return description_.platform_version; }
  int usable_cpus() const noexcept override { return description_.usable_cpus; }
  int64_t usable_memory_bytes() const noexcept override { return description_.usable_memory_bytes; }
  /// Throws Unavailable: the caches and distances are not known.
  std::string to_xml() const override;

 private:
  MachineDescription description_;
};

}  // namespace artifex_devices
