// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/dlpack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/device/cpu/arena.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kFromDlpack = "from_dlpack";

bool is_sub_byte(DType dtype) { return row_of(dtype).bits < 8; }

/// Owner of an exported tensor: the view keeps the memory alive, the strides are in elements.
struct ExportedTensor {
  std::shared_ptr<const HostView> view;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

template <class Managed>
DlpackRef<Managed> export_as(std::shared_ptr<const HostView> view, dlpack::DeviceId device) {
  auto exported = std::make_unique<ExportedTensor>();
  const int64_t size = itemsize(view->dtype);
  for (int64_t d = 0; d < view->shape.size(); ++d) {
    exported->shape.push_back(view->shape[d]);
    exported->strides.push_back(view->byte_strides[d] / size);
  }
  auto managed = std::make_unique<Managed>();
  const DTypeRow& row = row_of(view->dtype);
  managed->tensor = {view->data,
                     device,
                     static_cast<int32_t>(exported->shape.size()),
                     {row.dlpack_code, static_cast<uint8_t>(row.bits), 1},
                     exported->shape.data(),
                     exported->strides.data(),
                     0};
  exported->view = std::move(view);
  managed->context = exported.release();
  managed->deleter = [](Managed* self) {
    delete static_cast<ExportedTensor*>(self->context);
    delete self;
  };
  return DlpackRef<Managed>(managed.release());
}

DType dtype_of_element(const dlpack::ElementType& element, uint64_t flags) {
  for (const DTypeRow& row : kDTypes) {
    if (element.lanes != 1 || row.dlpack_code != element.code || row.bits != element.bits) continue;
    if (element.bits >= 8 || (flags & dlpack::kSubBytePadded) != 0) return row.dtype;
  }
  throw_error<UnsupportedBuffer>(
      "{}: elements of type code {}, {} bits, {} lanes are not supported; expected a bool, integer, float or complex "
      "dtype of NumPy or ml_dtypes; convert them in the producer",
      kFromDlpack, element.code, element.bits, element.lanes);
}

[[noreturn]] void throw_malformed(const std::string& what) {
  throw_error<UnsupportedBuffer>("{}: {}; the producer's capsule is malformed", kFromDlpack, what);
}

/// Why no array can share the memory; empty if one can.
std::string why_not_as_it_is(const HostView& view) {
  const int64_t size = itemsize(view.dtype);
  if (view.byte_strides != row_major_strides(view.shape, size)) {
    return fmt::format("strides {} of shape {} are not row-major", to_string(view.byte_strides), to_string(view.shape));
  }
  const int64_t alignment = is_complex(view.dtype) ? size / 2 : size;
  if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(alignment) != 0) {
    return "the address does not fit the dtype's alignment";
  }
  return "";
}

/// Why an array on `device` cannot share the memory of the host; empty if it can.
std::string why_copy(const HostView& view, const Device& device) {
  if (!device.client().is_host_readable(MemoryKind::kDevice)) {
    return fmt::format("the memory is the host's, but {} has its own memory", device.to_string());
  }
  if (&device != device.client().default_device()) return "the requested device is not cpu:0, where the memory is";
  return why_not_as_it_is(view);
}

}  // namespace

void check_one_device(const Array& array, std::string_view operation) {
  array.check_alive(operation);
  const int64_t devices = array.sharding()->num_devices();
  if (devices != 1) {
    throw_error<UnsupportedBuffer>(
        "{}: the Array is on {} devices; expected one device; pass its value, np.asarray(x), or a shard, "
        "x.addressable_shards[0].data",
        operation, devices);
  }
  if (!array.is_host_readable() && cuda_ordinal(array) < 0) {
    throw_error<UnsupportedBuffer>(
        "{}: the Array is in the memory of {}, which the host cannot read; expected host memory; pass its value: "
        "device_get(x)",
        operation, array.sharding()->devices()->front()->to_string());
  }
}

int cuda_ordinal(const Array& array) {
  const Sharding& sharding = *array.sharding();
  if (sharding.num_devices() != 1 || !sharding.is_fully_addressable()) return -1;
  const Device& device = *sharding.devices()->front();
  return device.client().is_compile_only() ? -1 : device.space(sharding.memory_kind()).cuda_ordinal();
}

std::shared_ptr<const HostView> cuda_view(const ArrayRef& array) {
  array->block_until_ready();
  BufferRef buffer = array->storage()->buffer(array->buffer_at(Position(0)));
  buffer.block->mark_as_exported();
  auto view = std::make_shared<HostView>();
  view->data = array->nbytes() == 0 ? nullptr : buffer.device_data();
  view->dtype = array->dtype();
  view->shape = array->shape();
  view->byte_strides = array->strides(array->shape());
  view->owner = std::make_shared<BlockRef>(std::move(buffer.block));
  return view;
}

void check_dlpack_version(DType dtype, DlpackVersion version, std::string_view operation) {
  if (!is_sub_byte(dtype) || version >= DlpackVersion{1, 1}) return;
  throw_error<UnsupportedBuffer>(
      "{}: dtype {} is stored in one byte per element, which DLPack supports from version 1.1 on; expected "
      "max_version=(1, 1) or later, got ({}, {}); pass the bytes: np.asarray(x).view(np.uint8)",
      operation, name(dtype), version.first, version.second);
}

std::shared_ptr<const HostView> dlpack_view(const ArrayRef& array, bool copy) {
  if (cuda_ordinal(*array) >= 0) {
    return cuda_view(copy ? reshard(array, array->sharding(), {.committed = true, .force_copy = true}) : array);
  }
  std::shared_ptr<const HostView> view = device_get(array);
  if (!copy) return view;
  auto copied = std::make_shared<HostView>(*view);
  BlockRef block = array->sharding()->devices()->front()->arena().allocate(array->nbytes());
  copied->data = block->host_data();
  std::memcpy(copied->data, view->data, array->nbytes());
  copied->owner = std::make_shared<BlockRef>(std::move(block));
  return copied;
}

DlpackRef<dlpack::Managed> export_dlpack(std::shared_ptr<const HostView> view, dlpack::DeviceId device) {
  return export_as<dlpack::Managed>(std::move(view), device);
}

DlpackRef<dlpack::ManagedVersioned> export_dlpack_versioned(std::shared_ptr<const HostView> view, bool is_copy,
                                                            dlpack::DeviceId device) {
  const bool sub_byte = is_sub_byte(view->dtype);
  auto managed = export_as<dlpack::ManagedVersioned>(std::move(view), device);
  managed->version = {1, sub_byte ? 1U : 0U};
  managed->flags = (is_copy ? dlpack::kIsCopied : dlpack::kReadOnly) | (sub_byte ? dlpack::kSubBytePadded : 0);
  return managed;
}

HostView view_of_dlpack(const dlpack::Tensor& tensor, uint64_t flags) {
  constexpr std::array kTypes = {dlpack::kCpu, dlpack::kCuda, dlpack::kCudaHost, dlpack::kRocmHost};
  if (std::ranges::find(kTypes, tensor.device.type) == kTypes.end()) {
    throw_error<UnsupportedBuffer>(
        "{}: the memory is of DLPack device type {}; expected 1, the host, or 2, CUDA; copy it to the host in the "
        "producer first",
        kFromDlpack, tensor.device.type);
  }
  HostView view;
  view.dtype = dtype_of_element(tensor.element, flags);
  constexpr int32_t kMaxDimensions = 64;  // NumPy's
  if (tensor.rank < 0 || tensor.rank > kMaxDimensions) {
    throw_malformed(fmt::format("{} dimensions; expected 0 to {}", tensor.rank, kMaxDimensions));
  }
  if (tensor.rank > 0 && tensor.shape == nullptr) throw_malformed("no shape");
  const auto rank = static_cast<size_t>(tensor.rank);
  if (rank > 0) view.shape = Dims(std::span<const int64_t>(tensor.shape, rank));
  const int64_t size = itemsize(view.dtype);
  if (std::ranges::any_of(view.shape, [](int64_t extent) { return extent < 0; })) {
    throw_malformed(fmt::format("shape {}", to_string(view.shape)));
  }
  const auto bytes = dense_bytes(view.shape, size);
  if (!bytes) throw_malformed(fmt::format("shape {} has more bytes than fit 63 bits", to_string(view.shape)));
  const bool empty = *bytes == 0;
  view.byte_strides = row_major_strides(view.shape, size);
  if (tensor.strides != nullptr && !empty) {
    for (int64_t d = 0; d < view.shape.size(); ++d) {
      if (view.shape[d] == 1) continue;  // the stride of such a dimension may be any number
      const auto stride = checked_mul(tensor.strides[d], size);
      if (!stride || !checked_mul(*stride, view.shape[d])) {
        throw_malformed(fmt::format("stride {}", tensor.strides[d]));
      }
      view.byte_strides[d] = *stride;
    }
  }
  if (tensor.data == nullptr && !empty) throw_malformed("no data");
  if (tensor.data != nullptr) view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  return view;
}

void check_dlpack_target(const Sharding& sharding) {
  if (sharding.num_devices() == 1) return;
  throw_error(
      "{}: device is a sharding over {} devices; expected a Device or a sharding over one device; shard it afterwards: "
      "device_put(from_dlpack(x), sharding)",
      kFromDlpack, sharding.num_devices());
}

ArrayRef array_from_dlpack(HostView source, const ShardingRef& sharding, std::optional<bool> copy) {
  check_dlpack_target(*sharding);
  const std::string why = why_copy(source, *sharding->devices()->front());
  if (copy == false && !why.empty()) {
    throw_error("{}: copy=False, but a copy is needed: {}; leave copy out, or pass row-major memory and no device",
                kFromDlpack, why);
  }
  if (copy.value_or(false) || !why.empty() || source.data == nullptr) return device_put(source, sharding, true);
  return device_put_alias(source, sharding, true);
}

ArrayRef array_from_cuda(HostView source, const ShardingRef& sharding, std::optional<bool> copy) {
  check_dlpack_target(*sharding);
  const std::string why = why_not_as_it_is(source);
  if (copy == false && !why.empty()) {
    throw_error("{}: copy=False, but a copy is needed: {}; leave copy out, or pass row-major memory", kFromDlpack, why);
  }
  const Device& device = *sharding->devices()->front();
  MemorySpace& space = device.space(MemoryKind::kDevice);
  space.wait_for_device();
  const ShardDomains domains = sharding->domains(source.shape, kFromDlpack);
  std::shared_ptr<Storage> storage;
  if (copy.value_or(false) || !why.empty() || source.data == nullptr) {
    storage = Storage::allocate(sharding, domains, source.dtype, kFromDlpack);
    const int64_t size = itemsize(source.dtype);
    CopyBatch batch;
    batch.add(StridedCopy(storage->device_data(BufferId(0)), row_major_strides(source.shape, size),
                          static_cast<const std::byte*>(source.data), source.byte_strides, source.shape, size),
              kAnyLane);
    device.client().executor().run(batch);
  } else {
    BufferRefs memory;
    memory.push_back({space.foreign_block(source.data, source.nbytes(), [owner = source.owner] {}), 0});
    storage = Storage::adopt(sharding, domains, source.dtype, std::move(memory), kFromDlpack);
  }
  return Array::make(source.shape, source.dtype, sharding, std::move(storage), nullptr, true);
}

}  // namespace artifex_devices
