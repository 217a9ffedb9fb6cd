// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "artifex_devices/device/client.h"

// The default clients of this process. Thread-safe.
namespace artifex_devices {

/// Returns the process's base client, created at the first call from the live machine. The number of devices is, in
/// order of precedence, set by set_num_cpu_devices, JAX_NUM_CPU_DEVICES, or the last
/// --xla_force_host_platform_device_count in XLA_FLAGS. Throws InvalidArgument naming the variable if its value is not
/// a positive number. Environment variables are read here only: call with the GIL held.
ClientRef base_client();
bool base_client_exists() noexcept;
/// Returns the client of this machine's CPU devices, even if another client is the base client.
ClientRef cpu_client();
/// The GPUs of this machine through CUDA, created at the first call. Throws as make_cuda_backend.
ClientRef gpu_client();
/// Makes base_client() return gpu_client() instead of cpu_client(). Throws as gpu_client().
void use_gpus_as_base();
/// Throws Unavailable once the base client exists.
void set_num_cpu_devices(std::optional<int64_t> count);

/// Makes `client` the base client of all threads, or restores the default (null). Returns the previous client. Throws
/// Unavailable if another client has already replaced the default.
ClientRef replace_base(ClientRef client);
bool base_is_replaced() noexcept;

/// Returns this process's entry for the processes that will share its world.
ProcessInfo describe_base_client();
/// Creates the base client with the devices of all `processes`. Throws Unavailable if there is a base client already,
/// and as Client::make.
ClientRef join_cpus(std::vector<ProcessInfo> processes, ProcessIndex process_index);
/// Creates gpu_client() with the GPUs of all `processes`, and makes it the base client; `own` has the GPUs of this
/// process. Throws Unavailable if a base client exists, and as Client::make.
ClientRef join_gpus(std::vector<ProcessInfo> processes, ProcessIndex process_index, BackendRef own);

}  // namespace artifex_devices
