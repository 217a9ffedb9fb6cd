// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/boxes.h"

#include <algorithm>
#include <utility>

namespace artifex_devices {
namespace {

/// Whether two boxes are equal in all dimensions except `dimension`.
bool are_aligned(const IndexDomain& a, const IndexDomain& b, int64_t dimension) {
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (d != dimension && (a.origin[d] != b.origin[d] || a.shape[d] != b.shape[d])) return false;
  }
  return true;
}

}  // namespace

PieceGrid::PieceGrid(Dims shape, int64_t itemsize, int64_t piece_bytes) : shape_(std::move(shape)) {
  const int64_t rank = shape_.size();
  if (std::ranges::find(shape_, 0) != shape_.end()) {
    count_ = 0;
    return;
  }
  int64_t inner = itemsize;  // bytes of all dimensions after dimension_
  dimension_ = rank;
  while (dimension_ > 0 && inner <= piece_bytes / shape_[dimension_ - 1]) inner *= shape_[--dimension_];
  if (dimension_ == 0) {
    chunk_ = rank > 0 ? shape_[0] : 1;
    return;
  }
  --dimension_;
  chunk_ = std::max<int64_t>(1, piece_bytes / inner);
  chunks_ = (shape_[dimension_] + chunk_ - 1) / chunk_;
  count_ = chunks_;
  for (int64_t d = 0; d < dimension_; ++d) count_ *= shape_[d];
}

IndexDomain PieceGrid::piece(int64_t index) const {
  IndexDomain box{Dims(shape_.size(), 0), shape_};
  if (shape_.empty()) return box;
  box.origin[dimension_] = index % chunks_ * chunk_;
  box.shape[dimension_] = std::min(chunk_, shape_[dimension_] - box.origin[dimension_]);
  index /= chunks_;
  for (int64_t d = dimension_ - 1; d >= 0; --d) {
    box.origin[d] = index % shape_[d];
    box.shape[d] = 1;
    index /= shape_[d];
  }
  return box;
}

std::optional<IndexDomain> part_of_box(IndexDomain box, int64_t index, int64_t count) {
  if (box.rank() == 0 && index > 0) return std::nullopt;  // the one element is in the first part
  if (box.rank() == 0 || count == 1) return box;
  int64_t dimension = 0;
  while (dimension < box.rank() && box.shape[dimension] < count) ++dimension;
  if (dimension == box.rank()) dimension = std::ranges::max_element(box.shape) - box.shape.begin();
  const int64_t size = box.shape[dimension];
  const auto begin = [&](int64_t i) { return size / count * i + std::min(i, size % count); };
  box.origin[dimension] += begin(index);
  box.shape[dimension] = begin(index + 1) - begin(index);
  if (box.volume() == 0) return std::nullopt;
  return box;
}

int64_t row_major_offset(const Dims& shape, const Dims& index) noexcept {
  int64_t offset = 0;
  for (int64_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + index[d];
  return offset;
}

std::vector<IndexDomain> join_boxes(std::vector<IndexDomain> boxes) {
  if (boxes.size() < 2) return boxes;
  const auto less = [](const IndexDomain& a, const IndexDomain& b) {
    return a.origin != b.origin ? a.origin < b.origin : a.shape < b.shape;
  };
  std::ranges::sort(boxes, less);
  const auto repeated = std::ranges::unique(boxes);
  boxes.erase(repeated.begin(), repeated.end());
  for (int64_t d = boxes.front().rank() - 1; d >= 0; --d) {
    // In this order, boxes that can be joined along d are neighbors.
    const auto key_less = [&](const IndexDomain& a, const IndexDomain& b) {
      for (int64_t e = 0; e < a.rank(); ++e) {
        if (e == d) continue;
        if (a.origin[e] != b.origin[e]) return a.origin[e] < b.origin[e];
        if (a.shape[e] != b.shape[e]) return a.shape[e] < b.shape[e];
      }
      return a.origin[d] < b.origin[d];
    };
    std::ranges::sort(boxes, key_less);
    std::vector<IndexDomain> joined;
    for (IndexDomain& box : boxes) {
      if (!joined.empty() && are_aligned(joined.back(), box, d) &&
          joined.back().origin[d] + joined.back().shape[d] == box.origin[d]) {
        joined.back().shape[d] += box.shape[d];
      } else {
        joined.push_back(std::move(box));
      }
    }
    boxes = std::move(joined);
  }
  return boxes;
}

std::vector<IndexDomain> owned_boxes(const Sharding& sharding, const Dims& shape, ProcessIndex process) {
  if (sharding.is_fully_addressable()) return {IndexDomain{Dims(shape.size(), 0), shape}};
  const ShardDomains domains = sharding.domains(shape, "checkpoint.save");
  std::vector<std::pair<TileId, ProcessIndex>> holders;
  holders.reserve(sharding.num_devices());
  for (const Position p : sharding.positions()) {
    holders.emplace_back(sharding.grid().tile(p), sharding.device(p).process_index());
  }
  std::ranges::sort(holders);
  const auto repeated = std::ranges::unique(holders);
  holders.erase(repeated.begin(), repeated.end());
  std::vector<IndexDomain> boxes;
  for (size_t first = 0; first < holders.size();) {
    size_t last = first;
    size_t mine = holders.size();
    for (; last < holders.size() && holders[last].first == holders[first].first; ++last) {
      if (holders[last].second == process) mine = last;
    }
    if (mine < holders.size()) {
      auto box = part_of_box(domains.domain(holders[first].first), static_cast<int64_t>(mine - first),
                             static_cast<int64_t>(last - first));
      if (box && box->volume() > 0) boxes.push_back(std::move(*box));
    }
    first = last;
  }
  return join_boxes(std::move(boxes));
}

}  // namespace artifex_devices
