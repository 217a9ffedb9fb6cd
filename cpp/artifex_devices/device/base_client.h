// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/device/client.h"

// The clients of this process that code uses unless it has one of its own. Thread-safe.
namespace artifex_devices {

/// Returns the process's base client, created at the first call from the live machine. The number of devices is, in
/// this order of precedence, that of set_num_cpu_devices, JAX_NUM_CPU_DEVICES, or the last
/// --xla_force_host_platform_device_count in XLA_FLAGS. Throws InvalidArgument naming the variable if its value is
/// not a positive number. Environment variables are read here only: call with the GIL held.
ClientRef base_client();
bool base_client_exists() noexcept;
/// The same, but never GPUs or a client that replaces it: the CPU devices of this machine.
ClientRef cpu_client();
/// The GPUs of this machine through CUDA, created at the first call. Throws as make_cuda_backend.
ClientRef gpu_client();
/// Makes base_client() return gpu_client() instead of cpu_client(). Throws as gpu_client().
void use_gpus_as_base();
/// Throws Unavailable once the base client exists.
void set_num_cpu_devices(std::optional<int64_t> count);

/// Makes `client` the base client of all threads, or ends that (null); returns the old one. Throws Unavailable where
/// another one has replaced it already.
ClientRef replace_base(ClientRef client);
bool base_is_replaced() noexcept;

/// Returns this process's entry for the processes that will share its world.
ProcessInfo describe_base_client();
/// Creates the base client with the devices of all `processes`. Throws Unavailable if there is a base client already,
/// and as Client::make.
ClientRef join_cpus(std::vector<ProcessInfo> processes, int process_index);
/// Creates gpu_client() with the GPUs of all `processes`, and makes it the base client; `own` has those of this
/// process. Throws Unavailable if there is one already, and as Client::make.
ClientRef join_gpus(std::vector<ProcessInfo> processes, int process_index, BackendRef own);

}  // namespace artifex_devices
