// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

struct hwloc_topology;  // hwloc.h is included by topology/*.cpp alone

// Private to topology/*.cpp.
namespace artifex_devices {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const noexcept;
};
using OwnTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// A machine with hwloc's topology behind it (null when even that could not be loaded).
class LoadedMachine final : public Machine {
 public:
  /// Takes `topology` over and reads it; `operation` begins the message of a refusal.
  LoadedMachine(OwnTopology topology, std::string source, bool is_live, const std::string& operation);
  /// The live machine without a topology: one domain.
  LoadedMachine(CpuSet cpus, int64_t memory_bytes);
  ~LoadedMachine() override;
  LoadedMachine(const LoadedMachine&) = delete;
  LoadedMachine& operator=(const LoadedMachine&) = delete;

  bool is_live() const noexcept override { return is_live_; }
  const std::string& source() const noexcept override { return source_; }
  const MachineCounts& counts() const noexcept override { return counts_; }
  const std::vector<NumaNode>& numa_nodes() const noexcept override { return numa_nodes_; }
  const std::vector<CpuDomain>& cpu_domains() const noexcept override { return cpu_domains_; }
  int usable_cpus() const noexcept override { return usable_cpus_; }
  int64_t usable_memory_bytes() const noexcept override { return usable_memory_bytes_; }
  std::string to_xml() const override;

  hwloc_topology* topology() const noexcept { return topology_; }

  /// The live machine's limits that hwloc does not see.
  void apply_limits(std::optional<double> cpus, std::optional<int64_t> memory_bytes) noexcept;
  /// Divides the memory of each node by the number of `shares` that have CPUs of it. `nodes` are those of the whole
  /// machine, by number of the operating system.
  void divide_memory(const std::vector<NumaNode>& nodes, const std::vector<CpuSet>& shares) noexcept;

 private:
  void count_objects();
  void read_numa_nodes(const std::string& operation);
  void find_cpu_domains();
  void sum_up() noexcept;

  hwloc_topology* topology_ = nullptr;
  std::string source_;
  bool is_live_ = false;
  MachineCounts counts_;
  std::vector<NumaNode> numa_nodes_;
  std::vector<CpuDomain> cpu_domains_;
  int usable_cpus_ = 1;
  int64_t usable_memory_bytes_ = 0;
};

/// The live machine loaded once more, with its PCI and OS devices. No topology where the environment tells hwloc to
/// show another machine, or hwloc cannot load it.
class LiveIoTopology {
 public:
  LiveIoTopology();
  ~LiveIoTopology();
  LiveIoTopology(const LiveIoTopology&) = delete;
  LiveIoTopology& operator=(const LiveIoTopology&) = delete;
  hwloc_topology* topology() const noexcept { return topology_; }

 private:
  hwloc_topology* topology_ = nullptr;
};

/// What this process has of the machine where others of its job run beside it.
struct LiveShare {
  CpuSet mine;
  std::vector<CpuSet> all;  // of every process there, mine among them
};

/// Loads the live machine, or a share of it (null: all); never throws but for want of memory.
std::shared_ptr<const Machine> load_live_machine(const LiveShare* share = nullptr);

/// The running system as hwloc XML, from `root`/sys and the affinity mask alone: machine, NUMA nodes, PUs.
std::string system_xml(const CpuSet& affinity, const std::string& root);

/// The CPUs of this thread's affinity mask.
CpuSet affinity_cpus();

/// Bytes of memory of the whole system, with or without its swap space; 0 where unreadable. Without a root and
/// without /proc/meminfo it is what sysinfo(2) says.
int64_t system_memory_bytes(const std::string& root = "", bool with_swap = false);

/// Throws InvalidArgument unless `text` is XML that hwloc may be shown: an element `topology` of a version that it
/// reads, no DTD but hwloc's own without a body, no deep nesting. `name` is what messages call it.
void check_xml(std::string_view text, const std::string& name);

/// Throws InvalidArgument unless `description` is a synthetic machine of a size that hwloc can build.
void check_synthetic(const std::string& description);

}  // namespace artifex_devices
