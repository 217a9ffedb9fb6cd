// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/transfer/dlpack_abi.h"

namespace artifex_devices {

/// Memory that the interface of an exchange between libraries cannot describe, or that it does not support.
class UnsupportedBuffer : public Error {  // BufferError
 public:
  using Error::Error;
};

using DlpackVersion = std::pair<int64_t, int64_t>;  // major, minor

inline constexpr dlpack::DeviceId kHostDevice = {dlpack::kCpu, 0};

/// Calls the tensor's own deleter, on any thread.
struct DlpackDeleter {
  template <class Managed>
  void operator()(Managed* managed) const noexcept {
    if (managed->deleter != nullptr) managed->deleter(managed);
  }
};
template <class Managed>
using DlpackRef = std::unique_ptr<Managed, DlpackDeleter>;

/// Throws UnsupportedBuffer unless the array is on one device, in memory that the host or CUDA can read, DeletedArray
/// if it was deleted.
void check_one_device(const Array& array, std::string_view operation);

/// The number that CUDA gives to the GPU that an array of one device is on; -1 for other arrays.
int cuda_ordinal(const Array& array);

/// The memory of an array on one CUDA device: `data` is an address of the GPU. Waits for the array. When the memory is
/// released, work that other libraries have started on the GPU is waited for.
std::shared_ptr<const HostView> cuda_view(const ArrayRef& array);

/// Throws UnsupportedBuffer for a dtype that DLPack cannot describe to a consumer of that version: dtypes of fewer bits
/// than a byte need version 1.1.
void check_dlpack_version(DType dtype, DlpackVersion version, std::string_view operation);

/// The value of an array on one device to export, in its own memory or as a copy there. Waits for the array.
std::shared_ptr<const HostView> dlpack_view(const ArrayRef& array, bool copy);

/// A tensor on the memory of a view, which it keeps alive: for consumers before DLPack 1.0, and for later ones, where
/// it is marked read-only unless it is a copy.
DlpackRef<dlpack::Managed> export_dlpack(std::shared_ptr<const HostView> view, dlpack::DeviceId device = kHostDevice);
DlpackRef<dlpack::ManagedVersioned> export_dlpack_versioned(std::shared_ptr<const HostView> view, bool is_copy,
                                                            dlpack::DeviceId device = kHostDevice);

/// A view of a tensor's memory without an owner, after all checks that need not read the memory. Throws
/// UnsupportedBuffer for other devices and elements and for malformed tensors. `data` is an address of the GPU where
/// the tensor is on a CUDA device.
HostView view_of_dlpack(const dlpack::Tensor& tensor, uint64_t flags);

/// Throws InvalidArgument for a sharding over several devices.
void check_dlpack_target(const Sharding& sharding);

/// An array on one device from host memory of another library. It shares the memory where that is row-major, aligned
/// and near the client's first device, unless `copy` is true. Throws as check_dlpack_target, and InvalidArgument where
/// `copy` is false but a copy is needed.
ArrayRef array_from_dlpack(HostView source, const ShardingRef& sharding, std::optional<bool> copy);

/// The same for memory of the CUDA device that `sharding` is over. Waits for all work on the GPU.
ArrayRef array_from_cuda(HostView source, const ShardingRef& sharding, std::optional<bool> copy);

}  // namespace artifex_devices
