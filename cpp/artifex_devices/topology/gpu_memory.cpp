// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/gpu_memory.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <system_error>

#include "artifex_devices/topology/folder_entries.h"

namespace artifex_devices {
namespace {

constexpr const char* kGpus = "/proc/driver/nvidia/gpus";

// The node of "Node: 255" in /proc/driver/nvidia/gpus/0004:04:00.0/numa_status; -1 if the file has none.
int node_of_gpu(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  int node = -1;
  while (file >> word) {
    if (word == "Node:") return file >> node ? node : -1;
  }
  return -1;
}

}  // namespace

int64_t node_meminfo_bytes(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  int64_t kib = 0;
  while (file >> word) {
    if (word == key && file >> kib && kib > 0 && kib < (int64_t{1} << 50)) return kib * 1024;
  }
  return 0;
}

int64_t gpu_node_bytes(const std::string& key, const std::string& root) {
  std::error_code error;
  std::set<int> nodes;
  for (const std::string& name : folder_entries(root + kGpus, error)) {
    nodes.insert(node_of_gpu(fmt::format("{}{}/{}/numa_status", root, kGpus, name)));
  }
  int64_t bytes = 0;
  for (const int node : nodes) {
    if (node >= 0)
      bytes += node_meminfo_bytes(fmt::format("{}/sys/devices/system/node/node{}/meminfo", root, node), key);
  }
  return bytes;
}

}  // namespace artifex_devices
