// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/cpu_share.h"

#include <fmt/ranges.h>
#include <hwloc.h>

#include <algorithm>
#include <utility>

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

/// "process 3", "processes 0-2".
std::string processes_text(const std::vector<int>& processes) {
  return (processes.size() == 1 ? "process " : "processes ") + CpuSet{processes}.to_string();
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

std::vector<CpuShare> plan_cpu_shares(const std::vector<ProcessPlace>& places, std::string_view bind_flag) {
  std::vector<std::pair<ProcessPlace, std::vector<int>>> groups;  // processes by place, in the order of their numbers
  for (size_t process = 0; process < places.size(); ++process) {
    auto found = std::ranges::find(groups, places[process], &std::pair<ProcessPlace, std::vector<int>>::first);
    if (found == groups.end()) found = groups.insert(groups.end(), {places[process], {}});
    found->second.push_back(static_cast<int>(process));
  }
  std::vector<std::string> overlaps;
  for (auto one = groups.begin(); one != groups.end(); ++one) {
    for (auto other = one + 1; other != groups.end(); ++other) {
      if (one->first.machine != other->first.machine) continue;
      if (std::ranges::find_first_of(one->first.cpus.cpus, other->first.cpus.cpus) == one->first.cpus.cpus.end())
        continue;
      overlaps.push_back(fmt::format("{} on CPUs {}, {} on CPUs {}", processes_text(one->second),
                                     one->first.cpus.to_string(), processes_text(other->second),
                                     other->first.cpus.to_string()));
    }
  }
  if (!overlaps.empty()) {
    throw_error(
        "distributed.initialize: processes of one machine were bound to CPUs that overlap; expected equal sets, which "
        "are then split, or disjoint sets, got {}; start them with {}, or unbound",
        fmt::join(overlaps, "; "), bind_flag);
  }
  std::vector<CpuShare> shares(places.size());
  for (const auto& [place, processes] : groups) {
    for (size_t part = 0; part < processes.size(); ++part) {
      shares[static_cast<size_t>(processes[part])] = {static_cast<int>(part), processes};
    }
  }
  return shares;
}

CpuSet take_cpu_share(const std::vector<ProcessPlace>& places, const std::vector<CpuShare>& shares, int process) {
  const auto me = static_cast<size_t>(process);
  const CpuShare& mine = shares[me];
  const auto cpus_of = [&](size_t other) {
    if (mine.parts() == 1 || shares[other].processes != mine.processes) return places[other].cpus;
    return share_of_live_cpus(shares[other].part, mine.parts());
  };
  std::vector<CpuSet> all;  // of every process of this machine
  for (size_t other = 0; other < places.size(); ++other) {
    if (places[other].machine == places[me].machine) all.push_back(cpus_of(other));
  }
  const CpuSet own = cpus_of(me);
  if (all.size() > 1) restrict_live_machine(own, all);
  return own;
}

}  // namespace artifex_devices
