// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifex_devices/device/allocator_options.h"
#include "artifex_devices/device/arena.h"
#include "artifex_devices/device/memory_kind.h"
#include "artifex_devices/device/process_info.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

class Client;
class Memory;

/// Devices that one client may have.
inline constexpr int64_t kMostClientDevices = int64_t{1} << 24;

/// Logical bytes that arrays hold on one device, replicas included.
struct DeviceMemoryStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t bytes_limit = 0;     // the device's memory_bytes when no limit is set
  int64_t bytes_reserved = 0;  // in use by nobody, kept alive by a neighbour in the same slab
  int64_t largest_alloc_size = 0;
  int64_t num_allocs = 0;
};

/// One device of a client. Lives as long as its client; identity is (client uid, id). Thread-safe.
class Device {
 public:
  ~Device();
  int64_t id() const noexcept { return id_; }
  Client& client() const noexcept { return *client_; }
  int process_index() const noexcept { return process_index_; }
  /// Whether it is of this process. The others have a place in meshes, but no memory here.
  bool is_addressable() const noexcept { return addressable_; }
  /// Its number among the devices of its process.
  int64_t local_hardware_id() const noexcept { return local_id_; }
  const std::string& platform() const noexcept;     // "cpu"
  const std::string& device_kind() const noexcept;  // "cpu"
  std::string to_string() const;                    // "cpu:0"
  std::string repr() const;                         // "CpuDevice(id=0)"

  /// Cores and NUMA nodes (logical indexes; the default one first) of the domain that the device lies on.
  const CpuDomain& domain() const noexcept;
  int lane() const noexcept { return domain_; }  // of the worker pool
  /// Which memory of the client: devices with equal numbers share it. Those of other processes have numbers only.
  int arena_index() const noexcept { return arena_; }
  Arena& arena() const noexcept;  // of an addressable device
  Arena& arena(MemoryKind kind) const noexcept;
  /// Its view of one kind of memory (device/memory.h), made at the first call.
  Memory& memory(MemoryKind kind);
  bool is_compile_only() const noexcept;

  /// The node's (or cgroup's) memory divided by the devices on it.
  int64_t memory_bytes() const noexcept;

  /// Nothing: no limit. Lowering it below what is in use only refuses further allocations.
  void set_bytes_limit(std::optional<int64_t> limit) noexcept;
  std::optional<int64_t> bytes_limit() const noexcept;

  /// Counts `bytes` as in use; false, with nothing counted, when that would pass the limit.
  bool try_charge(int64_t bytes) noexcept;
  void discharge(int64_t bytes) noexcept;
  /// The same in any kind of memory. The limit is of the kind `device` alone.
  bool try_charge(int64_t bytes, MemoryKind kind) {
    return kind == MemoryKind::kDevice ? try_charge(bytes) : charge_host(bytes, kind);
  }
  void discharge(int64_t bytes, MemoryKind kind) noexcept {
    if (kind == MemoryKind::kDevice) return discharge(bytes);
    discharge_host(bytes, kind);
  }

  /// What a MemoryWindow sees of one device. `allocated` and `freed` count on from one stretch to the next.
  struct Watched {
    int64_t peak = 0;  // of the stretch that ends
    int64_t in_use = 0;
    int64_t allocated = 0;
    int64_t freed = 0;
  };
  /// Ends a stretch of watching and starts the next, whose peak begins at what is in use. No charge falls between them.
  Watched next_stretch() noexcept;
  void stop_watching() noexcept { watched_peak_.store(kUnwatched, std::memory_order_relaxed); }

  void add_reserved(int64_t bytes, MemoryKind kind = MemoryKind::kDevice) noexcept;
  DeviceMemoryStats memory_stats() const noexcept;  // of the kind `device`

 private:
  friend class Client;
  Device() = default;

  struct Memories;
  bool charge_host(int64_t bytes, MemoryKind kind);
  void discharge_host(int64_t bytes, MemoryKind kind) noexcept;

  std::atomic<Memories*> memories_{nullptr};
  Client* client_ = nullptr;
  int64_t id_ = 0;
  int64_t local_id_ = 0;
  int process_index_ = 0;
  bool addressable_ = true;
  int domain_ = 0;
  int arena_ = 0;
  std::atomic<int64_t> limit_{-1};
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> reserved_{0};
  std::atomic<int64_t> largest_{0};
  std::atomic<int64_t> allocs_{0};

  void watch_charge(int64_t bytes, int64_t in_use) noexcept;
  void raise_watched(int64_t in_use) noexcept;
  static constexpr int64_t kUnwatched = -1;
  std::atomic<int64_t> watched_peak_{kUnwatched};
  std::atomic<int64_t> allocated_{0};  // these two only while watched
  std::atomic<int64_t> freed_{0};
};

struct ClientOptions {
  std::optional<int64_t> num_devices = std::nullopt;  // nothing: one a CPU domain of the machine
  std::optional<int64_t> bytes_limit = std::nullopt;  // of each device
  bool compile_only = false;                          // devices without memory: placing on them throws Unavailable
  std::optional<AllocatorOptions> allocator = std::nullopt;  // nothing: cached, no limit, nothing taken up front
  bool asynchronous = true;                                  // false: no copy goes on after the call that asks for it
  std::vector<ProcessInfo> processes = {};                   // all that share the world; none: this one has it alone
  int process_index = 0;                                     // which of them this is
};

/// A world of devices. Immutable but for its devices' counters. Held by everything that lives on its devices.
class Client : public std::enable_shared_from_this<Client> {
 public:
  /// CPU devices on `machine`, ids from 0, spread over its domains in order (with 8 devices on 2 domains the first four
  /// lie on the first). With `processes` it has the devices of all of them, ids counting over processes in order; those
  /// of the others are not addressable. Throws InvalidArgument for num_devices outside 1 .. 2^24, for processes that
  /// are wrong (this one's entry is not that of `machine`, say), and for allocator options that are wrong or mean
  /// nothing on a CPU; OutOfMemory when what is to be taken up front is not free.
  static std::shared_ptr<Client> make(std::shared_ptr<const Machine> machine, const ClientOptions& options);

  /// The process's base client, made at the first call from the live machine and, in this order of precedence,
  /// set_num_cpu_devices, JAX_NUM_CPU_DEVICES, the last --xla_force_host_platform_device_count in XLA_FLAGS. Throws
  /// InvalidArgument naming the variable when its value is no positive number. Environment variables are read here
  /// only: call under the GIL.
  static std::shared_ptr<Client> base();
  static bool base_exists() noexcept;
  /// What the base client would say of this process to others that share its world.
  static ProcessInfo describe_base();
  /// Makes the base client, of the devices of all `processes`. Throws Unavailable when there is one already, and as
  /// make().
  static std::shared_ptr<Client> join(std::vector<ProcessInfo> processes, int process_index);
  /// Throws Unavailable once the base client exists; nothing resets.
  static void set_num_cpu_devices(std::optional<int64_t> count);
  /// Makes `client` the base (nullptr: the one from before comes back at the next base()); returns the old one.
  static std::shared_ptr<Client> exchange_base(std::shared_ptr<Client> client);

  int64_t uid() const noexcept { return uid_; }
  const std::string& platform() const noexcept { return platform_; }
  const Machine& machine() const noexcept { return *machine_; }
  bool is_compile_only() const noexcept { return compile_only_; }
  bool is_asynchronous() const noexcept { return asynchronous_; }
  int process_index() const noexcept { return process_index_; }
  int process_count() const noexcept { return std::max(static_cast<int>(processes_.size()), 1); }
  bool is_multi_process() const noexcept { return processes_.size() > 1; }
  /// Not for a world that one process has alone.
  const ProcessInfo& process(int index) const noexcept { return processes_[static_cast<size_t>(index)]; }
  /// Throws InvalidArgument for a process that this world does not have; `operation` begins the message.
  void check_process(int index, std::string_view operation) const;
  /// Processes with equal numbers are on one machine.
  int host_of_process(int index) const noexcept {
    return processes_.empty() ? 0 : host_of_process_[static_cast<size_t>(index)];
  }
  /// The entry of a process with so many devices (nothing: one a CPU domain) on `machine`.
  static ProcessInfo describe(const Machine& machine, std::optional<int64_t> num_devices);
  /// From now on placing on its devices throws Unavailable; nothing reopens it. Arrays that there are stay.
  void close() noexcept { closed_.store(true, std::memory_order_release); }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  int64_t device_count() const noexcept { return count_; }
  /// The devices of this process have ids from first_local_device() on.
  int64_t first_local_device() const noexcept { return first_local_; }
  int64_t local_device_count() const noexcept { return local_count_; }
  /// The first of them, where data goes that no place is named for.
  Device* default_device() const noexcept { return &devices_[static_cast<size_t>(first_local_)]; }
  /// In order of id. Throws IndexOutOfRange.
  Device* device(int64_t id) const;
  /// The device of this process with a local_hardware_id. Throws Unavailable where there is none.
  Device* local_device(int64_t local_hardware_id) const;
  int arenas() const noexcept { return static_cast<int>(arenas_.size()); }
  /// Where a result of so many bytes lies that all devices read: near `nearest`, but pages of all nodes in turn for big
  /// ones where the devices are near several nodes.
  Arena& shared_arena(const Device& nearest, int64_t bytes) const noexcept;
  bool has_arena(int index) const noexcept { return arenas_[static_cast<size_t>(index)] != nullptr; }
  Arena& arena(int index) const noexcept { return *arenas_[static_cast<size_t>(index)]; }
  Arena& arena(int index, MemoryKind kind) const noexcept {
    const Arena& of_device = arena(index);
    return kind == MemoryKind::kDevice ? arena(index) : Arena::of_node(of_device.node(), kind, of_device.is_caching());
  }
  /// As given when it was made.
  const std::optional<AllocatorOptions>& allocator() const noexcept { return allocator_; }
  /// The memory behind logical arena `index`, shared out evenly among the devices on it.
  int64_t memory_bytes_per_device(int index) const noexcept {
    const size_t i = static_cast<size_t>(index);
    return arena_memory_bytes_[i] / std::max<int64_t>(arena_devices_[i], 1);
  }

 private:
  Client() = default;
  void add_devices(const ProcessInfo& info, int process, const ClientOptions& options);
  /// By the options' fraction; takes what is to be taken up front.
  void set_limits(const AllocatorOptions& allocator);

  int64_t uid_ = 0;
  std::string platform_ = "cpu";
  std::shared_ptr<const Machine> machine_;
  bool compile_only_ = false;
  bool asynchronous_ = true;
  std::atomic<bool> closed_{false};
  int64_t count_ = 0;
  int64_t first_local_ = 0;
  int64_t local_count_ = 0;
  int process_index_ = 0;
  std::vector<ProcessInfo> processes_;  // none: this one alone
  std::vector<int> host_of_process_;
  std::unique_ptr<Device[]> devices_;
  std::vector<Arena*> arenas_;          // physical memory behind each logical arena; null for those of other processes
  std::vector<int64_t> arena_devices_;  // devices on each
  std::vector<int64_t> arena_memory_bytes_;
  std::optional<AllocatorOptions> allocator_;
  std::vector<std::shared_ptr<void>> preallocated_;  // what it holds of its arenas
};

using ClientRef = std::shared_ptr<Client>;

}  // namespace artifex_devices
