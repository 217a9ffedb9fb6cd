// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/client.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/cluster/cluster_machine.h"
#include "artifex_devices/device/cluster/cluster_backend.h"
#include "artifex_devices/device/cpu/cpu_backend.h"
#include "artifex_devices/device/deferred_executor.h"
#include "artifex_devices/topology/binding.h"
#include "artifex_devices/topology/machine_objects.h"

namespace artifex_devices {
namespace {

// One lane for each CPU domain of this machine, with no more workers in total than usable CPUs, but at least one per
// lane.
bool configure_workers() {
  const std::shared_ptr<const Machine> machine = Machine::live();
  const std::vector<CpuDomain>& domains = machine->cpu_domains();
  int64_t cores = 0;
  for (const CpuDomain& domain : domains) cores += domain.cores;
  const int64_t usable = machine->usable_cpus();
  std::vector<WorkerPool::Lane> lanes;
  int64_t cache_bytes = INT64_MAX;  // smallest cache of a lane
  for (const CpuDomain& domain : domains) {
    cache_bytes = std::min(cache_bytes, last_level_cache_bytes(*machine, domain.cpus));
    const int64_t share = cores <= usable ? domain.cores : domain.cores * usable / std::max<int64_t>(cores, 1);
    lanes.push_back({static_cast<int>(std::max<int64_t>(share, 1)),
                     [machine, cpus = domain.cpus] { bind_this_thread(*machine, cpus); }});
  }
  if (cache_bytes > 0 && cache_bytes < INT64_MAX) set_stream_bytes(cache_bytes / 8);
  return WorkerPool::configure(std::move(lanes));
}

// Memory of a device's node: hwloc's value, scaled if the process may use less (or the system reports more) than the
// sum over the nodes.
int64_t memory_of_node(const Machine& machine, int node) {
  const int64_t sum = machine.host_memory_bytes();
  int64_t own = 0;
  for (const NumaNode& each : machine.numa_nodes()) {
    if (each.logical_index == node) own = each.memory_bytes;
  }
  const int64_t usable = machine.usable_memory_bytes();
  if (usable == sum) return own;
  if (sum <= 0) return usable / static_cast<int64_t>(machine.cpu_domains().size());
  return static_cast<int64_t>(static_cast<long double>(own) / static_cast<long double>(sum) *
                              static_cast<long double>(usable));
}

std::shared_ptr<Executor> executor_for(const BackendRef& backend, const ClientOptions& options) {
  std::shared_ptr<WorkerPoolExecutor> executor = std::make_shared<WorkerPoolExecutor>();
  if (const CopyEngine* engine = backend->copy_engine()) {
    executor = std::make_shared<EngineExecutor>(std::shared_ptr<const CopyEngine>(backend, engine));
  }
  if (options.seed) return std::make_shared<DeferredExecutor>(*options.seed, std::move(executor));
  if (!options.asynchronous) return std::make_shared<BlockingExecutor>(std::move(executor));
  return executor;
}

/// The distinct memories of the devices on `domains`, and the index of each domain's memory.
struct Memories {
  std::vector<int> nodes;
  std::vector<int> of_domain;
};

Memories memories_of(const std::vector<CpuDomain>& domains) {
  Memories found;
  for (const CpuDomain& domain : domains) {
    const auto known = std::ranges::find(found.nodes, domain.default_node);
    found.of_domain.push_back(static_cast<int>(known - found.nodes.begin()));
    if (known == found.nodes.end()) found.nodes.push_back(domain.default_node);
  }
  return found;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("localhost");
}

void check_count(int64_t count) {
  if (count >= 1 && count <= kMostClientDevices) return;
  throw_error("make_client: num_devices is {}; expected a number of devices from 1 to {}", count, kMostClientDevices);
}

/// Checks the list of processes, especially the entry of this process. Returns the number of all devices.
int64_t check_processes(const IdVector<ProcessIndex, ProcessInfo>& processes, ProcessIndex own,
                        const ProcessInfo& expected) {
  const int64_t count = processes.size();
  if (own.is_none() || own.number() >= count) {
    throw_error("make_client: process_index is {}; expected 0 to {}, one of the {} processes; number them from 0",
                own.number(), count - 1, count);
  }
  int64_t devices = 0;
  for (const ProcessIndex p : processes.ids()) {
    const ProcessInfo& info = processes[p];
    check_count(info.num_devices);
    devices += info.num_devices;
    check_count(devices);
    if (info.domains.empty() || memories_of(info.domains).nodes.size() != info.arena_memory_bytes.size()) {
      throw_error(
          "make_client: process {} is described by {} CPU domains and {} memories; expected at least one domain, and a "
          "number of bytes for each memory that they name; pass the result of Client::describe in that process",
          p.number(), info.domains.size(), info.arena_memory_bytes.size());
    }
  }
  for (const ProcessIndex p : processes.ids()) {
    const ProcessInfo& info = processes[p];
    const size_t facts = expected.devices.empty() ? 0 : static_cast<size_t>(info.num_devices);
    if (info.devices.size() == facts) continue;
    throw_error(
        "make_client: process {} describes {} of {} devices with separate memory; expected {}; pass the result of "
        "Client::describe in that process with the same backend",
        p.number(), info.devices.size(), info.num_devices, facts);
  }
  const ProcessInfo& mine = processes[own];
  if (mine.num_devices != expected.num_devices || mine.domains != expected.domains ||
      mine.devices != expected.devices) {
    throw_error(
        "make_client: process {}, the current process, is described as {} devices on {} CPU domains; expected {} on "
        "{}; pass the result of Client::describe in this process",
        own.number(), mine.num_devices, mine.domains.size(), expected.num_devices, expected.domains.size());
  }
  return devices;
}

BackendRef default_backend(const Machine& machine) {
  const auto* of_cluster = dynamic_cast<const ClusterMachine*>(&machine);
  return of_cluster ? make_cluster_backend(of_cluster->cluster()) : make_cpu_backend();
}

constinit std::atomic<int64_t> next_uid{1};
constinit std::atomic<bool> workers_configured{false};

}  // namespace

ProcessInfo Client::describe(const Machine& machine, std::optional<int64_t> num_devices, const Backend* backend) {
  ProcessInfo info;
  info.host = host_name();
  info.domains = machine.cpu_domains();
  if (!num_devices && backend != nullptr) num_devices = backend->device_count();
  info.num_devices = num_devices.value_or(static_cast<int64_t>(info.domains.size()));
  check_count(info.num_devices);
  for (const int node : memories_of(info.domains).nodes) {
    info.arena_memory_bytes.push_back(memory_of_node(machine, node));
  }
  if (backend != nullptr && backend->has_own_memory()) {
    for (int64_t i = 0; i < info.num_devices; ++i) {
      info.devices.push_back({backend->device_kind(i), backend->memory_bytes(i)});
    }
  }
  return info;
}

std::shared_ptr<Client> Client::make(std::shared_ptr<const Machine> machine, const ClientOptions& options) {
  if (!machine) throw_error("make_client: the machine is null; give one of Machine::live, from_xml or from_synthetic");
  const BackendRef backend = options.backend ? options.backend : default_backend(*machine);
  const ProcessInfo own = describe(*machine, options.num_devices, backend.get());
  IdVector<ProcessIndex, ProcessInfo> processes(options.processes);
  const int64_t count = processes.empty() ? own.num_devices : check_processes(processes, options.process_index, own);
  if (options.bytes_limit && *options.bytes_limit < 0) {
    throw_error("make_client: bytes_limit is {}; expected a number of bytes, 0 or more, or none for no limit",
                *options.bytes_limit);
  }

  backend->check(*machine, count, options);
  if (options.allocator && options.allocator->preallocate && options.compile_only) {
    throw_error("make_client: preallocate is True for devices without memory; expected False; leave one of them out");
  }

  std::shared_ptr<Client> client(new Client());
  client->backend_ = backend;
  client->device_is_host_readable_ = backend->is_host_readable();
  client->copy_engine_ = backend->copy_engine();
  client->allocator_ = options.allocator;
  client->uid_ = next_uid.fetch_add(1, std::memory_order_relaxed);
  client->compile_only_ = options.compile_only;
  client->executor_ = executor_for(backend, options);
  client->machine_ = std::move(machine);
  client->process_index_ = processes.empty() ? ProcessIndex(0) : options.process_index;
  client->processes_ = std::move(processes);
  client->devices_.reset(new Device[static_cast<size_t>(count)]);
  if (options.processes.empty()) {
    client->add_devices(own, ProcessIndex(0), options);
  } else {
    std::unordered_map<std::string_view, int> first_of_host;
    for (const ProcessIndex p : client->processes_.ids()) {
      const ProcessInfo& info = client->process(p);
      client->host_of_process_.push_back(first_of_host.try_emplace(info.host, p.number()).first->second);
      client->add_devices(info, p, options);
    }
  }
  if (options.allocator) client->set_limits(*options.allocator);
  if (!options.compile_only) {
    // Not a guarded static (base/fork.h). Doing it twice is harmless: it sets the same lanes, or does nothing once they
    // are in use.
    if (!workers_configured.load(std::memory_order_acquire)) {
      configure_workers();
      workers_configured.store(true, std::memory_order_release);
    }
  }
  return client;
}

void Client::add_devices(const ProcessInfo& info, ProcessIndex process, const ClientOptions& options) {
  const Memories memories = memories_of(info.domains);
  const bool is_here = process == process_index_;
  const AllocatorKind allocator = options.allocator ? options.allocator->kind : AllocatorKind::kDefault;
  const bool caching = allocator != AllocatorKind::kPlatform;
  const auto domain_count = static_cast<int64_t>(info.domains.size());
  const auto domain_of = [&](int64_t i) { return static_cast<size_t>(i * domain_count / info.num_devices); };
  const auto add_memory = [&](size_t memory, int64_t bytes, int64_t local_device) {
    // The nodes of a simulated machine are mapped in turn to the nodes of this machine.
    const int node = machine_->is_live() ? memories.nodes[memory] : static_cast<int>(memory);
    arenas_.push_back(is_here ? &Arena::of_node(node, MemoryKind::kDevice, caching) : nullptr);
    spaces_.push_back(is_here ? &backend_->device_space(local_device, node, allocator) : nullptr);
    pinned_spaces_.push_back(is_here ? backend_->pinned_space(local_device) : nullptr);
    arena_memory_bytes_.push_back(bytes);
    arena_devices_.push_back(0);
  };
  const ArenaIndex first_arena(arenas_.size());
  const bool has_own_memory = backend_->has_own_memory();
  if (!has_own_memory) {
    for (size_t i = 0; i < memories.nodes.size(); ++i) add_memory(i, info.arena_memory_bytes[i], 0);
  } else {
    std::vector<int64_t> devices_near(memories.nodes.size(), 0);
    const auto memory_near = [&](int64_t i) { return static_cast<size_t>(memories.of_domain[domain_of(i)]); };
    for (int64_t i = 0; i < info.num_devices; ++i) ++devices_near[memory_near(i)];
    for (int64_t i = 0; i < info.num_devices; ++i) {
      const size_t near = memory_near(i);
      const std::optional<int64_t> own = info.devices[static_cast<size_t>(i)].memory_bytes;
      add_memory(near, own.value_or(info.arena_memory_bytes[near] / devices_near[near]), i);
    }
  }
  if (is_here) {
    first_local_ = DeviceId(count_);
    local_count_ = info.num_devices;
  }
  // A device's own memory is limited by its capacity; the system limits shared memory.
  const Cluster* cluster = backend_->cluster();
  for (int64_t i = 0; i < info.num_devices; ++i) {
    Device& device = devices_[static_cast<size_t>(count_)];
    device.client_ = this;
    device.id_ = DeviceId(count_++);
    device.local_id_ = i;
    device.process_index_ = process;
    if (cluster) {
      const ClusterPlace place = cluster->place_of(device.id_.number());
      device.local_id_ = place.local_id;
      device.process_index_ = ProcessIndex(place.process);
    }
    device.addressable_ = is_here;
    device.domain_ = static_cast<int>(domain_of(i));
    device.arena_ = first_arena + (has_own_memory ? i : memories.of_domain[domain_of(i)]);
    const std::optional<int64_t> own_limit =
        has_own_memory ? info.devices[static_cast<size_t>(i)].memory_bytes : std::nullopt;
    const std::optional<int64_t> limit = options.bytes_limit ? options.bytes_limit : own_limit;
    if (limit && is_here) device.limit_.store(*limit, std::memory_order_relaxed);
    ++arena_devices_[device.arena_];
  }
}

void Client::set_limits(const AllocatorOptions& allocator) {
  const auto part = [&](int64_t bytes) {
    return static_cast<int64_t>(static_cast<long double>(bytes) * static_cast<long double>(allocator.memory_fraction));
  };
  for (int64_t i = 0; i < local_count_; ++i) {
    Device& device = devices_[(first_local_ + i).number()];
    const int64_t limit = part(device.memory_bytes());
    const int64_t asked = device.limit_.load(std::memory_order_relaxed);
    device.limit_.store(asked < 0 ? limit : std::min(asked, limit), std::memory_order_relaxed);
  }
  if (!allocator.preallocate) return;
  for (const ArenaIndex a : spaces_.ids()) {
    if (spaces_[a] == nullptr) continue;  // of another process
    preallocated_.push_back(spaces_[a]->preallocate(part(arena_memory_bytes_[a]), "make_client"));
  }
}

Device* Client::device(DeviceId id) const {
  if (id.is_none() || id.number() >= count_) {
    throw_error<IndexOutOfRange>("device: id {} is out of range; this client has {} {} device{}, ids 0 to {}",
                                 id.number(), count_, platform(), count_ == 1 ? "" : "s", count_ - 1);
  }
  return &devices_[id.number()];
}

Device* Client::local_device(int64_t local_hardware_id) const {
  if (local_hardware_id < 0 || local_hardware_id >= local_count_) {
    throw_error<Unavailable>(
        "device_from_local_hardware_id: no device has the number {}; expected 0 to {}; see Device.local_hardware_id",
        local_hardware_id, local_count_ - 1);
  }
  return device(first_local_ + local_hardware_id);
}

void Client::check_process(ProcessIndex index, std::string_view operation) const {
  if (!index.is_none() && index.number() < process_count()) return;
  throw_error("{}: process_index names no process; expected {}, got {}; leave it out for this process", operation,
              is_multi_process() ? fmt::format("0 to {}", process_count() - 1) : "0, the only one", index.number());
}

}  // namespace artifex_devices
