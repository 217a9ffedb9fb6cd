// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artifex_devices {

/// A set of CPUs by operating-system number, as hwloc prints lists: "0-3,8".
struct CpuSet {
  std::vector<int> cpus;  // ascending
  std::string to_string() const;
  friend bool operator==(const CpuSet&, const CpuSet&) = default;
};

/// One NUMA node of a machine.
struct NumaNode {
  int logical_index = 0;
  int os_index = 0;
  int64_t memory_bytes = 0;
  CpuSet cpus;          // empty for nodes without usable CPUs
  std::string subtype;  // "DRAM", "HBM", "NVM", "MCDRAM", "GPUMemory" or ""

  /// Memory of a GPU that the system lists as a node (POWER9, Grace): no host array is placed there.
  bool is_gpu_memory() const noexcept { return subtype == "GPUMemory"; }
};

/// One natural CPU device: a minimal, distinct, non-empty set of CPUs with a NUMA node. Nodes of GPUs are left out.
struct CpuDomain {
  CpuSet cpus;
  std::vector<int> nodes;        // logical indexes of nodes with exactly these CPUs
  std::vector<int> wider_nodes;  // logical indexes of nodes with these and other CPUs
  int default_node = 0;          // logical index: the DRAM node, else the largest
  int cores = 0;                 // physical cores; CPUs if unknown
  friend bool operator==(const CpuDomain&, const CpuDomain&) = default;
};

/// Number of objects by type. The live machine is loaded without I/O devices.
struct MachineCounts {
  int packages = 0, numa_nodes = 0, l3_caches = 0, cores = 0, pus = 0, groups = 0, pci_devices = 0, os_devices = 0;
};

/// A machine described by hwloc: the live one, an XML file, or a synthetic string. Immutable, thread-safe for readers.
/// hwloc's types stay in topology/*.cpp.
class Machine {
 public:
  /// Returns the machine that this process runs on, restricted by affinity and cgroups. Loaded at the first call and
  /// cached. `HWLOC_XMLFILE`, `HWLOC_SYNTHETIC` and similar variables are ignored. Without a readable topology it has
  /// one domain with the CPUs of the affinity mask.
  static std::shared_ptr<const Machine> live();

  /// Reads an hwloc XML file. Throws FileNotFound, or InvalidArgument if it is not hwloc XML, is larger than 64 MiB or
  /// cannot be imported. Never uses the live machine instead, reads no other file, and expands no entities.
  static std::shared_ptr<const Machine> from_xml(const std::string& path);
  static std::shared_ptr<const Machine> from_xml_text(std::string_view text);

  /// Builds a machine from hwloc's synthetic notation, such as "pack:2 numa:2 core:4 pu:2". Throws InvalidArgument if
  /// it is malformed, or describes more than 4,096 PUs (hwloc needs more than quadratic time).
  static std::shared_ptr<const Machine> from_synthetic(const std::string& description);

  virtual ~Machine() = default;

  virtual bool is_live() const noexcept = 0;
  /// "live", the path of the XML file, or the synthetic string.
  virtual const std::string& source() const noexcept = 0;
  virtual const MachineCounts& counts() const noexcept = 0;
  virtual const std::vector<NumaNode>& numa_nodes() const noexcept = 0;
  /// At least one; ordered by first CPU.
  virtual const std::vector<CpuDomain>& cpu_domains() const noexcept = 0;

  /// Number of CPUs that the process may use: the CPUs of the domains, limited by a cgroup quota (live machine only)
  /// and rounded up; at least 1.
  virtual int usable_cpus() const noexcept = 0;

  /// Memory of the host: the sum over the nodes that are not memory of a GPU.
  int64_t host_memory_bytes() const noexcept;

  /// Memory that the process may use: that of the host, limited by a cgroup or RLIMIT_AS (live machine only).
  virtual int64_t usable_memory_bytes() const noexcept = 0;

  /// The machine as hwloc XML text, format 2.
  virtual std::string to_xml() const = 0;
};

/// Like `Machine::live()->usable_memory_bytes()`, but read again and including swap space: memory and limits can change
/// while a process runs.
int64_t usable_memory_bytes_now();

/// Limits that hwloc does not report; absent if unlimited or unreadable. Read from /proc and /sys under `root`, for
/// cgroup versions 1 and 2; the tightest limit of the group and its parents counts.
struct CgroupLimits {
  std::optional<double> cpus;
  std::optional<int64_t> memory_bytes;
};
CgroupLimits read_cgroup_limits(const std::string& root = "");

}  // namespace artifex_devices
