// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/checkpoint_files.h"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kManifest = "checkpoint.json";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr size_t kMostMissing = 3;  // numbers in a message

template <class... Args>
[[noreturn]] void fail_not_found(fmt::format_string<Args...> format, Args&&... args) {
  throw FileError(fmt::format(format, std::forward<Args>(args)...), ENOENT);
}

/// The parts of a name such as model-00001-of-00002.safetensors or shard-00003-model-00001-of-00002.safetensors.
struct SetName {
  std::string prefix;  // "model"
  int64_t number = 0;
  int64_t count = 0;
  std::optional<int64_t> shard;
};

std::optional<int64_t> number_in(std::string_view digits) {
  int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_number = result.ec == std::errc() && result.ptr == digits.data() + digits.size() && value >= 0;
  return is_number ? std::optional(value) : std::nullopt;
}

std::optional<SetName> parse_name(std::string_view name) {
  constexpr std::string_view kOf = "-of-";
  constexpr std::string_view kShard = "shard-";
  name.remove_suffix(kSafetensorsSuffix.size());
  const size_t of = name.rfind(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const size_t dash = name.substr(0, of).rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = number_in(name.substr(dash + 1, of - dash - 1));
  const auto count = number_in(name.substr(of + kOf.size()));
  if (!number || !count) return std::nullopt;
  std::string_view prefix = name.substr(0, dash);
  std::optional<int64_t> shard;
  if (prefix.starts_with(kShard)) {
    const std::string_view rest = prefix.substr(kShard.size());
    const size_t end = rest.find('-');
    if (end != std::string_view::npos) shard = number_in(rest.substr(0, end));
    if (shard) prefix = rest.substr(end + 1);
  }
  return SetName{std::string(prefix), *number, *count, shard};
}

/// The first numbers from `first` to `last` that are not in `present`.
std::vector<int64_t> missing_in(const std::set<int64_t>& present, int64_t first, int64_t last) {
  std::vector<int64_t> missing;
  for (int64_t number = first; number <= last && missing.size() < kMostMissing; ++number) {
    if (!present.contains(number)) missing.push_back(number);
  }
  return missing;
}

/// Reads the names of the files of a folder that has neither checkpoint.json nor an index.
void read_names(CheckpointFiles& found, const std::vector<std::string>& names, const std::string& folder,
                std::string_view operation) {
  std::map<std::string, std::pair<int64_t, std::set<int64_t>>> sets;  // count and numbers, by prefix
  std::set<int64_t> shards;
  bool are_counted = true;
  for (const std::string& name : names) {
    const auto parts = parse_name(name);
    if (!parts) {
      are_counted = false;
      continue;
    }
    auto& [count, numbers] =
        sets[fmt::format("{}{}-N-of-{}", parts->shard ? "shard-N-" : "", parts->prefix, parts->count)];
    count = parts->count;
    numbers.insert(parts->number);
    if (parts->shard) shards.insert(*parts->shard);
  }
  found.are_one_set = names.size() == 1 || (are_counted && sets.size() == 1);
  for (const auto& [prefix, set] : sets) {
    const auto& [count, numbers] = set;
    const int64_t first = *numbers.begin() == 0 ? 0 : 1;
    const std::vector<int64_t> missing = missing_in(numbers, first, first + std::min(count, INT64_MAX - 1) - 1);
    if (missing.empty()) continue;
    throw_error(
        "{}: {} lacks files: the names {} say that there are {}, and number {} is missing; expected all "
        "files; download the missing files, or pass the path of one file to read it alone",
        operation, python_repr(folder), python_repr(prefix), count, fmt::join(missing, ", "));
  }
  if (!shards.empty()) found.missing_shards = missing_in(shards, *shards.begin() == 0 ? 0 : 1, *shards.rbegin());
}

/// Throws the error for a folder without safetensors files. It names the format if PyTorch stores models like this.
[[noreturn]] void fail_without_files(const std::vector<std::string>& names, const std::string& folder,
                                     std::string_view operation) {
  for (const std::string_view suffix : {".distcp", ".bin", ".pt", ".pth", ".ckpt", ".bin.index.json"}) {
    const auto name = std::ranges::find_if(names, [&](const std::string& each) { return each.ends_with(suffix); });
    if (name == names.end()) continue;
    fail_not_found(
        "{}: {} has files of PyTorch, such as {}, and no safetensors files; expected safetensors files; open it with "
        "artifex_devices.checkpoint.open({})",
        operation, python_repr(folder), python_repr(*name), python_repr(folder));
  }
  fail_not_found("{}: {} has neither {} nor safetensors files; expected a checkpoint; correct the path", operation,
                 python_repr(folder), kManifest);
}

}  // namespace

std::shared_ptr<const Folder> open_checkpoint_folder(const std::string& path, std::string_view operation,
                                                     bool existed) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    fail_not_found("{}: {} {}", operation, python_repr(path),
                   existed ? "was removed while it was read; expected a checkpoint that stays; read another checkpoint"
                           : "does not exist; expected a checkpoint or a safetensors file; correct the path");
  }
  if (S_ISDIR(status.st_mode)) return std::make_shared<const Folder>(path, operation);
  if (!path.ends_with(kIndexSuffix)) return nullptr;  // opening the file says what else is wrong
  const size_t end = path.rfind('/') + 1;
  return std::make_shared<const Folder>(end == 0 ? "." : path.substr(0, end), operation);
}

CheckpointFiles find_checkpoint_files(const std::string& path, const Folder* folder, std::string_view operation) {
  CheckpointFiles found;
  if (folder == nullptr) {
    found.paths.push_back(path);
    return found;
  }
  if (path != folder->path()) {
    found.index = path;
    return found;
  }
  const std::vector<std::string> names = folder->names();
  std::vector<std::string> files;
  std::vector<std::string> indexes;
  for (const std::string& name : names) {
    if (name.ends_with(kSafetensorsSuffix)) files.push_back(name);
    if (name.ends_with(kIndexSuffix)) indexes.push_back(name);
  }
  if (std::ranges::binary_search(names, kManifest)) {
    found.manifest = fmt::format("{}/{}", path, kManifest);
  } else if (indexes.size() > 1) {
    throw_error("{}: {} has several indexes, {} and {}; expected one model; pass the path of one of them", operation,
                python_repr(path), python_repr(indexes[0]), python_repr(indexes[1]));
  } else if (!indexes.empty()) {
    found.index = fmt::format("{}/{}", path, indexes[0]);
    return found;
  } else if (files.empty()) {
    fail_without_files(names, path, operation);
  } else {
    read_names(found, files, path, operation);
  }
  for (const std::string& name : files) found.paths.push_back(fmt::format("{}/{}", path, name));
  return found;
}

}  // namespace artifex_devices
