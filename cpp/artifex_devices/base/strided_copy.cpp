// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/transpose_tile.h"

namespace artifex_devices {
namespace {

constexpr int64_t kLine = 64;                          // bytes of a cache line
constexpr int64_t kStreamBytes = int64_t{4} << 20;     // from here on stores bypass the cache
constexpr int64_t kStagingBytes = int64_t{16} << 10;   // half of the smallest first-level cache
constexpr int64_t kStagedRunBytes = 1024;              // shorter dense runs are put together before they are streamed
constexpr int64_t kShortestStreamed = 256;             // shorter runs are mostly partial lines
constexpr int64_t kTransposeBytes = int64_t{1} << 10;  // below this tiles do not pay
constexpr int64_t kCutBytes = 4096;                    // longer dense stretches may be cut inside

int64_t address(const std::byte* pointer) noexcept {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
}

/// Collects small writes to a dense stretch of the destination and streams them out in whole cache lines.
class Staging {
 public:
  explicit Staging(bool on) noexcept : on_(on) {}
  ~Staging() { flush(0); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  bool on() const noexcept { return on_; }

  /// Where to write the `bytes` (at most half of kStagingBytes) that belong at `destination`.
  std::byte* room(std::byte* destination, int64_t bytes) noexcept {
    if (!on_) return destination;
    if (start_ + filled_ != destination) {
      flush(0);
      start_ = destination;
    } else if (filled_ + bytes > kStagingBytes) {
      flush(address(destination) & (kLine - 1));
    }
    return buffer_ + std::exchange(filled_, filled_ + bytes);
  }

 private:
  /// Streams all but the last `keep` bytes.
  void flush(int64_t keep) noexcept {
    if (filled_ == 0) return;
    const int64_t bytes = filled_ - keep;
    stream_copy(start_, buffer_, bytes);
    std::memcpy(buffer_, buffer_ + bytes, static_cast<size_t>(keep));
    start_ += bytes;
    filled_ = keep;
  }

  const bool on_;
  std::byte* start_ = nullptr;
  int64_t filled_ = 0;
  alignas(kLine) std::byte buffer_[kStagingBytes];
};

template <int kUnit>
void copy_units(std::byte* d, int64_t d_stride, const std::byte* s, int64_t s_stride, int64_t count) noexcept {
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; ++i, d += d_stride, s += s_stride) std::memcpy(d, s, kUnit);
}

/// Copies `count` units that lie `d_stride` and `s_stride` apart.
void copy_units(std::byte* d, int64_t d_stride, const std::byte* s, int64_t s_stride, int64_t count,
                int64_t unit) noexcept {
  switch (unit) {
    case 1:
      return copy_units<1>(d, d_stride, s, s_stride, count);
    case 2:
      return copy_units<2>(d, d_stride, s, s_stride, count);
    case 4:
      return copy_units<4>(d, d_stride, s, s_stride, count);
    case 8:
      return copy_units<8>(d, d_stride, s, s_stride, count);
    case 16:
      return copy_units<16>(d, d_stride, s, s_stride, count);
    default:
      for (int64_t i = 0; i < count; ++i) std::memcpy(d + i * d_stride, s + i * s_stride, static_cast<size_t>(unit));
  }
}

}  // namespace

StridedCopy::StridedCopy(void* destination, const Dims& destination_strides, const void* source,
                         const Dims& source_strides, const Dims& shape, int64_t itemsize, int64_t transfer_bytes)
    : destination_(static_cast<std::byte*>(destination)),
      source_(static_cast<const std::byte*>(source)),
      shape_(shape),
      destination_strides_(destination_strides),
      source_strides_(source_strides),
      unit_(itemsize) {
  bytes_ = itemsize;
  for (const int64_t size : shape) bytes_ *= size;
  if (bytes_ <= 0) {
    bytes_ = 0;
    return;
  }
  stream_ = std::max(bytes_, transfer_bytes) >= kStreamBytes;
  collapse();
  choose_kind();
}

void StridedCopy::collapse() {
  // Towards rising destination addresses, ones dropped, widest destination stride first.
  int64_t rank = 0;
  for (int64_t k = 0; k < shape_.size(); ++k) {
    const int64_t size = shape_[k];
    int64_t d = destination_strides_[k];
    int64_t s = source_strides_[k];
    if (size == 1) continue;
    if (d < 0) {
      destination_ += (size - 1) * d;
      source_ += (size - 1) * s;
      d = -d;
      s = -s;
    }
    int64_t at = rank++;
    for (; at > 0 && destination_strides_[at - 1] < d; --at) {
      shape_[at] = shape_[at - 1];
      destination_strides_[at] = destination_strides_[at - 1];
      source_strides_[at] = source_strides_[at - 1];
    }
    shape_[at] = size;
    destination_strides_[at] = d;
    source_strides_[at] = s;
  }
  // Merge from the inside: a dimension whose step is the whole of the next one on both sides.
  int64_t first = rank;
  for (int64_t k = rank - 1; k >= 0; --k) {
    if (first < rank && destination_strides_[k] == shape_[first] * destination_strides_[first] &&
        source_strides_[k] == shape_[first] * source_strides_[first]) {
      shape_[first] *= shape_[k];
      continue;
    }
    --first;
    shape_[first] = shape_[k];
    destination_strides_[first] = destination_strides_[k];
    source_strides_[first] = source_strides_[k];
  }
  if (first < rank && destination_strides_[rank - 1] == unit_ && source_strides_[rank - 1] == unit_) {
    unit_ *= shape_[--rank];
  }
  for (Dims* dims : {&shape_, &destination_strides_, &source_strides_}) {
    std::copy(dims->begin() + first, dims->begin() + rank, dims->begin());
    dims->resize(rank - first, 0);
  }
}

void StridedCopy::choose_kind() {
  const int64_t rank = shape_.size();
  row_bytes_ = dense_bytes_ = unit_;
  for (int64_t k = rank - 1; k >= 0 && destination_strides_[k] == dense_bytes_; --k) dense_bytes_ *= shape_[k];
  if (rank == 0 || unit_ >= kLine) return;

  kind_ = Kind::kGather;
  row_bytes_ = shape_.back() * unit_;
  if (bytes_ < kTransposeBytes || destination_strides_.back() != unit_ || std::abs(source_strides_.back()) == unit_) {
    return;
  }
  int64_t columns = 0;
  while (columns < rank - 1 && std::abs(source_strides_[columns]) != unit_) ++columns;
  if (columns == rank - 1) return;

  kind_ = Kind::kTranspose;
  for (Dims* dims : {&shape_, &destination_strides_, &source_strides_}) {
    std::rotate(dims->begin() + columns, dims->begin() + columns + 1, dims->begin() + rank - 1);
  }
  columns = rank - 2;
  if (source_strides_[columns] < 0) {
    destination_ += (shape_[columns] - 1) * destination_strides_[columns];
    source_ += (shape_[columns] - 1) * source_strides_[columns];
    destination_strides_[columns] = -destination_strides_[columns];
    source_strides_[columns] = unit_;
  }
  // Tiles: 256 bytes of a source row where both sides are long, all of a short side, within the staging buffer. Panels
  // stay among the same few hundred pages of the source while they go along its rows.
  const int64_t units = kStagingBytes / unit_;
  const int64_t all_rows = shape_[rank - 1];
  const int64_t all_columns = shape_[columns];
  const int64_t wide = unit_ == 1 ? 128 : std::max<int64_t>(256 / unit_, 16);
  Panels& p = panels_;
  p.tile_rows = std::min(all_rows, units / wide / 16 * 16);
  p.tile_columns = std::min(all_columns, std::max<int64_t>(units / p.tile_rows / 16 * 16, 1));
  if (all_columns < wide) p.tile_rows = std::min(all_rows, units / all_columns / 16 * 16);
  p.panel_rows = std::min(all_rows, std::max<int64_t>(1, 512 / p.tile_rows) * p.tile_rows);
  p.across = (all_columns + p.tile_columns - 1) / p.tile_columns;
  p.down = (all_rows + p.panel_rows - 1) / p.panel_rows;
  p.count = bytes_ / unit_ / all_rows / all_columns * p.across * p.down;
}

int64_t StridedCopy::pieces(int64_t piece_bytes) const noexcept {
  if (bytes_ == 0) return 0;
  const int64_t size = std::max<int64_t>(piece_bytes, kLine);
  const int64_t count = bytes_ / size + (bytes_ % size != 0);
  return kind_ == Kind::kTranspose ? std::min(count, panels_.count) : count;
}

int64_t StridedCopy::boundary(int64_t index, int64_t count) const noexcept {
  const int64_t at = bytes_ / count * index + std::min(index, bytes_ % count);
  if (index == 0 || index == count) return at;
  if (dense_bytes_ < kCutBytes) return at - at % dense_bytes_;
  // Inside a dense stretch: at a line's start, between units where these are not runs.
  const int64_t step = kind_ == Kind::kRuns ? kLine : std::lcm(unit_, kLine);
  int64_t head = -address(destination_) & (kLine - 1);
  if (kind_ == Kind::kGather && head % unit_ != 0) head = 0;
  const int64_t inside = at % dense_bytes_;
  return at - inside + (inside < head ? 0 : (inside - head) / step * step + head);
}

void StridedCopy::run(int64_t index, int64_t count) const noexcept {
  if (kind_ == Kind::kTranspose) {
    const auto begin = [&](int64_t i) { return panels_.count / count * i + std::min(i, panels_.count % count); };
    copy_panels(begin(index), begin(index + 1));
  } else {
    copy_rows(boundary(index, count), boundary(index + 1, count));
  }
  if (stream_) stream_fence();
}

void StridedCopy::copy_rows(int64_t begin, int64_t end) const noexcept {
  if (begin >= end) return;
  const bool runs = kind_ == Kind::kRuns;
  const int64_t outer = shape_.size() - (runs ? 0 : 1);
  const bool dense_rows = runs ? dense_bytes_ > unit_ : destination_strides_.back() == unit_;
  const bool streamed_run = stream_ && unit_ >= kShortestStreamed;
  Staging staging(stream_ && dense_rows && unit_ < kStagedRunBytes);

  Dims at(outer, 0);
  std::byte* d = destination_;
  const std::byte* s = source_;
  int64_t row = begin / row_bytes_;
  for (int64_t k = outer - 1; k >= 0; row /= shape_[k--]) {
    at[k] = row % shape_[k];
    d += at[k] * destination_strides_[k];
    s += at[k] * source_strides_[k];
  }
  int64_t offset = begin % row_bytes_;
  for (int64_t left = end - begin;;) {
    const int64_t bytes = std::min(left, row_bytes_ - offset);
    if (!runs) {
      const int64_t d_stride = destination_strides_.back();
      const int64_t s_stride = source_strides_.back();
      const int64_t step = kStagingBytes / 2 / unit_;
      for (int64_t i = offset / unit_, stop = i + bytes / unit_; i < stop; i += step) {
        const int64_t count = std::min(step, stop - i);
        copy_units(staging.room(d + i * d_stride, count * unit_), d_stride, s + i * s_stride, s_stride, count, unit_);
      }
    } else if (streamed_run && !staging.on()) {
      stream_copy(d + offset, s + offset, bytes);
    } else {
      std::memcpy(staging.room(d + offset, bytes), s + offset, static_cast<size_t>(bytes));
    }
    left -= bytes;
    if (left == 0) return;
    offset = 0;
    for (int64_t k = outer - 1;; --k) {
      d += destination_strides_[k];
      s += source_strides_[k];
      if (++at[k] < shape_[k]) break;
      d -= shape_[k] * destination_strides_[k];
      s -= shape_[k] * source_strides_[k];
      at[k] = 0;
    }
  }
}

void StridedCopy::copy_panels(int64_t begin, int64_t end) const noexcept {
  const int64_t outer = shape_.size() - 2;
  const int64_t all_columns = shape_[outer];
  const int64_t all_rows = shape_[outer + 1];
  const int64_t d_column = destination_strides_[outer];
  const int64_t s_row = source_strides_[outer + 1];
  const auto write = [&](std::byte* to, const std::byte* from, int64_t bytes) {
    if (stream_ && bytes >= kLine) {
      stream_copy(to, from, bytes);
    } else {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    }
  };
  alignas(kLine) std::byte tile[kStagingBytes];
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t first_column = panel % panels_.across * panels_.tile_columns;
    const int64_t first_row = panel / panels_.across % panels_.down * panels_.panel_rows;
    std::byte* d = destination_ + first_column * d_column + first_row * unit_;
    const std::byte* s = source_ + first_column * unit_ + first_row * s_row;
    int64_t rest = panel / panels_.across / panels_.down;
    for (int64_t k = outer - 1; k >= 0; rest /= shape_[k--]) {
      d += rest % shape_[k] * destination_strides_[k];
      s += rest % shape_[k] * source_strides_[k];
    }
    const int64_t columns = std::min(panels_.tile_columns, all_columns - first_column);
    const int64_t stop = std::min(panels_.panel_rows, all_rows - first_row);
    for (int64_t row = 0; row < stop; row += panels_.tile_rows) {
      const int64_t rows = std::min(panels_.tile_rows, stop - row);
      const std::byte* const from = s + row * s_row;
      if (stream_) {  // strides beyond a page are not foreseen by the processor
        for (int64_t r = rows; r < std::min(2 * rows, stop - row); ++r) {
          for (int64_t c = 0; c < columns * unit_; c += kLine) prefetch(from + r * s_row + c);
        }
      }
      transpose_tile(tile, from, s_row, rows, columns, unit_);
      std::byte* const to = d + row * unit_;
      if (d_column == rows * unit_) {
        write(to, tile, columns * rows * unit_);
      } else {
        for (int64_t c = 0; c < columns; ++c) write(to + c * d_column, tile + c * rows * unit_, rows * unit_);
      }
    }
  }
}

}  // namespace artifex_devices
