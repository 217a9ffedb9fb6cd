// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/open_world.h"

#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/device/cluster_client.h"

namespace artifex_devices {
namespace {

ClientRef cpu_world() { return Client::make(Machine::from_synthetic("pack:1 numa:1 core:2 pu:1"), {.num_devices = 2}); }

ClusterRef pod() { return tpu_cluster("v5e", {2, 2}, 1, {}); }

TEST(OpenWorld, SkipsWorldsThatWereLeft) {
  const auto outer = std::make_shared<OpenWorld>(cpu_world(), nullptr);
  const auto inner = std::make_shared<OpenWorld>(cpu_world(), outer);
  EXPECT_EQ(skip_left(inner.get()), inner.get());
  inner->is_left = true;
  EXPECT_EQ(skip_left(inner.get()), outer.get());
  outer->is_left = true;
  EXPECT_EQ(skip_left(inner.get()), nullptr);
}

TEST(OpenWorld, IsLeftFromInsideOut) {
  const auto outer = std::make_shared<OpenWorld>(cpu_world(), nullptr);
  const auto inner = std::make_shared<OpenWorld>(cpu_world(), outer);
  check_innermost(*inner, inner.get());
  EXPECT_THROW(check_innermost(*outer, inner.get()), Unavailable);
  EXPECT_THROW(check_innermost(*outer, nullptr), Unavailable);
}

TEST(OpenWorld, FindsTheDevicesOfAPlatformInTheNearestWorldThatHasSome) {
  const auto outer = std::make_shared<OpenWorld>(cpu_world(), nullptr);
  const auto same = std::make_shared<OpenWorld>(cpu_world(), outer);
  EXPECT_EQ(client_of_platform("cpu", same.get()), same->client);
  EXPECT_EQ(client_of_platform("gpu", same.get()), nullptr);  // not those of this machine
  const auto planned = std::make_shared<OpenWorld>(make_cluster_client(pod()), outer);
  EXPECT_EQ(client_of_platform("tpu", planned.get()), planned->client);
  EXPECT_EQ(client_of_platform("cpu", planned.get()), nullptr);
}

TEST(ClusterClient, IsOneWhileItIsAlive) {
  const ClusterRef cluster = pod();
  std::shared_ptr<Client> client = cluster_client(cluster);
  EXPECT_EQ(cluster_client(cluster), client);
  const int64_t uid = client->uid();
  client.reset();
  EXPECT_NE(cluster_client(cluster)->uid(), uid);
}

}  // namespace
}  // namespace artifex_devices
