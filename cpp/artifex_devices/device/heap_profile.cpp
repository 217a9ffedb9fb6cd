// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/heap_profile.h"

#include <array>
#include <map>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/base/wire.h"

namespace artifex_devices {
namespace {

// Field numbers of profile.proto.
enum ProfileField { kSampleType = 1, kSample = 2, kLocation = 4, kFunction = 5, kStringTable = 6, kTimeNanos = 9 };
enum ValueTypeField { kType = 1, kUnit = 2 };
enum SampleField { kLocationId = 1, kValue = 2, kLabel = 3 };
enum LabelField { kKey = 1, kStr = 2 };
enum LocationField { kId = 1, kLine = 4 };
enum LineField { kFunctionId = 1, kLineNumber = 2 };
enum FunctionField { kFunctionNumber = 1, kName = 2, kSystemName = 3, kFilename = 4 };

// Numbers values in the order of their first occurrence, from `first`.
template <class Key>
class Numbered {
 public:
  explicit Numbered(int64_t first) : first_(first) {}
  int64_t operator()(const Key& key) {
    const auto [found, is_new] = numbers_.try_emplace(key, first_ + static_cast<int64_t>(order_.size()));
    if (is_new) order_.push_back(key);
    return found->second;
  }
  const std::vector<Key>& in_order() const noexcept { return order_; }

 private:
  int64_t first_;
  std::map<Key, int64_t> numbers_;
  std::vector<Key> order_;
};

int64_t added(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    throw_error("heap_profile: the samples add up to more than 2^63 - 1; give fewer");
  return sum;
}

void check(const HeapSample& sample, size_t position) {
  if (sample.count < 0 || sample.bytes < 0 || sample.line < 0) {
    throw_error("heap_profile: sample {} has {} allocations of {} bytes made in line {}; expected 0 or more of each",
                position, sample.count, sample.bytes, sample.line);
  }
  if (!is_utf8(sample.device) || !is_utf8(sample.file) || !is_utf8(sample.function)) {
    throw_error("heap_profile: sample {} has text that is not UTF-8; give the names as UTF-8", position);
  }
}

WireWriter label(int64_t key, int64_t text) {
  WireWriter written;
  written.add_number(kKey, key);
  written.add_number(kStr, text);
  return written;
}

}  // namespace

std::string heap_profile(const std::vector<HeapSample>& samples, int64_t time_ns) {
  using Function = std::pair<int64_t, int64_t>;  // name, file
  using Location = std::pair<int64_t, int64_t>;  // function, line
  using Place = std::pair<int64_t, int64_t>;     // device, location or 0
  Numbered<std::string> strings(0);
  Numbered<Function> functions(1);
  Numbered<Location> locations(1);
  Numbered<Place> places(0);
  std::vector<std::pair<int64_t, int64_t>> sums;  // count and bytes of each place

  WireWriter profile;
  strings("");
  for (const auto& [type, unit] : {std::pair("allocations", "count"), std::pair("space", "bytes")}) {
    WireWriter value_type;
    value_type.add_number(kType, strings(type));
    value_type.add_number(kUnit, strings(unit));
    profile.add_item(kSampleType, value_type);
  }
  const WireWriter kind = label(strings("kind"), strings("buffer"));
  const int64_t device_key = strings("device");

  for (size_t i = 0; i < samples.size(); ++i) {
    const HeapSample& sample = samples[i];
    check(sample, i);
    int64_t location = 0;
    if (!sample.file.empty()) {
      location = locations({functions({strings(sample.function), strings(sample.file)}), sample.line});
    }
    const auto place = static_cast<size_t>(places({strings(sample.device), location}));
    if (place == sums.size()) sums.emplace_back(0, 0);
    sums[place] = {added(sums[place].first, sample.count), added(sums[place].second, sample.bytes)};
  }

  for (size_t i = 0; i < sums.size(); ++i) {
    const auto& [device, location] = places.in_order()[i];
    WireWriter sample;
    if (location != 0) sample.add_packed(kLocationId, std::array{location});
    sample.add_packed(kValue, std::array{sums[i].first, sums[i].second});
    sample.add_item(kLabel, kind);
    sample.add_item(kLabel, label(device_key, device));
    profile.add_item(kSample, sample);
  }
  for (size_t i = 0; i < locations.in_order().size(); ++i) {
    const auto& [function, number] = locations.in_order()[i];
    WireWriter line;
    line.add_number(kFunctionId, function);
    line.add_number(kLineNumber, number);
    WireWriter location;
    location.add_number(kId, static_cast<int64_t>(i) + 1);
    location.add_item(kLine, line);
    profile.add_item(kLocation, location);
  }
  for (size_t i = 0; i < functions.in_order().size(); ++i) {
    const auto& [name, file] = functions.in_order()[i];
    WireWriter function;
    function.add_number(kFunctionNumber, static_cast<int64_t>(i) + 1);
    function.add_number(kName, name);
    function.add_number(kSystemName, name);
    function.add_number(kFilename, file);
    profile.add_item(kFunction, function);
  }
  for (const std::string& text : strings.in_order()) profile.add_item(kStringTable, text);
  if (time_ns != 0) profile.add_number(kTimeNanos, time_ns);
  return profile.take();
}

}  // namespace artifex_devices
