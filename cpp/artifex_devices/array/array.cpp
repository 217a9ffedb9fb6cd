// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/array/array.h"

#include "artifex_devices/array/live_list.h"
#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/config.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/sharding/single_device_sharding.h"

namespace artifex_devices {

LayoutRef stored_layout(const Layout& layout, int64_t rank, std::string_view operation) {
  if (layout.rank() != rank) {
    throw_error(
        "{}: the Layout {} orders {} dimensions and the value has {}; expected a Layout of its rank; leave the layout "
        "out",
        operation, layout.to_string(), layout.rank(), rank);
  }
  return layout.is_row_major() ? nullptr : std::make_shared<const Layout>(layout);
}

ArrayRef Array::make(Dims shape, DType dtype, ShardingRef sharding, std::shared_ptr<Storage> storage, EventRef ready,
                     bool committed, LayoutRef layout) {
  ArrayRef array = make(std::move(shape), dtype, std::move(sharding), std::move(storage), {}, std::move(ready),
                        committed, std::move(layout));
  if (config().trace_allocations.load(std::memory_order_relaxed) != 0) array->set_creation_line();
  LiveArrays::add(array.get());
  return array;
}

ArrayRef Array::make(Dims shape, DType dtype, ShardingRef sharding, std::shared_ptr<Storage> storage, Position position,
                     EventRef ready, bool committed, LayoutRef layout) {
  struct Concrete final : Array {};  // lets make_shared call the private constructor
  auto array = std::make_shared<Concrete>();
  Array& self = *array;
  self.size_ = checked_bytes(shape, dtype, "Array") / itemsize(dtype);
  self.shape_ = std::move(shape);
  self.dtype_ = dtype;
  self.sharding_ = std::move(sharding);
  self.layout_ = std::move(layout);
  self.position_ = position;
  self.ready_ = std::move(ready);
  self.committed_ = committed;
  self.storage_ = std::move(storage);
  self.storage_->retain(position);
  self.retained_ = true;
  return array;
}

Array::~Array() {
  if (!retained_) return;
  if (!is_shard()) LiveArrays::remove(this);
  storage_->release(position_);
}

void Array::set_creation_line() noexcept {
  try {
    if (std::optional<CallerLine> line = caller_line()) creation_line_ = std::make_unique<CallerLine>(std::move(*line));
  } catch (const std::bad_alloc&) {  // the array is worth more than a note on it
  }
}

int64_t Array::on_device_size_in_bytes() const {
  return is_shard() ? storage_->buffer_bytes(buffer_at(Position(0))) : storage_->bytes().total();
}

void Array::check_position(Position position, std::string_view operation) const {
  if (!position.is_none() && position.number() < sharding_->num_devices()) return;
  throw_error<IndexOutOfRange>("{}: position {} is outside the sharding; expected 0 to {}", operation,
                               position.number(), sharding_->num_devices() - 1);
}

ArrayRef Array::shard_data(Position position) {
  check_position(position, "shard_data");
  check_alive("shard_data");
  Device& owner = sharding_->device(position);
  if (!owner.is_addressable()) {
    throw_error<NotAddressable>(
        "shard_data: the shard on {} is in process {}; expected a device of this process, {}; call it in that process, "
        "or gather the value by multihost_utils.process_allgather",
        owner.to_string(), owner.process_index().number(), owner.client().process_index().number());
  }
  return make(sharding_->domains(shape_, "shard_data").domain(position).shape, dtype_,
              SingleDeviceSharding::make(&owner, sharding_->memory_kind()), storage_, is_shard() ? position_ : position,
              ready_, committed_, layout_);
}

void Array::check_alive(std::string_view operation) const {
  if (!is_deleted()) return;
  if (storage_->deletion() == Deletion::kDonation) {
    throw_error<DeletedArray>(
        "{}: the Array of shape {} and dtype {} was donated to device_put, which deleted it; use what that call "
        "returned, or leave donate out",
        operation, artifex_devices::to_string(shape_), name(dtype_));
  }
  throw_error<DeletedArray>(
      "{}: the Array of shape {} and dtype {} was deleted; create it again, or delete or donate it only after its last "
      "use",
      operation, artifex_devices::to_string(shape_), name(dtype_));
}

void Array::fail_not_addressable(std::string_view operation) const {
  const DeviceList& devices = *sharding_->devices();
  throw_error<NotAddressable>(
      "{}: the Array of shape {} and dtype {} spans devices that are not addressable: {} of {} belong to other "
      "processes than the current process {}; expected all parts in each process that needs them; gather it in all "
      "processes by multihost_utils.process_allgather(x), or look at x.addressable_shards",
      operation, artifex_devices::to_string(shape_), name(dtype_), devices.size() - devices.addressable_count(),
      devices.size(), devices.client()->process_index().number());
}

bool Array::is_ready() const {
  check_alive("is_ready");
  return poll(ready_);
}

void Array::block_until_ready() const {
  check_alive("block_until_ready");
  wait_for(ready_);
}

BufferId Array::buffer_at(Position position) const noexcept {
  return storage_->sharding()->buffer_at(is_shard() ? position_ : position);
}

std::shared_ptr<const HostView> Array::cached_host_value() const {
  auto value = coming_host_value();
  const bool is_good = value && artifex_devices::is_ready(value->ready) && !(value->ready && value->ready->error());
  return is_good ? std::move(value) : nullptr;
}

std::shared_ptr<const HostView> Array::coming_host_value() const {
  if (is_shard()) return nullptr;  // one buffer: never gathered
  return storage_->host_value().get();
}

std::shared_ptr<const HostView> Array::cache_host_value(std::shared_ptr<const HostView> value) {
  return is_shard() ? value : storage_->host_value().put(std::move(value));
}

}  // namespace artifex_devices
