// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/gpu_memory.h"

#include <fmt/format.h>

#include <set>
#include <sstream>
#include <system_error>

#include "artifex_devices/topology/folder_entries.h"
#include "artifex_devices/topology/kernel_files.h"

namespace artifex_devices {
namespace {

constexpr const char* kGpus = "/proc/driver/nvidia/gpus";

// The node of "Node: 255" in /proc/driver/nvidia/gpus/0004:04:00.0/numa_status; -1 if the text names no node.
int node_of_gpu(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  int node = -1;
  while (words >> word) {
    if (word == "Node:") return words >> node ? node : -1;
  }
  return -1;
}

}  // namespace

int64_t gpu_node_bytes(std::string_view key, const std::string& root) {
  std::error_code error;
  std::set<int> nodes;
  for (const std::string& name : folder_entries(root + kGpus, error)) {
    nodes.insert(node_of_gpu(read_kernel_file(fmt::format("{}{}/{}/numa_status", root, kGpus, name)).text));
  }
  int64_t bytes = 0;
  for (const int node : nodes) {
    if (node < 0) continue;
    const std::string table = fmt::format("{}/sys/devices/system/node/node{}/meminfo", root, node);
    bytes += bytes_in_table(read_kernel_file(table).text, key);
  }
  return bytes;
}

}  // namespace artifex_devices
