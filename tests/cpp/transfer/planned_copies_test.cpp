// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/planned_copies.h"

#include <gtest/gtest.h>

#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

/// The memory of one end, all of whose buffers are in this process.
PlannedCopies::End end_of(const ArrayRef& array, const WorldPlaces& places) {
  PlannedCopies::End end{IdVector<PlaceId, std::byte*>(places.places.size()),
                         IdVector<PlaceId, LaneId>(places.places.size(), kAnyLane), nullptr};
  for (const PlaceId i : end.data.ids()) end.data[i] = array->storage()->device_data(places.local_buffers[i]);
  return end;
}

TEST(PlannedCopies, AreListedOnlyWhereTheyAreFew) {
  test::Random random(8);
  const int64_t count = 256;  // 65,536 pairs of devices
  for (const int64_t devices : {int64_t{8}, count}) {
    const auto world = test::make_world(4, devices);
    const ShardingRef rows = test::named(world, {devices}, {"a"});
    const ShardingRef columns = test::named(world, {devices}, {"", "a"});
    const HostView value = test::dense(random, {count, 2 * count}, DType::kInt8);
    const ArrayRef source = device_put(value, rows, true);
    const ArrayRef result = device_put(test::dense(random, {count, 2 * count}, DType::kInt8), columns, true);
    const WorldPlaces from(*rows);
    const WorldPlaces to(*columns);
    const auto plan = make_plan(*source, *columns, from, to, false);
    CopyBatch batch;
    PlannedCopies::add_to(
        &batch, std::make_shared<const PlannedCopies>(plan, end_of(source, from), end_of(result, to), ProcessIndex(0)),
        nullptr);
    EXPECT_EQ(batch.bytes(), plan->bytes_copied());
    EXPECT_EQ(batch.listed().size(), devices == count ? 0U : 64U);
    host_executor().run(batch);
    test::expect_shards(result, value);
  }
}

}  // namespace
}  // namespace artifex_devices
