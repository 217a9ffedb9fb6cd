// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/base_client.h"

#include <atomic>
#include <charconv>
#include <cstdlib>

#include "artifex_devices/base/fork.h"
#include "artifex_devices/base/mutex.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cuda/cuda_backend.h"

namespace artifex_devices {
namespace {

constexpr const char* kCountVariable = "JAX_NUM_CPU_DEVICES";
constexpr const char* kFlagsVariable = "XLA_FLAGS";
constexpr std::string_view kCountFlag = "--xla_force_host_platform_device_count";

// Never destroyed: static destructors elsewhere may free arrays.
struct BaseState {
  Mutex<"base client"> mutex;
  ClientRef made;            // by cpu_client()
  ClientRef gpu;             // by gpu_client()
  bool gpu_is_base = false;  // it takes precedence over `made`
  ClientRef replacing;       // takes precedence over both
  std::optional<int64_t> count;
  std::atomic<bool> exists{false};
};

union NeverDestroyed {
  constexpr NeverDestroyed() : value() {}
  ~NeverDestroyed() {}
  BaseState value;
};
constinit NeverDestroyed g_state;

BaseState& state() noexcept { return g_state.value; }

HeldOverFork g_base_held_over_fork(state().mutex, 2);

int64_t parse_count(std::string_view text, std::string_view variable, std::string_view whole) {
  int64_t value = 0;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostClientDevices) {
    throw_error(
        "devices: the environment variable {} is {:?}; expected a number of devices from 1 to {}, got {:?}; correct or "
        "unset the variable before the first use of a device",
        variable, whole, kMostClientDevices, text);
  }
  return value;
}

// The value of our last flag; flags are separated by blanks, except within quotes.
std::optional<int64_t> count_from_flags(std::string_view flags) {
  std::optional<int64_t> count;
  size_t i = 0;
  while (i < flags.size()) {
    std::string token;
    char quote = '\0';
    for (; i < flags.size(); ++i) {
      const char c = flags[i];
      if (quote) {
        if (c == quote) {
          quote = '\0';
        } else {
          token += c;
        }
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        break;
      } else {
        token += c;
      }
    }
    ++i;
    if (!token.starts_with(kCountFlag)) continue;
    const std::string_view rest = std::string_view(token).substr(kCountFlag.size());
    if (rest.empty()) {
      count = parse_count(rest, kFlagsVariable, flags);
    } else if (rest.front() == '=') {
      count = parse_count(rest.substr(1), kFlagsVariable, flags);
    }
  }
  return count;
}

std::optional<int64_t> count_from_environment() {
  if (const char* text = std::getenv(kCountVariable)) return parse_count(text, kCountVariable, text);
  if (const char* text = std::getenv(kFlagsVariable)) return count_from_flags(text);
  return std::nullopt;
}

const ClientRef& made_locked(BaseState& base) {
  if (!base.made) {
    ClientOptions options;
    options.num_devices = base.count ? base.count : count_from_environment();
    base.made = Client::make(Machine::live(), options);
    base.exists.store(true, std::memory_order_release);
  }
  return base.made;
}

const ClientRef& gpu_locked(BaseState& base) {
  if (!base.gpu) {
    ClientOptions options;
    options.backend = make_cuda_backend();
    options.allocator = AllocatorOptions::from_environment();
    base.gpu = Client::make(Machine::live(), options);
  }
  return base.gpu;
}

}  // namespace

ClientRef base_client() {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  if (base.replacing) return base.replacing;
  return base.gpu_is_base ? base.gpu : made_locked(base);
}

ClientRef gpu_client() {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  return gpu_locked(base);
}

void use_gpus_as_base() {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  gpu_locked(base);
  base.gpu_is_base = true;
  base.exists.store(true, std::memory_order_release);
}

ClientRef cpu_client() {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  return made_locked(base);
}

bool base_client_exists() noexcept { return state().exists.load(std::memory_order_acquire); }

void set_num_cpu_devices(std::optional<int64_t> count) {
  BaseState& base = state();
  if (count && (*count < 1 || *count > kMostClientDevices)) {
    throw_error("jax_num_cpu_devices: {} is not a number of devices; expected 1 to {}, or None for one per CPU domain",
                *count, kMostClientDevices);
  }
  const std::lock_guard lock(base.mutex);
  if (base.made || base.replacing) {
    throw_error<Unavailable>(
        "jax_num_cpu_devices: the devices are in use already; set the number before their first use, or use "
        "simulate({}) for a separate world",
        count ? *count : 8);
  }
  base.count = count;
}

ProcessInfo describe_base_client() {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  return Client::describe(*Machine::live(), base.count ? base.count : count_from_environment());
}

ClientRef join_cpus(std::vector<ProcessInfo> processes, ProcessIndex process_index) {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  if (base.made || base.replacing) {
    throw_error<Unavailable>(
        "distributed.initialize: the devices are in use already; expected to come before their first use; call it at "
        "the beginning of the program");
  }
  ClientOptions options;
  options.num_devices = base.count ? base.count : count_from_environment();
  options.processes = std::move(processes);
  options.process_index = process_index;
  base.made = Client::make(Machine::live(), options);
  base.exists.store(true, std::memory_order_release);
  return base.made;
}

ClientRef join_gpus(std::vector<ProcessInfo> processes, ProcessIndex process_index, BackendRef own) {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  if (base.gpu) {
    throw_error<Unavailable>(
        "distributed.initialize: the GPUs are in use already; expected to come before their first use; call it at the "
        "beginning of the program");
  }
  ClientOptions options;
  options.backend = std::move(own);
  if (!process_index.is_none() && process_index.number() < std::ssize(processes)) {
    options.num_devices = processes[process_index.number()].num_devices;
  }
  options.allocator = AllocatorOptions::from_environment();
  options.processes = std::move(processes);
  options.process_index = process_index;
  base.gpu = Client::make(Machine::live(), options);
  base.gpu_is_base = true;
  base.exists.store(true, std::memory_order_release);
  return base.gpu;
}

ClientRef replace_base(ClientRef client) {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  if (client && base.replacing) {
    throw_error<Unavailable>(
        "simulate: all_threads=True is active already; expected one world for all threads at a time; leave the other "
        "one first");
  }
  const ClientRef& own = base.gpu_is_base ? base.gpu : base.made;
  ClientRef old = base.replacing ? base.replacing : own;
  base.replacing = std::move(client);
  base.exists.store(own || base.replacing, std::memory_order_release);
  return old;
}

bool base_is_replaced() noexcept {
  BaseState& base = state();
  const std::lock_guard lock(base.mutex);
  return base.replacing != nullptr;
}

}  // namespace artifex_devices
