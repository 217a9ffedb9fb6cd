// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/loaded_machine.h"

#include <hwloc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>
#include <string_view>

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr int kMostNumaNodes = 4096;  // limits the search for domains, which compares all pairs

CpuSet cpus_of(hwloc_const_cpuset_t set) {
  CpuSet cpus;
  if (!set || hwloc_bitmap_weight(set) < 0) return cpus;  // infinite
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.cpus.push_back(cpu);
  return cpus;
}

bool is_dram(const NumaNode& node) { return node.subtype.empty() || node.subtype == "DRAM"; }

// Returns whether all CPUs of a (ascending) are in b.
bool is_within(const CpuSet& a, const CpuSet& b) { return std::ranges::includes(b.cpus, a.cpus); }

int to_int(int64_t value) { return static_cast<int>(std::clamp<int64_t>(value, 0, INT32_MAX)); }

}  // namespace

bool is_gpu_memory(const hwloc_obj* node) noexcept {
  // hwloc's own subtype, and the address of the GPU.
  return (node->subtype && std::string_view(node->subtype) == "GPUMemory") ||
         hwloc_obj_get_info_by_name(const_cast<hwloc_obj_t>(node), "PCIBusID") != nullptr;
}

void DestroyTopology::operator()(hwloc_topology* topology) const noexcept { hwloc_topology_destroy(topology); }

void DestroyBitmap::operator()(hwloc_bitmap_s* set) const noexcept { hwloc_bitmap_free(set); }

Bitmap new_bitmap() {
  Bitmap set(hwloc_bitmap_alloc());
  if (!set) throw std::bad_alloc();
  return set;
}

LoadedMachine::LoadedMachine(OwnTopology topology, std::string source, bool is_live, const std::string& operation)
    : topology_(topology.release()), source_(std::move(source)), is_live_(is_live) {
  try {
    // Update distances and memory attributes now, because later reads must not modify the topology.
    hwloc_topology_refresh(topology_);
    count_objects();
    read_numa_nodes(operation);
    find_cpu_domains();
    if (cpu_domains_[0].cpus.cpus.empty())
      throw_error("{} describes a machine without a CPU; expected at least one", operation);
    sum_up();
  } catch (...) {
    hwloc_topology_destroy(topology_);
    throw;
  }
}

LoadedMachine::LoadedMachine(CpuSet cpus, int64_t memory_bytes) : source_("live"), is_live_(true) {
  const int count = std::max(to_int(static_cast<int64_t>(cpus.cpus.size())), 1);
  counts_ = {.packages = 1, .numa_nodes = 1, .cores = count, .pus = count};
  numa_nodes_.push_back({.memory_bytes = memory_bytes, .cpus = cpus, .subtype = ""});
  cpu_domains_.push_back({.cpus = std::move(cpus), .nodes = {0}, .wider_nodes = {}, .default_node = 0, .cores = count});
  sum_up();
}

LoadedMachine::~LoadedMachine() {
  if (topology_) hwloc_topology_destroy(topology_);
}

void LoadedMachine::count_objects() {
  const auto count = [this](hwloc_obj_type_t type) {
    int64_t sum = 0;
    const int depth = hwloc_get_type_depth(topology_, type);
    if (depth == HWLOC_TYPE_DEPTH_MULTIPLE) {
      for (int d = 0; d < hwloc_topology_get_depth(topology_); ++d) {
        if (hwloc_get_depth_type(topology_, d) == type) sum += hwloc_get_nbobjs_by_depth(topology_, d);
      }
    } else if (depth != HWLOC_TYPE_DEPTH_UNKNOWN) {
      sum = hwloc_get_nbobjs_by_depth(topology_, depth);
    }
    return to_int(sum);
  };
  counts_ = {.packages = count(HWLOC_OBJ_PACKAGE),
             .numa_nodes = count(HWLOC_OBJ_NUMANODE),
             .l3_caches = count(HWLOC_OBJ_L3CACHE),
             .cores = count(HWLOC_OBJ_CORE),
             .pus = count(HWLOC_OBJ_PU),
             .groups = count(HWLOC_OBJ_GROUP),
             .pci_devices = count(HWLOC_OBJ_PCI_DEVICE),
             .os_devices = count(HWLOC_OBJ_OS_DEVICE)};
}

void LoadedMachine::read_numa_nodes(const std::string& operation) {
  if (counts_.numa_nodes > kMostNumaNodes) {
    throw_error("{} has {} NUMA nodes; expected at most {}", operation, counts_.numa_nodes, kMostNumaNodes);
  }
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology_, HWLOC_OBJ_NUMANODE, node));) {
    numa_nodes_.push_back(
        {.logical_index = static_cast<int>(node->logical_index),
         .os_index = static_cast<int>(node->os_index),
         .memory_bytes = static_cast<int64_t>(std::min<uint64_t>(node->attr->numanode.local_memory, uint64_t{1} << 60)),
         .cpus = cpus_of(node->cpuset),
         .subtype = is_gpu_memory(node) ? "GPUMemory"
                    : node->subtype     ? node->subtype
                                        : ""});
  }
}

void LoadedMachine::find_cpu_domains() {
  std::vector<const CpuSet*> sets;
  for (const NumaNode& node : numa_nodes_) {
    const auto same = [&](const CpuSet* set) { return *set == node.cpus; };
    if (!node.is_gpu_memory() && !node.cpus.cpus.empty() && std::ranges::none_of(sets, same))
      sets.push_back(&node.cpus);
  }
  for (const CpuSet* set : sets) {
    const auto is_smaller = [&](const CpuSet* other) { return other != set && is_within(*other, *set); };
    if (std::ranges::any_of(sets, is_smaller)) continue;
    CpuDomain domain;
    domain.cpus = *set;
    for (const NumaNode& node : numa_nodes_) {
      if (node.is_gpu_memory()) continue;
      if (node.cpus == *set) {
        domain.nodes.push_back(node.logical_index);
      } else if (is_within(*set, node.cpus)) {
        domain.wider_nodes.push_back(node.logical_index);
      }
    }
    const auto better = [this](int a, int b) {
      const NumaNode& x = numa_nodes_[static_cast<size_t>(a)];
      const NumaNode& y = numa_nodes_[static_cast<size_t>(b)];
      return is_dram(x) != is_dram(y) ? is_dram(x) : x.memory_bytes > y.memory_bytes;
    };
    std::ranges::stable_sort(domain.nodes, better);
    domain.default_node = domain.nodes.front();
    std::ranges::sort(domain.nodes);
    cpu_domains_.push_back(std::move(domain));
  }
  if (cpu_domains_.empty()) {  // no NUMA information
    CpuDomain domain;
    domain.cpus = cpus_of(hwloc_topology_get_topology_cpuset(topology_));
    for (const NumaNode& node : numa_nodes_) {
      if (!node.is_gpu_memory()) domain.nodes.push_back(node.logical_index);
    }
    cpu_domains_.push_back(std::move(domain));
  }
  std::ranges::sort(cpu_domains_, {}, [](const CpuDomain& domain) { return domain.cpus.cpus; });

  const Bitmap set = new_bitmap();
  for (CpuDomain& domain : cpu_domains_) {
    hwloc_bitmap_zero(set.get());
    for (const int cpu : domain.cpus.cpus) hwloc_bitmap_set(set.get(), static_cast<unsigned>(cpu));
    domain.cores = std::max(hwloc_get_nbobjs_inside_cpuset_by_type(topology_, set.get(), HWLOC_OBJ_CORE), 0);
    if (domain.cores == 0) domain.cores = static_cast<int>(domain.cpus.cpus.size());
  }
}

void LoadedMachine::sum_up() noexcept {
  int64_t cpus = 0;
  for (const CpuDomain& domain : cpu_domains_) cpus += static_cast<int64_t>(domain.cpus.cpus.size());
  usable_cpus_ = std::max(to_int(cpus), 1);
  usable_memory_bytes_ = host_memory_bytes();
}

void LoadedMachine::apply_limits(std::optional<double> cpus, std::optional<int64_t> memory_bytes) {
  if (cpus && *cpus < usable_cpus_) usable_cpus_ = std::max(static_cast<int>(std::ceil(*cpus)), 1);
  // A single node has all memory; its own file lacks hot-plugged memory on some systems, and containers may hide it.
  const int64_t system = system_memory_bytes();
  const auto is_of_host = [](const NumaNode& node) { return !node.is_gpu_memory(); };
  if (std::ranges::count_if(numa_nodes_, is_of_host) == 1) {
    NumaNode& node = *std::ranges::find_if(numa_nodes_, is_of_host);
    node.memory_bytes = std::max(node.memory_bytes, system);
  }
  usable_memory_bytes_ = std::max(usable_memory_bytes_, system);
  if (memory_bytes) usable_memory_bytes_ = std::min(usable_memory_bytes_, *memory_bytes);
}

void LoadedMachine::divide_memory(const std::vector<NumaNode>& nodes, const std::vector<CpuSet>& shares) noexcept {
  const auto users = [&](const NumaNode& node) -> int64_t {
    if (node.cpus.cpus.empty()) return to_int(static_cast<int64_t>(shares.size()));  // shared by all processes equally
    return std::ranges::count_if(shares, [&](const CpuSet& share) {
      return std::ranges::any_of(share.cpus, [&](int cpu) { return std::ranges::binary_search(node.cpus.cpus, cpu); });
    });
  };
  for (NumaNode& mine : numa_nodes_) {
    for (const NumaNode& whole : nodes) {
      if (whole.os_index == mine.os_index) mine.memory_bytes /= std::max<int64_t>(users(whole), 1);
    }
  }
  usable_memory_bytes_ /= std::max<int64_t>(static_cast<int64_t>(shares.size()), 1);
}

std::string LoadedMachine::to_xml() const {
  char* text = nullptr;
  int length = 0;
  if (!topology_ || hwloc_topology_export_xmlbuffer(topology_, &text, &length, 0) < 0) {
    throw_error<Unavailable>("to_xml: hwloc has no topology of this machine ({})", source_);
  }
  const auto free_text = [this](char* buffer) { hwloc_free_xmlbuffer(topology_, buffer); };
  const std::unique_ptr<char, decltype(free_text)> own(text, free_text);
  return text;
}

}  // namespace artifex_devices
