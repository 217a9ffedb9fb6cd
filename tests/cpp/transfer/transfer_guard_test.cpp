// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/transfer/transfer_guard.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "artifex_devices/base/error.h"
#include "host_arrays.h"

namespace artifex_devices {
namespace {

using test::error_of;

constexpr auto kAllow = GuardVerdict::kAllow;
constexpr auto kLog = GuardVerdict::kLog;
constexpr auto kRefuse = GuardVerdict::kRefuse;
constexpr TransferDirection kDirections[] = {TransferDirection::kHostToDevice, TransferDirection::kDeviceToDevice,
                                             TransferDirection::kDeviceToHost};

TEST(TransferGuard, DecidesByLevelDirectionAndWhetherTheTransferIsExplicit) {
  struct Case {
    GuardLevel level;
    GuardVerdict when_implicit;
    GuardVerdict when_explicit;
  };
  for (const Case& each : {Case{GuardLevel::kAllow, kAllow, kAllow}, Case{GuardLevel::kLog, kLog, kAllow},
                           Case{GuardLevel::kDisallow, kRefuse, kAllow}, Case{GuardLevel::kLogExplicit, kLog, kLog},
                           Case{GuardLevel::kDisallowExplicit, kRefuse, kRefuse}}) {
    for (const TransferDirection direction : kDirections) {
      TransferGuards guards;
      guards.levels[static_cast<size_t>(direction)] = each.level;
      SCOPED_TRACE(testing::Message() << static_cast<int>(each.level) << " " << static_cast<int>(direction));
      EXPECT_EQ(guard_verdict(guards, direction, false), each.when_implicit);
      EXPECT_EQ(guard_verdict(guards, direction, true), each.when_explicit);
      for (const TransferDirection other : kDirections) {  // the other directions keep their default
        if (other == direction) continue;
        EXPECT_EQ(guard_verdict(guards, other, false), kAllow);
      }
    }
  }
}

TEST(TransferGuard, NamesLevelsAndDirections) {
  EXPECT_EQ(guard_level_from_name("allow"), GuardLevel::kAllow);
  EXPECT_EQ(guard_level_from_name("disallow_explicit"), GuardLevel::kDisallowExplicit);
  EXPECT_EQ(guard_level_from_name("log_explicit_device_put"), GuardLevel::kLogExplicit);
  EXPECT_EQ(guard_level_from_name("never"), std::nullopt);
  EXPECT_EQ(transfer_direction_from_name("device_to_device"), TransferDirection::kDeviceToDevice);
  EXPECT_EQ(transfer_direction_from_name("device-to-host"), TransferDirection::kDeviceToHost);
  EXPECT_EQ(error_of<InvalidArgument>([] { transfer_direction_from_name("up"); }),
            "check_transfer: direction is \"up\"; expected one of host-to-device, device-to-device, device-to-host");
}

TransferDescription description() { return {"device_put", "(8,)", "float32", "cpu:0", "cpu:1"}; }

TEST(TransferGuard, ReportsToTheLogOfTheCaller) {
  static std::vector<std::string> lines;
  lines.clear();
  TransferGuards guards;
  guards.levels.fill(GuardLevel::kLog);
  check_transfer(guards, TransferDirection::kHostToDevice, false, description);  // without a log: reports nothing
  guards.log = [](const std::string& line) { lines.push_back(line); };
  check_transfer(guards, TransferDirection::kHostToDevice, true, description);
  EXPECT_TRUE(lines.empty());
  check_transfer(guards, TransferDirection::kHostToDevice, false, description);
  EXPECT_EQ(lines, std::vector<std::string>{
                       "device_put: implicit host-to-device transfer of a (8,) float32 from cpu:0 to cpu:1"});
}

TEST(TransferGuard, DescribesATransferOnlyWhereAMessageIsNeeded) {
  TransferGuards guards;
  int described = 0;
  const auto describe = [&] {
    ++described;
    return description();
  };
  check_transfer(guards, TransferDirection::kDeviceToDevice, false, describe);
  EXPECT_EQ(described, 0);
  guards.levels.fill(GuardLevel::kDisallow);
  EXPECT_EQ(error_of<TransferGuardError>(
                [&] { check_transfer(guards, TransferDirection::kDeviceToDevice, false, describe); }),
            "device_put: disallowed implicit device-to-device transfer of a (8,) float32 from cpu:0 to cpu:1; expected "
            "an explicit transfer, got the guard level \"disallow\"; move the data by device_put first, or put it "
            "under `with transfer_guard_device_to_device(\"allow\"):`");
  EXPECT_EQ(described, 1);
}

TEST(TransferGuard, EndsWithTheRepairOfTheOperation) {
  TransferGuards guards;
  guards.levels.fill(GuardLevel::kDisallow);
  TransferDescription read = {"index", "(2,)", "int64", "gpu:0", "the host"};
  const auto refuse = [&] { check_transfer(guards, TransferDirection::kDeviceToHost, false, [&] { return read; }); };
  const std::string allow = ", or put it under `with transfer_guard_device_to_host(\"allow\"):`";
  EXPECT_TRUE(error_of<TransferGuardError>(refuse).ends_with("; read it by device_get" + allow));
  read.repair = "read i first: i = ad.device_get(i)";
  EXPECT_TRUE(error_of<TransferGuardError>(refuse).ends_with("; read i first: i = ad.device_get(i)" + allow));
}

}  // namespace
}  // namespace artifex_devices
