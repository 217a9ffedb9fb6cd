// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/assemble.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>

#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/device/executor.h"
#include "artifex_devices/transfer/recorded_transfer.h"
#include "artifex_devices/transfer/reshard.h"
#include "artifex_devices/transfer/row_major_tiles.h"

namespace artifex_devices {
namespace {

/// An event that is set when all are set, with the error of one of them, if any.
EventRef all_of(const std::vector<EventRef>& events) {
  std::vector<EventRef> open;
  for (const EventRef& event : events) {
    if (event && !(event->is_set() && !event->error())) open.push_back(event);
  }
  if (open.empty()) return nullptr;
  if (open.size() == 1) return open[0];
  auto all = std::make_shared<Event>();
  std::vector<std::function<bool()>> helpers;
  for (const EventRef& event : open) {
    if (auto helper = helper_of(event)) helpers.push_back(std::move(helper));
  }
  if (!helpers.empty()) {
    all->set_helper([helpers] { return std::ranges::any_of(helpers, [](const auto& helper) { return helper(); }); });
  }
  auto left = std::make_shared<std::atomic<size_t>>(open.size());
  for (const EventRef& event : open) {
    event->then([all, left](std::exception_ptr error) {
      if (error) all->set_error(std::move(error));
      if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) all->set();
    });
  }
  return all;
}

/// Equal bytes of the host; big ones on several threads.
bool are_equal_on_host(const std::byte* a, const std::byte* b, int64_t bytes) {
  constexpr int64_t kPiece = int64_t{4} << 20;
  const int64_t pieces = (bytes + kPiece - 1) / kPiece;
  std::atomic<bool> equal{true};
  const auto compare = [&](int64_t i) {
    const int64_t begin = i * kPiece;
    if (!equal.load(std::memory_order_relaxed)) return;
    const auto size = static_cast<size_t>(std::min(kPiece, bytes - begin));
    if (std::memcmp(a + begin, b + begin, size) != 0) equal.store(false, std::memory_order_relaxed);
  };
  if (pieces == 1) {
    compare(0);
  } else if (pieces > 1) {
    WorkerPool::process().parallel_for(pieces, kAnyLane, compare);
  }
  return equal.load();
}

/// Equal bytes of a device or the host. Memory that the processor cannot read is copied to the host.
bool are_equal(const std::byte* a, const std::byte* b, int64_t bytes, const Client& client) {
  if (client.copy_engine() == nullptr) return are_equal_on_host(a, b, bytes);
  const BlockRef on_host = client.default_device()->arena().allocate(2 * bytes);
  CopyBatch batch;
  std::byte* copy = on_host->host_data();
  for (const std::byte* each : {a, b}) {
    batch.add(StridedCopy(copy, Dims{1}, each, Dims{1}, Dims{bytes}, 1), kAnyLane);
    copy += bytes;
  }
  client.executor().run(batch);
  return are_equal_on_host(on_host->host_data(), on_host->host_data() + bytes, bytes);
}

/// All of `source`, row-major, to memory of a device.
void copy_dense(std::byte* destination, const HostView& source, const Device& device) {
  const int64_t size = itemsize(source.dtype);
  CopyBatch batch;
  batch.add(StridedCopy(destination, row_major_strides(source.shape, size), source.data, source.byte_strides,
                        source.shape, size),
            device.lane());
  device.client().executor().run(batch);
}

/// Checks and executes one assembly.
class Assembler {
 public:
  explicit Assembler(Assembly assembly)
      : assembly_(std::move(assembly)),
        sharding_(*assembly_.sharding),
        devices_(*sharding_.devices()),
        part_of_(sharding_.num_devices(), -1) {}

  ArrayRef make() {
    match_devices();
    check_dtypes();
    const Dims shape = assembly_.shape ? *assembly_.shape : shape_of_parts();
    const ShardDomains domains = sharding_.domains(shape, assembly_.operation);
    check_shapes(shape, domains);
    raise();
    const LayoutRef layout = assembly_.parts.empty() ? nullptr : common_layout();
    BufferRefs buffers = take_buffers();
    raise();

    std::vector<EventRef> ready;
    for (const Assembly::Part& part : assembly_.parts) ready.push_back(part.array->ready_event());
    for (const Assembly::Part& part : assembly_.parts) {
      if (part.is_ours_only) part.array->storage()->delete_all(Deletion::kToCache);
    }
    auto storage =
        Storage::adopt(assembly_.sharding, domains, *assembly_.dtype, std::move(buffers), assembly_.operation);
    return Array::make(shape, *assembly_.dtype, assembly_.sharding, std::move(storage), all_of(ready), true, layout);
  }

 private:
  const Array& part(int64_t number) const { return *assembly_.parts[number].array; }
  int64_t part_at(Position position) const { return part_of_[position]; }
  Position position(int64_t i) const { return devices_.addressable_position(i); }

  template <class... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args) {
    constexpr int kShown = 64;
    if (++faults_ > kShown) return;
    errors_ += errors_.empty() ? "" : "; ";
    errors_ += fmt::format(format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void fault_of(int64_t number, fmt::format_string<Args...> format, Args&&... args) {
    fault("{}[{}] {}", assembly_.name, number, fmt::format(format, std::forward<Args>(args)...));
  }

  void match_devices() {
    const auto count = static_cast<int64_t>(assembly_.parts.size());
    const int64_t expected = devices_.addressable_count();
    if (count != expected) {
      fault("{} has {} entries; expected {}, one for each device {}of {}", assembly_.name, count, expected,
            devices_.is_fully_addressable() ? "" : "of this process ", sharding_.to_string());
    }
    std::unordered_map<const Device*, Position> position_of;
    for (int64_t i = 0; i < expected; ++i) position_of[devices_[position(i)]] = position(i);
    for (int64_t i = 0; i < count; ++i) {
      const Assembly::Part& each = assembly_.parts[i];
      if (!each.fault.empty()) fault_of(i, "{}", each.fault);
      if (!each.array) continue;
      const Array& array = *each.array;
      if (array.is_deleted()) {
        ++deleted_;
        fault_of(i, "was {}", array.storage()->deletion() == Deletion::kDonation ? "donated to device_put" : "deleted");
      }
      if (array.sharding()->num_devices() != 1) {
        fault_of(i, "is on {} devices; expected one", array.sharding()->num_devices());
        continue;
      }
      const Device* device = array.sharding()->devices()->front();
      const auto found = position_of.find(device);
      if (found == position_of.end()) {
        const bool elsewhere = array.sharding()->devices()->client() != sharding_.devices()->client();
        const char* whose = elsewhere ? " of another world" : device->is_addressable() ? "" : " of another process";
        fault_of(i, "is on {}{}, which is not a device of the sharding{}", device->to_string(), whose,
                 devices_.is_fully_addressable() ? "" : " in this process");
        continue;
      }
      if (array.sharding()->memory_kind() != sharding_.memory_kind()) {
        fault_of(i, "is in {} memory; expected {}, the memory kind of the sharding",
                 to_string(array.sharding()->memory_kind()), to_string(sharding_.memory_kind()));
      }
      int64_t& taken = part_of_[found->second];
      if (taken >= 0) {
        fault_of(i, "is on {} as {}[{}] is; expected distinct devices", device->to_string(), assembly_.name, taken);
        continue;
      }
      taken = i;
      if (first_ < 0) first_ = i;
    }
    for (int64_t i = 0; i < expected && count == expected; ++i) {
      if (part_at(position(i)) < 0) fault("no part for {}", devices_[position(i)]->to_string());
    }
    if (count == 0 && expected > 0) raise();
  }

  void check_dtypes() {
    const bool has_dtype = assembly_.dtype.has_value();
    if (devices_.addressable_count() == 0 && assembly_.parts.empty()) {
      if (has_dtype && assembly_.shape) return;
      throw_error(
          "{}: no device of {} belongs to this process, so no part determines shape and dtype; expected both, got {}; "
          "pass {}",
          assembly_.operation, sharding_.to_string(),
          has_dtype         ? "a dtype only"
          : assembly_.shape ? "a shape only"
                            : "none",
          "shape and dtype");
    }
    if (first_ < 0) raise();
    if (!has_dtype) assembly_.dtype = part(first_).dtype();
    for (int64_t i = 0; i < static_cast<int64_t>(assembly_.parts.size()); ++i) {
      if (!assembly_.parts[i].array || part(i).dtype() == *assembly_.dtype) continue;
      if (has_dtype) {
        fault_of(i, "has dtype {}; expected {}", artifex_devices::name(part(i).dtype()),
                 artifex_devices::name(*assembly_.dtype));
      } else {
        fault_of(i, "has dtype {}; expected {} as {}[{}] has", artifex_devices::name(part(i).dtype()),
                 artifex_devices::name(*assembly_.dtype), assembly_.name, first_);
      }
    }
  }

  /// In each dimension the sum of the parts along it.
  Dims shape_of_parts() {
    Dims shape = part(first_).shape();
    const TileGrid& grid = sharding_.grid();
    for (int64_t d = 0; d < shape.size(); ++d) {
      if (grid.parts(d) == 1) continue;
      Dims sizes(grid.parts(d), shape[d]);  // by coordinate; missing parts count as the first part
      for (const Position p : sharding_.positions()) {
        if (part_at(p) < 0 || part(part_at(p)).rank() != shape.size()) continue;
        sizes[grid.tile_coordinate(grid.tile(p), d)] = part(part_at(p)).shape()[d];
      }
      shape[d] = 0;
      for (const int64_t size : sizes) shape[d] += size;
    }
    return shape;
  }

  void check_shapes(const Dims& shape, const ShardDomains& domains) {
    for (const Position p : sharding_.positions()) {
      if (part_at(p) < 0) continue;
      const Dims whole = domains.domain(p).shape;
      Dims expected = whole;
      if (assembly_.is_stack) {
        expected = Dims(whole.size() - 1, 0);
        for (int64_t d = 1; d < whole.size(); ++d) expected[d - 1] = whole[d];
      }
      if (part(part_at(p)).shape() == expected) continue;
      fault_of(part_at(p), "has shape {}; expected {}, the part of shape {} on {}",
               artifex_devices::to_string(part(part_at(p)).shape()), artifex_devices::to_string(expected),
               artifex_devices::to_string(shape), sharding_.device(p).to_string());
    }
  }

  /// The layout of all parts; if they differ, or lack the first dimension, they are copied into row-major order.
  LayoutRef common_layout() {
    const LayoutRef& layout = part(0).layout();
    const bool is_common = std::ranges::all_of(
        assembly_.parts, [&](const Assembly::Part& each) { return equal_layouts(each.array->layout(), layout); });
    if (is_common && (!layout || !assembly_.is_stack)) return layout;
    for (Assembly::Part& each : assembly_.parts) {
      if (each.array->layout()) each = {row_major(each.array), "", false};
    }
    return nullptr;
  }

  /// The memory of each distinct shard; replicas of it must be the same.
  BufferRefs take_buffers() {
    BufferRefs buffers(sharding_.buffers().size());
    IdVector<BufferId, int64_t> owner(buffers.size(), -1);
    for (int64_t i = 0; i < devices_.addressable_count(); ++i) {
      const Position p = position(i);
      const BufferId b = sharding_.buffer_at(p);
      const Array& array = part(part_at(p));
      BufferRef memory = array.storage()->buffer(array.buffer_at(Position(0)));
      if (owner[b] < 0) {
        owner[b] = part_at(p);
        buffers[b] = std::move(memory);
        continue;
      }
      if (memory.device_data() == buffers[b].device_data()) continue;
      array.block_until_ready();
      part(owner[b]).block_until_ready();
      check_interrupt();
      if (are_equal(memory.device_data(), buffers[b].device_data(), array.nbytes(), *devices_.client())) continue;
      fault_of(part_at(p), "on {} differs from {}[{}], of which it is a replica", sharding_.device(p).to_string(),
               assembly_.name, owner[b]);
    }
    return buffers;
  }

  void raise() {
    if (faults_ == 0) return;
    const std::string more = faults_ > 64 ? fmt::format("; and {} more", faults_ - 64) : "";
    const std::string text =
        fmt::format("{}: {}{}; pass parts of one dtype, one for each device", assembly_.operation, errors_, more);
    if (deleted_ == faults_) throw DeletedArray(text);
    throw InvalidArgument(text);
  }

  Assembly assembly_;
  const Sharding& sharding_;
  const DeviceList& devices_;
  IdVector<Position, int64_t> part_of_;  // -1: none
  int64_t first_ = -1;                   // the first part that is where it should be
  int faults_ = 0;
  int deleted_ = 0;
  std::string errors_;
};

}  // namespace

ArrayRef assemble(Assembly assembly) { return Assembler(std::move(assembly)).make(); }

ShardWriter::ShardWriter(Dims shape, DType dtype, ShardingRef sharding, std::string_view operation)
    : shape_(std::move(shape)),
      dtype_(dtype),
      sharding_(std::move(sharding)),
      storage_(Storage::allocate(sharding_, sharding_->domains(shape_, operation), dtype_, operation)),
      is_written_(storage_->buffer_count()) {}

bool ShardWriter::write(Position position, const HostView& source) {
  const BufferId buffer = sharding_->buffer_at(position);
  const int64_t size = itemsize(dtype_);
  const int64_t bytes = storage_->buffer_bytes(buffer);
  if (!is_written_[buffer]) {
    copy_in(buffer, source);
    return true;
  }
  if (bytes == 0) return true;
  const Client& client = *sharding_->devices()->client();
  if (is_dense(source.shape, source.byte_strides, size)) {
    return are_equal(static_cast<const std::byte*>(source.data), storage_->device_data(buffer), bytes, client);
  }
  const Device& device = sharding_->device(position);
  const BlockRef row_major = device.arena().allocate(bytes);
  copy_dense(row_major->host_data(), source, device);
  return are_equal(row_major->host_data(), storage_->device_data(buffer), bytes, client);
}

void ShardWriter::write_everywhere(const HostView& source) {
  for (const BufferId b : is_written_.ids()) copy_in(b, source);
}

void ShardWriter::copy_in(BufferId buffer, const HostView& source) {
  is_written_[buffer] = true;
  const int64_t bytes = storage_->buffer_bytes(buffer);
  if (bytes > 0) copy_dense(storage_->device_data(buffer), source, sharding_->device(buffer));
  run_.bytes += bytes;
}

ArrayRef ShardWriter::finish() {
  if (is_recorded(Recorded::kTransfers)) record_put(*sharding_, shape_, dtype_, run_);
  return Array::make(std::move(shape_), dtype_, std::move(sharding_), std::move(storage_), nullptr, true);
}

}  // namespace artifex_devices
