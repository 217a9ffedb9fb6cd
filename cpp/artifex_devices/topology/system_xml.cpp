// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>

#include "artifex_devices/topology/folder_entries.h"
#include "artifex_devices/topology/kernel_files.h"
#include "artifex_devices/topology/loaded_machine.h"

// Our own description of the running machine, used if environment variables make hwloc show another machine.
namespace artifex_devices {
namespace {

struct Node {
  CpuSet cpus;
  int64_t memory_bytes = 0;
};

struct FreeText {
  void operator()(char* text) const noexcept { std::free(text); }
};
std::string bits(const std::vector<int>& indexes) {
  const Bitmap set = new_bitmap();
  for (const int index : indexes) hwloc_bitmap_set(set.get(), static_cast<unsigned>(index));
  char* text = nullptr;
  hwloc_bitmap_asprintf(&text, set.get());
  const std::unique_ptr<char, FreeText> printed(text);
  if (!printed) throw std::bad_alloc();
  return printed.get();
}

// The allowed CPUs of a list such as "0-3,8".
CpuSet parse_list(const std::string& list, const CpuSet& allowed) {
  CpuSet cpus;
  const Bitmap set = new_bitmap();
  if (hwloc_bitmap_list_sscanf(set.get(), list.c_str()) == 0) {
    for (const int cpu : allowed.cpus) {
      if (hwloc_bitmap_isset(set.get(), static_cast<unsigned>(cpu))) cpus.cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::map<int, Node> read_nodes(const std::string& root, const CpuSet& affinity) {
  std::map<int, Node> nodes;
  std::error_code error;
  const std::string folder = root + "/sys/devices/system/node";
  for (const std::string& name : folder_entries(folder, error)) {
    int index = -1;
    if (!name.starts_with("node")) continue;
    const auto [end, bad] = std::from_chars(name.data() + 4, name.data() + name.size(), index);
    if (bad != std::errc{} || end != name.data() + name.size() || index < 0) continue;
    const std::string list = read_kernel_file(folder + "/" + name + "/cpulist").text;
    // "Node 0 MemTotal:        6121688 kB"
    const std::string table = read_kernel_file(folder + "/" + name + "/meminfo").text;
    Node node{parse_list(list.substr(0, list.find('\n')), affinity), bytes_in_table(table, "MemTotal:")};
    if (!node.cpus.cpus.empty()) nodes[index] = std::move(node);
  }
  size_t covered = 0;
  for (const auto& [index, node] : nodes) covered += node.cpus.cpus.size();
  if (covered != affinity.cpus.size()) {
    nodes.clear();
    nodes[0] = {affinity, system_memory_bytes(root)};
  }
  return nodes;
}

}  // namespace

std::string system_xml(const CpuSet& affinity, const std::string& root) {
  const std::map<int, Node> nodes = read_nodes(root, affinity);
  std::vector<int> all_nodes;
  for (const auto& [index, node] : nodes) all_nodes.push_back(index);
  int id = 0;
  const auto sets = [](const std::vector<int>& cpus, const std::vector<int>& of_nodes) {
    return fmt::format("cpuset=\"{0}\" complete_cpuset=\"{0}\" nodeset=\"{1}\" complete_nodeset=\"{1}\"", bits(cpus),
                       bits(of_nodes));
  };
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n";
  xml += "<topology version=\"2.0\">\n";
  xml += fmt::format(
      "<object type=\"Machine\" os_index=\"0\" {} allowed_cpuset=\"{}\" allowed_nodeset=\"{}\" gp_index=\"{}\">\n",
      sets(affinity.cpus, all_nodes), bits(affinity.cpus), bits(all_nodes), ++id);
  for (const auto& [index, node] : nodes) {
    const std::string node_sets = sets(node.cpus.cpus, {index});
    if (nodes.size() > 1)
      xml += fmt::format("<object type=\"Group\" {} gp_index=\"{}\" kind=\"0\" subkind=\"0\">\n", node_sets, ++id);
    xml += fmt::format("<object type=\"NUMANode\" os_index=\"{}\" {} gp_index=\"{}\" local_memory=\"{}\"/>\n", index,
                       node_sets, ++id, node.memory_bytes);
    for (const int cpu : node.cpus.cpus) {
      xml += fmt::format("<object type=\"PU\" os_index=\"{}\" {} gp_index=\"{}\"/>\n", cpu, sets({cpu}, {index}), ++id);
    }
    if (nodes.size() > 1) xml += "</object>\n";
  }
  return xml + "</object>\n</topology>\n";
}

}  // namespace artifex_devices
