// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/cgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "artifex_devices/topology/folder_entries.h"
#include "artifex_devices/topology/kernel_files.h"

// Limits of control groups. A process is in one group of version 2 and in one of each controller of version 1; every
// ancestor group up to the mount point limits it.
namespace artifex_devices {
namespace {

struct Mount {
  std::string point;        // where in the file system
  std::string root;         // the group mounted there
  std::string controllers;  // "" for version 2
};

// The lines of a text, or other parts of one; a separator at its end begins no further part.
std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
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

// A container may have replaced the mount point.
std::string folder_problem(const std::string& path) {
  std::error_code error;
  const bool is_empty = folder_entries(path, error, 1).empty();
  if (error) return fmt::format("{} cannot be read ({})", path, error.message());
  return is_empty ? path + " is empty" : "";
}

std::vector<Mount> read_mounts(const std::string& root, std::vector<std::string>& problems) {
  std::vector<Mount> mounts;
  const std::string path = root + "/proc/self/mountinfo";
  const KernelFile file = read_kernel_file(path);
  if (file.error != 0) problems.push_back(file.problem(path));
  for (const std::string& line : split(file.text, '\n')) {
    // id parent device root point options [tags...] - type source super-options
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 5 || fields.end() - dash < 4) continue;
    if (dash[1] == "cgroup2") mounts.push_back({unescaped(fields[4]), unescaped(fields[3]), ""});
    if (dash[1] == "cgroup") mounts.push_back({unescaped(fields[4]), unescaped(fields[3]), dash[3]});
  }
  return mounts;
}

std::optional<int64_t> to_number(const std::string& text) {
  std::istringstream stream(text);
  int64_t value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

template <class T>
void tighten(std::optional<T>& limit, T value, std::string& from, const std::string& path) {
  if (limit && *limit <= value) return;
  limit = value;
  from = path;
}

// Reads the files of one group after another.
class CgroupReader {
 public:
  explicit CgroupReader(CgroupReport& report) : report_(report) {}

  void read(const std::string& group, const std::string& controllers) {
    if (controllers.empty()) {
      const std::string path = group + "/cpu.max";
      const std::vector<std::string> cpu = split(first_line(path), ' ');  // "max 100000"
      if (cpu.size() >= 2) limit_cpus(number(cpu[0], path), number(cpu[1], path), path);
      if (cpu.size() == 1) report_.problems.push_back(path + " does not hold two numbers");
      limit_memory(group + "/memory.max");
      read_cpuset({group + "/cpuset.cpus.effective"});
      return;
    }
    if (contains(controllers, "cpu")) {
      const std::string path = group + "/cpu.cfs_quota_us";
      const std::string period = group + "/cpu.cfs_period_us";
      const std::optional<int64_t> quota = number(first_line(path), path);
      limit_cpus(quota, number(first_line(period), period), path);
    }
    if (contains(controllers, "memory")) limit_memory(group + "/memory.limit_in_bytes");
    if (contains(controllers, "cpuset")) {
      read_cpuset({group + "/cpuset.effective_cpus", group + "/cpuset.cpus"});  // the first one is newer
    }
  }

 private:
  std::string first_line(const std::string& path) {
    const KernelFile file = read_kernel_file(path);
    if (file.error == ENOENT || file.error == ENOTDIR) return "";  // groups have files for enabled controllers only
    if (std::string problem = file.problem(path); !problem.empty()) {
      report_.problems.push_back(std::move(problem));
      return "";
    }
    std::string line = file.text.substr(0, file.text.find('\n'));
    report_.files.push_back({path, line});
    return line;
  }

  // "max" means no limit. Other text is reported as a problem.
  std::optional<int64_t> number(const std::string& text, const std::string& path) {
    if (text.empty() || text == "max") return std::nullopt;
    const std::optional<int64_t> value = to_number(text);
    if (!value) report_.problems.push_back(path + " does not hold a number");
    return value;
  }

  // Uses the innermost group, because outer groups can only be wider; it is read first.
  void read_cpuset(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (!report_.cpuset.empty()) return;
      report_.cpuset = first_line(path);
      if (!report_.cpuset.empty()) report_.cpuset_from = path;
    }
  }

  void limit_cpus(std::optional<int64_t> quota, std::optional<int64_t> period, const std::string& path) {
    if (quota && period && *quota > 0 && *period > 0) {
      const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
      tighten(report_.limits.cpus, cpus, report_.cpus_from, path);
    }
  }

  void limit_memory(const std::string& path) {
    const std::optional<int64_t> bytes = number(first_line(path), path);
    // Version 1 writes the largest number of whole pages for "no limit".
    if (bytes && *bytes > 0 && *bytes < (int64_t{1} << 60)) {
      tighten(report_.limits.memory_bytes, *bytes, report_.memory_from, path);
    }
  }

  CgroupReport& report_;
};

// The part of `path` below the mounted group. Inside a container they may not match; then the mounted group is the
// container's own.
std::string below_mount(const std::string& path, const std::string& mounted) {
  std::string rest = path;
  if (mounted != "/") {
    if (!path.starts_with(mounted)) return "";
    rest = path.substr(mounted.size());
  }
  if (!rest.empty() && rest.front() != '/') return "";
  if ((rest + "/").find("/../") != std::string::npos) return "";
  while (!rest.empty() && rest.back() == '/') rest.pop_back();
  return rest;
}

}  // namespace

CgroupReport read_cgroup_report(const std::string& root) {
  CgroupReport report;
  CgroupReader reader(report);
  const std::vector<Mount> mounts = read_mounts(root, report.problems);
  const std::string list = root + "/proc/self/cgroup";
  const KernelFile file = read_kernel_file(list);
  if (file.error != 0) report.problems.push_back(file.problem(list));
  for (const std::string& line : split(file.text, '\n')) {
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
      if (const std::string problem = folder_problem(root + mount.point); !problem.empty()) {
        report.problems.push_back(problem);
        continue;
      }
      std::string below = below_mount(path, mount.root);
      for (;;) {
        reader.read(root + mount.point + below, controllers);
        if (below.empty()) break;
        below.resize(below.rfind('/'));
      }
    }
  }
  if (report.problems.empty() && mounts.empty()) {
    report.problems.push_back("no cgroup is mounted, so their files cannot be seen");
  }
  return report;
}

CgroupLimits read_cgroup_limits(const std::string& root) { return read_cgroup_report(root).limits; }

}  // namespace artifex_devices
