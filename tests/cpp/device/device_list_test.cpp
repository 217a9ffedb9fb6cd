// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_list.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"

namespace artifex_devices {
namespace {

std::string list_error(std::vector<Device*> devices) {
  try {
    DeviceList::make(std::move(devices), "make_mesh");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "(no error)";
}

class DeviceListTest : public testing::Test {
 protected:
  std::vector<Device*> pick(const std::vector<int64_t>& ids) const {
    std::vector<Device*> devices;
    for (const int64_t id : ids) devices.push_back(client_->device(DeviceId(id)));
    return devices;
  }
  ClientRef client_ = Client::make(Machine::from_synthetic("numa:2 pu:4"), {.num_devices = 8});
};

TEST_F(DeviceListTest, KeepsTheOrderAndTheClient) {
  const auto list = DeviceList::make(pick({3, 1, 2}), "make_mesh");
  EXPECT_EQ(list->size(), 3);
  EXPECT_EQ((*list)[Position(0)]->id(), DeviceId(3));
  EXPECT_EQ((*list)[Position(2)]->id(), DeviceId(2));
  EXPECT_EQ(list->client(), client_);
  EXPECT_TRUE(list->is_fully_addressable());
  const std::weak_ptr<Client> client = client_;
  client_.reset();
  EXPECT_FALSE(client.expired());
  EXPECT_EQ(list->front()->to_string(), "cpu:3");
}

TEST_F(DeviceListTest, HashesEqualListsEqually) {
  const auto a = DeviceList::make(pick({0, 1, 2}), "make_mesh");
  const auto b = DeviceList::make(pick({0, 1, 2}), "make_mesh");
  const auto c = DeviceList::make(pick({0, 2, 1}), "make_mesh");
  const auto other = Client::make(Machine::from_synthetic("numa:2 pu:4"), {.num_devices = 8});
  const auto d = DeviceList::make({other->device(DeviceId(0)), other->device(DeviceId(1)), other->device(DeviceId(2))},
                                  "make_mesh");
  EXPECT_TRUE(*a == *b);
  EXPECT_EQ(a->hash(), b->hash());
  EXPECT_FALSE(*a == *c);
  EXPECT_FALSE(*a == *d);
  EXPECT_NE(a->hash(), d->hash());
}

TEST_F(DeviceListTest, ReportsWhetherItUsesOneArena) {
  EXPECT_TRUE(DeviceList::make(pick({0, 1, 2, 3}), "make_mesh")->on_one_arena());
  EXPECT_FALSE(DeviceList::make(pick({3, 4}), "make_mesh")->on_one_arena());
  EXPECT_TRUE(DeviceList::make(pick({7, 4}), "make_mesh")->on_one_arena());
}

TEST_F(DeviceListTest, ContainsExactlyItsDevices) {
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>{2, 3, 4}, std::vector<int64_t>{4, 2, 3}, std::vector<int64_t>{6}}) {
    const auto list = DeviceList::make(pick(ids), "make_mesh");
    for (int64_t id = 0; id < 8; ++id) {
      EXPECT_EQ(list->contains(client_->device(DeviceId(id))), std::ranges::find(ids, id) != ids.end());
    }
    const auto other = Client::make(Machine::from_synthetic("pu:4"), {.num_devices = 8});
    EXPECT_FALSE(list->contains(other->device(DeviceId(ids[0]))));
    EXPECT_FALSE(list->contains(nullptr));
  }
}

TEST_F(DeviceListTest, RefusesAnEmptyList) {
  EXPECT_EQ(list_error({}), "make_mesh: the list of devices is empty; give at least one device");
}

TEST_F(DeviceListTest, RefusesDuplicatesAndNamesThem) {
  const std::string one = list_error(pick({0, 1, 1, 2}));
  EXPECT_NE(one.find("one device is in the list of 4 devices more than once: cpu:1;"), std::string::npos) << one;
  const std::string two = list_error(pick({5, 0, 5, 0, 5}));
  EXPECT_NE(two.find("2 devices are in the list of 5 devices more than once: cpu:0, cpu:5;"), std::string::npos) << two;
}

TEST_F(DeviceListTest, ReturnsThePositionOfADevice) {
  const auto other = Client::make(Machine::from_synthetic("pu:4"), {.num_devices = 8});
  const auto range = DeviceList::make(pick({2, 3, 4}), "test");
  EXPECT_EQ(range->position_of(client_->device(DeviceId(2))), Position(0));
  EXPECT_EQ(range->position_of(client_->device(DeviceId(4))), Position(2));
  const auto mixed = DeviceList::make(pick({6, 0, 3}), "test");
  EXPECT_EQ(mixed->position_of(client_->device(DeviceId(3))), Position(2));
  for (const auto& list : {range, mixed}) {
    for (const Device* absent :
         {client_->device(DeviceId(1)), client_->device(DeviceId(7)), other->device(DeviceId(3))}) {
      EXPECT_TRUE(list->position_of(absent).is_none());
      EXPECT_FALSE(list->contains(absent));
    }
    EXPECT_TRUE(list->position_of(nullptr).is_none());
  }
}

TEST_F(DeviceListTest, RefusesDevicesOfDifferentClients) {
  const auto other = Client::make(Machine::from_synthetic("pu:4"), {.num_devices = 8});
  const std::string message = list_error({client_->device(DeviceId(0)), other->device(DeviceId(1))});
  EXPECT_NE(message.find("make_mesh: the devices are of different clients"), std::string::npos) << message;
  EXPECT_NE(message.find("cpu:1 at position 1"), std::string::npos) << message;
  EXPECT_NE(list_error({client_->device(DeviceId(0)), nullptr}).find("device 1 of 2 is null"), std::string::npos);
}

TEST_F(DeviceListTest, FindsDevicesByPlatformAndId) {
  EXPECT_EQ(find_devices(*client_, "cpu", {DeviceId(3), DeviceId(0)}, "unpickle"), pick({3, 0}));
  const auto message = [&](const std::string& platform, const std::vector<int64_t>& ids) {
    try {
      find_devices(*client_, platform, {ids.begin(), ids.end()}, "unpickle");
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("(no error)");
  };
  EXPECT_EQ(message("cpu", {1, 8}),
            "unpickle: device cpu:8 is not here; expected cpu:0 to cpu:7, the devices of this world; open a world that "
            "has it, such as `with simulate(9):`, and try again");
  EXPECT_EQ(message("tpu", {0, 1, 2, 3, 4, 5, 6, 7, 8}),
            "unpickle: devices tpu:0, tpu:1, tpu:2, tpu:3, tpu:4, tpu:5, tpu:6, tpu:7, ... (9 in all) are not here; "
            "expected cpu:0 to cpu:7, the devices of this world; open a world that has them, such as `with "
            "simulate(9):`, and try again");
}

}  // namespace
}  // namespace artifex_devices
