// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/base/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

#include "artifex_devices/base/copy_kernels.h"
#include "artifex_devices/base/stream_copy.h"
#include "artifex_devices/base/transpose_tile.h"

namespace artifex_devices {
namespace {

constexpr int64_t kLine = 64;                          // bytes of a cache line
constexpr int64_t kCombinedBytes = int64_t{16} << 10;  // half of the smallest first-level cache
constexpr int64_t kCombinedRunBytes = 1024;            // shorter dense runs are assembled before they are streamed
constexpr int64_t kShortestStreamed = 256;             // shorter runs are mostly partial lines
constexpr int64_t kTransposeBytes = int64_t{1} << 10;  // tiles are not worthwhile below this
constexpr int64_t kShortRun = 1024;                    // up to this size our loop is faster than memcpy
constexpr int64_t kFarApart = 256;                     // distance of units that the processor does not prefetch
constexpr int64_t kBytesAhead = 4096;                  // bytes to prefetch in the source
constexpr int64_t kRowsAhead = 16;                     // maximum rows to prefetch
constexpr int64_t kRowsForeseen = 32;                  // prefetch if this many rows are equally far apart
constexpr int64_t kTogetherRuns = 1024;                // bytes of each of several copies of one source
constexpr int64_t kTogetherGathered = 2048;            // the same for units
constexpr int64_t kCutBytes = 4096;                    // longer dense stretches may be divided

int64_t address(const std::byte* pointer) noexcept {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer));
}

/// Collects small writes to a dense part of the destination and streams them in whole cache lines.
class WriteCombiner {
 public:
  explicit WriteCombiner(bool on) noexcept : on_(on) {}
  ~WriteCombiner() { flush(0); }
  WriteCombiner(const WriteCombiner&) = delete;
  WriteCombiner& operator=(const WriteCombiner&) = delete;

  bool on() const noexcept { return on_; }

  /// Returns where to write the `bytes` (at most half of kCombinedBytes) for `destination`.
  std::byte* room(std::byte* destination, int64_t bytes) noexcept {
    if (!on_) return destination;
    if (start_ + filled_ != destination) {
      flush(0);
      start_ = destination;
    } else if (filled_ + bytes > kCombinedBytes) {
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
  alignas(kLine) std::byte buffer_[kCombinedBytes];
};

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
  stream_ = std::max(bytes_, transfer_bytes) > stream_bytes();
  collapse();
  choose_kind();
}

void StridedCopy::collapse() {
  // Ascending destination addresses, without dimensions of size 1, widest destination stride first.
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
  // Merge from the inside: a dimension whose stride covers exactly the next one on both sides.
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
  if (rank == 0 || unit_ >= kLine) return choose_way();

  kind_ = Kind::kGather;
  row_bytes_ = shape_.back() * unit_;
  if (stream_ && destination_strides_.back() == unit_) way_ = Way::kCombined;
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
  // Within kCombinedBytes, tiles have two or four lines of a source row if both sides are long, else the full short
  // side. They are ordered along the rows of the source, to read memory sequentially. If tiles begin and end with whole
  // lines of the destination, two lines down are enough. Otherwise tiles are larger, to divide fewer lines.
  const int64_t units = kCombinedBytes / unit_;
  const int64_t all_rows = shape_[rank - 1];
  const int64_t all_columns = shape_[columns];
  const bool is_register = unit_ == 1 || unit_ == 2 || unit_ == 4 || unit_ == 8 || unit_ == 16;
  const int64_t wide = is_register && unit_ < 8 ? 128 / unit_ : std::max<int64_t>(256 / unit_, 16);
  const bool in_lines = (address(destination_) | destination_strides_[columns]) % kLine == 0;
  const int64_t tall = is_register && in_lines ? std::max<int64_t>(128 / unit_, 32) : units / wide / 16 * 16;
  Tiles& t = tiles_;
  t.rows = std::min(all_rows, tall);
  t.columns = std::min(all_columns, all_rows < tall ? std::max<int64_t>(units / t.rows / 16 * 16, 1) : wide);
  if (all_columns < wide) t.rows = std::min(all_rows, units / all_columns / 16 * 16);
  // The first tile of a row ends at the end of a source line; later tiles then read whole lines.
  const int64_t head = -address(source_) & (kLine - 1);
  const bool can_align = source_strides_[rank - 1] % kLine == 0 && head % unit_ == 0 && head / unit_ < t.columns;
  t.first_columns = can_align && head > 0 && all_columns > t.columns ? head / unit_ : t.columns;
  t.across = 1 + (std::max<int64_t>(all_columns - t.first_columns, 0) + t.columns - 1) / t.columns;
  t.down = (all_rows + t.rows - 1) / t.rows;
  t.count = bytes_ / unit_ / all_rows / all_columns * t.across * t.down;
}

void StridedCopy::choose_way() {
  if (!stream_) return;
  const int64_t rank = shape_.size();
  int64_t low_bits = address(destination_) | unit_;
  for (const int64_t stride : destination_strides_) low_bits |= stride;
  if (rank > 0 && low_bits % kLine == 0) {
    way_ = Way::kLines;
  } else if (dense_bytes_ > unit_ && unit_ < kCombinedRunBytes) {
    way_ = Way::kCombined;
  } else if (unit_ >= kShortestStreamed) {
    way_ = Way::kStreamed;
  }
  if (way_ != Way::kLines && way_ != Way::kStreamed) return;
  // If neither side needs its order, use the order of the source: scattered reads cost more than scattered writes.
  for (int64_t i = 1; i < rank; ++i) {
    for (int64_t k = i; k > 0 && std::abs(source_strides_[k - 1]) < std::abs(source_strides_[k]); --k) {
      for (Dims* dims : {&shape_, &destination_strides_, &source_strides_}) std::swap((*dims)[k - 1], (*dims)[k]);
      dense_bytes_ = unit_;
    }
  }
}

bool StridedCopy::shift(int64_t destination_bytes, int64_t source_bytes) noexcept {
  if (way_ == Way::kLines && destination_bytes % kLine != 0) return false;
  destination_ += destination_bytes;
  source_ += source_bytes;
  return true;
}

int64_t StridedCopy::pieces(int64_t piece_bytes) const noexcept {
  if (bytes_ == 0) return 0;
  const int64_t size = std::max<int64_t>(piece_bytes, kLine);
  const int64_t count = bytes_ / size + (bytes_ % size != 0);
  return kind_ == Kind::kTranspose ? std::min(count, tiles_.count) : count;
}

int64_t StridedCopy::boundary(int64_t index, int64_t count) const noexcept {
  const int64_t at = bytes_ / count * index + std::min(index, bytes_ % count);
  if (index == 0 || index == count) return at;
  if (dense_bytes_ < kCutBytes) return at - at % dense_bytes_;
  // Inside a dense part: at the start of a line, and between units if these are not runs.
  const int64_t step = kind_ == Kind::kRuns ? kLine : std::lcm(unit_, kLine);
  int64_t head = -address(destination_) & (kLine - 1);
  if (kind_ == Kind::kGather && head % unit_ != 0) head = 0;
  const int64_t inside = at % dense_bytes_;
  return at - inside + (inside < head ? 0 : (inside - head) / step * step + head);
}

void StridedCopy::run(int64_t index, int64_t count) const noexcept {
  if (kind_ == Kind::kTranspose) {
    const auto begin = [&](int64_t i) { return tiles_.count / count * i + std::min(i, tiles_.count % count); };
    copy_tiles(begin(index), begin(index + 1));
  } else {
    copy_rows(boundary(index, count), boundary(index + 1, count), -1);
  }
  if (stream_) stream_fence();
}

/// Iterates over the rows of a copy, in the order of its dimensions.
class StridedCopy::Rows {
 public:
  Rows(const StridedCopy& copy, int64_t row) noexcept
      : copy_(copy),
        last_(copy.shape_.size() - (copy.kind_ == Kind::kRuns ? 1 : 2)),
        d_(copy.destination_),
        s_(copy.source_) {
    for (int64_t k = last_; k >= 0; row /= copy.shape_[k--]) {
      at(k) = row % copy.shape_[k];
      d_ += at(k) * copy.destination_strides_[k];
      s_ += at(k) * copy.source_strides_[k];
    }
  }

  std::byte* destination() const noexcept { return d_; }
  const std::byte* source() const noexcept { return s_; }
  /// Number of rows, from the current row on, that are equally far apart on both sides.
  int64_t in_line() const noexcept { return last_ < 0 ? 1 : copy_.shape_[last_] - at(last_); }
  int64_t destination_stride() const noexcept { return last_ < 0 ? 0 : copy_.destination_strides_[last_]; }
  int64_t source_stride() const noexcept { return last_ < 0 ? 0 : copy_.source_strides_[last_]; }

  /// Advances by up to in_line() rows. After the last row it returns to the first row.
  void forward(int64_t rows) noexcept {
    for (int64_t k = last_; k >= 0; --k, rows = 1) {
      d_ += rows * copy_.destination_strides_[k];
      s_ += rows * copy_.source_strides_[k];
      at(k) += rows;
      if (at(k) < copy_.shape_[k]) return;
      d_ -= copy_.shape_[k] * copy_.destination_strides_[k];
      s_ -= copy_.shape_[k] * copy_.source_strides_[k];
      at(k) = 0;
    }
  }

 private:
  int64_t& at(int64_t dimension) noexcept { return at_[static_cast<size_t>(dimension)]; }
  int64_t at(int64_t dimension) const noexcept { return at_[static_cast<size_t>(dimension)]; }

  const StridedCopy& copy_;
  const int64_t last_;  // dimension along which rows are ordered; -1 with one row
  // Every dimension has 2 or more: there are at most 62. Allocates nothing, because nothing may fail here.
  std::array<int64_t, 62> at_;
  std::byte* d_;
  const std::byte* s_;
};

void StridedCopy::copy_rows(int64_t begin, int64_t end, int64_t rows_ahead) const noexcept {
  if (begin >= end) return;
  if (kind_ == Kind::kGather) {
    copy_gathered(begin, end, rows_ahead);
  } else {
    copy_runs(begin, end, rows_ahead);
  }
}

void StridedCopy::copy_runs(int64_t begin, int64_t end, int64_t rows_ahead) const noexcept {
  const CopyKernels& kernels = copy_kernels();
  const bool one_by_one = way_ == Way::kLines || way_ == Way::kStreamed || unit_ > kShortRun;
  const int64_t usual_ahead = std::clamp<int64_t>(kBytesAhead / unit_, 1, kRowsAhead);
  WriteCombiner combiner(way_ == Way::kCombined);
  Rows rows(*this, begin / unit_);
  int64_t offset = begin % unit_;
  for (int64_t left = end - begin; left > 0;) {
    std::byte* d = rows.destination();
    const std::byte* s = rows.source();
    int64_t count = std::min(rows.in_line(), left / unit_);
    int64_t ahead = rows_ahead * rows.source_stride();
    if (rows_ahead < 0) ahead = stream_ && count >= kRowsForeseen ? usual_ahead * rows.source_stride() : 0;
    if (offset > 0 || count == 0) {
      const int64_t bytes = std::min(left, unit_ - offset);
      if (way_ == Way::kCombined || !stream_) {
        std::memcpy(combiner.room(d + offset, bytes), s + offset, static_cast<size_t>(bytes));
      } else {
        stream_copy(d + offset, s + offset, bytes);
      }
      left -= bytes;
      offset = 0;
      rows.forward(1);
      continue;
    }
    if (!one_by_one) {
      if (combiner.on()) count = std::min(count, kCombinedBytes / 2 / unit_);
      kernels.copy_runs(combiner.room(d, count * unit_), rows.destination_stride(), s, rows.source_stride(), unit_,
                        count, ahead);
    } else {
      // The last part of a row is long enough to prefetch the beginning of the next row.
      const int64_t tail = std::min(unit_, kBytesAhead);
      for (int64_t i = 0; i < count; ++i, d += rows.destination_stride(), s += rows.source_stride()) {
        const std::byte* const next = ahead != 0 ? s + ahead : nullptr;
        if (way_ == Way::kPlain) {
          std::memcpy(d, s, static_cast<size_t>(unit_));
        } else if (way_ == Way::kLines) {
          kernels.stream_lines(d, s, (unit_ - tail) / kLine, nullptr);
          kernels.stream_lines(d + unit_ - tail, s + unit_ - tail, tail / kLine, next);
        } else {
          if (unit_ > tail) stream_copy(d, s, unit_ - tail);
          stream_copy(d + unit_ - tail, s + unit_ - tail, tail, next);
        }
      }
    }
    left -= count * unit_;
    rows.forward(count);
  }
}

void StridedCopy::copy_gathered(int64_t begin, int64_t end, int64_t rows_ahead) const noexcept {
  const CopyKernels& kernels = copy_kernels();
  const int64_t d_stride = destination_strides_.back();
  const int64_t s_stride = source_strides_.back();
  const bool foreseen = stream_ && rows_ahead < 0 && std::abs(s_stride) >= kFarApart;
  const int64_t ahead = foreseen ? kRowsAhead * s_stride : 0;
  const int64_t step = kCombinedBytes / 2 / unit_;
  WriteCombiner combiner(way_ == Way::kCombined);
  Rows rows(*this, begin / row_bytes_);
  int64_t offset = begin % row_bytes_;
  for (int64_t left = end - begin; left > 0; offset = 0, rows.forward(1)) {
    if (offset == 0 && row_bytes_ <= std::min(left, kCombinedBytes / 2)) {
      kernels.copy_runs(combiner.room(rows.destination(), row_bytes_), d_stride, rows.source(), s_stride, unit_,
                        shape_.back(), ahead);
      left -= row_bytes_;
      continue;
    }
    const int64_t bytes = std::min(left, row_bytes_ - offset);
    for (int64_t i = offset / unit_, stop = i + bytes / unit_; i < stop; i += step) {
      const int64_t count = std::min(step, stop - i);
      kernels.copy_runs(combiner.room(rows.destination() + i * d_stride, count * unit_), d_stride,
                        rows.source() + i * s_stride, s_stride, unit_, count, ahead);
    }
    left -= bytes;
  }
}

bool StridedCopy::continues(const StridedCopy& before) const noexcept {
  return stream_ && before.stream_ && kind_ != Kind::kTranspose && kind_ == before.kind_ && way_ == before.way_ &&
         unit_ == before.unit_ && source_ == before.source_ + unit_ && shape_ == before.shape_ &&
         source_strides_ == before.source_strides_ && destination_strides_ == before.destination_strides_;
}

void StridedCopy::run_together(std::span<const StridedCopy* const> copies, int64_t index, int64_t count) noexcept {
  const StridedCopy& first = *copies.front();
  const bool gathers = first.kind_ == Kind::kGather;
  const int64_t wanted = gathers ? kTogetherGathered : kTogetherRuns;
  const int64_t step = gathers && first.row_bytes_ > wanted ? first.unit_ : first.row_bytes_;
  const int64_t rows = std::max<int64_t>(wanted / step, 1);
  const int64_t ahead = gathers ? 0 : rows;
  const int64_t block = rows * step;
  const int64_t end = first.boundary(index + 1, count);
  for (int64_t at = first.boundary(index, count); at < end;) {
    const int64_t stop = std::min(end, at - at % block + block);
    for (const StridedCopy* copy : copies) copy->copy_rows(at, stop, ahead);
    at = stop;
  }
  stream_fence();
}

void StridedCopy::copy_tiles(int64_t begin, int64_t end) const noexcept {
  const int64_t outer = shape_.size() - 2;
  const int64_t d_column = destination_strides_[outer];
  const int64_t s_row = source_strides_[outer + 1];
  struct Tile {
    std::byte* to;
    const std::byte* from;
    int64_t rows;
    int64_t columns;
  };
  const auto at = [&](int64_t number) {
    const int64_t across = number % tiles_.across;
    const int64_t column = across == 0 ? 0 : tiles_.first_columns + (across - 1) * tiles_.columns;
    const int64_t columns = across == 0 ? tiles_.first_columns : tiles_.columns;
    const int64_t row = number / tiles_.across % tiles_.down * tiles_.rows;
    Tile tile{destination_ + column * d_column + row * unit_, source_ + column * unit_ + row * s_row,
              std::min(tiles_.rows, shape_[outer + 1] - row), std::min(columns, shape_[outer] - column)};
    int64_t rest = number / tiles_.across / tiles_.down;
    for (int64_t k = outer - 1; k >= 0; rest /= shape_[k--]) {
      tile.to += rest % shape_[k] * destination_strides_[k];
      tile.from += rest % shape_[k] * source_strides_[k];
    }
    return tile;
  };
  const auto write = [&](std::byte* to, const std::byte* from, int64_t bytes) {
    if (stream_ && bytes >= kLine) {
      stream_copy(to, from, bytes);
    } else {
      std::memcpy(to, from, static_cast<size_t>(bytes));
    }
  };
  alignas(kLine) std::byte transposed[kCombinedBytes];
  if (begin == end) return;
  Tile tile = at(begin);
  int64_t across = begin % tiles_.across;
  for (int64_t number = begin; number < end; ++number) {
    Tile next = tile;
    if (++across < tiles_.across) {  // beside it
      next.to += tile.columns * d_column;
      next.from += tile.columns * unit_;
      next.columns = std::min(tiles_.columns, shape_[outer] - tiles_.first_columns - (across - 1) * tiles_.columns);
    } else if (number + 1 < end) {
      next = at(number + 1);
      across = 0;
    }
    // The processor does not prefetch rows that are a page or more apart.
    transpose_tile(transposed, tile.from, s_row, tile.rows, tile.columns, unit_, stream_ ? next.from - tile.from : 0);
    const int64_t column_bytes = tile.rows * unit_;
    if (stream_ && (address(tile.to) | d_column | column_bytes) % kLine == 0) {
      copy_kernels().stream_rows(tile.to, d_column, transposed, column_bytes / kLine, tile.columns);
    } else if (d_column == column_bytes) {
      write(tile.to, transposed, tile.columns * column_bytes);
    } else {
      for (int64_t c = 0; c < tile.columns; ++c)
        write(tile.to + c * d_column, transposed + c * column_bytes, column_bytes);
    }
    tile = next;
  }
}

}  // namespace artifex_devices
