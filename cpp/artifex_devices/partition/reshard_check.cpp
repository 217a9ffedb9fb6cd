// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/partition/reshard_check.h"

#include "artifex_devices/base/throw_error.h"

namespace artifex_devices {

bool check_reshard(const ShardDomains& source, const ShardDomains& destination, int64_t itemsize,
                   std::string_view operation) {
  if (source.shape() != destination.shape()) {
    throw_error(
        "{}: source and destination differ in shape; expected equal ones, got {} and {}; plan for one array at a time",
        operation, to_string(source.shape()), to_string(destination.shape()));
  }
  if (itemsize < 1)
    throw_error("{}: itemsize is {}; expected 1 or more; give the bytes of one element", operation, itemsize);
  const int64_t size = checked_product(source.shape(), operation);
  if (!checked_mul(size, itemsize)) {
    throw_error("{}: shape {} times itemsize {} does not fit 63 bits; expected at most {} bytes; use a smaller array",
                operation, to_string(source.shape()), itemsize, INT64_MAX);
  }
  return size > 0;
}

void add_bytes(int64_t* total, int64_t bytes, int64_t times, std::string_view operation) {
  const auto all = checked_mul(bytes, times);
  const auto sum = all ? checked_add(*total, *all) : std::nullopt;
  if (!sum) {
    throw_error(
        "{}: the bytes of all destination shards do not fit 63 bits; expected at most {}; use a smaller array or fewer "
        "replicas",
        operation, INT64_MAX);
  }
  *total = *sum;
}

}  // namespace artifex_devices
