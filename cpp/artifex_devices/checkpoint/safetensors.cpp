// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/checkpoint/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "artifex_devices/base/python_repr.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/checkpoint/boxes.h"
#include "artifex_devices/checkpoint/foreign_format.h"
#include "artifex_devices/checkpoint/json_reader.h"

namespace artifex_devices {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kBoxes = "DCP_SHARDING_INFO";  // torch's name
constexpr std::string_view kChecksums = "CRC32C";
constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxRank = 65;  // NumPy's 64, and the dimension of a complex number

Dims read_dims(JsonReader& json) {
  Dims dims;
  json.begin_list();
  for (bool first = true; json.next_item(first);) {
    if (dims.size() == kMaxRank) json.fail(fmt::format("at most {} numbers", kMaxRank));
    dims.push_back(json.integer());
  }
  return dims;
}

class HeaderParser {
 public:
  HeaderParser(std::string_view header, int64_t file_bytes, std::string_view what)
      : json_(header, what),
        what_(what),
        data_begin_(kLengthBytes + static_cast<int64_t>(header.size())),
        data_bytes_(file_bytes - data_begin_) {}

  std::vector<StoredTensor> parse() {
    json_.begin_object();
    bool has_metadata = false;
    std::string name;
    for (bool first = true; json_.next_member(first, name);) {
      if (name != kMetadata) {
        read_tensor(std::move(name));
        continue;
      }
      if (std::exchange(has_metadata, true)) fail("{} occurs twice", kMetadata);
      read_metadata();
    }
    json_.end();
    check_names();
    check_ranges();
    if (!boxes_.empty()) read_boxes();
    if (!checksums_.empty()) read_checksums();
    return std::move(tensors_);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_error("{}: {}; the file is damaged or not a safetensors file", what_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  void read_metadata() {
    json_.begin_object();
    std::string name;
    for (bool first = true; json_.next_member(first, name);) {
      std::string value = json_.string();
      if (name == kBoxes) boxes_ = std::move(value);
      if (name == kChecksums) checksums_ = std::move(value);
    }
  }

  void read_tensor(std::string name) {
    StoredTensor tensor;
    tensor.name = std::move(name);
    std::optional<Dims> shape;
    std::optional<Dims> range;
    json_.begin_object();
    std::string member;
    for (bool first = true; json_.next_member(first, member);) {
      if (member == "dtype") {
        tensor.type = json_.string();
      } else if (member == "shape") {
        shape = read_dims(json_);
      } else if (member == "data_offsets") {
        range = read_dims(json_);
      } else {
        json_.skip();
      }
    }
    if (tensor.type.empty() || !shape || !range || range->size() != 2) {
      json_.fail("a tensor with dtype, shape and two data_offsets before this");
    }
    if ((*range)[0] > (*range)[1] || (*range)[1] > data_bytes_) {
      fail("bytes {} to {} of tensor {} are outside the {} bytes of data", (*range)[0], (*range)[1],
           printable(tensor.name), data_bytes_);
    }
    tensor.shape = std::move(*shape);
    if (const auto dtype = dtype_of_stored(tensor.type)) {
      std::optional<int64_t> bytes = itemsize(*dtype);
      for (const int64_t size : tensor.shape) bytes = bytes ? checked_mul(*bytes, size) : bytes;
      if (std::ranges::find(tensor.shape, 0) != tensor.shape.end()) bytes = 0;
      if (!bytes || *bytes != (*range)[1] - (*range)[0]) {
        fail("tensor {} of shape {} and type {} has {} bytes", printable(tensor.name), to_string(tensor.shape),
             tensor.type, (*range)[1] - (*range)[0]);
      }
    }
    tensor.begin = data_begin_ + (*range)[0];
    tensor.end = data_begin_ + (*range)[1];
    tensors_.push_back(std::move(tensor));
  }

  void check_names() {
    by_name_.reserve(tensors_.size());
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!by_name_.emplace(tensors_[i].name, i).second) fail("tensor {} occurs twice", printable(tensors_[i].name));
    }
  }

  void check_ranges() const {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    ranges.reserve(tensors_.size());
    for (const StoredTensor& tensor : tensors_) ranges.emplace_back(tensor.begin, tensor.end);
    std::ranges::sort(ranges);
    int64_t end = data_begin_;
    for (const auto& range : ranges) {
      if (range.first != end) fail("tensors overlap or leave a gap at byte {}", end);
      end = range.second;
    }
    if (end != data_begin_ + data_bytes_) fail("the tensors end at byte {} of {}", end, data_begin_ + data_bytes_);
  }

  /// Calls f(tensor, json) for each tensor of a JSON object by name.
  template <class F>
  void for_tensors(std::string_view text, std::string_view title, F&& f) {
    const std::string what = fmt::format("{}: {}", what_, title);
    JsonReader json(text, what);
    json.begin_object();
    std::string name;
    for (bool first = true; json.next_member(first, name);) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) {
        json.skip();
      } else {
        f(tensors_[found->second], json);
      }
    }
    json.end();
  }

  void read_boxes() {
    for_tensors(boxes_, kBoxes, [&](StoredTensor& tensor, JsonReader& json) {
      json.begin_object();
      std::string member;
      for (bool first = true; json.next_member(first, member);) {
        if (member == "saved_offsets") {
          tensor.origin = read_dims(json);
        } else if (member == "global_shape") {
          tensor.global_shape = read_dims(json);
        } else {
          json.skip();
        }
      }
      const int64_t rank = tensor.shape.size();
      if (tensor.global_shape && !tensor.origin) tensor.origin = Dims(rank, 0);
      if (!tensor.origin) return;
      bool fits = tensor.origin->size() == rank && (!tensor.global_shape || tensor.global_shape->size() == rank);
      for (int64_t d = 0; fits && d < rank; ++d) {
        const auto end = checked_add((*tensor.origin)[d], tensor.shape[d]);
        fits = end && (!tensor.global_shape || *end <= (*tensor.global_shape)[d]);
      }
      if (!fits) {
        fail("tensor {} of shape {} does not fit at {} into {}", printable(tensor.name), to_string(tensor.shape),
             to_string(*tensor.origin), tensor.global_shape ? to_string(*tensor.global_shape) : "its array");
      }
    });
  }

  void read_checksums() {
    for_tensors(checksums_, kChecksums, [&](StoredTensor& tensor, JsonReader& json) {
      const std::string digits = json.string();
      const auto dtype = dtype_of_stored(tensor.type);
      if (!dtype) return;
      const int64_t count = PieceGrid(tensor.shape, itemsize(*dtype)).count();
      if (static_cast<int64_t>(digits.size() / 8) != count || digits.size() % 8 != 0) {
        fail("tensor {} has {} digits of checksums; expected {} for {} pieces", printable(tensor.name), digits.size(),
             static_cast<uint64_t>(count) * 8, count);
      }
      tensor.checksums.resize(count);
      for (size_t i = 0; i < tensor.checksums.size(); ++i) {
        const char* begin = digits.data() + 8 * i;
        const auto result = std::from_chars(begin, begin + 8, tensor.checksums[i], 16);
        if (result.ec != std::errc() || result.ptr != begin + 8)
          fail("the checksums of {} are not numbers", printable(tensor.name));
      }
    });
  }

  JsonReader json_;
  std::string_view what_;
  int64_t data_begin_;
  int64_t data_bytes_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::string boxes_;
  std::string checksums_;
};

}  // namespace

StoredType stored_type(DType dtype) noexcept {
  if (is_complex(dtype)) return {dtype == DType::kComplex64 ? "F32" : "F64", true};
  return {row_of(dtype).is_saved ? row_of(dtype).safetensors : "U8"};
}

std::optional<DType> dtype_of_stored(std::string_view name) noexcept {
  if (name.empty()) return std::nullopt;
  const auto* row = std::ranges::find(kDTypes, name, &DTypeRow::safetensors);
  return row == kDTypes.end() ? std::nullopt : std::optional(row->dtype);
}

std::vector<StoredTensor> parse_safetensors(std::string_view header, int64_t file_bytes, std::string_view what) {
  return HeaderParser(header, file_bytes, what).parse();
}

std::vector<StoredTensor> read_safetensors(const File& file, std::string_view operation) {
  const std::string what = fmt::format("{}: {}", operation, printable(file.path()));
  const int64_t bytes = file.bytes();
  std::string head(static_cast<size_t>(std::min<int64_t>(bytes, kForeignFormatBytes)), '\0');
  file.read(head.data(), static_cast<int64_t>(head.size()), 0);
  // A safetensors file may begin with the first bytes of another format, but then its length is valid.
  const auto check_format = [&] {
    if (const std::string_view format = foreign_format(head); !format.empty()) throw_error("{} {}", what, format);
  };
  if (bytes < kLengthBytes) {
    check_format();
    throw_error(
        "{}: the file has {} bytes; expected a safetensors file, which begins with the length of its header; "
        "the file is damaged or not a safetensors file",
        what, bytes);
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i > 0; --i) length = (length << 8) | static_cast<unsigned char>(head[i - 1]);
  const int64_t most = std::min(bytes - kLengthBytes, kMaxSafetensorsHeader);
  if (length > static_cast<uint64_t>(most)) {
    check_format();
    throw_error("{}: the header has {} bytes; expected at most {}; the file is damaged or not a safetensors file", what,
                length, most);
  }
  std::string header(static_cast<size_t>(length), '\0');
  file.read(header.data(), static_cast<int64_t>(length), kLengthBytes);
  return parse_safetensors(header, bytes, what);
}

std::string format_safetensors(std::span<const NewTensor> tensors) {
  constexpr size_t kAlignment = 4096;
  std::string boxes;
  std::string checksums;
  std::string members;
  int64_t begin = 0;
  for (const NewTensor& tensor : tensors) {
    const StoredType type = stored_type(tensor.dtype);
    const std::string name = json_string(tensor.name);
    const auto list = [&](const Dims& dims, std::string_view last) {
      const std::string numbers = fmt::format("{}", fmt::join(dims, ","));
      const bool both = type.is_pair && !dims.empty();
      return fmt::format("[{}{}{}]", numbers, both ? "," : "", type.is_pair ? last : "");
    };
    members += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", name, type.name,
                           list(tensor.box.shape, "2"), begin, begin + tensor.bytes);
    boxes += fmt::format("{}{}:{{\"saved_offsets\":{},\"global_shape\":{}}}", boxes.empty() ? "" : ",", name,
                         list(tensor.box.origin, "0"), list(tensor.global_shape, "2"));
    checksums += fmt::format("{}{}:\"{:08x}\"", checksums.empty() ? "" : ",", name, fmt::join(tensor.checksums, ""));
    begin += tensor.bytes;
  }
  std::string header =
      fmt::format("{{\"{}\":{{\"format\":\"pt\",\"DCP_VERSION\":\"1.0\",\"{}\":{},\"{}\":{}}}{}}}", kMetadata, kBoxes,
                  json_string("{" + boxes + "}"), kChecksums, json_string("{" + checksums + "}"), members);
  const size_t bytes = (kLengthBytes + header.size() + kAlignment - 1) / kAlignment * kAlignment;
  header.append(bytes - kLengthBytes - header.size(), ' ');
  std::string result;
  for (size_t i = 0; i < kLengthBytes; ++i) result += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return result + header;
}

}  // namespace artifex_devices
