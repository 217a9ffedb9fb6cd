// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/streamed_boxes.h"

#include <algorithm>
#include <utility>

#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/crc32c.h"
#include "artifex_devices/checkpoint/safetensors.h"

namespace artifex_devices {
namespace {

PieceGrid grid_of(const StreamedBoxes::Tensor& tensor) { return {tensor.box.shape, itemsize(tensor.dtype)}; }

}  // namespace

StreamedBoxes::StreamedBoxes(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  for (Tensor& tensor : tensors_) tensor.checksums.resize(static_cast<size_t>(grid_of(tensor).count()));
  next_piece();
}

void StreamedBoxes::next_piece() {
  ++piece_;
  for (; tensor_ < tensors_.size(); ++tensor_, piece_ = 0) {
    const Tensor& tensor = tensors_[tensor_];
    if (piece_ == static_cast<int64_t>(tensor.checksums.size())) continue;
    left_ = grid_of(tensor).piece(piece_).volume() * itemsize(tensor.dtype);
    return;
  }
}

void StreamedBoxes::add(const std::byte* data, int64_t bytes) {
  while (bytes > 0 && tensor_ < tensors_.size()) {
    const int64_t taken = std::min(bytes, left_);
    uint32_t& checksum = tensors_[tensor_].checksums[static_cast<size_t>(piece_)];
    checksum = crc32c(data, static_cast<size_t>(taken), checksum);
    data += taken;
    bytes -= taken;
    left_ -= taken;
    if (left_ == 0) next_piece();
  }
}

std::string StreamedBoxes::header() const {
  std::vector<NewTensor> rows;
  for (const Tensor& tensor : tensors_) {
    rows.push_back({tensor.name, tensor.dtype, tensor.box, tensor.global_shape,
                    tensor.box.volume() * itemsize(tensor.dtype), tensor.checksums});
  }
  return format_safetensors(rows);
}

}  // namespace artifex_devices
