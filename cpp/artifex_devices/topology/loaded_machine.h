// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

struct hwloc_bitmap_s;
struct hwloc_obj;
struct hwloc_topology;  // hwloc.h is included by topology/*.cpp alone

// Private to topology/*.cpp.
namespace artifex_devices {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const noexcept;
};
using OwnTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// Returns whether a NUMA node of hwloc is memory of a GPU.
bool is_gpu_memory(const hwloc_obj* node) noexcept;

struct DestroyBitmap {
  void operator()(hwloc_bitmap_s* set) const noexcept;
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, DestroyBitmap>;
/// An empty set. Throws std::bad_alloc.
Bitmap new_bitmap();

/// A machine with an hwloc topology (null if hwloc could not load it).
class LoadedMachine final : public Machine {
 public:
  /// Takes ownership of `topology` and reads it; error messages begin with `operation`.
  LoadedMachine(OwnTopology topology, std::string source, bool is_live, const std::string& operation);
  /// Creates the live machine without a topology, with one domain.
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

  /// Applies limits of the live machine that hwloc does not report.
  void apply_limits(std::optional<double> cpus, std::optional<int64_t> memory_bytes);
  /// Divides the memory of each node by the number of `shares` that have CPUs of it. `nodes` are all nodes of the
  /// machine.
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

/// The live machine, loaded again with its PCI and OS devices. Has no topology if environment variables make hwloc show
/// another machine, or if hwloc cannot load it.
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

/// The CPUs of this process on a machine that it shares with other processes of its job.
struct LiveShare {
  CpuSet mine;
  std::vector<CpuSet> all;  // one entry for each process on the machine, including this process
};

/// Loads the live machine, or a share of it (null: all of it). Throws only if memory runs out.
std::shared_ptr<const Machine> load_live_machine(const LiveShare* share = nullptr);

/// Returns the running system as hwloc XML with machine, NUMA nodes and PUs, from `root`/sys and the affinity mask
/// only.
std::string system_xml(const CpuSet& affinity, const std::string& root);

/// The CPUs of this thread's affinity mask.
CpuSet affinity_cpus();

/// Returns the bytes of memory of the host, with or without swap space; 0 if unreadable. Without a root and without
/// /proc/meminfo, uses sysinfo(2).
int64_t system_memory_bytes(const std::string& root = "", bool with_swap = false);

/// Throws InvalidArgument unless `text` is XML that is safe for hwloc: an element `topology` of a known version, no DTD
/// except hwloc's own without a body, no deep nesting. Error messages call it `name`.
void check_xml(std::string_view text, const std::string& name);

/// Throws InvalidArgument unless `description` is a valid synthetic machine that is small enough for hwloc.
void check_synthetic(const std::string& description);

}  // namespace artifex_devices
