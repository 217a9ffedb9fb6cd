// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/hlo/replica_groups.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "artifex_devices/hlo/text_scan.h"

namespace artifex_devices::hlo {
namespace {

/// The product of sizes, or nothing above kMostDevices or where a size is 0.
std::optional<int64_t> product_of(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (size < 1 || product > kMostDevices / size) return std::nullopt;
    product *= size;
  }
  return product;
}

/// The elements of an array with these sizes and values, with its dimensions in another order.
std::vector<int64_t> transposed(const std::vector<int64_t>& sizes, const std::vector<int64_t>& order,
                                const std::vector<int64_t>& values) {
  const size_t rank = sizes.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  std::vector<int64_t> index(rank, 0), result;
  result.reserve(values.size());
  for (size_t count = 0; count < values.size(); ++count) {
    int64_t at = 0;
    for (size_t i = 0; i < rank; ++i) at += index[i] * strides[static_cast<size_t>(order[i])];
    result.push_back(values[static_cast<size_t>(at)]);
    for (size_t i = rank; i-- > 0;) {
      if (++index[i] < sizes[static_cast<size_t>(order[i])]) break;
      index[i] = 0;
    }
  }
  return result;
}

bool is_permutation(const std::vector<int64_t>& order, size_t rank) {
  std::vector<bool> seen(rank, false);
  for (const int64_t each : order) {
    if (each < 0 || static_cast<size_t>(each) >= rank || seen[static_cast<size_t>(each)]) return false;
    seen[static_cast<size_t>(each)] = true;
  }
  return order.size() == rank;
}

/// The values of "[8]" or "[2,4]T(1,0)": 0, 1, 2, ... reshaped and transposed.
std::optional<std::vector<int64_t>> iota_values(std::string_view text) {
  const size_t close = text.find(']');
  if (!text.starts_with('[') || close == kNone) return std::nullopt;
  const std::vector<int64_t> sizes = numbers_in(text.substr(0, close), kMostAxes);
  const std::optional<int64_t> count = product_of(sizes);
  if (!count || sizes.empty()) return std::nullopt;
  std::vector<int64_t> values(static_cast<size_t>(*count));
  std::iota(values.begin(), values.end(), int64_t{0});
  const std::string_view rest = text.substr(close + 1);
  if (!rest.starts_with("T(")) return values;
  const std::vector<int64_t> order = numbers_in(rest.substr(0, rest.find(')')), kMostAxes);
  if (rest.find(')') == kNone || !is_permutation(order, sizes.size())) return std::nullopt;
  return transposed(sizes, order, values);
}

std::optional<Groups> rows_of(const std::vector<int64_t>& values, int64_t row) {
  if (row < 1 || static_cast<int64_t>(values.size()) % row != 0) return std::nullopt;
  Groups groups;
  for (auto at = values.begin(); at != values.end(); at += row) groups.emplace_back(at, at + row);
  return groups;
}

/// "[2,4]<=[8]".
std::optional<Groups> parse_iota(std::string_view text) {
  const size_t arrow = text.find("<=");
  if (arrow == kNone) return std::nullopt;
  const std::vector<int64_t> shape = numbers_in(text.substr(0, arrow), kMostAxes);
  const std::optional<std::vector<int64_t>> values = iota_values(trimmed(text.substr(arrow + 2)));
  const std::optional<int64_t> count = product_of(shape);
  if (!values || shape.size() != 2 || count != static_cast<int64_t>(values->size())) return std::nullopt;
  return rows_of(*values, shape[1]);
}

/// A part of an axis, as one dimension of the mesh after its axes have been split.
struct AxisPart {
  std::string_view name;
  int64_t size = 1;
  bool is_used = false;
};

/// Splits an axis so that `'name':(pre)size` is a dimension of its own. False where it is not one.
bool use_part(std::vector<AxisPart>& parts, std::string_view text) {
  const size_t colon = text.find(":(");
  const std::string_view name = text.substr(0, colon);
  const auto first = std::find_if(parts.begin(), parts.end(), [&](const AxisPart& part) { return part.name == name; });
  if (first == parts.end()) return false;
  auto last = first;
  while (last != parts.end() && last->name == name) ++last;
  if (colon == kNone) {
    for (auto part = first; part != last; ++part) part->is_used = true;
    return true;
  }
  const std::vector<int64_t> numbers = numbers_in(text.substr(colon), 2);
  if (numbers.size() != 2 || numbers[0] < 1 || numbers[1] < 1) return false;
  int64_t before = 1;  // product of the parts passed
  for (auto part = first; part != last; ++part) {
    if (before == numbers[0] && part->size == numbers[1]) return part->is_used = true;
    if (before <= numbers[0] && before * part->size >= numbers[0] * numbers[1]) {
      const int64_t lead = numbers[0] / before, rest = part->size / lead / numbers[1];
      if (lead * numbers[1] * rest != part->size) return false;
      const AxisPart whole = *part;
      const auto at = parts.erase(part);
      parts.insert(
          at, {{whole.name, lead, whole.is_used}, {whole.name, numbers[1], true}, {whole.name, rest, whole.is_used}});
      return true;
    }
    before *= part->size;
  }
  return false;
}

/// "mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a'}".
std::optional<Groups> parse_mesh_axes(std::string_view text) {
  const size_t open = text.find('['), close = text.find(']'), brace = text.find('{');
  if (open == kNone || close == kNone || brace == kNone || brace < close || text.find('}', brace) == kNone) {
    return std::nullopt;
  }
  std::vector<AxisPart> parts;
  std::vector<int64_t> sizes;
  for (const std::string_view axis : split_list(text.substr(open + 1, close - open - 1))) {
    const size_t equals = axis.rfind('=');
    if (equals == kNone || parts.size() == kMostAxes) return std::nullopt;
    const std::optional<int64_t> size = leading_number(axis.substr(equals + 1));
    if (!size) return std::nullopt;
    parts.push_back({axis.substr(0, equals), *size});
    sizes.push_back(*size);
  }
  const std::optional<int64_t> count = product_of(sizes);
  if (!count) return std::nullopt;
  std::vector<int64_t> devices(static_cast<size_t>(*count));
  std::iota(devices.begin(), devices.end(), int64_t{0});
  const std::string_view given = text.substr(close + 1, brace - close - 1);
  if (const size_t ids = given.find("device_ids=("); ids != kNone) {
    const std::string_view list = given.substr(ids + 12, given.rfind(')') - ids - 12);
    const size_t arrow = list.find("<=");
    const std::string_view iota = arrow == kNone ? list : list.substr(arrow + 2);
    std::optional<std::vector<int64_t>> values =
        iota.starts_with('[') ? iota_values(iota) : numbers_in(list, static_cast<size_t>(kMostDevices));
    if (!values || values->size() != devices.size()) return std::nullopt;
    devices = std::move(*values);
  }
  const size_t end = text.find('}', brace);
  for (const std::string_view axis : split_list(text.substr(brace + 1, end - brace - 1))) {
    if (parts.size() > kMostAxes * 3 || !use_part(parts, axis)) return std::nullopt;
  }
  std::vector<int64_t> split_sizes, order;
  int64_t row = 1;
  for (const bool is_used : {false, true}) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].is_used != is_used) continue;
      order.push_back(static_cast<int64_t>(i));
      if (is_used) row *= parts[i].size;
    }
  }
  for (const AxisPart& part : parts) split_sizes.push_back(part.size);
  return rows_of(transposed(split_sizes, order, devices), row);
}

/// "{{0,1},{2,3}}" or "[[0, 1], [2, 3]]": numbers with brackets of two levels.
std::optional<Groups> parse_lists(std::string_view text) {
  Groups groups;
  int depth = 0;
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char sign = text[at];
    if (sign == '{' || sign == '[') {
      if (++depth == 2 && static_cast<int64_t>(groups.size()) == kMostDevices) return std::nullopt;
      if (depth == 2) groups.emplace_back();
      if (depth > 2) return std::nullopt;
    } else if (sign == '}' || sign == ']') {
      if (--depth == 0) return groups;
      if (depth < 0) return std::nullopt;
    } else if (is_digit(sign)) {
      const std::optional<int64_t> number = leading_number(text.substr(at));
      if (!number || *number >= kMostDevices || ++count > kMostDevices) return std::nullopt;
      if (depth < 2) return std::nullopt;
      groups.back().push_back(*number);
      while (at + 1 < text.size() && is_digit(text[at + 1])) ++at;
    }  // -1 fills the rows of uneven groups in StableHLO
    if (sign == '-') {
      while (at + 1 < text.size() && is_digit(text[at + 1])) ++at;
    }
    if (depth == 0) return std::nullopt;
  }
  return std::nullopt;
}

/// The bytes of `"0x..."` as little-endian numbers of 8 bytes.
std::vector<int64_t> hexadecimal_values(std::string_view text) {
  std::vector<int64_t> values;
  const auto digit = [](char sign) -> uint64_t {
    if (is_digit(sign)) return static_cast<uint64_t>(sign - '0');
    const char small = static_cast<char>(sign | 0x20);
    return small >= 'a' && small <= 'f' ? static_cast<uint64_t>(small - 'a' + 10) : 0;
  };
  for (size_t at = 0; at + 16 <= text.size() && values.size() <= static_cast<size_t>(kMostDevices); at += 16) {
    uint64_t value = 0;
    for (size_t byte = 0; byte < 8; ++byte) {
      value |= (digit(text[at + 2 * byte]) << 4 | digit(text[at + 2 * byte + 1])) << (8 * byte);
    }
    values.push_back(static_cast<int64_t>(value));
  }
  return values;
}

/// "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>", "dense<0> : tensor<1x1xi64>", "dense<\"0x...\"> : ...".
std::optional<Groups> parse_dense(std::string_view text) {
  const size_t close = text.find('>');
  const size_t type = text.find("tensor<");
  if (close == kNone) return std::nullopt;
  const std::string_view values = trimmed(text.substr(6, close - 6));
  if (values.starts_with('[')) return parse_lists(values);
  if (values.empty()) return Groups{};
  const std::vector<int64_t> shape = type == kNone ? std::vector<int64_t>() : numbers_in(text.substr(type), 2);
  if (shape.size() != 2) return std::nullopt;
  const std::optional<int64_t> count = product_of(shape);
  if (!count) return std::nullopt;
  if (values.starts_with("\"0x")) {
    const std::vector<int64_t> found = hexadecimal_values(values.substr(3, values.size() - 4));
    const bool is_valid =
        static_cast<int64_t>(found.size()) == *count &&
        std::all_of(found.begin(), found.end(), [](int64_t id) { return id >= 0 && id < kMostDevices; });
    return is_valid ? rows_of(found, shape[1]) : std::nullopt;
  }
  const std::optional<int64_t> number = leading_number(values);
  if (!number || *number >= kMostDevices) return std::nullopt;
  return rows_of(std::vector<int64_t>(static_cast<size_t>(*count), *number), shape[1]);
}

}  // namespace

std::optional<Groups> parse_groups(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("mesh[")) return parse_mesh_axes(text);
  if (text.starts_with('[')) return parse_iota(text);
  if (text.starts_with("dense<")) return parse_dense(text);
  return parse_lists(text);
}

std::optional<Groups> parse_pairs(std::string_view text) {
  std::optional<Groups> pairs = parse_groups(text);
  if (pairs && !std::all_of(pairs->begin(), pairs->end(), [](const Group& pair) { return pair.size() == 2; })) {
    return std::nullopt;
  }
  return pairs;
}

}  // namespace artifex_devices::hlo
