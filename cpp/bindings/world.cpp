// SPDX-License-Identifier: Apache-2.0
#include "world.h"

#include <pybind11/stl.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/base_client.h"
#include "artifex_devices/device/cuda/cuda_backend.h"
#include "artifex_devices/device/emulated_gpu/emulated_gpu_backend.h"
#include "artifex_devices/device/open_world.h"
#include "artifex_devices/sharding/single_device_sharding.h"
#include "class_members.h"
#include "errors.h"
#include "fast_path.h"
#include "gil.h"
#include "gil_mutex.h"
#include "recent_cache.h"
#include "scopes.h"

namespace artifex_devices::bindings {
namespace {

constexpr int64_t kMaxCachedShardings = 4096;  // by id, in a world

// Objects of an open world that are created once and used by every call. They keep the client alive, so only clients
// that will be closed have them.
struct WorldCache {
  py::object devices;  // null, or a tuple
  std::vector<ShardingRef> sharding_of_device;
};

// The caches of the open worlds, by the uid of their client. Needs the GIL; never destroyed.
class WorldCaches {
 public:
  /// Returns `use(cache)` of a client's cache, which is null for a client that is not an open world. `use` must neither
  /// run Python code nor drop the last reference to an object.
  template <class Use>
  auto of(const Client& client, Use&& use) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = by_client_.find(client.uid());
      if (found != by_client_.end()) return use(&found->second);
    }
    if (!base_client_exists() || base_client().get() != &client) return use(static_cast<WorldCache*>(nullptr));
    const std::lock_guard lock(mutex_);
    return use(&by_client_[client.uid()]);
  }

  /// Returns whether the world is new.
  bool add(const Client& client) {
    const std::lock_guard lock(mutex_);
    return by_client_.try_emplace(client.uid()).second;
  }

  /// Returns whether the client was an open world.
  bool remove(const Client& client) {
    decltype(by_client_)::node_type removed;
    const std::lock_guard lock(mutex_);  // until `removed` is destroyed, which may run Python code
    removed = by_client_.extract(client.uid());
    return !removed.empty();
  }

 private:
  std::unordered_map<int64_t, WorldCache> by_client_;
  GilMutex mutex_;
};

auto& g_worlds = *new WorldCaches;

void forget(const Client& client) {
  // From now on it is not an open world: nothing of it is cached.
  if (g_worlds.remove(client)) clear_recent_caches(&client);
}

PyObject* current_world_variable = nullptr;      // a context variable
std::atomic<bool> preference_is_checked{false};  // jax_platform_name, at the first call that names no platform

// The innermost world of the calling context, or null. The context keeps it alive.
OpenWorld* current_world() {
  PyObject* value = nullptr;
  if (PyContextVar_Get(current_world_variable, Py_None, &value) < 0) throw py::error_already_set();
  const auto world = py::reinterpret_steal<py::object>(value);
  return world.is_none() ? nullptr : skip_left(value_in<OpenWorld>(value));
}

bool set_current_world(const py::object& world) noexcept {
  PyObject* token = PyContextVar_Set(current_world_variable, world.ptr());
  Py_XDECREF(token);
  return token != nullptr;
}

py::object push_world(const ClientRef& client) {
  OpenWorld* around = current_world();
  py::object world = py::cast(std::make_shared<OpenWorld>(client, around ? around->shared_from_this() : nullptr));
  const bool is_new = g_worlds.add(*client);  // first, as setting the world may fail
  if (!set_current_world(world)) {
    if (is_new) g_worlds.remove(*client);
    throw py::error_already_set();
  }
  return world;
}

void pop_world(const py::object& world) {
  auto& left = *value_in<OpenWorld>(world.ptr());
  check_innermost(left, current_world());
  OpenWorld* around = skip_left(left.outer.get());
  if (!set_current_world(around ? py::cast(around->shared_from_this()) : py::none())) throw py::error_already_set();
  left.is_left = true;  // in copies of the context too, such as those of other threads
  forget(*left.client);
}

/// Closes a world that is not the innermost one, or is one of another context.
void close_world(const py::object& world) noexcept {
  if (world.is_none()) return;
  auto& closed = *value_in<OpenWorld>(world.ptr());
  closed.is_left = true;
  forget(*closed.client);
}

/// The `with` of `simulate`. Python runs signal handlers between its own lines only, so Ctrl-C cannot open a world
/// without entering its block.
class WorldScope {
 public:
  WorldScope(py::object make, bool all_threads, py::object make_outer)
      : make_(std::move(make)), all_threads_(all_threads), make_outer_(std::move(make_outer)) {}
  WorldScope(const WorldScope&) = delete;
  WorldScope& operator=(const WorldScope&) = delete;

  /// Closes worlds that were left out of order, as by a generator that was closed in another world: no code can leave
  /// them later.
  ~WorldScope() {
    for (const Opened& each : opened_) {
      if (!each.is_refused) continue;
      close_world(each.own);
      close_world(each.outer);
    }
  }

  py::object enter() {
    const py::object outer = make_outer_.is_none() ? py::none() : make_outer_();
    py::object made = make_();
    Opened opened{.client = made.cast<ClientRef>()};
    if (!outer.is_none()) opened.outer = push_world(outer.cast<ClientRef>());
    try {
      if (all_threads_) {
        replace_base(opened.client);
      } else {
        opened.own = push_world(opened.client);
      }
    } catch (const std::exception&) {
      if (!opened.outer.is_none()) pop_world(opened.outer);
      throw;
    }
    opened_.push_back(std::move(opened));
    return made;
  }

  void leave() {
    if (opened_.empty())
      throw_error<Unavailable>(
          "simulate: a world was left that is not open; expected __enter__ first; use a `with` block");
    Opened& last = opened_.back();
    if (last.own.is_none()) {
      if (const ClientRef old = replace_base(nullptr)) forget(*old);
    } else {
      last.is_refused = true;
      pop_world(last.own);  // if it throws, the world can be left later
    }
    if (!last.outer.is_none()) pop_world(last.outer);
    const ClientRef client = last.client;
    opened_.pop_back();
    client->executor().finish();  // perhaps no thread waits for the results
  }

 private:
  struct Opened {
    ClientRef client;
    py::object own = py::none();    // None for a replaced base client
    py::object outer = py::none();  // the world around it that was opened with it, or None
    bool is_refused = false;        // it was not the innermost world when it was to be left
  };

  py::object make_;
  bool all_threads_;
  py::object make_outer_;
  std::vector<Opened> opened_;
};

}  // namespace

ClientRef client_of_named_platform() {
  const OpenWorld* world = current_world();
  if (world != nullptr) return world->client;
  if (!base_client_exists()) check_platforms();
  return base_client();
}

ClientRef client_of_platform(const std::string& platform) {
  OpenWorld* world = current_world();
  if (world == nullptr && !base_client_exists()) check_platforms();
  return artifex_devices::client_of_platform(platform, world);
}

ClientRef current_client() {
  const OpenWorld* world = current_world();
  if (world != nullptr) return world->client;
  if (!base_client_exists()) check_platforms();
  if (!preference_is_checked && !base_is_replaced()) {
    check_preferred_platform();
    preference_is_checked = true;
  }
  return base_client();
}

std::shared_ptr<Device> handle_of(Device* device) { return {device->client().shared_from_this(), device}; }

bool is_open_world(const Client& client) {
  return g_worlds.of(client, [](const WorldCache* cache) { return cache != nullptr; });
}

py::tuple devices_of(const ClientRef& client) {
  const auto cached = [](const WorldCache* cache) { return cache == nullptr ? py::object() : cache->devices; };
  if (const py::object known = g_worlds.of(*client, cached)) return py::reinterpret_borrow<py::tuple>(known);
  py::tuple all(static_cast<size_t>(client->device_count()));
  for (const DeviceId id : client->device_ids()) all[id.number()] = handle_of(client->device(id));
  // Creating the objects may have run other Python code, which created them too.
  g_worlds.of(*client, [&](WorldCache* cache) {
    if (cache != nullptr && !cache->devices) cache->devices = all;
  });
  return all;
}

DeviceObjects::DeviceObjects(const DeviceList& devices) {
  const ClientRef& client = devices.client();
  const bool is_open = g_worlds.of(*client, [&](const WorldCache* cache) {
    if (cache != nullptr) all_ = cache->devices;
    return cache != nullptr;
  });
  // For most devices of the world, creating all costs little more.
  if (is_open && !all_ && 2 * devices.size() > client->device_count()) all_ = devices_of(client);
}

ShardingRef sharding_of(Device* device) {
  if (device->id().number() >= kMaxCachedShardings) return SingleDeviceSharding::make(device);
  const auto id = static_cast<size_t>(device->id().number());
  ShardingRef sharding = g_worlds.of(device->client(), [&](const WorldCache* cache) {
    const bool is_known = cache != nullptr && id < cache->sharding_of_device.size();
    return is_known ? cache->sharding_of_device[id] : ShardingRef();
  });
  if (sharding) return sharding;
  sharding = SingleDeviceSharding::make(device);
  return g_worlds.of(device->client(), [&](WorldCache* cache) {
    if (cache == nullptr) return sharding;
    auto& shardings = cache->sharding_of_device;
    if (shardings.size() <= id) shardings.resize(id + 1);
    if (!shardings[id]) shardings[id] = sharding;
    return shardings[id];
  });
}

py::dict memory_stats_dict(const DeviceMemoryStats& stats, const MemorySpace* space) {
  py::dict result;
  result["bytes_in_use"] = stats.bytes_in_use;
  result["peak_bytes_in_use"] = stats.peak_bytes_in_use;
  result["bytes_limit"] = stats.bytes_limit;
  result["bytes_reserved"] = stats.bytes_reserved;
  result["largest_alloc_size"] = stats.largest_alloc_size;
  result["num_allocs"] = stats.num_allocs;
  if (space == nullptr) return result;
  const MemorySpaceStats pool = space->stats();
  result["pool_bytes"] = pool.bytes_mapped;
  result["pool_bytes_in_use"] = pool.bytes_in_use;
  result["pool_bytes_cached"] = pool.bytes_cached;
  result["peak_pool_bytes_in_use"] = pool.peak_bytes_in_use;
  return result;
}

void bind_world(py::module_& module) {
  py::module_ internal = module.def_submodule("internal");
  current_world_variable = PyContextVar_New("artifex_devices_world", nullptr);
  if (current_world_variable == nullptr) throw py::error_already_set();

  py::class_<OpenWorld, std::shared_ptr<OpenWorld>>(internal, "OpenWorld");
  // Its methods are bound later (bind_client.cpp), after the classes in their signatures.
  py::class_<Client, std::shared_ptr<Client>>(
      module, "Client", R"(Devices that belong together: a world, or the result of `xla_client.make_cpu_client`.

One Array, Mesh or operation cannot mix devices of different clients. A client lives as long as anything on its devices.

Example:
    >>> from artifex_devices import xla_client
    >>> with xla_client.make_cpu_client(num_devices=2) as client:
    ...     client.devices(), client.platform
    ([CpuDevice(id=0), CpuDevice(id=1)], 'cpu')
)");

  py::class_<Backend, std::shared_ptr<Backend>>(internal, "Backend",
                                                "Kind of the devices of a client. CPU devices by default.");
  internal.def(
      "emulated_gpu_backend",
      [](const std::optional<std::string>& device_kind) {
        try {
          return unconst(make_emulated_gpu_backend(device_kind ? emulated_gpu_from_name(*device_kind) : EmulatedGpu{}));
        } catch (const Error&) {
          rethrow_with_context("simulate: ");
        }
      },
      py::arg("device_kind") = py::none(), "Returns GPUs that the CPU emulates. `device_kind`: one of the catalogue.");
  internal.def(
      "cuda_backend",
      [](int64_t devices_per_gpu) {
        try {
          return unconst(make_cuda_backend(devices_per_gpu));
        } catch (const Error&) {
          rethrow_with_context("make_gpu_client: ");
        }
      },
      py::arg("devices_per_gpu") = 1, "Returns the GPUs of this machine. `devices_per_gpu`: more than one for tests.");
  internal.def(
      "make_client",
      [](const std::optional<std::shared_ptr<Machine>>& machine, std::optional<int64_t> num_devices,
         std::optional<int64_t> bytes_limit, bool compile_only,
         const std::optional<std::tuple<int, double, bool, int64_t>>& allocator, bool asynchronous,
         const std::optional<std::shared_ptr<Backend>>& backend, std::optional<uint64_t> seed,
         const std::string& operation) {
        try {
          std::shared_ptr<const Machine> of = machine ? *machine : Machine::live();
          ClientOptions options{.num_devices = num_devices,
                                .bytes_limit = bytes_limit,
                                .compile_only = compile_only,
                                .asynchronous = asynchronous,
                                .seed = seed,
                                .backend = backend.value_or(nullptr)};
          if (!allocator) return Client::make(std::move(of), options);
          const auto& [kind, fraction, preallocate, collective] = *allocator;
          options.allocator = {static_cast<AllocatorKind>(kind), fraction, preallocate, collective};
          const ReleaseGil release;  // preallocation takes time
          return Client::make(std::move(of), options);
        } catch (const Error&) {
          rethrow_with_context(operation + ": ");
        }
      },
      py::arg("machine"), py::arg("num_devices"), py::arg("bytes_limit"), py::arg("compile_only"),
      py::arg("allocator") = py::none(), py::arg("asynchronous") = true, py::arg("backend") = py::none(),
      py::arg("seed") = py::none(), py::arg("operation") = "simulate",
      R"(Creates a client.

Args:
    machine: Machine of the devices; None for this machine.
    num_devices: Number of devices, or None for the machine's default.
    bytes_limit: Limit of each device in bytes, or None.
    compile_only: Whether the devices have no memory.
    allocator: Fields of a GpuAllocatorConfig (kind, fraction, preallocate, collective bytes), or None.
    asynchronous: Whether copies may still run when their call has returned.
    backend: What the devices are; None for CPU devices.
    seed: For tests: copies are deferred, in an order drawn from this seed.
    operation: Begins the messages of errors.
)");
  internal.def("push_world", &push_world, py::arg("client"));
  internal.def("pop_world", &pop_world, py::arg("world"));
  py::class_<WorldScope>(internal, "WorldScope", "Context manager of `simulate`: opens a world and leaves it.")
      .def(py::init([](py::object make, bool all_threads, py::object make_outer) {
             return std::make_unique<WorldScope>(std::move(make), all_threads, std::move(make_outer));
           }),
           py::arg("make"), py::arg("all_threads"), py::arg("make_outer") = py::none(),
           R"(Creates the context manager.

`make` creates the client of the world. `make_outer` creates the client of a world around it, or is None.
)")
      .def("__enter__", by_reference(&WorldScope::enter), "Opens the world and returns its client.")
      .def(
          "__exit__", [](WorldScope& self, const py::object&, const py::object&, const py::object&) { self.leave(); },
          py::arg("kind"), py::arg("error"), py::arg("trace"), "Returns to the enclosing world.");
  internal.def("current_client", &current_client);
  internal.def("client_of_named_platform", &client_of_named_platform,
               "Returns the current client for a call that names its platform, without checking jax_platform_name.");
  internal.def(
      "client_of_platform",
      [](const std::string& platform) -> std::optional<ClientRef> {
        ClientRef client = client_of_platform(platform);
        if (!client) return std::nullopt;
        return client;
      },
      py::arg("platform"),
      "Returns the client of a platform in the calling context, or None. The CPU is available in "
      "addition to GPUs.");
  internal.def(
      "cuda_report",
      [] {
        const CudaReport report = cuda_report();
        py::list gpus;
        for (const cuda::GpuFacts& facts : report.gpus) {
          py::dict gpu;
          gpu["name"] = facts.name;
          gpu["memory_bytes"] = facts.memory_bytes;
          gpu["pci_address"] = facts.pci_address;
          gpu["compute_capability"] =
              fmt::format("{}.{}", facts.compute_capability / 10, facts.compute_capability % 10);
          gpus.append(gpu);
        }
        py::dict result;
        result["library"] = report.library;
        result["driver_version"] = report.driver_version;
        result["gpus"] = gpus;
        result["problem"] = report.problem;
        result["fix"] = report.fix;
        return result;
      },
      "Returns what the CUDA driver reports, and why CUDA is not usable (\"problem\" and \"fix\", else empty).");
  internal.def("base_client_exists", &base_client_exists);
  internal.def("set_num_cpu_devices", &set_num_cpu_devices, py::arg("count").none(true));
}

}  // namespace artifex_devices::bindings
