// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace artifex_devices {

/// The driver's management library, found by the loader's search.
inline constexpr const char* kNvmlSoname = "libnvidia-ml.so.1";

/// One NVLink of a GPU. Empty strings and absent values mean "not known".
struct NvLink {
  int link = 0;
  bool is_active = false;
  std::string peer_kind;         // of an active link: "gpu", "switch", "npu" (a POWER CPU); "" if unknown
  std::string peer_pci_address;  // "0000:36:00.0"
  friend bool operator==(const NvLink&, const NvLink&) = default;
};

struct ComputeCapability {
  int major = 0, minor = 0;
  friend bool operator==(const ComputeCapability&, const ComputeCapability&) = default;
};

/// One GPU, as described by the library. Empty strings and absent values mean "not known"; `problems` has the reasons.
struct NvmlGpu {
  int index = 0;
  std::string name;
  std::string pci_address;  // "0000:34:00.0", lower case
  uint16_t vendor_id = 0;   // 0 if unknown
  uint16_t device_id = 0;
  std::optional<int64_t> memory_bytes;
  std::optional<ComputeCapability> compute_capability;
  std::vector<NvLink> links;  // empty for GPUs without NVLink
  std::vector<std::string> problems;
};

/// The report of NVIDIA's management library (NVML) at one time.
struct NvmlReport {
  std::string library;    // the requested library
  bool is_ready = false;  // loaded and initialised, and the GPUs were counted
  std::string driver_version;
  std::string cuda_version;  // newest version that the driver supports, "12.4"
  std::vector<NvmlGpu> gpus;
  std::vector<std::string> problems;  // why it is not ready, or which facts about the driver are missing
};

/// Loads and initialises the library, queries it and shuts it down; it stays loaded. Starts no program and changes no
/// GPU. If a function is missing, fails or returns an impossible value, only that fact is missing and its reason is
/// recorded. Bytes of names that are not printable ASCII become "?".
///
/// The library ignores CUDA_VISIBLE_DEVICES. A GPU that is divided into MIG instances is one GPU with all of its
/// memory.
///
/// `library` is "" for `kNvmlSoname` by the loader's search, or an absolute path. Throws InvalidArgument for anything
/// else. Thread-safe. May take long if the driver is asleep, so call it without holding locks.
NvmlReport read_nvml(const std::string& library = "");

}  // namespace artifex_devices
