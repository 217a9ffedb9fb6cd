// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/stored_parts.h"

namespace artifex_devices {
namespace {

constexpr size_t kMostListed = 8;  // names in a message

std::optional<int64_t> checked_volume(const Dims& shape) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::optional<int64_t> volume = 1;
  for (const int64_t size : shape) volume = volume ? checked_mul(*volume, size) : volume;
  return volume;
}

std::string file_name(const StoredCheckpoint& found, size_t file) {
  const std::string& path = found.files.paths()[file];
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

void check_are_parts(const StoredCheckpoint& found, std::string_view operation) {
  const auto plain = std::ranges::find_if(found.tensors, [](const StoredTensor& tensor) { return !tensor.origin; });
  if (plain == found.tensors.end()) return;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(found.files.paths().size(), kMostListed); ++i)
    names.push_back(python_repr(file_name(found, i)));
  const std::string& file = found.files.paths()[found.file_of_tensor[plain - found.tensors.begin()]];
  throw_error(
      "{}: {} has {} safetensors files, such as {}, but no index that says which of them belong together: they may be "
      "copies of one model; expected an index, or names such as model-00001-of-00002.safetensors; pass the path of "
      "one file, such as {}",
      operation, python_repr(file.substr(0, file.rfind('/'))), found.files.paths().size(), fmt::join(names, ", "),
      python_repr(file));
}

void check_index(const StoredCheckpoint& found, const WeightIndex& index, const std::string& path,
                 std::string_view operation) {
  std::vector<std::string> problems;
  size_t count = 0;
  const auto add = [&](std::string problem) {
    if (++count <= kMostListed) problems.push_back(std::move(problem));
  };
  std::unordered_map<std::string_view, std::vector<size_t>> files;  // that have a tensor, by its name
  double bytes = 0;
  for (size_t i = 0; i < found.tensors.size(); ++i) {
    files[found.tensors[i].name].push_back(found.file_of_tensor[i]);
    bytes += static_cast<double>(found.tensors[i].end - found.tensors[i].begin);
  }
  for (const auto& [name, file] : index.files) {
    const auto place = files.find(name);
    if (place == files.end()) {
      add(fmt::format("{} is not in {}", python_repr(name), python_repr(file)));
      continue;
    }
    for (const size_t number : place->second) {
      if (file_name(found, number) == file) continue;
      add(fmt::format("{} is in {}, not in {}", python_repr(name), python_repr(file_name(found, number)),
                      python_repr(file)));
    }
  }
  for (const StoredTensor& tensor : found.tensors) {
    if (index.files.contains(tensor.name)) continue;
    const size_t number = found.file_of_tensor[&tensor - found.tensors.data()];
    add(fmt::format("{} in {} is not listed", python_repr(tensor.name), python_repr(file_name(found, number))));
  }
  if (count > 0) {
    throw_error(
        "{}: {} does not match its files: {}{}; expected each tensor in the file that the index names; download the "
        "folder again, or correct the index",
        operation, python_repr(path), fmt::join(problems, "; "),
        count > kMostListed ? fmt::format("; and {} more", count - kMostListed) : "");
  }
  if (index.total_size && bytes < *index.total_size) {
    throw_error(
        "{}: the tensors of {} have {:.0f} bytes in the files; expected the {:.0f} of its \"total_size\"; a tensor is "
        "missing in the index and the files: download the folder again, or remove \"total_size\" if it is wrong",
        operation, python_repr(path), bytes, *index.total_size);
  }
}

void check_shards(const StoredCheckpoint& found, const std::vector<int64_t>& missing, std::string_view operation) {
  if (missing.empty()) return;
  const auto is_divided = [&](const StoredArray& array) {
    return array.is_shape_derived && std::ranges::any_of(array.tensors, [&](size_t tensor) {
             return std::ranges::any_of(*found.tensors[tensor].origin, [](int64_t index) { return index > 0; });
           });
  };
  const auto array = std::ranges::find_if(found.arrays, is_divided);
  if (array == found.arrays.end()) return;
  throw_error(
      "{}: the files of number {} are missing between the shard-N files of the folder, and no file states the shape "
      "of {}; expected the files of all processes; copy them again",
      operation, fmt::join(missing, ", "), python_repr(array->name));
}

void check_parts(const StoredCheckpoint& found, const StoredArray& array, std::string_view operation) {
  std::vector<IndexDomain> boxes;
  std::optional<int64_t> volume = 0;
  for (const size_t number : array.tensors) {
    const StoredTensor& tensor = found.tensors[number];
    if (array.dtype) check_part(operation, array.name, *array.dtype, array.shape, tensor);
    boxes.push_back(box_of(tensor, array.shape.size()));
    const auto elements = checked_volume(boxes.back().shape);
    volume = volume && elements ? checked_add(*volume, *elements) : std::nullopt;
  }
  check_disjoint(operation, array.name, boxes);
  const auto wanted = checked_volume(array.shape);
  if (volume == wanted && (volume || boxes.size() == 1)) return;
  const auto count = [&](const std::optional<int64_t>& elements) {
    const auto bytes = elements && array.dtype ? checked_mul(*elements, itemsize(*array.dtype)) : elements;
    return bytes ? fmt::format("{}", *bytes) : std::string("more than 2**63 - 1");
  };
  throw_error(
      "{}: {} has {} {} in the files; expected {} for {} of shape {}; a file is missing or damaged, restore another "
      "checkpoint",
      operation, python_repr(array.name), count(volume), array.dtype ? "bytes" : "elements", count(wanted),
      array.dtype ? name(*array.dtype) : printable(array.type), to_string(array.shape));
}

}  // namespace artifex_devices
