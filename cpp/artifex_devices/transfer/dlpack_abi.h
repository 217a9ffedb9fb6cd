// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The binary interface of DLPack (https://dmlc.github.io/dlpack). Layout and numbers are the standard's. The names
/// differ, because another copy of its header in the process must not clash.
namespace artifex_devices::dlpack {

inline constexpr int32_t kCpu = 1;
inline constexpr int32_t kCuda = 2;
inline constexpr int32_t kCudaHost = 3;
inline constexpr int32_t kRocmHost = 11;

struct DeviceId {
  int32_t type;
  int32_t id;
};

struct ElementType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  DeviceId device;
  int32_t rank;
  ElementType element;
  int64_t* shape;
  int64_t* strides;  // in elements; null means row-major
  uint64_t byte_offset;
};

/// In capsules named "dltensor".
struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kIsCopied = 2;
inline constexpr uint64_t kSubBytePadded = 4;  // since 1.1

/// In capsules named "dltensor_versioned", since 1.0. Of another major version only `version` and `deleter` are known.
struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Tensor tensor;
};

static_assert(sizeof(Tensor) == 48 && sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80);

}  // namespace artifex_devices::dlpack
