// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "artifex_devices/topology/machine.h"

// Limits of control groups. A process is in one group of version 2 and in one of each controller of version 1; every
// group on the way up to what is mounted limits it.
namespace artifex_devices {
namespace {

struct Mount {
  std::string point;        // where in the file system
  std::string root;         // which group lies there
  std::string controllers;  // "" for version 2
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool contains(const std::string& list, const std::string& name) {
  return std::ranges::any_of(split(list, ','), [&](const std::string& each) { return each == name; });
}

// mountinfo writes blanks as \040 and so on.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<Mount> read_mounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // id parent device root point options [tags...] - type source super-options
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    if (dash[1] == "cgroup2") mounts.push_back({unescaped(fields[4]), unescaped(fields[3]), ""});
    if (dash[1] == "cgroup") mounts.push_back({unescaped(fields[4]), unescaped(fields[3]), dash[3]});
  }
  return mounts;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<int64_t> to_number(const std::string& text) {
  std::istringstream stream(text);
  int64_t value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

template <class T>
void tighten(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

void tighten_cpus(CgroupLimits& limits, std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (quota && period && *quota > 0 && *period > 0) {
    tighten(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
  }
}

void tighten_memory(CgroupLimits& limits, std::optional<int64_t> bytes) {
  // Version 1 writes the largest number of whole pages for "no limit".
  if (bytes && *bytes > 0 && *bytes < (int64_t{1} << 60)) tighten(limits.memory_bytes, *bytes);
}

void read_group(CgroupLimits& limits, const std::string& group, const std::string& controllers) {
  if (controllers.empty()) {
    const std::vector<std::string> cpu = split(first_line(group + "/cpu.max"), ' ');  // "max 100000"
    if (cpu.size() >= 2) tighten_cpus(limits, to_number(cpu[0]), to_number(cpu[1]));
    tighten_memory(limits, to_number(first_line(group + "/memory.max")));
    return;
  }
  if (contains(controllers, "cpu")) {
    tighten_cpus(limits, to_number(first_line(group + "/cpu.cfs_quota_us")),
                 to_number(first_line(group + "/cpu.cfs_period_us")));
  }
  if (contains(controllers, "memory")) {
    tighten_memory(limits, to_number(first_line(group + "/memory.limit_in_bytes")));
  }
}

// The part of `path` below the group that is mounted. Inside a container the two may not fit together; then the mounted
// group is the container's own.
std::string below_mount(const std::string& path, const std::string& mounted) {
  std::string rest = path;
  if (mounted != "/") {
    if (!path.starts_with(mounted)) return "";
    rest = path.substr(mounted.size());
    if (!rest.empty() && rest.front() != '/') return "";
  }
  if ((rest + "/").find("/../") != std::string::npos) return "";
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  return rest;
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::vector<Mount> mounts = read_mounts(root);
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');  // "4:memory:/path", "0::/path"
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    for (const Mount& mount : mounts) {
      const bool same = controllers.empty() ? mount.controllers.empty()
                                            : !mount.controllers.empty() &&
                                                  contains(mount.controllers, split(controllers, ',').front());
      if (!same) continue;
      std::string below = below_mount(path, mount.root);
      for (;;) {
        read_group(limits, root + mount.point + below, controllers);
        if (below.empty()) break;
        below.resize(below.rfind('/'));
      }
    }
  }
  return limits;
}

}  // namespace artifex_devices
