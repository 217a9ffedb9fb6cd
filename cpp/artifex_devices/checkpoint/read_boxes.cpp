// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/read_boxes.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <ranges>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/crc32c.h"
#include "artifex_devices/checkpoint/piece_buffers.h"
#include "artifex_devices/checkpoint/stored_parts.h"

namespace artifex_devices {
namespace {

class BoxReader {
 public:
  BoxReader(const StoredFiles& stored_files, std::vector<ReadRequest> requests, const ReadOptions& options)
      : stored_files_(stored_files),
        requests_(std::move(requests)),
        options_(options),
        buffers_(WorkerPool::process().max_workers()),
        files_(stored_files.paths().size()) {}

  int64_t run() {
    for (const ReadRequest& request : requests_) {
      check_interrupt();
      plan(request);
    }
    WorkerPool::process().parallel_for(pieces_, kAnyLane, [&](int64_t piece) { read_piece(piece); });
    return bytes_read_.load();
  }

 private:
  /// A region of a stored box that is read in pieces.
  struct Region {
    const ReadRequest* request;
    const ReadRequest::Stored* stored;
    IndexDomain box;     // of the stored tensor
    IndexDomain region;  // in the box
    PieceGrid grid;
    int64_t first_piece;
    std::vector<int64_t> numbers;  // pieces of the box to verify; empty: all pieces of the region
  };

  void plan(const ReadRequest& request) {
    const int64_t rank = request.shape.size();
    std::vector<IndexDomain> boxes;
    for (const ReadRequest::Stored& stored : request.stored) {
      check_part(options_.operation, request.name, request.dtype, request.shape, *stored.tensor);
      boxes.push_back(box_of(*stored.tensor, rank));
    }
    std::vector<int64_t> missing;
    for (const BoxMemory& destination : request.destinations) missing.push_back(destination.box.volume());
    for (size_t i = 0; i < boxes.size(); ++i) {
      std::vector<IndexDomain> needed;
      for (size_t k = 0; k < request.destinations.size(); ++k) {
        auto common = intersect(boxes[i], request.destinations[k].box);
        if (!common) continue;
        missing[k] -= common->volume();
        needed.push_back(std::move(*common));
      }
      if (!needed.empty()) add_regions(request, request.stored[i], boxes[i], join_boxes(std::move(needed)));
    }
    for (size_t k = 0; k < missing.size(); ++k) {
      if (missing[k] == 0) continue;
      throw_error("{}: {} elements of {} at {} are in no file; expected shape {}; a file of another process is missing",
                  options_.operation, missing[k], printable(request.name),
                  to_string(request.destinations[k].box.origin), to_string(request.shape));
    }
  }

  void add_regions(const ReadRequest& request, const ReadRequest::Stored& stored, const IndexDomain& box,
                   const std::vector<IndexDomain>& regions) {
    if (!files_[stored.file]) files_[stored.file] = stored_files_.open(stored.file, options_.operation);
    const int64_t size = itemsize(request.dtype);
    if (options_.verify != ReadOptions::Verify::kPieces || stored.tensor->checksums.empty()) {
      const bool is_verified = options_.verify == ReadOptions::Verify::kContained && !stored.tensor->checksums.empty();
      for (const IndexDomain& region : regions) {
        if (is_verified && is_contiguous(region, box)) {
          add_contained(request, stored, box, region);
        } else {
          add_region(request, stored, box, region);
        }
      }
      return;
    }
    PieceGrid grid(box.shape, size);
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < grid.count(); ++i) {
      const IndexDomain piece = moved(grid.piece(i), box.origin);
      if (std::ranges::any_of(regions, [&](const IndexDomain& region) { return intersect(region, piece).has_value(); }))
        numbers.push_back(i);
    }
    add_pieces(request, stored, box, std::move(grid), std::move(numbers));
  }

  void add_region(const ReadRequest& request, const ReadRequest::Stored& stored, const IndexDomain& box,
                  const IndexDomain& region) {
    PieceGrid grid(region.shape, itemsize(request.dtype));
    const int64_t count = grid.count();
    regions_.push_back({&request, &stored, box, region, std::move(grid), pieces_, {}});
    pieces_ += count;
  }

  void add_pieces(const ReadRequest& request, const ReadRequest::Stored& stored, const IndexDomain& box, PieceGrid grid,
                  std::vector<int64_t> numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    regions_.push_back({&request, &stored, box, box, std::move(grid), pieces_, std::move(numbers)});
    pieces_ += count;
  }

  /// Whether `region` is one run of the elements of `box`.
  static bool is_contiguous(const IndexDomain& region, const IndexDomain& box) {
    int64_t d = 0;
    while (d < box.rank() && region.shape[d] == 1) ++d;
    for (++d; d < box.rank(); ++d) {
      if (region.shape[d] != box.shape[d]) return false;
    }
    return true;
  }

  /// Adds the pieces of `box` that a contiguous region contains, to verify, and what is before and after them.
  void add_contained(const ReadRequest& request, const ReadRequest::Stored& stored, const IndexDomain& box,
                     const IndexDomain& region) {
    PieceGrid grid(box.shape, itemsize(request.dtype));
    const auto first_of = [&](int64_t i) {
      return i == grid.count() ? box.volume() : row_major_offset(box.shape, grid.piece(i).origin);
    };
    Dims place = region.origin;
    for (int64_t d = 0; d < place.size(); ++d) place[d] -= box.origin[d];
    const int64_t begin = row_major_offset(box.shape, place);
    const int64_t end = begin + region.volume();
    const auto pieces = std::views::iota(int64_t{0}, grid.count());
    const auto count_if_first = [&](const auto& is_before) {
      return static_cast<int64_t>(std::ranges::partition_point(pieces, is_before) - pieces.begin());
    };
    const int64_t first = count_if_first([&](int64_t i) { return first_of(i) < begin; });
    const int64_t last = count_if_first([&](int64_t i) { return first_of(i + 1) <= end; });  // not contained any more
    if (last <= first) return add_region(request, stored, box, region);
    if (first_of(first) > begin) {
      add_region(request, stored, box, *intersect(moved(grid.piece(first - 1), box.origin), region));
    }
    if (first_of(last) < end) {
      add_region(request, stored, box, *intersect(moved(grid.piece(last), box.origin), region));
    }
    std::vector<int64_t> numbers(static_cast<size_t>(last - first));
    std::iota(numbers.begin(), numbers.end(), first);
    add_pieces(request, stored, box, std::move(grid), std::move(numbers));
  }

  static IndexDomain moved(IndexDomain box, const Dims& by) {
    for (int64_t d = 0; d < box.rank(); ++d) box.origin[d] += by[d];
    return box;
  }

  void read_piece(int64_t number) {
    const Region& region = *(std::ranges::upper_bound(regions_, number, {}, &Region::first_piece) - 1);
    const ReadRequest& request = *region.request;
    const int64_t size = itemsize(request.dtype);
    int64_t index = number - region.first_piece;
    if (!region.numbers.empty()) index = region.numbers[index];
    const IndexDomain piece = moved(region.grid.piece(index), region.region.origin);
    for (const BoxMemory& destination : request.destinations) {
      const auto common = intersect(destination.box, piece);
      if (!common || *common != piece || !destination.has_run(piece, size)) continue;
      read_runs(region, piece, destination.at(piece.origin), index);
      for (const BoxMemory& other : request.destinations) {  // replicas near other memory nodes
        if (&other == &destination) continue;
        if (const auto part = intersect(other.box, piece)) {
          copy_to_box(other, *part, destination.at(piece.origin), piece, size);
        }
      }
      return;
    }
    const PieceBuffers::Buffer buffer(buffers_);
    read_runs(region, piece, buffer.data(), index);
    for (const BoxMemory& destination : request.destinations) {
      if (const auto part = intersect(destination.box, piece)) {
        copy_to_box(destination, *part, buffer.data(), piece, size);
      }
    }
  }

  /// Reads a piece, which may be several runs of bytes in the file, to dense memory.
  void read_runs(const Region& region, const IndexDomain& piece, std::byte* data, int64_t index) {
    const int64_t size = itemsize(region.request->dtype);
    const StoredTensor& tensor = *region.stored->tensor;
    const File& file = *files_[region.stored->file];
    int64_t outer = piece.rank();  // dimensions before it enumerate runs
    int64_t run = size;
    while (outer > 0) {
      --outer;
      run *= piece.shape[outer];
      if (piece.shape[outer] != region.box.shape[outer]) break;
    }
    const int64_t bytes = piece.volume() * size;
    Dims place = piece.origin;
    for (int64_t d = 0; d < place.size(); ++d) place[d] -= region.box.origin[d];
    for (int64_t done = 0; done < bytes; done += run) {
      file.read(data + done, run, tensor.begin + row_major_offset(region.box.shape, place) * size, options_.operation);
      for (int64_t d = outer - 1; d >= 0; --d) {  // the next run
        if (++place[d] < piece.origin[d] - region.box.origin[d] + piece.shape[d]) break;
        place[d] = piece.origin[d] - region.box.origin[d];
      }
    }
    bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
    stored_files_.count_read(bytes);
    if (region.numbers.empty()) return;
    const uint32_t found = crc32c(data, static_cast<size_t>(bytes));
    const uint32_t expected = tensor.checksums[index];
    if (found == expected) return;
    throw_error(
        "{}: {}: the checksum of {} bytes of {} is {:08x}; expected {:08x}; the file is damaged, restore another "
        "checkpoint",
        options_.operation, printable(file.path()), bytes, printable(region.request->name), found, expected);
  }

  const StoredFiles& stored_files_;
  std::vector<ReadRequest> requests_;
  const ReadOptions& options_;
  PieceBuffers buffers_;
  std::vector<std::shared_ptr<const File>> files_;  // that are needed
  std::vector<Region> regions_;
  int64_t pieces_ = 0;
  std::atomic<int64_t> bytes_read_{0};
};

}  // namespace

int64_t read_boxes(const StoredFiles& files, std::vector<ReadRequest> requests, const ReadOptions& options) {
  return BoxReader(files, std::move(requests), options).run();
}

}  // namespace artifex_devices
