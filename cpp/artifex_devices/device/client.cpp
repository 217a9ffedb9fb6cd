// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/client.h"

#include <cmath>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/topology/binding.h"

namespace artifex_devices {
namespace {

constexpr int64_t kMostDevices = int64_t{1} << 24;

// One lane a CPU domain of the machine that we run on; together no more workers than CPUs that we may keep busy, but at
// least one a lane.
bool configure_workers() {
  const std::shared_ptr<const Machine> machine = Machine::live();
  const std::vector<CpuDomain>& domains = machine->cpu_domains();
  int64_t cores = 0;
  for (const CpuDomain& domain : domains) cores += domain.cores;
  const int64_t usable = machine->usable_cpus();
  std::vector<WorkerPool::Lane> lanes;
  for (const CpuDomain& domain : domains) {
    const int64_t share = cores <= usable ? domain.cores : domain.cores * usable / std::max<int64_t>(cores, 1);
    lanes.push_back({static_cast<int>(std::max<int64_t>(share, 1)),
                     [machine, cpus = domain.cpus] { bind_this_thread(*machine, cpus); }});
  }
  return WorkerPool::process().configure(std::move(lanes));
}

// What a device's node has: hwloc's figure, scaled where the process may use less (or the system says there is more)
// than the sum over the nodes.
int64_t memory_of_node(const Machine& machine, int node) {
  int64_t sum = 0;
  int64_t own = 0;
  for (const NumaNode& each : machine.numa_nodes()) {
    sum += each.memory_bytes;
    if (each.logical_index == node) own = each.memory_bytes;
  }
  const int64_t usable = machine.usable_memory_bytes();
  if (usable == sum) return own;
  if (sum <= 0) return usable / static_cast<int64_t>(machine.cpu_domains().size());
  return static_cast<int64_t>(static_cast<long double>(own) / static_cast<long double>(sum) *
                              static_cast<long double>(usable));
}

constinit std::atomic<int64_t> next_uid{1};
constinit std::atomic<bool> workers_configured{false};

}  // namespace

std::shared_ptr<Client> Client::make(std::shared_ptr<const Machine> machine, const ClientOptions& options) {
  if (!machine) fail("make_client: the machine is null; give one of Machine::live, from_xml or from_synthetic");
  const std::vector<CpuDomain>& domains = machine->cpu_domains();
  const int64_t domain_count = static_cast<int64_t>(domains.size());
  const int64_t count = options.num_devices.value_or(domain_count);
  if (count < 1 || count > kMostDevices) {
    fail("make_client: num_devices is {}; expected a number of devices from 1 to {}", count, kMostDevices);
  }
  if (options.bytes_limit && *options.bytes_limit < 0) {
    fail("make_client: bytes_limit is {}; expected a number of bytes, 0 or more, or none for no limit",
         *options.bytes_limit);
  }

  if (options.allocator) options.allocator->check_for_cpu("make_client");
  if (options.allocator && options.allocator->preallocate && options.compile_only) {
    fail("make_client: preallocate is True for devices without memory; expected False; leave one of them out");
  }
  const bool caching = !options.allocator || options.allocator->kind != AllocatorKind::kPlatform;

  std::shared_ptr<Client> client(new Client());
  client->allocator_ = options.allocator;
  client->uid_ = next_uid.fetch_add(1, std::memory_order_relaxed);
  client->compile_only_ = options.compile_only;
  client->asynchronous_ = options.asynchronous;
  client->count_ = count;

  std::vector<int> arena_nodes;
  std::vector<int> arena_of_domain;
  for (const CpuDomain& domain : domains) {
    const auto found = std::ranges::find(arena_nodes, domain.default_node);
    arena_of_domain.push_back(static_cast<int>(found - arena_nodes.begin()));
    if (found == arena_nodes.end()) arena_nodes.push_back(domain.default_node);
  }
  for (size_t i = 0; i < arena_nodes.size(); ++i) {
    // A made-up machine's nodes are taken in turn for those that this one has.
    client->arenas_.push_back(
        &Arena::of_node(machine->is_live() ? arena_nodes[i] : static_cast<int>(i), MemoryKind::kDevice, caching));
    client->arena_memory_bytes_.push_back(memory_of_node(*machine, arena_nodes[i]));
  }
  client->arena_devices_.resize(arena_nodes.size());

  client->devices_.reset(new Device[static_cast<size_t>(count)]);
  for (int64_t i = 0; i < count; ++i) {
    Device& device = client->devices_[static_cast<size_t>(i)];
    device.client_ = client.get();
    device.id_ = i;
    device.domain_ = static_cast<int>(i * domain_count / count);
    device.arena_ = arena_of_domain[static_cast<size_t>(device.domain_)];
    if (options.bytes_limit) device.limit_.store(*options.bytes_limit, std::memory_order_relaxed);
    ++client->arena_devices_[static_cast<size_t>(device.arena_)];
  }
  if (options.allocator) client->set_limits(*options.allocator);
  client->machine_ = std::move(machine);
  if (!options.compile_only) {
    // Not a guarded static (base/fork.h). Doing it twice is harmless: the same lanes, or nothing once they are in use.
    if (!workers_configured.load(std::memory_order_acquire)) {
      configure_workers();
      workers_configured.store(true, std::memory_order_release);
    }
  }
  return client;
}

void Client::set_limits(const AllocatorOptions& allocator) {
  const auto part = [&](int64_t bytes) {
    return static_cast<int64_t>(static_cast<long double>(bytes) * static_cast<long double>(allocator.memory_fraction));
  };
  for (int64_t i = 0; i < count_; ++i) {
    Device& device = devices_[static_cast<size_t>(i)];
    const int64_t limit = part(device.memory_bytes());
    const int64_t asked = device.limit_.load(std::memory_order_relaxed);
    device.limit_.store(asked < 0 ? limit : std::min(asked, limit), std::memory_order_relaxed);
  }
  if (!allocator.preallocate) return;
  for (size_t a = 0; a < arenas_.size(); ++a) {
    preallocated_.push_back(arenas_[a]->preallocate(part(arena_memory_bytes_[a]), "make_client"));
  }
}

Device* Client::device(int64_t id) const {
  if (id < 0 || id >= count_) {
    fail<IndexOutOfRange>("device: id {} is out of range; this client has {} {} device{}, ids 0 to {}", id, count_,
                          platform_, count_ == 1 ? "" : "s", count_ - 1);
  }
  return &devices_[static_cast<size_t>(id)];
}

}  // namespace artifex_devices
