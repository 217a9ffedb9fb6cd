// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_checkpoint.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/json_reader.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kFormat = "artifex_devices.checkpoint";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxManifestBytes = int64_t{1} << 28;
constexpr int64_t kMaxArrayRank = 64;  // NumPy's

class ManifestParser {
 public:
  ManifestParser(std::string_view text, std::string_view what) : json_(text, what), what_(what) {}

  Manifest parse() {
    std::string format;
    std::optional<int64_t> version;
    std::string_view arrays;
    bool has_arrays = false;
    bool has_values = false;
    std::string name;
    json_.begin_object();
    for (bool first = true; json_.next_member(first, name);) {
      if (name == "format") {
        format = json_.string();
      } else if (name == "version") {
        version = json_.integer();
      } else if (name == "process_count") {
        manifest_.process_count = json_.integer();
      } else if (name == "arrays" && !std::exchange(has_arrays, true)) {
        // Arrays of a format that is not known are not interpreted.
        if (format == kFormat && version && *version <= kVersion) {
          read_arrays(json_);
        } else {
          arrays = json_.raw();
        }
      } else if (name == "values" && !std::exchange(has_values, true)) {
        manifest_.values = json_.raw();
      } else {
        json_.skip();
      }
    }
    json_.end();
    if (format != kFormat || !version) fail(fmt::format("the file does not have the format {}", kFormat));
    if (*version > kVersion) {
      throw_error("{}: the file has version {}; expected at most {}; update with `pip install -U artifex_devices`",
                  what_, *version, kVersion);
    }
    if (!arrays.empty()) {
      JsonReader json(arrays, what_);
      read_arrays(json);
    }
    if (manifest_.process_count < 1) fail("`process_count` is missing or 0");
    if (!has_arrays || !has_values || !manifest_.values.starts_with('{')) fail("`arrays` or `values` is missing");
    return std::move(manifest_);
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    throw_error("{}: {}; expected a file that checkpoint.save wrote; restore another checkpoint", what_, problem);
  }

  void read_arrays(JsonReader& json) {
    std::string name;
    std::string member;
    json.begin_object();
    for (bool first = true; json.next_member(first, name);) {
      std::optional<Dims> shape;
      std::string dtype_name;
      json.begin_object();
      for (bool is_first = true; json.next_member(is_first, member);) {
        if (member == "shape") {
          Dims& dims = shape.emplace();
          json.begin_list();
          for (bool start = true; json.next_item(start);) {
            if (dims.size() == kMaxArrayRank) json.fail(fmt::format("at most {} numbers", kMaxArrayRank));
            dims.push_back(json.integer());
          }
        } else if (member == "dtype") {
          dtype_name = json.string();
        } else {
          json.skip();
        }
      }
      const auto dtype = dtype_from_name(dtype_name);
      if (!shape || !dtype) fail(fmt::format("the array {} has no shape, or an unknown dtype", json_string(name)));
      manifest_.arrays.push_back({name, std::move(*shape), *dtype});
    }
  }

  JsonReader json_;
  std::string_view what_;
  Manifest manifest_;
};

std::string read_text(const File& file, std::string_view operation) {
  const int64_t bytes = file.bytes();
  if (bytes > kMaxManifestBytes) {
    throw_error("{}: '{}' has {} bytes; expected at most {}; restore another checkpoint", operation, file.path(), bytes,
                kMaxManifestBytes);
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  file.read(text.data(), bytes, 0);
  return text;
}

/// Collects the tensors of all files in arrays.
class Collector {
 public:
  Collector(StoredCheckpoint& found, std::string_view operation) : found_(found), operation_(operation) {}

  void add_manifest() {
    found_.arrays.reserve(found_.manifest->arrays.size());
    for (Manifest::Array& array : found_.manifest->arrays) {
      found_.arrays.push_back({std::move(array.name), std::move(array.shape), array.dtype, {}, {}});
    }
    found_.manifest->arrays.clear();
    numbers_.reserve(found_.arrays.size());
    for (size_t i = 0; i < found_.arrays.size(); ++i) {
      if (numbers_.emplace(found_.arrays[i].name, i).second) continue;
      throw_error("{}: checkpoint.json lists {} twice; expected each name once; restore another checkpoint", operation_,
                  json_string(found_.arrays[i].name));
    }
  }

  void add(size_t number) {
    const StoredTensor& tensor = found_.tensors[number];
    const auto place = numbers_.find(tensor.name);
    if (place != numbers_.end()) {
      StoredArray& array = found_.arrays[place->second];
      if (!found_.manifest) extend(array, tensor);
      if (array.type.empty()) array.type = tensor.type;
      array.tensors.push_back(number);
      return;
    }
    if (found_.manifest) {
      throw_error(
          "{}: '{}' has '{}', which checkpoint.json does not list; expected files of one save; restore another "
          "checkpoint",
          operation_, found_.files.paths()[found_.file_of_tensor[number]], tensor.name);
    }
    numbers_.emplace(tensor.name, found_.arrays.size());
    found_.arrays.push_back({tensor.name, whole(tensor), dtype_of_stored(tensor.type), tensor.type, {number}});
  }

 private:
  /// The shape of the array as far as one part shows it.
  static Dims whole(const StoredTensor& tensor) {
    if (tensor.global_shape) return *tensor.global_shape;
    Dims shape = tensor.shape;
    for (int64_t d = 0; tensor.origin && d < shape.size(); ++d) shape[d] += (*tensor.origin)[d];
    return shape;
  }

  void extend(StoredArray& array, const StoredTensor& tensor) const {
    const Dims shape = whole(tensor);
    if (array.shape.size() != shape.size() || array.type != tensor.type) {
      throw_error(
          "{}: the parts of '{}' have several types or numbers of dimensions; expected parts of one array; restore "
          "another checkpoint",
          operation_, array.name);
    }
    for (int64_t d = 0; d < shape.size(); ++d) array.shape[d] = std::max(array.shape[d], shape[d]);
  }

  StoredCheckpoint& found_;
  std::string_view operation_;
  std::unordered_map<std::string, size_t> numbers_;  // of arrays, by name
};

}  // namespace

Manifest parse_manifest(std::string_view text, std::string_view what) { return ManifestParser(text, what).parse(); }

StoredCheckpoint StoredCheckpoint::open(StoredFiles files, const std::string& manifest, std::string_view operation) {
  StoredCheckpoint found{.files = std::move(files)};
  Collector collector(found, operation);
  if (!manifest.empty()) {
    const File file = found.files.open_beside(manifest, operation);
    found.manifest = parse_manifest(read_text(file, operation), fmt::format("{}: '{}'", operation, manifest));
    collector.add_manifest();
  }
  for (size_t file = 0; file < found.files.paths().size(); ++file) {
    check_interrupt();
    for (StoredTensor& tensor : read_safetensors(*found.files.open_first(file, operation), operation)) {
      found.tensors.push_back(std::move(tensor));
      found.file_of_tensor.push_back(file);
      collector.add(found.tensors.size() - 1);
    }
  }
  return found;
}

ReadRequest StoredCheckpoint::request(size_t number) const {
  const StoredArray& array = arrays.at(number);
  ReadRequest request;
  request.name = array.name;
  request.shape = array.shape;
  request.dtype = array.dtype.value_or(DType::kUInt8);
  for (const size_t tensor : array.tensors) request.stored.push_back({file_of_tensor[tensor], &tensors[tensor]});
  return request;
}

int64_t StoredCheckpoint::bytes(size_t number) const {
  int64_t total = 0;
  for (const size_t tensor : arrays.at(number).tensors) total += tensors[tensor].end - tensors[tensor].begin;
  return total;
}

}  // namespace artifex_devices
