// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "artifex_devices/base/error.h"
#include "artifex_devices/sharding/mesh.h"
#include "worlds.h"

namespace artifex_devices {
namespace {

/// The second of two processes with four devices each.
ClientRef second_process() {
  const auto machine = Machine::from_synthetic("pack:2 [numa] core:2 pu:1");
  ClientOptions options;
  options.processes = {Client::describe(*machine, 4), Client::describe(*machine, 4)};
  options.process_index = ProcessIndex(1);
  options.num_devices = 4;
  return Client::make(machine, options);
}

MeshRef mesh_over(const ClientRef& client, const Dims& sizes, const std::vector<int64_t>& ids) {
  std::vector<Device*> devices;
  for (const int64_t id : ids) devices.push_back(client->device(DeviceId(id)));
  return make_mesh(sizes, {AxisName("x"), AxisName("y")}, {}, devices, "test");
}

TEST(LocalMesh, IsTheMeshItselfInOneProcess) {
  const MeshRef mesh = mesh_of(world_of(8), {2, 4}, {"x", "y"});
  EXPECT_EQ(local_mesh(mesh), mesh);
}

TEST(LocalMesh, IsTheBoxOfThisProcess) {
  const ClientRef client = second_process();
  const MeshRef rows = local_mesh(mesh_over(client, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(rows->to_string(), "Mesh('x': 1, 'y': 4, axis_types=(Auto, Auto))");
  EXPECT_EQ(rows->devices()->front(), client->device(DeviceId(4)));
  const MeshRef columns = local_mesh(mesh_over(client, {4, 2}, {0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(columns->abstract_mesh().axis_sizes(), (Dims{4, 1}));
  EXPECT_EQ((*columns->devices())[Position(3)], client->device(DeviceId(7)));
}

TEST(LocalMesh, MustBeABoxWithADevice) {
  const ClientRef client = second_process();
  EXPECT_THROW(local_mesh(mesh_over(client, {2, 4}, {0, 4, 1, 5, 6, 2, 7, 3})), InvalidArgument);
  EXPECT_THROW(local_mesh(mesh_over(client, {2, 2}, {0, 1, 2, 3})), InvalidArgument);
}

TEST(MakeMesh, TakesTheFirstDevicesOfAClient) {
  const ClientRef client = world_of(8);
  const MeshRef mesh = make_mesh({2, 2}, {AxisName("x"), AxisName("y")}, {}, *client, "make_mesh");
  EXPECT_EQ(mesh, mesh_of(client, {2, 2}, {"x", "y"}));
  EXPECT_THROW(make_mesh({3, 3}, {AxisName("x"), AxisName("y")}, {}, *client, "make_mesh"), InvalidArgument);
  EXPECT_THROW(make_mesh({0, 3}, {AxisName("x"), AxisName("y")}, {}, *client, "make_mesh"), InvalidArgument);
}

}  // namespace
}  // namespace artifex_devices
