// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/topology_wire.h"

#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/wire.h"

namespace artifex_devices {
namespace {

// Version understood by this reader; incompatible changes need the next number.
constexpr int64_t kMajorVersion = 1;

enum TopologyField { kMajor = 1, kPlatform = 2, kPlatformVersion = 3, kMachine = 4, kDevices = 5, kDeviceCount = 6 };
enum MachineField {
  kSource = 1,
  kNumaNodes = 2,
  kCpuDomains = 3,
  kUsableCpus = 4,
  kUsableMemoryBytes = 5,
  kPackages = 6,
  kNumaNodeCount = 7,
  kL3Caches = 8,
  kCores = 9,
  kPus = 10,
  kGroups = 11,
  kPciDevices = 12,
  kOsDevices = 13
};
enum NodeField { kLogicalIndex = 1, kOsIndex = 2, kNodeMemoryBytes = 3, kNodeCpus = 4, kSubtype = 5 };
enum DomainField { kDomainCpus = 1, kNodes = 2, kWiderNodes = 3, kDefaultNode = 4, kDomainCores = 5 };
enum RunField {
  kFirstId = 1,
  kCount = 2,
  kKind = 3,
  kProcessIndex = 4,
  kCpuDomain = 5,
  kMemoryBytes = 6,
  kMemoryKinds = 7
};

// First and last CPU of each range.
std::vector<int64_t> ranges_of(const CpuSet& set) {
  std::vector<int64_t> ranges;
  for (const int cpu : set.cpus) {
    if (!ranges.empty() && ranges.back() + 1 == cpu) {
      ranges.back() = cpu;
    } else {
      ranges.insert(ranges.end(), {cpu, cpu});
    }
  }
  return ranges;
}

std::vector<int64_t> widened(const std::vector<int>& numbers) { return {numbers.begin(), numbers.end()}; }

WireWriter written(const NumaNode& node) {
  WireWriter writer;
  writer.add_number(kLogicalIndex, node.logical_index);
  writer.add_number(kOsIndex, node.os_index);
  writer.add_number(kNodeMemoryBytes, node.memory_bytes);
  writer.add_packed(kNodeCpus, ranges_of(node.cpus));
  writer.add_text(kSubtype, node.subtype);
  return writer;
}

WireWriter written(const CpuDomain& domain) {
  WireWriter writer;
  writer.add_packed(kDomainCpus, ranges_of(domain.cpus));
  writer.add_packed(kNodes, widened(domain.nodes));
  writer.add_packed(kWiderNodes, widened(domain.wider_nodes));
  writer.add_number(kDefaultNode, domain.default_node);
  writer.add_number(kDomainCores, domain.cores);
  return writer;
}

WireWriter written(const Machine& machine) {
  WireWriter writer;
  writer.add_text(kSource, machine.source());
  for (const NumaNode& node : machine.numa_nodes()) writer.add_item(kNumaNodes, written(node));
  for (const CpuDomain& domain : machine.cpu_domains()) writer.add_item(kCpuDomains, written(domain));
  writer.add_number(kUsableCpus, machine.usable_cpus());
  writer.add_number(kUsableMemoryBytes, machine.usable_memory_bytes());
  const MachineCounts& counts = machine.counts();
  writer.add_number(kPackages, counts.packages);
  writer.add_number(kNumaNodeCount, counts.numa_nodes);
  writer.add_number(kL3Caches, counts.l3_caches);
  writer.add_number(kCores, counts.cores);
  writer.add_number(kPus, counts.pus);
  writer.add_number(kGroups, counts.groups);
  writer.add_number(kPciDevices, counts.pci_devices);
  writer.add_number(kOsDevices, counts.os_devices);
  return writer;
}

WireWriter written(const TopologyDevices& run) {
  WireWriter writer;
  writer.add_number(kFirstId, run.first_id);
  writer.add_number(kCount, run.count);
  writer.add_text(kKind, run.kind);
  writer.add_number(kProcessIndex, run.process_index);
  writer.add_number(kCpuDomain, run.cpu_domain);
  writer.add_number(kMemoryBytes, run.memory_bytes);
  for (const std::string& kind : run.memory_kinds) writer.add_item(kMemoryKinds, kind);
  return writer;
}

// Reads the messages, and limits repeated fields.
class Reading {
 public:
  void machine(WireReader reader, MachineDescription& into) {
    while (reader.next()) {
      switch (reader.field()) {
        case kSource:
          into.source = reader.text();
          break;
        case kNumaNodes:
          limit(reader, into.numa_nodes.size(), DeviceTopology::kMostNodes, "NUMA nodes");
          into.numa_nodes.push_back(node(reader.message("NumaNode")));
          break;
        case kCpuDomains:
          limit(reader, into.cpu_domains.size(), DeviceTopology::kMostNodes, "CPU domains");
          into.cpu_domains.push_back(domain(reader.message("CpuDomain")));
          break;
        case kUsableCpus:
          into.usable_cpus = integer(reader);
          break;
        case kUsableMemoryBytes:
          into.usable_memory_bytes = reader.number();
          break;
        default:
          count(reader, into.counts);
      }
    }
  }

  static TopologyDevices run(WireReader reader) {
    TopologyDevices read;
    while (reader.next()) {
      switch (reader.field()) {
        case kFirstId:
          read.first_id = reader.number();
          break;
        case kCount:
          read.count = reader.number();
          break;
        case kKind:
          read.kind = reader.text();
          break;
        case kProcessIndex:
          read.process_index = integer(reader);
          break;
        case kCpuDomain:
          read.cpu_domain = integer(reader);
          break;
        case kMemoryBytes:
          read.memory_bytes = reader.number();
          break;
        case kMemoryKinds:
          limit(reader, read.memory_kinds.size(), DeviceTopology::kMostKinds, "memory kinds");
          read.memory_kinds.push_back(reader.text());
          break;
      }
    }
    return read;
  }

  static void limit(const WireReader& reader, size_t there, int64_t most, std::string_view what) {
    if (there >= static_cast<size_t>(most)) reader.fail_here(fmt::format("there are more than {} {}", most, what));
  }

 private:
  static int integer(const WireReader& reader) { return static_cast<int>(reader.number(INT32_MAX)); }

  static void count(const WireReader& reader, MachineCounts& into) {
    constexpr std::pair<int, int MachineCounts::*> kCounts[] = {{kPackages, &MachineCounts::packages},
                                                                {kNumaNodeCount, &MachineCounts::numa_nodes},
                                                                {kL3Caches, &MachineCounts::l3_caches},
                                                                {kCores, &MachineCounts::cores},
                                                                {kPus, &MachineCounts::pus},
                                                                {kGroups, &MachineCounts::groups},
                                                                {kPciDevices, &MachineCounts::pci_devices},
                                                                {kOsDevices, &MachineCounts::os_devices}};
    for (const auto& [field, member] : kCounts) {
      if (reader.field() == field) into.*member = integer(reader);
    }
  }

  NumaNode node(WireReader reader) {
    NumaNode read;
    std::vector<int64_t> ranges;
    while (reader.next()) {
      switch (reader.field()) {
        case kLogicalIndex:
          read.logical_index = integer(reader);
          break;
        case kOsIndex:
          read.os_index = integer(reader);
          break;
        case kNodeMemoryBytes:
          read.memory_bytes = reader.number();
          break;
        case kNodeCpus:
          reader.numbers(ranges, DeviceTopology::kMostCpu, DeviceTopology::kMostCpus);
          break;
        case kSubtype:
          read.subtype = reader.text();
          break;
      }
    }
    read.cpus = cpus(reader, ranges);
    return read;
  }

  CpuDomain domain(WireReader reader) {
    CpuDomain read;
    std::vector<int64_t> ranges;
    std::vector<int64_t> nodes;
    std::vector<int64_t> wider_nodes;
    while (reader.next()) {
      switch (reader.field()) {
        case kDomainCpus:
          reader.numbers(ranges, DeviceTopology::kMostCpu, DeviceTopology::kMostCpus);
          break;
        case kNodes:
          reader.numbers(nodes, INT32_MAX, DeviceTopology::kMostNodes);
          break;
        case kWiderNodes:
          reader.numbers(wider_nodes, INT32_MAX, DeviceTopology::kMostNodes);
          break;
        case kDefaultNode:
          read.default_node = integer(reader);
          break;
        case kDomainCores:
          read.cores = integer(reader);
          break;
      }
    }
    read.cpus = cpus(reader, ranges);
    for (const int64_t each : nodes) read.nodes.push_back(static_cast<int>(each));
    for (const int64_t each : wider_nodes) read.wider_nodes.push_back(static_cast<int>(each));
    return read;
  }

  CpuSet cpus(const WireReader& reader, const std::vector<int64_t>& ranges) {
    if (ranges.size() % 2 != 0) reader.fail_here("a range of CPUs has no end");
    CpuSet read;
    for (size_t i = 0; i < ranges.size(); i += 2) {
      if (ranges[i] > ranges[i + 1] || (i > 0 && ranges[i] <= ranges[i - 1] + 1)) {
        reader.fail_here(fmt::format("the CPUs {}-{} are not a separate, ascending range", ranges[i], ranges[i + 1]));
      }
      cpus_read_ += ranges[i + 1] - ranges[i] + 1;
      if (cpus_read_ > DeviceTopology::kMostCpus) {
        reader.fail_here(fmt::format("the sets name more than {} CPUs in all", DeviceTopology::kMostCpus));
      }
      for (int64_t cpu = ranges[i]; cpu <= ranges[i + 1]; ++cpu) read.cpus.push_back(static_cast<int>(cpu));
    }
    return read;
  }

  int64_t cpus_read_ = 0;
};

}  // namespace

std::string topology_bytes(const std::string& platform, const DescribedMachine& machine,
                           const std::vector<TopologyDevices>& devices) {
  WireWriter writer;
  writer.add_number(kMajor, kMajorVersion);
  writer.add_text(kPlatform, platform);
  writer.add_text(kPlatformVersion, machine.platform_version());
  writer.add_item(kMachine, written(machine));
  for (const TopologyDevices& run : devices) writer.add_item(kDevices, written(run));
  writer.add_number(kDeviceCount, devices.back().first_id + devices.back().count);
  return writer.take();
}

TopologyParts topology_from_bytes(std::string_view bytes, std::string_view operation) {
  WireReader reader(bytes, operation, "DeviceTopology");
  TopologyParts parts;
  Reading reading;
  int64_t major = 0;
  bool has_machine = false;
  while (reader.next()) {
    switch (reader.field()) {
      case kMajor:
        major = reader.number();
        if (major != kMajorVersion) {
          throw_error(
              "{}: the bytes have major version {}; expected {}, which this version of artifex_devices can read; {}",
              operation, major, kMajorVersion,
              major > kMajorVersion ? "use a newer version of it" : "write them again by serialize()");
        }
        break;
      case kPlatform:
        parts.platform = reader.text();
        break;
      case kPlatformVersion:
        parts.machine.platform_version = reader.text();
        break;
      case kMachine:
        if (std::exchange(has_machine, true)) reader.fail_here("there are two machines");
        reading.machine(reader.message("Machine"), parts.machine);
        break;
      case kDevices:
        Reading::limit(reader, parts.devices.size(), DeviceTopology::kMostRuns, "runs of devices");
        parts.devices.push_back(Reading::run(reader.message("DeviceRun")));
        break;
      case kDeviceCount:
        parts.device_count = reader.number();
        break;
    }
  }
  if (major == 0) reader.fail_here("there is no major_version");
  return parts;
}

}  // namespace artifex_devices
