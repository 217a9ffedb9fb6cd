// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/cpu_share.h"

#include <hwloc.h>

#include <algorithm>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/topology/loaded_machine.h"

namespace artifex_devices {
namespace {

// Returns the cores of a domain, in hwloc's order, or its CPUs if cores are unknown.
std::vector<CpuSet> cores_of(const Machine& machine, const CpuDomain& domain) {
  std::vector<CpuSet> cores;
  const auto* loaded = dynamic_cast<const LoadedMachine*>(&machine);
  if (loaded && loaded->topology()) {
    for (hwloc_obj_t core = nullptr;
         (core = hwloc_get_next_obj_by_type(loaded->topology(), HWLOC_OBJ_CORE, core)) != nullptr;) {
      CpuSet inside;
      for (const int cpu : domain.cpus.cpus) {
        if (hwloc_bitmap_isset(core->cpuset, static_cast<unsigned>(cpu))) inside.cpus.push_back(cpu);
      }
      if (!inside.cpus.empty()) cores.push_back(std::move(inside));
    }
  }
  if (cores.empty()) {
    for (const int cpu : domain.cpus.cpus) cores.push_back({{cpu}});
  }
  return cores;
}

void add(CpuSet& set, const CpuSet& more) {
  set.cpus.insert(set.cpus.end(), more.cpus.begin(), more.cpus.end());
  std::ranges::sort(set.cpus);
}

// Returns the items of part `part` of `parts`: adjacent ones, or one shared with other parts.
template <class Item>
std::vector<Item> slice(const std::vector<Item>& items, size_t part, size_t parts) {
  const size_t first = part * items.size() / parts;
  const size_t end = std::max((part + 1) * items.size() / parts, first + 1);
  return {items.begin() + static_cast<std::ptrdiff_t>(first), items.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

std::vector<CpuSet> share_cpus(const Machine& machine, int parts) {
  if (parts < 1) throw_error("share_cpus: parts is {}; expected at least 1", parts);
  const std::vector<CpuDomain>& domains = machine.cpu_domains();
  const auto count = static_cast<size_t>(parts);
  std::vector<CpuSet> shares(count);
  if (count <= domains.size()) {
    for (size_t part = 0; part < count; ++part) {
      for (const CpuDomain& domain : slice(domains, part, count)) add(shares[part], domain.cpus);
    }
    return shares;
  }
  for (size_t d = 0; d < domains.size(); ++d) {
    // The parts whose number, scaled to the domains, is d.
    const size_t first = (d * count + domains.size() - 1) / domains.size();
    const size_t end = ((d + 1) * count + domains.size() - 1) / domains.size();
    const std::vector<CpuSet> cores = cores_of(machine, domains[d]);
    for (size_t part = first; part < end; ++part) {
      for (const CpuSet& core : slice(cores, part - first, end - first)) add(shares[part], core);
    }
  }
  return shares;
}

CpuSet share_of_live_cpus(int part, int parts) {
  const std::vector<CpuSet> shares = share_cpus(*load_live_machine(), parts);
  if (part < 0 || part >= parts) throw_error("share_of_live_cpus: part is {}; expected 0 to {}", part, parts - 1);
  return shares[static_cast<size_t>(part)];
}

}  // namespace artifex_devices
