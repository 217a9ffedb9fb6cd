// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/stored_checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/interrupt.h"
#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/checkpoint_files.h"
#include "artifex_devices/checkpoint/foreign_format.h"
#include "artifex_devices/checkpoint/json_reader.h"
#include "artifex_devices/checkpoint/stored_checks.h"
#include "artifex_devices/checkpoint/weight_index.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kFormat = "artifex_devices.checkpoint";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxTextBytes = int64_t{1} << 28;  // of checkpoint.json or an index
constexpr int64_t kMaxArrayRank = 64;                // NumPy's
constexpr int kMaxTries = 100;                       // of reading a folder that saves replace

class ManifestParser {
 public:
  ManifestParser(std::string_view text, std::string_view what) : json_(text, what), what_(what) {}

  Manifest parse() {
    std::string format;
    std::optional<int64_t> version;
    std::string_view arrays;
    bool has_arrays = false;
    bool has_values = false;
    bool has_paths = false;
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
      } else if (name == "paths" && !std::exchange(has_paths, true)) {
        manifest_.paths = json_.raw();
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
      if (!shape || !dtype) fail(fmt::format("the array \"{}\" has no shape, or an unknown dtype", printable(name)));
      manifest_.arrays.push_back({name, std::move(*shape), *dtype});
    }
  }

  JsonReader json_;
  std::string_view what_;
  Manifest manifest_;
};

std::string read_text(const std::string& path, const Folder* folder, std::string_view operation) {
  std::string text = read_regular_file(path, kMaxTextBytes, operation, folder);
  const std::string_view format = foreign_format(std::string_view(text).substr(0, kForeignFormatBytes));
  if (!format.empty()) throw_error("{}: {} {}", operation, python_repr(path), format);
  return text;
}

/// Collects the tensors of all files in arrays.
class Collector {
 public:
  Collector(StoredCheckpoint& found, std::string_view operation) : found_(found), operation_(operation) {}

  void add_manifest() {
    found_.arrays.reserve(found_.manifest->arrays.size());
    for (Manifest::Array& array : found_.manifest->arrays) {
      found_.arrays.push_back({std::move(array.name), std::move(array.shape), false, array.dtype, {}, {}});
    }
    found_.manifest->arrays.clear();
    numbers_.reserve(found_.arrays.size());
    for (size_t i = 0; i < found_.arrays.size(); ++i) {
      if (numbers_.emplace(found_.arrays[i].name, i).second) continue;
      throw_error("{}: checkpoint.json lists \"{}\" twice; expected each name once; restore another checkpoint",
                  operation_, printable(found_.arrays[i].name));
    }
  }

  void add(size_t number) {
    const StoredTensor& tensor = found_.tensors[number];
    const auto place = numbers_.find(tensor.name);
    if (place != numbers_.end()) {
      StoredArray& array = found_.arrays[place->second];
      if (!found_.manifest) extend(array, number);
      if (array.type.empty()) array.type = tensor.type;
      array.tensors.push_back(number);
      return;
    }
    if (found_.manifest) {
      throw_error(
          "{}: '{}' has '{}', which checkpoint.json does not list; expected files of one save; restore another "
          "checkpoint",
          operation_, printable(file_of(number)), printable(tensor.name));
    }
    numbers_.emplace(tensor.name, found_.arrays.size());
    found_.arrays.push_back({.name = tensor.name,
                             .shape = extent(tensor),
                             .is_shape_derived = tensor.origin && !tensor.global_shape,
                             .dtype = dtype_of_stored(tensor.type),
                             .type = tensor.type,
                             .tensors = {number}});
  }

 private:
  const std::string& file_of(size_t tensor) const { return found_.files.paths()[found_.file_of_tensor[tensor]]; }

  /// The shape of the array that a part states, or else the smallest shape that contains the part.
  static Dims extent(const StoredTensor& tensor) {
    if (tensor.global_shape) return *tensor.global_shape;
    Dims shape = tensor.shape;
    for (int64_t d = 0; tensor.origin && d < shape.size(); ++d) shape[d] += (*tensor.origin)[d];
    return shape;
  }

  void extend(StoredArray& array, size_t number) const {
    const StoredTensor& tensor = found_.tensors[number];
    const StoredTensor& first = found_.tensors[array.tensors.front()];
    if (!tensor.origin || !first.origin) {
      throw_error(
          "{}: {} and {} both have '{}', and do not state parts of it; expected each name in one file; pass the path "
          "of one file",
          operation_, python_repr(file_of(array.tensors.front())), python_repr(file_of(number)), printable(array.name));
    }
    const Dims shape = extent(tensor);
    const bool both_state_it = tensor.global_shape && !array.is_shape_derived;
    if (array.shape.size() != shape.size() || array.type != tensor.type ||
        (both_state_it && array.shape != *tensor.global_shape)) {
      throw_error(
          "{}: the parts of '{}' have several types, shapes of the array or numbers of dimensions; expected parts of "
          "one array; restore another checkpoint",
          operation_, printable(array.name));
    }
    if (both_state_it) return;
    if (array.is_shape_derived && tensor.global_shape) {
      array.is_shape_derived = false;
      array.shape = shape;
      return;
    }
    if (!array.is_shape_derived) return;
    for (int64_t d = 0; d < shape.size(); ++d) array.shape[d] = std::max(array.shape[d], shape[d]);
  }

  StoredCheckpoint& found_;
  std::string_view operation_;
  std::unordered_map<std::string, size_t> numbers_;  // of arrays, by name
};

/// The paths of the files that an index names.
std::vector<std::string> paths_of(const WeightIndex& index, const std::string& path, const Folder& folder,
                                  std::string_view operation) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.files) names.insert(file);
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    paths.push_back(path.substr(0, path.rfind('/') + 1) + name);
    if (folder.contains(name)) continue;
    throw FileError(fmt::format("{}: {} names the file {}, which is not in the folder; expected every file that it "
                                "names; download the missing file",
                                operation, python_repr(path), python_repr(name)),
                    ENOENT);
  }
  return paths;
}

/// Reads and checks the headers of the files in `folder`, or of the one file `path` without a folder.
StoredCheckpoint read_headers(const std::string& path, const std::shared_ptr<const Folder>& folder,
                              std::string_view operation) {
  CheckpointFiles files = find_checkpoint_files(path, folder.get(), operation);
  StoredCheckpoint found;
  Collector collector(found, operation);
  std::optional<WeightIndex> index;
  if (!files.manifest.empty()) {
    const std::string what = fmt::format("{}: {}", operation, python_repr(files.manifest));
    found.manifest = parse_manifest(read_text(files.manifest, folder.get(), operation), what);
    collector.add_manifest();
  } else if (!files.index.empty()) {
    const std::string what =
        fmt::format("{}: {} is not an index of safetensors files", operation, python_repr(files.index));
    index = parse_weight_index(read_text(files.index, folder.get(), operation), what);
    files.paths = paths_of(*index, files.index, *folder, operation);
  }
  found.files = StoredFiles(std::move(files.paths), folder);
  for (size_t file = 0; file < found.files.paths().size(); ++file) {
    check_interrupt();
    for (StoredTensor& tensor : read_safetensors(*found.files.open_first(file, operation), operation)) {
      found.tensors.push_back(std::move(tensor));
      found.file_of_tensor.push_back(file);
    }
  }
  if (!files.are_one_set) check_are_parts(found, operation);
  if (index) check_index(found, *index, files.index, operation);
  for (size_t number = 0; number < found.tensors.size(); ++number) collector.add(number);
  check_shards(found, files.missing_shards, operation);
  for (const StoredArray& array : found.arrays) check_parts(found, array, operation);
  return found;
}

}  // namespace

Manifest parse_manifest(std::string_view text, std::string_view what) { return ManifestParser(text, what).parse(); }

StoredCheckpoint StoredCheckpoint::open(const std::string& path, std::string_view operation) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const std::shared_ptr<const Folder> folder = open_checkpoint_folder(path, operation, tries > 0);
    // In a folder that was replaced, files may have been removed before they were listed or opened.
    const auto is_current = [&] { return folder == nullptr || folder->is_at_path(); };
    try {
      check_interrupt();
      StoredCheckpoint found = read_headers(path, folder, operation);
      if (is_current()) return found;
    } catch (const FileError&) {
      if (is_current()) throw;
    } catch (const InvalidArgument&) {
      if (is_current()) throw;
    }
  }
  throw FileError(fmt::format("{}: {} was replaced by another save each of the {} times that it was read; expected a "
                              "checkpoint that stays while its headers are read; call it again",
                              operation, python_repr(path), kMaxTries),
                  ESTALE);
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

}  // namespace artifex_devices
