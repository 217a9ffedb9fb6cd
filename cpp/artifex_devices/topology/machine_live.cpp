// SPDX-License-Identifier: Apache-2.0
#include <hwloc.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

#include "artifex_devices/base/affinity.h"
#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/topology/cpu_share.h"
#include "artifex_devices/topology/gpu_memory.h"
#include "artifex_devices/topology/kernel_files.h"
#include "artifex_devices/topology/loaded_machine.h"
#include "artifex_devices/topology/system_files.h"

// The machine that we run on.
namespace artifex_devices {
namespace {

constinit Mutex<"live machine"> g_loading;  // held during a fork: hwloc has its own locks
constinit std::atomic<const std::shared_ptr<const Machine>*> g_live{nullptr};  // the target is never freed

HeldOverFork g_held_over_fork(g_loading);

// Without bridges. Vendor libraries are not called: they start threads and open devices.
bool ask_for_devices(hwloc_topology_t topology) {
  for (const char* component : {"cuda", "nvml", "rsmi", "opencl", "levelzero", "gl"}) {
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);  // -1: not there
  }
  return hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
         hwloc_topology_set_type_filter(topology, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) == 0;
}

// hwloc restricts the topology itself, but reads the binding from /proc, which may be hidden.
bool restrict_to(hwloc_topology_t topology, const CpuSet& cpus) {
  const Bitmap set = new_bitmap();
  for (const int cpu : cpus.cpus) {
    if (hwloc_bitmap_set(set.get(), static_cast<unsigned>(cpu)) != 0) throw std::bad_alloc();
  }
  return hwloc_topology_restrict(topology, set.get(), 0) == 0;
}

// Returns null where hwloc refuses.
OwnTopology load_topology(const std::string* xml, const CpuSet& cpus, bool with_devices = false) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) < 0) throw std::bad_alloc();  // its only error
  OwnTopology own(topology);
  const unsigned long flags = HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING |
                              HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_MEMBINDING | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
  const bool loaded =
      hwloc_topology_set_flags(topology, flags) == 0 && (!with_devices || ask_for_devices(topology)) &&
      (!xml || hwloc_topology_set_xmlbuffer(topology, xml->c_str(), static_cast<int>(xml->size() + 1)) == 0) &&
      hwloc_topology_load(topology) == 0 && (xml || with_devices || restrict_to(topology, cpus));
  return loaded ? std::move(own) : nullptr;
}

// hwloc treats a file that it cannot open as missing, so descriptors are checked first.
OwnTopology load_from_system(const CpuSet& cpus, bool with_devices) {
  constexpr int kOpenAtOnce = 16;  // more than hwloc 2 has open
  require_descriptors(kOpenAtOnce);
  OwnTopology topology = load_topology(nullptr, cpus, with_devices);
  require_descriptors(kOpenAtOnce);  // other threads may have taken them meanwhile
  return topology;
}

std::shared_ptr<LoadedMachine> as_machine(OwnTopology topology) {
  if (!topology) return nullptr;
  try {
    return std::make_shared<LoadedMachine>(std::move(topology), "live", true, "live");
  } catch (const Error&) {
    return nullptr;
  }
}

bool has_cpus(const Machine& machine, const CpuSet& cpus) {
  size_t count = 0;
  for (const CpuDomain& domain : machine.cpu_domains()) count += domain.cpus.cpus.size();
  return count == cpus.cpus.size();
}

CgroupLimits read_limits() {
  CgroupLimits limits = read_cgroup_limits();
  rlimit space = {};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    const auto most = static_cast<int64_t>(std::min<rlim_t>(space.rlim_cur, INT64_MAX));
    limits.memory_bytes = std::min(limits.memory_bytes.value_or(INT64_MAX), most);
  }
  return limits;
}

}  // namespace

CpuSet affinity_cpus() {
  CpuSet cpus;
  AffinityMask().for_each([&](int cpu) { cpus.cpus.push_back(cpu); });
  if (cpus.cpus.empty()) cpus.cpus.push_back(0);
  return cpus;
}

int64_t system_memory_bytes(const std::string& root, bool with_swap) {
  const KernelFile file = read_kernel_file(root + "/proc/meminfo");
  int64_t bytes = bytes_in_table(file.text, "MemTotal:");
  if (with_swap) bytes += bytes_in_table(file.text, "SwapTotal:");
  bytes = std::max<int64_t>(bytes - gpu_node_bytes("MemTotal:", root), 0);
  struct sysinfo system = {};
  if (bytes == 0 && root.empty() && ::sysinfo(&system) == 0) {  // a container without /proc
    const auto units = static_cast<int64_t>(system.totalram) + (with_swap ? static_cast<int64_t>(system.totalswap) : 0);
    if (__builtin_mul_overflow(units, static_cast<int64_t>(system.mem_unit), &bytes)) bytes = 0;
  }
  return bytes;
}

std::shared_ptr<const Machine> load_live_machine(const LiveShare* share) {
  std::shared_ptr<LoadedMachine> machine;
  const CpuSet cpus = share ? share->mine : affinity_cpus();
  if (variable_that_replaces_machine().empty() && sysfs_problem(cpus).empty()) {
    machine = as_machine(load_from_system(cpus, false));
    if (machine && !has_cpus(*machine, cpus)) machine = nullptr;  // inconsistent files
  }
  if (!machine) {
    const std::string xml = system_xml(cpus, "");
    machine = as_machine(load_topology(&xml, cpus));
  }
  if (!machine) machine = std::make_shared<LoadedMachine>(cpus, system_memory_bytes());
  CgroupLimits limits = read_limits();
  if (share && limits.cpus) *limits.cpus /= static_cast<double>(share->all.size());
  machine->apply_limits(limits.cpus, limits.memory_bytes);
  if (share) machine->divide_memory(load_live_machine()->numa_nodes(), share->all);
  return machine;
}

LiveIoTopology::LiveIoTopology() {
  const std::lock_guard lock(g_loading);
  if (variable_that_replaces_machine().empty() && sysfs_problem(affinity_cpus()).empty()) {
    topology_ = load_from_system({}, true).release();
  }
}

LiveIoTopology::~LiveIoTopology() {
  if (topology_) hwloc_topology_destroy(topology_);
}

int64_t usable_memory_bytes_now() {
  const int64_t bytes = std::max(Machine::live()->host_memory_bytes(), system_memory_bytes("", true));
  return std::min(bytes, read_limits().memory_bytes.value_or(INT64_MAX));
}

std::shared_ptr<const Machine> Machine::live() {
  if (const auto* machine = g_live.load(std::memory_order_acquire)) return *machine;
  const std::lock_guard lock(g_loading);
  const auto* machine = g_live.load(std::memory_order_acquire);
  if (machine == nullptr) {
    machine = new std::shared_ptr<const Machine>(load_live_machine());
    g_live.store(machine, std::memory_order_release);
  }
  return *machine;
}

void restrict_live_machine(const CpuSet& mine, const std::vector<CpuSet>& all) {
  const CpuSet allowed = affinity_cpus();
  LiveShare share{.mine = {}, .all = all};
  std::ranges::set_intersection(mine.cpus, allowed.cpus, std::back_inserter(share.mine.cpus));
  if (share.mine.cpus.empty()) {
    throw_error("restrict_live_machine: none of the CPUs {} may be used; expected some of {}", mine.to_string(),
                allowed.to_string());
  }
  if (share.all.empty()) share.all.push_back(share.mine);
  const std::lock_guard lock(g_loading);
  g_live.store(new std::shared_ptr<const Machine>(load_live_machine(&share)), std::memory_order_release);
}

}  // namespace artifex_devices
