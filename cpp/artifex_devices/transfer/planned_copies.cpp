// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/planned_copies.h"

#include <map>
#include <utility>

#include "artifex_devices/transfer/copy_chain.h"

namespace artifex_devices {
namespace {

int64_t offset_in(const IndexDomain& box, const Dims& tile_origin, const Dims& strides) noexcept {
  int64_t offset = 0;
  for (int64_t d = 0; d < box.rank(); ++d) offset += (box.origin[d] - tile_origin[d]) * strides[d];
  return offset;
}

}  // namespace

PlannedCopies::PlannedCopies(std::shared_ptr<const ReshardPlan> plan, End from, End to, ProcessIndex process)
    : plan_(std::move(plan)),
      from_(std::move(from)),
      to_(std::move(to)),
      cuts_(plan_->cuts_of_process(process)),
      is_one_process_(plan_->is_one_process()),
      lane_bytes_(bytes_of_one_lane(plan_->bytes_copied(), to_.lanes.values())) {}

/// Tells `sink` of each box that is copied within this process: begin() for each run, then add().
template <class Sink>
void PlannedCopies::for_boxes(PlaceId destination, Sink& sink) const {
  std::byte* const to = to_.data[destination];
  if (to == nullptr) return;
  const IndexDomain tile = plan_->destination().domain(plan_->destination_places()[destination].tile);
  const int64_t size = plan_->itemsize();
  const Dims to_strides = buffer_strides(to_.layout.get(), tile.shape, size);
  for (ReshardRuns runs(*plan_, destination, is_one_process_ ? nullptr : &cuts_); runs.next();) {
    const ReshardRun& run = runs.run();
    const IndexDomain from_tile = plan_->source().domain(run.tile);
    const Dims from_strides = buffer_strides(from_.layout.get(), from_tile.shape, size);
    const int64_t from_offset = offset_in(run.box, from_tile.origin, from_strides);
    const int64_t to_step = run.count > 1 ? run.box.shape[run.dimension] * to_strides[run.dimension] : 0;
    std::byte* at = to + offset_in(run.box, tile.origin, to_strides);
    sink.begin({run.box.shape, to_strides, from_strides, size, lane_bytes_, to_.lanes[destination]});
    if (from_.tile_stride > 0) {
      const std::byte* const from = from_.data.front() + run.tile.number() * from_.tile_stride + from_offset;
      sink.add(BoxRun{at, from, run.count, to_step, run.tile_step * from_.tile_stride});
      continue;
    }
    for (int64_t i = 0; i < run.count; ++i, at += to_step) {
      const PlaceId source = plan_->source_of(run.tile + i * run.tile_step, destination);
      if (const std::byte* from = from_.data[source]) sink.add(at, from + from_offset);
    }
  }
}

int64_t PlannedCopies::bytes_into(PlaceId destination) const {
  int64_t bytes = 0;
  if (to_.data[destination] == nullptr) return bytes;
  if (is_one_process_) {
    const TileId tile = plan_->destination_places()[destination].tile;
    return plan_->destination().domain(tile).volume() * plan_->itemsize();
  }
  for (ReshardRuns runs(*plan_, destination, &cuts_); runs.next();) {
    const ReshardRun& run = runs.run();
    for (int64_t i = 0; i < run.count; ++i) {
      const PlaceId source = plan_->source_of(run.tile + i * run.tile_step, destination);
      if (from_.data[source] != nullptr) bytes += run.bytes;
    }
  }
  return bytes;
}

void PlannedCopies::add_to(CopyBatch* batch, std::shared_ptr<const PlannedCopies> copies, const CopyEngine* engine) {
  if (engine != nullptr || copies->plan_->copy_count() <= most_listed.load(std::memory_order_relaxed)) {
    batch->reserve(copies->plan_->copy_count());
    CopyLister lister(batch);
    for (const PlaceId i : copies->to_.data.ids()) copies->for_boxes(i, lister);
    return;
  }
  struct Destinations {
    std::vector<PlaceId> places;
    int64_t bytes = 0;
  };
  std::map<LaneId, Destinations> by_lane;
  for (const PlaceId i : copies->to_.data.ids()) {
    const int64_t bytes = copies->bytes_into(i);
    if (bytes == 0) continue;
    Destinations& work = by_lane[copies->to_.lanes[i]];
    work.places.push_back(i);
    work.bytes += bytes;
  }
  for (auto& [lane, work] : by_lane) {
    const auto units = static_cast<int64_t>(work.places.size());
    auto run = [copies, destinations = std::move(work.places)](int64_t first, int64_t last) {
      CopyChain chain;
      for (int64_t i = first; i < last; ++i) copies->for_boxes(destinations[i], chain);
      chain.flush();
    };
    batch->add(CopyBatch::Bulk{lane, units, work.bytes, std::move(run)});
  }
}

}  // namespace artifex_devices
