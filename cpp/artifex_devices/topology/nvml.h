// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace artifex_devices {

/// The driver's management library, as the loader finds it.
inline constexpr const char* kNvmlSoname = "libnvidia-ml.so.1";

/// One NVLink of a GPU. What is empty or nothing is not known.
struct NvLink {
  int link = 0;
  bool is_active = false;
  std::string peer_kind;         // of an active link: "gpu", "switch", "npu" (a POWER CPU), "" not known
  std::string peer_pci_address;  // "0000:36:00.0"
  friend bool operator==(const NvLink&, const NvLink&) = default;
};

struct ComputeCapability {
  int major = 0, minor = 0;
  friend bool operator==(const ComputeCapability&, const ComputeCapability&) = default;
};

/// One GPU as the library describes it. What is empty or nothing is not known, and `problems` says why.
struct NvmlGpu {
  int index = 0;
  std::string name;
  std::string pci_address;  // "0000:34:00.0", lower case
  uint16_t vendor_id = 0;   // 0 not known
  uint16_t device_id = 0;
  std::optional<int64_t> memory_bytes;
  std::optional<ComputeCapability> compute_capability;
  std::vector<NvLink> links;  // empty for GPUs that have none
  std::vector<std::string> problems;
};

/// What NVIDIA's management library (NVML) says, at one time.
struct NvmlReport {
  std::string library;    // what was asked for
  bool is_ready = false;  // loaded, initialised and it counted its GPUs
  std::string driver_version;
  std::string cuda_version;  // the newest that the driver supports, "12.4"
  std::vector<NvmlGpu> gpus;
  std::vector<std::string> problems;  // why it is not ready, or what of the driver is not known
};

/// Loads the library, asks and shuts it down; it stays loaded. Starts no program, changes no GPU. A function that is
/// missing, fails, or answers what cannot be, costs that fact alone: its reason is kept and all others stay. The text
/// of answers is cut at its buffer, and bytes that are not printable ASCII become "?".
///
/// GPUs are counted as the library counts them: CUDA_VISIBLE_DEVICES does not matter to it, and a GPU that is cut into
/// MIG instances is one GPU with all of its memory.
///
/// `library` is "" for `kNvmlSoname` by the loader's search, or an absolute path. Throws InvalidArgument for any other.
/// Thread-safe; may take long where the driver is asleep, so call it without locks.
NvmlReport read_nvml(const std::string& library = "");

}  // namespace artifex_devices
