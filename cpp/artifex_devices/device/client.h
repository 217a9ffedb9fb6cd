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

#include "artifex_devices/base/id.h"
#include "artifex_devices/device/allocator_options.h"
#include "artifex_devices/device/backend.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/device/memory_kind.h"
#include "artifex_devices/device/process_info.h"
#include "artifex_devices/topology/machine.h"

namespace artifex_devices {

class Client;
class Memory;

/// Maximum number of devices of a client.
inline constexpr int64_t kMostClientDevices = int64_t{1} << 24;

/// Logical bytes of arrays on one device, including replicas.
struct DeviceMemoryStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t bytes_limit = 0;     // the device's memory_bytes if no limit is set
  int64_t bytes_reserved = 0;  // unused, but kept alive by another buffer in the same slab
  int64_t largest_alloc_size = 0;
  int64_t num_allocs = 0;
};

/// One device of a client. Lives as long as its client; identity is (client uid, id). Thread-safe.
class Device {
 public:
  ~Device();
  DeviceId id() const noexcept { return id_; }
  Client& client() const noexcept { return *client_; }
  ProcessIndex process_index() const noexcept { return process_index_; }
  /// Returns whether the device belongs to this process. Others are members of meshes, but have no memory here.
  bool is_addressable() const noexcept { return addressable_; }
  /// Index among the devices of its process.
  int64_t local_hardware_id() const noexcept { return local_id_; }
  const std::string& platform() const noexcept;     // "cpu" or "gpu"
  const std::string& device_kind() const noexcept;  // "cpu", or the name of the GPU
  std::string to_string() const;                    // "cpu:0"
  std::string repr() const;                         // "CpuDevice(id=0)"

  /// Cores and NUMA nodes (logical indexes, the default node first) of the device's CPU domain.
  const CpuDomain& domain() const noexcept;
  LaneId lane() const noexcept { return LaneId(domain_); }  // of the worker pool, one for each CPU domain
  /// Index of the device's memory in the client: devices with equal indexes share it. Memories of other processes have
  /// an index only.
  ArenaIndex arena_index() const noexcept { return arena_; }
  /// Where arrays of a kind on an addressable device are.
  MemorySpace& space(MemoryKind kind) const noexcept;
  /// Host memory near an addressable device; on a CPU the same as space().
  Arena& arena() const noexcept;
  Arena& arena(MemoryKind kind) const noexcept;
  /// The device's view of one kind of memory (device/memory.h), created at the first call.
  Memory& memory(MemoryKind kind);
  bool is_compile_only() const noexcept;

  /// Memory of a GPU if known, else that of the node (or cgroup) divided by its number of devices.
  int64_t memory_bytes() const noexcept;

  /// Nothing: no limit. A limit below the bytes in use only prevents further allocations.
  void set_bytes_limit(std::optional<int64_t> limit) noexcept;
  std::optional<int64_t> bytes_limit() const noexcept;

  /// Counts `bytes` as in use. Returns false and counts nothing if that would exceed the limit.
  bool try_charge(int64_t bytes) noexcept;
  void discharge(int64_t bytes) noexcept;
  /// The same for any kind of memory. The limit applies to the kind `device` only.
  bool try_charge(int64_t bytes, MemoryKind kind) {
    return kind == MemoryKind::kDevice ? try_charge(bytes) : charge_host(bytes, kind);
  }
  void discharge(int64_t bytes, MemoryKind kind) noexcept {
    if (kind == MemoryKind::kDevice) return discharge(bytes);
    discharge_host(bytes, kind);
  }

  /// Of arrays of the kind `device`.
  int64_t bytes_in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }
  void add_reserved(int64_t bytes, MemoryKind kind = MemoryKind::kDevice) noexcept;
  DeviceMemoryStats memory_stats() const noexcept;  // of the kind `device`

 private:
  friend class Client;
  Device() = default;

  struct Memories;
  const DeviceFacts& facts_elsewhere() const noexcept;  // of a device with its own memory in another process
  bool charge_host(int64_t bytes, MemoryKind kind);
  void discharge_host(int64_t bytes, MemoryKind kind) noexcept;
  /// Not inline, as a MemoryChange on the stack would cost each charge a frame.
  [[gnu::cold, gnu::noinline]] void record_change(int64_t bytes, int64_t in_use) const noexcept;

  std::atomic<Memories*> memories_{nullptr};
  Client* client_ = nullptr;
  DeviceId id_;
  int64_t local_id_ = 0;
  ProcessIndex process_index_;
  bool addressable_ = true;
  int domain_ = 0;
  ArenaIndex arena_;
  std::atomic<int64_t> limit_{-1};
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> reserved_{0};
  std::atomic<int64_t> largest_{0};
  std::atomic<int64_t> allocs_{0};
};

/// An allocation or release of arrays of the kind `device`, for the recorder.
struct MemoryChange {
  const Device& device;
  int64_t bytes;   // negative: released
  int64_t in_use;  // on the device, afterwards
};

struct ClientOptions {
  std::optional<int64_t> num_devices = std::nullopt;  // nothing: Backend::device_count
  std::optional<int64_t> bytes_limit = std::nullopt;  // of each device
  bool compile_only = false;                          // devices without memory: placing on them throws Unavailable
  std::optional<AllocatorOptions> allocator = std::nullopt;  // nothing: cached, no limit, no preallocation
  bool asynchronous = true;                                  // false: all copies finish before their call returns
  std::optional<uint64_t> seed = std::nullopt;               // copies wait for a DeferredExecutor
  std::vector<ProcessInfo> processes = {};       // all processes that share the world; empty: only this process
  ProcessIndex process_index = ProcessIndex(0);  // of this process
  BackendRef backend = nullptr;                  // nothing: CPU devices, or devices of the cluster `machine`
};

/// A set of devices. Immutable except for its devices' counters. Objects on its devices keep it alive.
class Client : public std::enable_shared_from_this<Client> {
 public:
  /// Creates devices on `machine` with ids from 0, spread over its domains in order (with 8 devices on 2 domains, the
  /// first four are on the first domain). With `processes` it has the devices of all of them, with ids in order of the
  /// processes; devices of other processes are not addressable. Throws InvalidArgument for num_devices outside 1 ..
  /// 2^24, for invalid processes (such as an entry of this process that does not match `machine`), and for allocator
  /// options that are invalid or unsupported by the backend; OutOfMemory if there is too little memory to preallocate.
  static std::shared_ptr<Client> make(std::shared_ptr<const Machine> machine, const ClientOptions& options);

  int64_t uid() const noexcept { return uid_; }
  const Backend& backend() const noexcept { return *backend_; }
  const std::string& platform() const noexcept { return backend_->platform(); }
  const Machine& machine() const noexcept { return *machine_; }
  bool is_compile_only() const noexcept { return compile_only_; }
  /// Whether copies between devices and to the host run when a thread waits, in an order drawn from a seed. New memory
  /// is filled with a pattern; a read that comes too early then returns wrong data.
  bool defers_copies() const noexcept { return executor_->is_deferred(); }
  ProcessIndex process_index() const noexcept { return process_index_; }
  int process_count() const noexcept { return std::max(static_cast<int>(processes_.size()), 1); }
  bool is_multi_process() const noexcept { return processes_.size() > 1; }
  /// Only for a client of several processes.
  const ProcessInfo& process(ProcessIndex index) const noexcept { return processes_[index]; }
  /// Throws InvalidArgument for a process that this world does not have; `operation` begins the message.
  void check_process(ProcessIndex index, std::string_view operation) const;
  /// Returns the host of a process; equal numbers mean the same machine.
  int host_of_process(ProcessIndex index) const noexcept { return processes_.empty() ? 0 : host_of_process_[index]; }
  /// Returns the entry of a process with `num_devices` devices (nothing: Backend::device_count) on `machine`;
  /// `backend`: what the devices are; null: the CPU's.
  static ProcessInfo describe(const Machine& machine, std::optional<int64_t> num_devices,
                              const Backend* backend = nullptr);
  /// Makes all later placements on its devices throw Unavailable, permanently. Existing arrays remain valid.
  void close() noexcept { closed_.store(true, std::memory_order_release); }
  bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  int64_t device_count() const noexcept { return count_; }
  int64_t local_device_count() const noexcept { return local_count_; }
  /// The first local device, used if no device is named.
  Device* default_device() const noexcept { return &devices_[first_local_.number()]; }
  /// Returns the device with this id. Throws IndexOutOfRange.
  Device* device(DeviceId id) const;
  IdRange<DeviceId> device_ids() const noexcept { return IdRange<DeviceId>(count_); }
  /// The device of this process with a local_hardware_id. Throws Unavailable if no device has it.
  Device* local_device(int64_t local_hardware_id) const;
  int64_t arenas() const noexcept { return arenas_.size(); }
  /// Returns the arena for a result of this size that all devices read: near `nearest`, or interleaved over all nodes
  /// if it is large and the devices are on several nodes.
  Arena& shared_arena(const Device& nearest, int64_t bytes) const noexcept;
  bool has_arena(ArenaIndex index) const noexcept { return arenas_[index] != nullptr; }
  Arena& arena(ArenaIndex index) const noexcept { return *arenas_[index]; }
  Arena& arena(ArenaIndex index, MemoryKind kind) const noexcept {
    const Arena& of_device = arena(index);
    return kind == MemoryKind::kDevice ? arena(index) : Arena::of_node(of_device.node(), kind, of_device.is_caching());
  }
  /// Where arrays of a kind on the devices with memory `index` are.
  MemorySpace& space(ArenaIndex index, MemoryKind kind = MemoryKind::kDevice) const noexcept {
    if (kind == MemoryKind::kDevice) return *spaces_[index];
    MemorySpace* const pinned = kind == MemoryKind::kPinnedHost ? pinned_spaces_[index] : nullptr;
    return pinned ? *pinned : arena(index, kind);
  }
  /// Whether the host can read memory of this kind without a transfer.
  bool is_host_readable(MemoryKind kind) const noexcept {
    return device_is_host_readable_ || kind != MemoryKind::kDevice;
  }
  /// Executor of the copies of its devices.
  Executor& executor() const noexcept { return *executor_; }
  /// Engine for copies to and from the memory of its devices; null: the processor.
  const CopyEngine* copy_engine() const noexcept { return copy_engine_; }
  /// The options passed to make().
  const std::optional<AllocatorOptions>& allocator() const noexcept { return allocator_; }
  /// The bytes of device memory `index`, divided by its number of devices.
  int64_t memory_bytes_per_device(ArenaIndex index) const noexcept {
    return arena_memory_bytes_[index] / std::max<int64_t>(arena_devices_[index], 1);
  }

 private:
  Client() = default;
  void add_devices(const ProcessInfo& info, ProcessIndex process, const ClientOptions& options);
  /// Applies the fraction in the options, and preallocates.
  void set_limits(const AllocatorOptions& allocator);

  int64_t uid_ = 0;
  BackendRef backend_;
  bool device_is_host_readable_ = true;
  const CopyEngine* copy_engine_ = nullptr;
  std::shared_ptr<const Machine> machine_;
  bool compile_only_ = false;
  std::shared_ptr<Executor> executor_;
  std::atomic<bool> closed_{false};
  int64_t count_ = 0;
  DeviceId first_local_;
  int64_t local_count_ = 0;
  ProcessIndex process_index_;
  IdVector<ProcessIndex, ProcessInfo> processes_;  // empty: this process only
  IdVector<ProcessIndex, int> host_of_process_;
  std::unique_ptr<Device[]> devices_;
  IdVector<ArenaIndex, Arena*> arenas_;               // host memory near each device memory; null for other processes
  IdVector<ArenaIndex, MemorySpace*> spaces_;         // physical memory of each device memory; null for other processes
  IdVector<ArenaIndex, MemorySpace*> pinned_spaces_;  // of the backend's own; null: the arena of the node
  IdVector<ArenaIndex, int64_t> arena_devices_;       // number of devices on each
  IdVector<ArenaIndex, int64_t> arena_memory_bytes_;
  std::optional<AllocatorOptions> allocator_;
  std::vector<std::shared_ptr<void>> preallocated_;  // preallocated memory of its arenas
};

using ClientRef = std::shared_ptr<Client>;

}  // namespace artifex_devices
