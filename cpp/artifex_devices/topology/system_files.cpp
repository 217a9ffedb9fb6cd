// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/system_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "artifex_devices/topology/cgroup.h"
#include "artifex_devices/topology/folder_entries.h"
#include "artifex_devices/topology/gpu_memory.h"
#include "artifex_devices/topology/kernel_files.h"
#include "artifex_devices/topology/loaded_machine.h"

// Files of /sys and /proc: containers may hide some or all of them.
namespace artifex_devices {
namespace {

// Returns "" if the file is readable and not empty, otherwise the reason.
std::string file_problem(const std::string& path) { return read_kernel_file(path).problem(path); }

// For a file that old kernels do not have.
std::string content_problem(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? file_problem(path) : "";
}

std::string cpu_problem(const CpuSet& affinity, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/cpu";
  for (const int cpu : affinity.cpus) {
    std::string problem;
    for (const char* name : {"core_cpus", "thread_siblings"}) {
      problem = file_problem(fmt::format("{}/cpu{}/topology/{}", folder, cpu, name));
      if (problem.empty()) break;
    }
    if (!problem.empty()) return problem;
  }
  return content_problem(folder + "/online");
}

constexpr const char* kCores = "cores, caches and packages";
constexpr const char* kCoresAssumed = "each CPU of the affinity mask is a core";
constexpr const char* kNodes = "/sys/devices/system/node";

// Returns the nodes' folders in any order. If it finds no folder, `problem` has the reason.
std::vector<std::string> node_folders(const std::string& root, std::string& problem) {
  std::vector<std::string> found;
  const std::string folder = root + kNodes;
  std::error_code error;
  for (const std::string& name : folder_entries(folder, error)) {
    const bool is_node =
        name.size() > 4 && name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos;
    if (is_node) found.push_back(folder + "/" + name);
  }
  if (error) {
    problem = fmt::format("{} cannot be read ({})", folder, error.message());
  } else if (found.empty()) {
    problem = folder + " has no node";
  }
  return found;
}

std::string node_problem(const std::string& root) {
  std::string problem;
  const std::vector<std::string> folders = node_folders(root, problem);
  if (problem.empty()) problem = content_problem(root + kNodes + "/online");
  for (const std::string& folder : folders) {
    if (problem.empty()) problem = content_problem(folder + "/cpumap");
  }
  return problem;
}

}  // namespace

std::string variable_that_replaces_machine() {
  for (const char* name :
       {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH", "HWLOC_COMPONENTS"}) {
    if (std::getenv(name)) return name;
  }
  return "";
}

std::string sysfs_problem(const CpuSet& affinity, const std::string& root) {
  std::string problem = cpu_problem(affinity, root);
  std::error_code error;
  const bool has_nodes = std::filesystem::exists(root + kNodes, error);  // old kernels: none
  if (problem.empty() && has_nodes) problem = node_problem(root);
  return problem;
}

MemoryPolicy memory_policy() {
  constexpr std::array kNames = {"default",        "preferred",          "bind", "interleave", "local",
                                 "preferred-many", "weighted-interleave"};
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  constexpr size_t kMostNodes = 4096;  // the kernel needs space for the number it was built for
  MemoryPolicy policy;
  int mode = 0;
  std::array<unsigned long, kMostNodes / kBits> nodes = {};
  if (syscall(SYS_get_mempolicy, &mode, nodes.data(), kMostNodes, nullptr, 0) != 0) {
    policy.problem = fmt::format("the call get_mempolicy fails ({})", std::strerror(errno));
    return policy;
  }
  const auto number = static_cast<size_t>(mode & 0xFF);  // the rest are flags
  policy.name = number < kNames.size() ? kNames[number] : fmt::format("policy {}", number);
  for (size_t node = 0; node < kMostNodes; ++node) {
    if (nodes[node / kBits] >> (node % kBits) & 1UL) policy.nodes.push_back(static_cast<int>(node));
  }
  return policy;
}

std::optional<int64_t> available_memory_bytes(const std::string& root) {
  const int64_t bytes = bytes_in_table(read_kernel_file(root + "/proc/meminfo").text, "MemAvailable:");
  if (bytes == 0) return std::nullopt;
  return std::max<int64_t>(bytes - gpu_node_bytes("MemFree:", root), 0);
}

int64_t resident_memory_bytes() noexcept {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 128> text{};  // "size resident shared ..." in pages
  const ssize_t bytes = read(file, text.data(), text.size() - 1);
  close(file);
  long long pages = 0;
  if (bytes <= 0 || std::sscanf(text.data(), "%*d %lld", &pages) != 1) return 0;
  return static_cast<int64_t>(pages) * sysconf(_SC_PAGESIZE);
}

std::vector<MissingFact> missing_facts(const std::string& root) {
  std::vector<MissingFact> missing;
  const auto add = [&](std::string fact, std::string reason, std::string assumed) {
    if (!reason.empty()) missing.push_back({std::move(fact), std::move(reason), std::move(assumed)});
  };
  const std::string variable = root.empty() ? variable_that_replaces_machine() : "";
  std::string cores = variable.empty() ? "" : variable + " is set, which would make hwloc show another machine";
  if (cores.empty()) cores = sysfs_problem(affinity_cpus(), root);
  add(kCores, std::move(cores), kCoresAssumed);
  add("memory nodes", node_problem(root), "one node with all CPUs and all memory");
  std::string no_nodes;
  for (const std::string& folder : node_folders(root, no_nodes)) {
    add(fmt::format("memory of {}", folder.substr(folder.rfind('/') + 1)), file_problem(folder + "/meminfo"),
        "0 bytes; with a single node, the memory of the whole system");
  }
  add("memory size from the kernel's table", file_problem(root + "/proc/meminfo"), "what sysinfo reports");
  CgroupReport report = read_cgroup_report(root);
  for (std::string& problem : report.problems) {
    add("limits of the cgroup", std::move(problem), "only the limits that were read");
  }
  return missing;
}

std::vector<MissingFact> missing_facts(const Machine& live) {
  std::vector<MissingFact> missing = missing_facts("");
  const bool is_reported = std::ranges::any_of(missing, [](const MissingFact& each) { return each.fact == kCores; });
  if (live.counts().cores == 0 && !is_reported) {
    missing.push_back({kCores, "hwloc did not find the CPUs of the affinity mask when it looked", kCoresAssumed});
  }
  return missing;
}

}  // namespace artifex_devices
