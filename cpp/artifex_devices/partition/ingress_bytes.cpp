// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/partition/reshard_check.h"
#include "artifex_devices/partition/reshard_plan.h"

namespace artifex_devices {
namespace {

/// Table of the first index of each part of each dimension. The loop over positions then needs no divisions.
class PartBounds {
 public:
  explicit PartBounds(const ShardDomains& domains) : parts_(domains.grid().parts()), shape_(domains.shape()) {
    for (int64_t d = 0; d < parts_.size(); ++d) {
      auto& begins = begins_.emplace_back();
      for (int64_t part = 0; part <= parts_[d]; ++part) begins.push_back(domains.begin(d, part));
    }
  }

  /// Range of the tile in dimension d. `tile` must have lost the dimensions after d, and loses d here.
  std::pair<int64_t, int64_t> next(int64_t d, int64_t* tile) const noexcept {
    if (d >= parts_.size()) return {0, shape_[d]};
    const auto part = static_cast<size_t>(*tile % parts_[d]);
    *tile /= parts_[d];
    const auto& begins = begins_[d];
    return {begins[part], begins[part + 1]};
  }

 private:
  const Dims& parts_;
  const Dims& shape_;
  std::vector<std::vector<int64_t>> begins_;
};

/// The position of each device: a table if ids are small, as the ids of a client's devices are, otherwise a hash map.
class PositionOfDevice {
 public:
  explicit PositionOfDevice(const std::vector<int64_t>& devices) {
    const auto [least, greatest] = std::ranges::minmax_element(devices);
    const int64_t count = std::ssize(devices);
    if (*least >= 0 && *greatest < 4 * count) table_.resize(*greatest + 1);
    for (int64_t i = count - 1; i >= 0; --i) {  // so that the first position of a device wins
      (table_.empty() ? map_[devices[i]] : table_[devices[i]]) = Position(i);
    }
  }

  /// Returns none if the device is unknown.
  Position find(int64_t device) const noexcept {
    if (!table_.empty()) return device >= 0 && device < std::ssize(table_) ? table_[device] : Position();
    const auto found = map_.find(device);
    return found == map_.end() ? Position() : found->second;
  }

 private:
  std::vector<Position> table_;
  std::unordered_map<int64_t, Position> map_;
};

}  // namespace

std::vector<int64_t> ingress_bytes(const ShardDomains& source, const std::vector<int64_t>& source_device_of_position,
                                   const ShardDomains& destination,
                                   const std::vector<int64_t>& destination_device_of_position, int64_t itemsize) {
  const bool has_elements = check_reshard(source, destination, itemsize, "ingress_bytes");
  const auto check_positions = [](const ShardDomains& domains, const std::vector<int64_t>& devices, const char* which) {
    if (static_cast<int64_t>(devices.size()) == domains.grid().positions()) return;
    throw_error("ingress_bytes: the {} has {} devices; expected {}, one for each position; give all devices", which,
                devices.size(), domains.grid().positions());
  };
  check_positions(source, source_device_of_position, "source");
  check_positions(destination, destination_device_of_position, "destination");

  std::vector<int64_t> bytes(destination_device_of_position.size(), 0);
  if (!has_elements) return bytes;
  const IdVector<Position, TileId> from_tiles = source.grid().tiles_by_position();
  const IdVector<Position, TileId> to_tiles = destination.grid().tiles_by_position();
  const PartBounds from_bounds(source);
  const PartBounds to_bounds(destination);
  const PositionOfDevice source_position(source_device_of_position);
  const int64_t sharded_rank = std::max(source.grid().parts().size(), destination.grid().parts().size());
  int64_t unsharded = itemsize;  // bytes in the dimensions that neither side shards
  for (int64_t d = sharded_rank; d < source.shape().size(); ++d) unsharded *= source.shape()[d];
  for (int64_t i = 0; i < std::ssize(bytes); ++i) {
    // No IndexDomain here: this runs for a million positions.
    const Position at = source_position.find(destination_device_of_position[i]);
    int64_t to = to_tiles[Position(i)].number();
    int64_t from = at.is_none() ? 0 : from_tiles[at].number();
    int64_t wanted = unsharded;
    int64_t held = at.is_none() ? 0 : unsharded;
    for (int64_t d = sharded_rank - 1; d >= 0; --d) {
      const auto [to_begin, to_end] = to_bounds.next(d, &to);
      const auto [from_begin, from_end] = from_bounds.next(d, &from);
      wanted *= to_end - to_begin;
      held *= std::max<int64_t>(0, std::min(to_end, from_end) - std::max(to_begin, from_begin));
    }
    bytes[i] = wanted - held;
  }
  return bytes;
}

}  // namespace artifex_devices
