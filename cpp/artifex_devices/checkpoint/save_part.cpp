// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/save_part.h"

#include <algorithm>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/worker_pool.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/crc32c.h"
#include "artifex_devices/checkpoint/piece_buffers.h"
#include "artifex_devices/checkpoint/safetensors.h"

namespace artifex_devices {

/// The files of one part while they are written.
class SavePart::Writer {
 public:
  Writer(SavePart& part, const std::string& folder, const std::vector<std::string>& names, ProcessIndex process)
      : part_(part), folder_(folder), names_(names), process_(process), buffers_(WorkerPool::process().max_workers()) {
    size_t files = 0;
    for (const Entry& entry : part.entries_) files = std::max(files, entry.boxes.size());
    // With the largest elements first, each tensor is aligned to its itemsize.
    std::vector<const Entry*> order;
    for (const Entry& entry : part.entries_) order.push_back(&entry);
    std::ranges::stable_sort(order,
                             [](const Entry* a, const Entry* b) { return itemsize(a->dtype) > itemsize(b->dtype); });
    files_.reserve(files);
    for (size_t k = 0; k < files; ++k) add_file(k, files, order);
  }

  void run() {
    WorkerPool::process().parallel_for(pieces_, kAnyLane, [&](int64_t piece) { write_piece(piece); });
    for (const OpenFile& each : files_) {
      const std::string header = header_of(each);
      each.file.write(header.data(), static_cast<int64_t>(header.size()), 0);
      each.file.sync();
    }
  }

 private:
  struct Tensor {
    const Entry* entry;
    size_t box;
    size_t file;
    int64_t offset;  // in the data of the file
    int64_t first_piece;
    PieceGrid grid;
    std::vector<uint32_t> checksums;
  };
  struct OpenFile {
    File file;
    size_t first;  // tensors [first, last)
    size_t last;
    int64_t data_begin;
  };

  void add_file(size_t number, size_t count, const std::vector<const Entry*>& order) {
    const std::string path = fmt::format("{}/shard-{:05}-model-{:05}-of-{:05}.safetensors", folder_,
                                         process_.number() + 1, number + 1, count);
    const size_t first = tensors_.size();
    int64_t offset = 0;
    for (const Entry* entry : order) {
      if (entry->boxes.size() <= number) continue;
      const IndexDomain& box = entry->boxes[number];
      PieceGrid grid(box.shape, itemsize(entry->dtype));
      const int64_t pieces = grid.count();
      tensors_.push_back({entry, number, number, offset, pieces_, std::move(grid),
                          std::vector<uint32_t>(static_cast<size_t>(pieces))});
      pieces_ += pieces;
      offset += box.volume() * itemsize(entry->dtype);
    }
    files_.push_back({File::create(path, part_.operation_), first, tensors_.size(), 0});
    files_.back().data_begin = static_cast<int64_t>(header_of(files_.back()).size());
  }

  std::string header_of(const OpenFile& file) const {
    std::vector<NewTensor> rows;
    for (size_t i = file.first; i < file.last; ++i) {
      const Tensor& tensor = tensors_[i];
      const IndexDomain& box = tensor.entry->boxes[tensor.box];
      rows.push_back({names_.at(tensor.entry->leaf), tensor.entry->dtype, box, tensor.entry->shape,
                      box.volume() * itemsize(tensor.entry->dtype), tensor.checksums});
    }
    return format_safetensors(rows);
  }

  void write_piece(int64_t number) {
    const auto after = std::ranges::upper_bound(tensors_, number, {}, &Tensor::first_piece);
    Tensor& tensor = *(after - 1);
    const Entry& entry = *tensor.entry;
    const IndexDomain& box = entry.boxes[tensor.box];
    const int64_t size = itemsize(entry.dtype);
    const int64_t index = number - tensor.first_piece;
    IndexDomain piece = tensor.grid.piece(index);
    const OpenFile& file = files_[tensor.file];
    const int64_t place = file.data_begin + tensor.offset + row_major_offset(box.shape, piece.origin) * size;
    for (int64_t d = 0; d < piece.rank(); ++d) piece.origin[d] += box.origin[d];
    const int64_t bytes = piece.volume() * size;

    const auto write = [&](const std::byte* data) {
      tensor.checksums[index] = crc32c(data, static_cast<size_t>(bytes));
      file.file.write(data, bytes, place);
      file.file.start_sync(place, bytes);
      part_.bytes_written_.fetch_add(bytes, std::memory_order_relaxed);
    };
    for (const BoxMemory& source : entry.sources) {
      const auto common = intersect(source.box, piece);
      if (common && *common == piece && source.has_run(piece, size)) return write(source.at(piece.origin));
    }
    const PieceBuffers::Buffer buffer(buffers_);
    for (const BoxMemory& source : entry.sources) {
      if (const auto common = intersect(source.box, piece)) copy_from_box(buffer.data(), piece, source, *common, size);
    }
    write(buffer.data());
  }

  SavePart& part_;
  const std::string& folder_;
  const std::vector<std::string>& names_;
  ProcessIndex process_;
  PieceBuffers buffers_;
  std::vector<Tensor> tensors_;
  std::vector<OpenFile> files_;
  int64_t pieces_ = 0;
};

namespace {

std::vector<IndexDomain> own_boxes(const Array& array) {
  return owned_boxes(*array.sharding(), array.shape(), array.sharding()->devices()->client()->process_index());
}

}  // namespace

void SavePart::add(size_t leaf, ArrayRef array) {
  HeldBuffers buffers = hold_buffers(*array, operation_);
  if (array->sharding()->is_fully_addressable()) {
    bytes_ += array->nbytes();
  } else {
    for (const IndexDomain& box : own_boxes(*array)) bytes_ += box.volume() * itemsize(array->dtype());
  }
  arrays_.push_back({leaf, std::move(array), std::move(buffers)});
}

void SavePart::add(size_t leaf, const HostView& view) {
  const IndexDomain box{Dims(view.shape.size(), 0), view.shape};
  BoxMemory source{box, static_cast<std::byte*>(view.data), view.byte_strides};
  entries_.push_back({leaf, view.dtype, view.shape, {box}, {std::move(source)}});
  bytes_ += view.nbytes();
}

void SavePart::write(const std::string& folder, const std::vector<std::string>& names, ProcessIndex process) {
  entries_.reserve(entries_.size() + arrays_.size());
  for (const auto& [leaf, array, buffers] : arrays_) {
    wait_for(array->ready_event());  // the caller may have deleted the array
    entries_.push_back(
        {leaf, array->dtype(), array->shape(), own_boxes(*array), boxes_of_array(*array, buffers, operation_)});
  }
  std::ranges::sort(entries_, {}, &Entry::leaf);
  Writer(*this, folder, names, process).run();
  entries_.clear();
  arrays_.clear();
}

}  // namespace artifex_devices
