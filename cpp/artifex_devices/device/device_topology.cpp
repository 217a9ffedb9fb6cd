// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_topology.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/wire.h"
#include "artifex_devices/device/cluster_client.h"
#include "artifex_devices/device/topology_wire.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kCpuPlatform = "cpu";

std::vector<std::string> memory_kinds_of(const Device&) {
  std::vector<std::string> kinds;
  for (const MemoryKind kind : {MemoryKind::kDevice, MemoryKind::kPinnedHost, MemoryKind::kUnpinnedHost}) {
    kinds.emplace_back(to_string(kind));
  }
  return kinds;
}

// Returns whether `next` continues `run`.
bool continues(const TopologyDevices& run, const TopologyDevices& next) {
  TopologyDevices moved = run;
  moved.first_id = next.first_id;
  moved.count = next.count;
  return next.first_id == run.first_id + run.count && moved == next;
}

// Collects faults and throws them at the end.
class Faults {
 public:
  explicit Faults(std::string_view operation) : operation_(operation) {}
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (++count_ > kShown) return;
    text_ += fmt::format("{}{}", count_ > 1 ? "; " : "", fmt::format(format, std::forward<Args>(args)...));
  }
  void throw_if_any() const {
    if (count_ == 0) return;
    throw_error(
        "{}: no usable topology: {}{}; expected devices and a consistent machine; create it again by "
        "get_topology_for_devices",
        operation_, text_, count_ > kShown ? fmt::format("; and {} more faults", count_ - kShown) : "");
  }

 private:
  static constexpr int kShown = 4;
  std::string_view operation_;
  std::string text_;
  int count_ = 0;
};

void check_size(Faults& faults, std::string_view what, size_t size, int64_t most) {
  if (size < 1 || size > static_cast<size_t>(most)) faults.add("there are {} {}, not 1 to {}", size, what, most);
}

void check_cpus(Faults& faults, const CpuSet& set, size_t& in_all) {
  in_all += set.cpus.size();
  if (!set.cpus.empty() && (set.cpus.front() < 0 || set.cpus.back() > DeviceTopology::kMostCpu)) {
    faults.add("CPU {} is not from 0 to {}", set.cpus.front() < 0 ? set.cpus.front() : set.cpus.back(),
               DeviceTopology::kMostCpu);
  }
}

void check_machine(Faults& faults, const MachineDescription& machine) {
  check_size(faults, "NUMA nodes", machine.numa_nodes.size(), DeviceTopology::kMostNodes);
  check_size(faults, "CPU domains", machine.cpu_domains.size(), DeviceTopology::kMostNodes);
  if (machine.usable_cpus < 1) faults.add("usable_cpus is {}, below 1", machine.usable_cpus);
  std::unordered_set<int> nodes;
  size_t cpus = 0;
  for (const NumaNode& node : machine.numa_nodes) {
    if (!nodes.insert(node.logical_index).second) faults.add("NUMA node {} is there twice", node.logical_index);
    check_cpus(faults, node.cpus, cpus);
  }
  for (size_t i = 0; i < machine.cpu_domains.size(); ++i) {
    const CpuDomain& domain = machine.cpu_domains[i];
    if (domain.cpus.cpus.empty()) faults.add("CPU domain {} has no CPU", i);
    if (domain.cores < 1) faults.add("CPU domain {} has {} cores", i, domain.cores);
    check_cpus(faults, domain.cpus, cpus);
    const auto check_node = [&](int node) {
      if (!nodes.contains(node)) faults.add("CPU domain {} names NUMA node {}, which is not there", i, node);
    };
    std::ranges::for_each(domain.nodes, check_node);
    std::ranges::for_each(domain.wider_nodes, check_node);
    check_node(domain.default_node);
  }
  if (cpus > static_cast<size_t>(DeviceTopology::kMostCpus)) {
    faults.add("the sets name {} CPUs in all, more than {}", cpus, DeviceTopology::kMostCpus);
  }
}

void check_devices(Faults& faults, const MachineDescription& machine, const std::vector<TopologyDevices>& devices) {
  check_size(faults, "runs of devices", devices.size(), DeviceTopology::kMostRuns);
  int64_t next_id = 0;
  for (const TopologyDevices& run : devices) {
    if (run.first_id != next_id) {
      const bool twice = run.first_id < next_id;
      faults.add("device {} is {}", twice ? run.first_id : next_id, twice ? "there twice" : "missing");
      return;
    }
    if (run.count < 1 || run.count > DeviceTopology::kMostDevices - next_id) {
      faults.add("{} devices follow device {}; the total is 1 to {}", run.count, next_id, DeviceTopology::kMostDevices);
      return;
    }
    next_id += run.count;
    if (run.process_index < 0) faults.add("device {} has process_index {}", run.first_id, run.process_index);
    if (run.memory_bytes < 0) faults.add("device {} has {} bytes of memory", run.first_id, run.memory_bytes);
    if (run.memory_kinds.size() > static_cast<size_t>(DeviceTopology::kMostKinds)) {
      faults.add("device {} has {} memory kinds, more than {}", run.first_id, run.memory_kinds.size(),
                 DeviceTopology::kMostKinds);
    }
    if (run.cpu_domain < 0 || static_cast<size_t>(run.cpu_domain) >= machine.cpu_domains.size()) {
      faults.add("device {} is on CPU domain {} of {}", run.first_id, run.cpu_domain, machine.cpu_domains.size());
    }
  }
}

}  // namespace

DeviceTopology DeviceTopology::make(std::string platform, MachineDescription machine,
                                    std::vector<TopologyDevices> devices, std::string_view operation) {
  Faults faults(operation);
  for (const std::string* text : {&platform, &machine.platform_version, &machine.source}) {
    if (!is_utf8(*text)) faults.add("a text is not UTF-8");
  }
  if (platform.empty()) faults.add("the platform has no name");
  check_machine(faults, machine);
  check_devices(faults, machine, devices);
  faults.throw_if_any();

  DeviceTopology made;
  made.platform_ = std::move(platform);
  made.machine_ = std::make_shared<const DescribedMachine>(std::move(machine));
  for (TopologyDevices& run : devices) {
    if (!made.devices_.empty() && continues(made.devices_.back(), run)) {
      made.devices_.back().count += run.count;
    } else {
      made.devices_.push_back(std::move(run));
    }
  }
  made.bytes_ = topology_bytes(made.platform_, *made.machine_, made.devices_);
  if (made.bytes_.size() > static_cast<size_t>(kMostBytes)) {
    throw_error("{}: the topology takes {} bytes; expected {} at most", operation, made.bytes_.size(), kMostBytes);
  }
  return made;
}

DeviceTopology DeviceTopology::of(const Client& client, std::string platform_version) {
  if (const Cluster* cluster = cluster_of(client)) {
    throw_error<Unavailable>(
        "get_topology_for_devices: the devices are of the cluster {:?}; expected devices of a machine; keep the "
        "Cluster itself, which can be pickled",
        cluster->name());
  }
  if (const auto* described = dynamic_cast<const DescribedMachine*>(&client.machine())) {
    platform_version = described->platform_version();
  }
  std::vector<TopologyDevices> devices;
  for (const DeviceId id : client.device_ids()) {
    const Device& device = *client.device(id);
    TopologyDevices one{.first_id = id.number(),
                        .count = 1,
                        .kind = device.device_kind(),
                        .process_index = static_cast<int>(device.process_index().number()),
                        .cpu_domain = static_cast<int>(device.lane().number()),
                        .memory_bytes = device.memory_bytes(),
                        .memory_kinds = memory_kinds_of(device)};
    if (!devices.empty() && continues(devices.back(), one)) {
      ++devices.back().count;
    } else {
      devices.push_back(std::move(one));
    }
  }
  return make(client.platform(), MachineDescription::of(client.machine(), std::move(platform_version)),
              std::move(devices), "get_topology_for_devices");
}

DeviceTopology DeviceTopology::deserialize(std::string_view bytes) {
  constexpr std::string_view kOperation = "DeviceTopology.deserialize";
  if (bytes.size() > static_cast<size_t>(kMostBytes)) {
    throw_error("{}: there are {} bytes; expected {} at most; give what serialize() returned", kOperation, bytes.size(),
                kMostBytes);
  }
  TopologyParts parts = topology_from_bytes(bytes, kOperation);
  DeviceTopology made = make(std::move(parts.platform), std::move(parts.machine), std::move(parts.devices), kOperation);
  if (made.device_count() != parts.device_count) {
    throw_error(
        "{}: the bytes have {} devices, and device_count says {}; expected all bytes returned by serialize(); read "
        "them again from their source",
        kOperation, made.device_count(), parts.device_count);
  }
  return made;
}

ClientRef DeviceTopology::make_compile_only_client() const {
  constexpr std::string_view kOperation = "_make_compile_only_devices";
  const auto foreign = std::ranges::find_if(devices_, [](const auto& run) { return run.kind != kCpuPlatform; });
  if (platform_ != kCpuPlatform || foreign != devices_.end()) {
    const TopologyDevices& run = foreign == devices_.end() ? devices_[0] : *foreign;
    throw_error<Unavailable>(
        "{}: device {} is of platform {:?} and kind {:?}; this version can only make platform 'cpu' and kind 'cpu'; use "
        "a newer version of artifex_devices",
        kOperation, run.first_id, platform_, run.kind);
  }
  ClientRef client = Client::make(machine_, {.num_devices = device_count(), .compile_only = true});
  for (const TopologyDevices& run : devices_) {
    // A client spreads its devices in order: the first and the last device determine the devices in between.
    for (const int64_t id : {run.first_id, run.first_id + run.count - 1}) {
      const Device& made = *client->device(DeviceId(id));
      const std::vector<std::string> kinds = memory_kinds_of(made);
      if (made.lane() == LaneId(run.cpu_domain) && made.memory_bytes() == run.memory_bytes &&
          made.process_index() == ProcessIndex(run.process_index) && kinds == run.memory_kinds) {
        continue;
      }
      throw_error<Unavailable>(
          "{}: device {} is on CPU domain {} with {} bytes in process {} and has memory kinds [{}]; expected CPU "
          "domain {}, {} bytes, process {} and [{}], as this version spreads devices over such a machine; use the "
          "version that made the topology",
          kOperation, id, run.cpu_domain, run.memory_bytes, run.process_index, fmt::join(run.memory_kinds, ", "),
          made.lane().number(), made.memory_bytes(), made.process_index().number(), fmt::join(kinds, ", "));
    }
  }
  return client;
}

uint64_t DeviceTopology::fingerprint() const noexcept {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes_) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace artifex_devices
