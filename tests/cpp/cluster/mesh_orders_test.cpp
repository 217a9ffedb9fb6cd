// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/cluster/mesh_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "artifex_devices/base/error.h"
#include "artifex_devices/cluster/cluster_presets.h"
#include "artifex_devices/cluster/mesh_explanation.h"

namespace artifex_devices {
namespace {

using Order = std::vector<int64_t>;

MeshDeviceTexts numbered() {
  const auto name = [](int64_t at) { return "D" + std::to_string(at); };
  return {.device = name,
          .device_kind = [](int64_t) { return std::string("TPU v4"); },
          .list = [](const Order& positions) { return std::to_string(positions.size()) + " devices"; }};
}

MeshDevices devices_of(const ClusterRef& cluster) {
  MeshDevices result{cluster->chip().platform, cluster->chip().device_kind, {}, -1, cluster, numbered()};
  for (int64_t id = 0; id < cluster->device_count(); ++id) {
    const ClusterPlace place = cluster->place_of(id);
    result.devices.push_back(
        {id, {place.coords[0], place.coords[1], place.coords[2]}, place.core_on_chip, place.slice});
  }
  return result;
}

MeshDevices tpus(const char* generation, const std::vector<int>& shape) {
  return devices_of(tpu_cluster(generation, shape, 1));
}

MeshDevices without_places(const char* platform, const Order& ids) {
  MeshDevices result{platform, "x", {}, 0, nullptr, numbered()};
  for (const int64_t id : ids) result.devices.push_back({id, {}, 0, 0});
  return result;
}

Order jax(const MeshDevices& devices, const Dims& shape, bool contiguous = false, bool split = false) {
  return jax_mesh_order(devices, shape, contiguous, split);
}

template <class E>
std::string text_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(JaxMeshOrder, SmallSlicesHaveKnownRings) {
  EXPECT_EQ(jax(tpus("v6e", {2, 2}), {2, 2}), (Order{0, 1, 3, 2}));
  EXPECT_EQ(jax(tpus("v5e", {4, 2}), {2, 4}), (Order{0, 1, 2, 3, 7, 6, 5, 4}));
  EXPECT_EQ(jax(tpus("v5e", {4, 4}), {16}), (Order{0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4}));
  EXPECT_EQ(jax(tpus("7x", {2, 2, 1}), {2, 4}), (Order{0, 1, 2, 3, 6, 7, 4, 5}));
}

TEST(JaxMeshOrder, WholeAxesOfATorusAreTakenFirst) {
  EXPECT_EQ(jax(tpus("v4", {2, 2, 4}), {4, 4}), (Order{0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}));
}

TEST(JaxMeshOrder, AxesAreSplitOnlyIfAllowed) {
  const MeshDevices devices = tpus("v5e", {4, 4});
  EXPECT_EQ(jax(devices, {2, 8}, false, true), (Order{0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15}));
  EXPECT_EQ(
      text_of<NotImplemented>([&] { jax(tpus("v4", {2, 2, 4}), {2, 2, 4}); }),
      "Failed to find assignment for logical_axis_index 1 of size 2 with remaining assignable mesh [0, 0, 4]. The "
      "size of each axis in your logical mesh must be equal to the product of some subset of the physical mesh "
      "axis sizes. E.g. logical mesh (4, 16) is compatible with physical mesh 4x4x4 since 4=4 and 16=4x4. If you "
      "want to split physical axes, set  allow_split_physical_axes to True.");
}

TEST(JaxMeshOrder, ContiguousSubmeshesTurnTheTorus) {
  const Order order = jax(tpus("v4", {4, 4, 4}), {16, 4}, true);
  EXPECT_EQ(Order(order.begin(), order.begin() + 8), (Order{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(
      text_of<InvalidArgument>([] { jax(tpus("v4", {4, 8, 8}), {256}, true); }),
      "create_device_mesh cannot create contiguous submeshes for mesh_shape (256,) and physical mesh topology (4, "
      "8, 8). Available mesh_shapes: [(64, 4), (4, 64)]");
  EXPECT_EQ(text_of<InvalidArgument>([] { jax(tpus("v4", {2, 2, 2}), {8}, true); }),
            "create_device_mesh cannot create contiguous submeshes for physical mesh topology (2, 2, 2)");
}

TEST(JaxMeshOrder, GpusAreSortedAndCpusStay) {
  EXPECT_EQ(jax(without_places("gpu", {5, 1, 4, 0}), {4}), (Order{3, 1, 2, 0}));
  EXPECT_EQ(jax(without_places("cpu", {5, 1, 4, 0}), {4}), (Order{0, 1, 2, 3}));
}

TEST(JaxMeshOrder, HolesAndSecondCoresAreRefusedWithJaxsTexts) {
  MeshDevices devices = tpus("v4", {2, 2, 1});
  devices.devices.pop_back();
  EXPECT_EQ(text_of<AssertionFailed>([&] { jax(devices, {3}); }),
            "jax_devices=3 devices dims=(2, 2, 1) cores_per_chip=1");
  MeshDevices cores = tpus("v4", {2, 2, 1});
  for (int64_t i = 0; i < 4; ++i) cores.devices[static_cast<size_t>(i)] = {i, {i / 2, 0, 0}, i % 2, 0};
  EXPECT_EQ(
      text_of<AssertionFailed>([&] { jax(cores, {4}); }),
      "Creating meshes for TPU >v3 requires one device per chip (\"megacore\" mode). Got device id 1 for a device "
      "of kind TPU v4: D1.");
  EXPECT_EQ(text_of<InvalidArgument>([] { jax(without_places("tpu", {0, 1}), {2}); }),
            "create_device_mesh: D0 has no coords; expected TPU devices with coords; set their platform to \"cpu\" or "
            "\"gpu\"");
}

TEST(ExactMeshOrder, FindsOrdersThatTheGreedyRuleDoesNot) {
  const Order order = exact_mesh_order(tpus("v4", {2, 2, 4}), {2, 2, 4}, {1, 1, 1}, false);
  EXPECT_EQ(order, (Order{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}));
}

TEST(ExactMeshOrder, RefusesOtherDevicesAndBadTraffic) {
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "expected TPU devices, got gpu ones", text_of<InvalidArgument>([] {
                        exact_mesh_order(without_places("gpu", {0, 1}), {2}, {1}, false);
                      }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "traffic is (-1); expected 1 finite numbers",
                      text_of<InvalidArgument>([] { exact_mesh_order(tpus("v4", {2, 2, 1}), {4}, {-1}, false); }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "no assignment of mesh_shape (2, 8) to the torus 4x4x1 by whole axes",
                      text_of<NotImplemented>([] { exact_mesh_order(tpus("v5e", {4, 4}), {2, 8}, {1, 1}, false); }));
}

TEST(HybridMeshOrder, LaysGranulesAlongTheOuterAxes) {
  EXPECT_EQ(hybrid_mesh_order({{0, 1}, {2, 3}}, {2, 1}, {1, 2}), (Order{0, 2, 1, 3}));
  EXPECT_EQ(hybrid_mesh_order({{0, 1, 2, 3}, {4, 5, 6, 7}}, {2, 2}, {2}), (Order{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(hybrid_mesh_order({{1, 0}, {3, 2}}, {2}, {2, 1}), (Order{1, 0, 3, 2}));
}

TEST(ExplainMesh, NamesTheLinksOfEachAxis) {
  const MeshDevices devices = tpus("v4", {4, 4, 4});
  MeshDevices ordered = devices;
  const Order order = jax(devices, {16, 4});
  for (size_t i = 0; i < order.size(); ++i) ordered.devices[i] = devices.devices[static_cast<size_t>(order[i])];
  const MeshExplanation found = explain_mesh(ordered, {16, 4}, {1e9, 1e9});
  EXPECT_EQ(found.title, "16x4 on TPU v4 4x4x4 (torus, wraps on x, y, z)");
  EXPECT_EQ(found.axes[0].links, "y: ring of 4 and z: ring of 4");
  EXPECT_EQ(found.axes[1].links, "x: ring of 4");
  EXPECT_DOUBLE_EQ(found.axes[1].bandwidth, 9e10);
  EXPECT_DOUBLE_EQ(found.axes[1].seconds, 1e9 * 0.75 / 9e10 + 2e-6);
  EXPECT_EQ(found.axes_by_id[1].links, "x: ring of 4");
}

TEST(ExplainMesh, RefusesUnknownNetworksAndDuplicates) {
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "the network of x devices is not known",
                      text_of<InvalidArgument>([] { explain_mesh(without_places("cpu", {0, 1}), {2}, {1}); }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "D0 is in the mesh 2 times",
                      text_of<InvalidArgument>([] { explain_mesh(without_places("cpu", {7, 7}), {2}, {1}); }));
}

TEST(ExplainMesh, PicturesNumberDevicesInTheirNodes) {
  MeshDevices devices = devices_of(gpu_cluster("h100", 2, {}));
  devices.without_coords = 0;
  const MeshExplanation found = explain_mesh(devices, {2, 8}, {1, 1});
  EXPECT_EQ(found.network, "switch");
  EXPECT_EQ(found.places[9].coords[0], 1);
  EXPECT_EQ(found.places[9].slice_index, 1);
}

}  // namespace
}  // namespace artifex_devices
