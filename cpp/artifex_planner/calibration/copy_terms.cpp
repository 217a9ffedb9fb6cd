// SPDX-License-Identifier: Apache-2.0
#include "artifex_planner/calibration/copy_terms.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "artifex_devices/base/throw_error.h"
#include "artifex_planner/reshard/placed_copies.h"

namespace artifex_devices::planner {
namespace {

enum Term : uint8_t { kCalls, kCallsOnWorkers, kCopies, kAlone, kCached, kWarm, kMemory, kRead, kWritten = kRead + 4 };
static_assert(kWritten + kRunBytes.size() == kCopyTerms.size());

/// A source of half the caches counts as cached, one of twice the caches does not.
constexpr double kHeld = 0.5;
constexpr double kNotHeld = 2;

/// 0 at `low`, 1 at `high`, by the logarithm.
double position(double value, double low, double high) noexcept {
  return std::clamp(std::log2(value / low) / std::log2(high / low), 0.0, 1.0);
}

/// `cold`: the part of the bytes that comes from memory.
void add_short_runs(CopyTerms* terms, size_t first, int64_t run, int64_t bytes, double cold) noexcept {
  const auto count = static_cast<double>(bytes);
  const auto add = [&](size_t length, double share) {
    (*terms)[first + length] += count * share * (kRunBytes[length] < kCacheLine ? 1 : cold);
  };
  if (run >= kLongRun) return;
  if (run <= kRunBytes.front()) {
    add(0, 1);
    return;
  }
  size_t next = 1;
  while (next < kRunBytes.size() && kRunBytes[next] < run) ++next;
  const int64_t longer = next < kRunBytes.size() ? kRunBytes[next] : kLongRun;
  const auto runs_a_byte = [](int64_t length) { return 1 / static_cast<double>(length); };
  const double share =
      (runs_a_byte(kRunBytes[next - 1]) - runs_a_byte(run)) / (runs_a_byte(kRunBytes[next - 1]) - runs_a_byte(longer));
  add(next - 1, 1 - share);
  if (next < kRunBytes.size()) add(next, share);
}

/// Length in bytes of the stretches of a box that are dense in buffers of all these shapes.
int64_t dense_bytes(const Dims& box, std::initializer_list<const Dims*> tiles, int64_t itemsize) noexcept {
  int64_t bytes = itemsize;
  for (int64_t d = box.size() - 1; d >= 0; --d) {
    bytes *= box[d];
    if (std::ranges::any_of(tiles, [&](const Dims* tile) { return (*tile)[d] != box[d]; })) break;
  }
  return bytes;
}

}  // namespace

CopyTerms dense_copy_terms(int64_t bytes, int64_t copies, const CopyLimits& limits) {
  if (bytes < 0 || copies < 0) {
    throw_error("calibrate: {} bytes in {} copies; expected 0 or more of both; correct them", bytes, copies);
  }
  CopyTerms terms{};
  if (bytes == 0 || copies == 0) return terms;
  const auto count = static_cast<double>(bytes);
  terms[kCopies] = static_cast<double>(copies);
  if (bytes < limits.parallel_bytes) {
    terms[kCalls] = 1;
    terms[kAlone] = count;
    return terms;
  }
  terms[kCallsOnWorkers] = 1;
  if (bytes <= limits.stream_bytes) {
    terms[kCached] = count;
    return terms;
  }
  const auto cache = static_cast<double>(limits.cache_bytes);
  const double cold = limits.cache_bytes > 0 ? position(count, kHeld * cache, kNotHeld * cache) : 1;
  terms[kWarm] = count * (1 - cold);
  terms[kMemory] = count * cold;
  return terms;
}

CopyTerms copy_terms(const DirectCopies& direct, const PlacedEnd& source, const PlacedEnd& destination,
                     int64_t itemsize, const CopyLimits& limits) {
  CopyTerms terms = dense_copy_terms(direct.plan.bytes_copied(), direct.plan.copy_count(), limits);
  const auto bytes = static_cast<double>(direct.plan.bytes_copied());
  const double cold = bytes > 0 ? terms[kMemory] / bytes : 0;
  direct.plan.for_each_copy([&](const ReshardCopy& copy) {
    const Dims from = source.domains.domain(source.places[copy.source].tile).shape;
    const Dims to = destination.domains.domain(destination.places[copy.destination].tile).shape;
    const int64_t run = dense_bytes(copy.box.shape, {&from, &to}, itemsize);
    if (run == copy.bytes) return;
    if (dense_bytes(copy.box.shape, {&from}, itemsize) == run) add_short_runs(&terms, kRead, run, copy.bytes, cold);
    if (dense_bytes(copy.box.shape, {&to}, itemsize) == run) add_short_runs(&terms, kWritten, run, copy.bytes, cold);
  });
  return terms;
}

std::vector<MemoryBytes> bytes_by_memory(const DirectCopies& direct, const PlacedEnd& source,
                                         const PlacedEnd& destination) {
  std::map<std::pair<ArenaIndex, ArenaIndex>, int64_t> pairs;
  direct.plan.for_each_copy([&](const ReshardCopy& copy) {
    pairs[{source.places[copy.source].arena, destination.places[copy.destination].arena}] += copy.bytes;
  });
  std::vector<MemoryBytes> result;
  for (const auto& [pair, bytes] : pairs) result.push_back({pair.first, pair.second, bytes});
  return result;
}

ReshardCopyTerms reshard_copy_terms(const Sharding& source, const Sharding& destination, const Dims& shape,
                                    int64_t itemsize, const CopyLimits& limits) {
  for (const Sharding* sharding : {&source, &destination}) {
    if (sharding->is_abstract() || cluster_of(*sharding->devices()->client()) || !sharding->is_fully_addressable()) {
      throw_error(
          "{}: {} has devices of a cluster, of other processes, or none; expected devices of this process for seconds "
          "that a calibration gives; leave calibration= out",
          kPlanReshard, sharding->to_string());
    }
  }
  if (source.memory_kind() != destination.memory_kind()) {
    throw_error(
        "{}: the ends are in memory of two kinds, {} and {}, and calibration is given; expected the one kind that was "
        "measured; leave calibration= out",
        kPlanReshard, to_string(source.memory_kind()), to_string(destination.memory_kind()));
  }
  const PlacedCopies placed = placed_copies(source, destination, shape, itemsize, nullptr);
  return {copy_terms(placed.direct, placed.source, placed.destination, itemsize, limits),
          bytes_by_memory(placed.direct, placed.source, placed.destination)};
}

}  // namespace artifex_devices::planner
