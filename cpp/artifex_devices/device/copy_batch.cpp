// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/copy_batch.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

namespace artifex_devices {
namespace {

// Long enough that taking a piece costs nothing next to it, short enough that workers end together and Ctrl-C is heard
// within milliseconds.
constexpr int64_t kLargestPiece = int64_t{4} << 20;
constexpr int64_t kSmallestPiece = int64_t{128} << 10;
constexpr int64_t kPiecesPerWorker = 4;
constexpr int64_t kMostOrdered = int64_t{1} << 16;  // copies; to order more takes longer than it saves
constexpr int64_t kMostTogether = 64;               // copies, each a stream of stores

}  // namespace

void CopyBatch::add(const StridedCopy& copy, LaneId lane) {
  if (copy.bytes() == 0) return;
  bytes_ += copy.bytes();
  shortest_run_ = std::min(shortest_run_, copy.run_bytes());
  copies_.push_back({copy, lane});
}

void CopyBatch::add(Bulk bulk) {
  if (bulk.bytes == 0) return;
  bytes_ += bulk.bytes;
  bulks_.push_back(std::move(bulk));
}

/// Puts copies that continue each other side by side.
void CopyBatch::order() {
  const auto count = static_cast<int64_t>(copies_.size());
  if (count < 2 || count > kMostOrdered || !copies_[0].copy.bypasses_cache()) return;
  std::vector<const Copy*> sorted;
  sorted.reserve(copies_.size());
  for (const Copy& each : copies_) sorted.push_back(&each);
  const auto before = [](const Copy* a, const Copy* b) {
    return a->lane != b->lane ? a->lane < b->lane : std::less<>()(a->copy.source(), b->copy.source());
  };
  if (std::ranges::is_sorted(sorted, before)) return;
  std::ranges::sort(sorted, before);
  std::vector<Copy> copies;
  copies.reserve(copies_.size());
  for (const Copy* each : sorted) copies.push_back(*each);
  copies_ = std::move(copies);
}

CopyBatch::LaneWork& CopyBatch::work_of(LaneId lane) {
  // Devices of other machines refer to lanes that do not exist here.
  if (lane.number() >= WorkerPool::process().lanes()) lane = kAnyLane;
  auto work = std::ranges::find(work_, lane, &LaneWork::lane);
  if (work == work_.end()) work = work_.insert(work_.end(), LaneWork{lane, {}});
  return *work;
}

void CopyBatch::cut_bulks(int64_t piece_bytes) {
  for (const Bulk& bulk : bulks_) {
    LaneWork& work = work_of(bulk.lane);
    const int64_t pieces = std::clamp<int64_t>(bulk.bytes / piece_bytes, 1, bulk.units);
    for (int64_t i = 0; i < pieces; ++i) {
      const auto begin = [&](int64_t piece) {
        return bulk.units / pieces * piece + std::min(piece, bulk.units % pieces);
      };
      work.pieces.push_back({begin(i), begin(i + 1), 0, 0, false, &bulk});
    }
  }
}

void CopyBatch::cut_copies(int64_t piece_bytes) {
  order();
  const auto count = static_cast<int64_t>(copies_.size());
  for (int64_t i = 0; i < count; ++i) {
    const Copy& each = copies_[static_cast<size_t>(i)];
    LaneWork* const work = &work_of(each.lane);
    int64_t last = i + 1;
    const auto follows = [&](int64_t next) {
      const Copy& other = copies_[static_cast<size_t>(next)];
      return other.lane == each.lane && other.copy.continues(copies_[static_cast<size_t>(next - 1)].copy);
    };
    while (last < count && last - i < kMostTogether && follows(last)) ++last;
    if (last > i + 1) {
      const int64_t pieces = each.copy.pieces(std::max<int64_t>(piece_bytes / (last - i), 1));
      for (int64_t piece = 0; piece < pieces; ++piece) work->pieces.push_back({i, last, piece, pieces, true});
      i = last - 1;
      continue;
    }
    int64_t together = each.copy.bytes();
    while (last < count && copies_[static_cast<size_t>(last)].lane == each.lane &&
           together + copies_[static_cast<size_t>(last)].copy.bytes() <= piece_bytes) {
      together += copies_[static_cast<size_t>(last++)].copy.bytes();
    }
    const int64_t pieces = last > i + 1 ? 1 : each.copy.pieces(piece_bytes);
    for (int64_t piece = 0; piece < pieces; ++piece) work->pieces.push_back({i, last, piece, pieces, false});
    i = last - 1;
  }
}

void CopyBatch::run_piece(const Piece& piece) const {
  if (piece.bulk != nullptr) return piece.bulk->run(piece.first, piece.last);
  if (piece.together) {
    std::array<const StridedCopy*, kMostTogether> copies;
    const auto count = static_cast<size_t>(piece.last - piece.first);
    for (size_t i = 0; i < count; ++i) copies[i] = &copies_[static_cast<size_t>(piece.first) + i].copy;
    StridedCopy::run_together(std::span(copies).first(count), piece.index, piece.count);
    return;
  }
  for (int64_t i = piece.first; i < piece.last; ++i) copies_[static_cast<size_t>(i)].copy.run(piece.index, piece.count);
}

std::vector<WorkerPool::Work> CopyBatch::cut() {
  const int64_t share = bytes_ / (std::max(WorkerPool::process().max_workers(), 1) * kPiecesPerWorker);
  const int64_t piece_bytes = std::clamp(share, kSmallestPiece, kLargestPiece);
  work_.clear();
  cut_copies(piece_bytes);
  cut_bulks(piece_bytes);
  std::vector<WorkerPool::Work> work;
  work.reserve(work_.size());
  for (const LaneWork& each : work_) {
    work.push_back({static_cast<int64_t>(each.pieces.size()), each.lane,
                    [this, &each](int64_t i) { run_piece(each.pieces[static_cast<size_t>(i)]); }});
  }
  return work;
}

void CopyBatch::copy() const {
  for (const Copy& each : copies_) each.copy.run();
  for (const Bulk& bulk : bulks_) bulk.run(0, bulk.units);
}

std::vector<StridedCopy> CopyBatch::listed() const {
  std::vector<StridedCopy> copies;
  copies.reserve(copies_.size());
  for (const Copy& each : copies_) copies.push_back(each.copy);
  return copies;
}

int64_t bytes_of_one_lane(int64_t bytes, std::vector<LaneId> lanes) {
  std::ranges::sort(lanes);
  const auto repeated = std::ranges::unique(lanes);
  const auto distinct = static_cast<int64_t>(repeated.begin() - lanes.begin());
  return bytes / std::max<int64_t>(distinct, 1);
}

void CopyBatch::end(const Done& done, std::exception_ptr error) {
  std::erase_if(held_, [](const BlockRef& block) { return !block || !block->is_foreign(); });
  done(std::move(error));
  held_.clear();
}

}  // namespace artifex_devices
