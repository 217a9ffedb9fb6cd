// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/reshard_plan.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/partition/reshard_check.h"

namespace artifex_devices {
namespace {

/// The source tiles that a box with elements overlaps: in each dimension the parts from `first` to `last`.
void overlapping_parts(const ShardDomains& source, const IndexDomain& box, Dims* first, Dims* last) {
  first->resize(box.rank(), 0);
  last->resize(box.rank(), 0);
  for (int64_t d = 0; d < box.rank(); ++d) {
    const int64_t chunk = source.shard_shape()[d];
    (*first)[d] = box.origin[d] / chunk;
    (*last)[d] = (box.origin[d] + box.shape[d] - 1) / chunk;
  }
}

}  // namespace

ReshardPlan::ReshardPlan(const ShardDomains& source, BufferPlaces source_places, const ShardDomains& destination,
                         BufferPlaces destination_places, int64_t itemsize, bool copies_all)
    : source_(source),
      destination_(destination),
      source_places_(std::move(source_places)),
      destination_places_(std::move(destination_places)),
      itemsize_(itemsize),
      is_copied_(destination_places_.size(), false) {
  if (!check_reshard(source_, destination_, itemsize_, "reshard")) return;
  const Dims& parts = source_.grid().parts();
  tile_strides_ = Dims(parts.size(), 1);
  for (int64_t d = parts.size() - 2; d >= 0; --d) tile_strides_[d] = tile_strides_[d + 1] * parts[d + 1];
  sort_sources();
  plan_destinations(copies_all);
}

void ReshardPlan::sort_sources() {
  const int64_t tiles = source_.grid().tiles();
  first_ = IdVector<TileId, int64_t>(tiles + 1);
  bool is_sorted = true;  // one buffer for each tile, in the order of tiles: the usual case of one arena
  order_.reserve(source_places_.values().size());
  for (const PlaceId i : source_places_.ids()) {
    const TileId tile = source_places_[i].tile;
    if (tile < TileId(0) || tile >= TileId(tiles)) {
      throw_error(
          "reshard: a source buffer holds tile {}; expected one of 0 to {}; number tiles as the sharding's grid does",
          tile.number(), tiles - 1);
    }
    ++first_[tile + 1];
    is_sorted = is_sorted && tile.number() == i.number();
    order_.push_back(i);
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  if (is_sorted) return;
  std::ranges::sort(order_, {}, [&](PlaceId i) {
    const BufferPlace& at = source_places_[i];
    return std::tuple(at.tile, at.host, at.process, at.arena, at.device, i);
  });
}

void ReshardPlan::plan_destinations(bool copies_all) {
  const bool is_complete = std::ranges::adjacent_find(first_) == first_.end();
  const bool has_replicas = source_places_.size() > source_.grid().tiles();
  IdVector<TileId, int64_t> seen(has_replicas ? destination_.grid().tiles() : 0);
  const BufferPlace* any = nullptr;
  for (const auto* places : {&source_places_, &destination_places_}) {
    for (const BufferPlace& place : *places) {
      if (any == nullptr) any = &place;
      in_one_process_ = in_one_process_ && place.process == any->process;
      in_one_arena_ = in_one_arena_ && in_one_process_ && place.arena == any->arena;
    }
  }
  Dims first;
  Dims last;
  for (const PlaceId i : destination_places_.ids()) {
    const TileId tile = destination_places_[i].tile;
    if (tile < TileId(0) || tile >= TileId(destination_.grid().tiles())) {
      throw_error(
          "reshard: destination buffer {} holds tile {}; expected one of 0 to {}; number tiles as the sharding's grid "
          "does",
          i.number(), tile.number(), destination_.grid().tiles() - 1);
    }
    if (has_replicas) earlier_with_tile_.push_back(seen[tile]++);
    const IndexDomain box = destination_.domain(tile);
    const int64_t bytes = box.volume() * itemsize_;
    if (bytes == 0) continue;
    is_copied_[i] = true;
    overlapping_parts(source_, box, &first, &last);
    int64_t copies = 1;
    int64_t source_tile = 0;
    bool is_source_tile = true;  // the box is a tile of the source
    for (int64_t d = 0; d < box.rank(); ++d) {
      copies *= last[d] - first[d] + 1;
      if (d < tile_strides_.size()) source_tile += first[d] * tile_strides_[d];
      is_source_tile = is_source_tile && source_.begin(d, first[d]) == box.origin[d] &&
                       source_.begin(d, first[d] + 1) == box.origin[d] + box.shape[d];
    }
    if (!is_complete) check_sources(i);
    if (is_source_tile) {
      const PlaceId from = source_of(TileId(source_tile), i);
      if (!copies_all && link(from, i) <= LinkKind::kSameArena) {
        is_copied_[i] = false;
        reused_.emplace_back(i, from);
        add_bytes(&bytes_reused_, bytes, 1, "reshard");
        continue;
      }
    }
    copy_count_ += copies;
    add_bytes(&bytes_copied_, bytes, 1, "reshard");
  }
}

void ReshardPlan::check_sources(PlaceId destination) const {
  for (ReshardRuns runs(*this, destination); runs.next();) {
    for (int64_t i = 0; i < runs.run().count; ++i) {
      const TileId tile = runs.run().tile + i * runs.run().tile_step;
      if (first_[tile] < first_[tile + 1]) continue;
      throw_error(
          "reshard: no source buffer holds tile {}; expected at least one of each tile; give all buffers of the source",
          tile.number());
    }
  }
}

LinkKind ReshardPlan::link(PlaceId source, PlaceId destination) const noexcept {
  const BufferPlace& from = source_places_[source];
  const BufferPlace& to = destination_places_[destination];
  if (from.host != to.host) return LinkKind::kOtherHost;
  if (from.process != to.process) return LinkKind::kOtherProcess;
  if (from.arena != to.arena) return LinkKind::kOtherArena;
  return from.device == to.device ? LinkKind::kSameDevice : LinkKind::kSameArena;
}

PlaceId ReshardPlan::nearest(TileId tile, PlaceId destination) const {
  const BufferPlace& wanted = destination_places_[destination];
  auto begin = order_.cbegin() + first_[tile];
  auto end = order_.cbegin() + first_[tile + 1];
  // Keeps the candidates with an equal field. Returns false, and keeps all, if no candidate has one.
  const auto narrow = [&](auto field) {
    const auto of_place = [&](PlaceId i) { return source_places_[i].*field; };
    const auto equal = std::ranges::equal_range(begin, end, wanted.*field, {}, of_place);
    if (equal.empty()) return false;
    begin = equal.begin();
    end = equal.end();
    return true;
  };
  if (narrow(&BufferPlace::host) && narrow(&BufferPlace::process) && narrow(&BufferPlace::arena) &&
      narrow(&BufferPlace::device)) {
    return *begin;
  }
  return end - begin == 1 ? *begin : begin[reader_index(tile, destination) % (end - begin)];
}

int64_t ReshardPlan::reader_index(TileId tile, PlaceId destination) const {
  const TileId destination_tile = destination_places_[destination].tile;
  int64_t readers = 1;
  int64_t reader = 0;
  for (int64_t d = 0; d < source_.shape().size(); ++d) {
    const int64_t cut = source_.grid().tile_coordinate(tile, d);
    const int64_t chunk = destination_.shard_shape()[d];
    const int64_t first = source_.begin(d, cut) / chunk;
    const int64_t last = (source_.begin(d, cut + 1) - 1) / chunk;
    readers *= last - first + 1;
    reader = reader * (last - first + 1) + destination_.grid().tile_coordinate(destination_tile, d) - first;
  }
  return earlier_with_tile_[destination] * readers + reader;
}

std::array<int64_t, kLinks> ReshardPlan::bytes_by_link() const {
  std::array<int64_t, kLinks> bytes{};
  if (!in_one_arena_) {
    for_each_copy([&](const ReshardCopy& copy) { bytes[static_cast<size_t>(copy.link)] += copy.bytes; });
    return bytes;
  }
  // Bytes in a device's own buffer are read from it; the rest comes from the same arena.
  std::vector<PlaceId> by_device = order_;  // by tile within a device
  const auto device = [&](PlaceId i) { return source_places_[i].device; };
  std::ranges::stable_sort(by_device, {}, device);
  for (const PlaceId i : destination_places_.ids()) {
    if (!is_copied_to(i)) continue;
    const IndexDomain box = destination_.domain(destination_places_[i].tile);
    TileId before;
    for (const PlaceId own : std::ranges::equal_range(by_device, destination_places_[i].device, {}, device)) {
      const TileId tile = source_places_[own].tile;
      if (std::exchange(before, tile) == tile) continue;
      if (const auto common = intersect(box, source_.domain(tile))) bytes[0] += common->volume() * itemsize_;
    }
  }
  bytes[static_cast<size_t>(LinkKind::kSameArena)] = bytes_copied_ - bytes[0];
  return bytes;
}

int64_t ReshardPlan::bytes_over(LinkKind link) const {
  const auto bytes = bytes_by_link();
  return std::accumulate(bytes.begin() + static_cast<int64_t>(link), bytes.end(), int64_t{0});
}

CutRange ReshardPlan::cuts_of_process(ProcessIndex process) const {
  const int64_t rank = tile_strides_.size();
  CutRange range{Dims(rank, INT64_MAX), Dims(rank, -1)};
  for (const BufferPlace& place : source_places_) {
    if (place.process != process) continue;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t cut = source_.grid().tile_coordinate(place.tile, d);
      range.first[d] = std::min(range.first[d], cut);
      range.last[d] = std::max(range.last[d], cut);
    }
  }
  return range;
}

ReshardRuns::ReshardRuns(const ReshardPlan& plan, PlaceId destination, const CutRange* within) : plan_(plan) {
  has_next_ = plan.is_copied_to(destination);
  if (!has_next_) return;
  box_ = plan.destination_.domain(plan.destination_places_[destination].tile);
  overlapping_parts(plan.source_, box_, &first_, &last_);
  for (int64_t d = 0; within != nullptr && d < plan.tile_strides_.size(); ++d) {
    first_[d] = std::max(first_[d], within->first[d]);
    last_[d] = std::min(last_[d], within->last[d]);
    has_next_ = has_next_ && first_[d] <= last_[d];
  }
  part_ = first_;
  run_.box = box_;
  run_.dimension = std::max<int64_t>(box_.rank() - 1, 0);
  while (run_.dimension > 0 && first_[run_.dimension] == last_[run_.dimension]) --run_.dimension;
  if (run_.dimension < plan.tile_strides_.size()) run_.tile_step = plan.tile_strides_[run_.dimension];
}

bool ReshardRuns::next() {
  if (!has_next_) return false;
  const ShardDomains& source = plan_.source_;
  const int64_t rank = box_.rank();
  run_.tile = TileId(0);
  run_.count = 1;
  run_.bytes = plan_.itemsize_;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t begin = std::max(box_.origin[d], source.begin(d, part_[d]));
    const int64_t end = std::min(box_.origin[d] + box_.shape[d], source.begin(d, part_[d] + 1));
    run_.box.origin[d] = begin;
    run_.box.shape[d] = end - begin;
    run_.bytes *= end - begin;
    if (d < plan_.tile_strides_.size()) run_.tile = run_.tile + part_[d] * plan_.tile_strides_[d];
  }
  has_next_ = false;
  if (rank == 0) return true;

  const int64_t along = run_.dimension;
  const int64_t chunk = source.shard_shape()[along];
  if (run_.box.shape[along] == chunk) {  // a full tile: so are all tiles up to the end of the box
    const int64_t full = (box_.origin[along] + box_.shape[along]) / chunk;
    run_.count = std::min(last_[along] + 1, full) - part_[along];
  }
  part_[along] += run_.count;
  has_next_ = part_[along] <= last_[along];
  if (has_next_) return true;
  part_[along] = first_[along];
  for (int64_t d = along - 1; d >= 0 && !has_next_; --d) {
    has_next_ = part_[d] < last_[d];
    part_[d] = has_next_ ? part_[d] + 1 : first_[d];
  }
  return true;
}

}  // namespace artifex_devices
