// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/located_parts.h"

#include <unordered_map>
#include <utility>

#include "artifex_devices/base/byte_count.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/stored_checks.h"

namespace artifex_devices {
namespace {

StoredTensor tensor_of(const LocatedPart& part, const File& file, std::string_view operation) {
  const Dims& origin = part.box.origin;
  bool fits = origin.size() == part.shape.size() && part.box.shape.size() == part.shape.size();
  for (int64_t d = 0; fits && d < part.shape.size(); ++d) {
    const auto end = checked_add(origin[d], part.box.shape[d]);
    fits = origin[d] >= 0 && part.box.shape[d] >= 0 && end && *end <= part.shape[d];
  }
  if (!fits) {
    throw_error("{}: {}: a part of {} at {} has shape {}; expected a part of shape {}; the file is damaged", operation,
                python_repr(file.path()), python_repr(part.name), to_string(origin), to_string(part.box.shape),
                to_string(part.shape));
  }
  const auto end = checked_add(part.begin, checked_bytes(part.box.shape, part.dtype, operation));
  if (part.begin < 0 || !end || *end > file.bytes()) {
    throw_error("{}: {}: the bytes of {} begin at {} and end after the {} bytes of the file; copy the file again",
                operation, python_repr(file.path()), python_repr(part.name), part.begin, file.bytes());
  }
  const StoredType type = stored_type(part.dtype);
  StoredTensor tensor{.name = part.name,
                      .type = std::string(type.name),
                      .shape = part.box.shape,
                      .begin = part.begin,
                      .end = *end,
                      .origin = origin,
                      .global_shape = part.shape,
                      .checksums = {}};
  if (type.is_pair) tensor.shape.push_back(2);
  return tensor;
}

}  // namespace

StoredCheckpoint checkpoint_of_parts(std::vector<std::string> paths, const std::vector<LocatedPart>& parts,
                                     std::string_view operation) {
  StoredCheckpoint found;
  found.files = StoredFiles(std::move(paths), nullptr);
  std::vector<std::shared_ptr<const File>> files;
  for (size_t file = 0; file < found.files.paths().size(); ++file) {
    check_interrupt();
    files.push_back(found.files.open_first(file, operation));
  }
  std::unordered_map<std::string_view, size_t> numbers;  // of arrays, by name
  for (const LocatedPart& part : parts) {
    const auto [place, is_new] = numbers.emplace(part.name, found.arrays.size());
    if (is_new) {
      found.arrays.push_back({.name = part.name,
                              .shape = part.shape,
                              .dtype = part.dtype,
                              .type = std::string(name(part.dtype)),
                              .tensors = {}});
    }
    StoredArray& array = found.arrays[place->second];
    if (array.shape != part.shape || array.dtype != part.dtype) {
      throw_error("{}: the parts of {} have several shapes or dtypes; expected parts of one array; read another file",
                  operation, python_repr(part.name));
    }
    array.tensors.push_back(found.tensors.size());
    found.tensors.push_back(tensor_of(part, *files.at(part.file), operation));
    found.file_of_tensor.push_back(part.file);
  }
  for (const StoredArray& array : found.arrays) check_parts(found, array, operation);
  return found;
}

}  // namespace artifex_devices
