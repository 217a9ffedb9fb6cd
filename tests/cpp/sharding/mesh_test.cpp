// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/sharding/mesh.h"

#include <gtest/gtest.h>

#include <thread>

#include "worlds.h"

namespace artifex_devices {
namespace {

TEST(Mesh, PrintsAsJax) {
  const ClientRef client = world_of(8);
  const MeshRef mesh = mesh_of(client, {2, 4}, {"x", "y"});
  EXPECT_EQ(mesh->to_string(), "Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto))");
  EXPECT_EQ(mesh->repr(), "Mesh(axis_sizes=(2, 4), axis_names=('x', 'y'), axis_types=(Auto, Auto))");
  EXPECT_EQ(mesh_of(client, {8}, {"x"})->repr(), "Mesh(axis_sizes=(8,), axis_names=('x',), axis_types=(Auto,))");
  EXPECT_EQ(mesh_of(client, {8}, {"x"})->to_string(), "Mesh('x': 8, axis_types=(Auto,))");
  EXPECT_EQ(Mesh::make_empty()->to_string(), "Mesh()");
  EXPECT_EQ(Mesh::make_empty()->repr(), "Mesh(axis_sizes=(), axis_names=())");
  EXPECT_EQ(mesh_of(client, {}, {})->repr(), "Mesh(axis_sizes=(), axis_names=(), axis_types=())");
}

TEST(Mesh, HoldsDevicesRowMajor) {
  const ClientRef client = world_of(8);
  const MeshRef mesh = mesh_of(client, {2, 4}, {"x", "y"});
  EXPECT_EQ(mesh->size(), 8);
  EXPECT_FALSE(mesh->empty());
  EXPECT_FALSE(mesh->is_multi_process());
  EXPECT_EQ((*mesh->devices())[Position(5)], client->device(DeviceId(5)));
}

TEST(Mesh, HasNoDevicesWhenEmpty) {
  EXPECT_TRUE(Mesh::make_empty()->empty());
  EXPECT_EQ(Mesh::make_empty()->size(), 0);
  EXPECT_EQ(Mesh::make_empty()->devices(), nullptr);
  EXPECT_EQ(Mesh::make_empty(), Mesh::make_empty());
  EXPECT_EQ(*Mesh::make_empty(), *Mesh::make_empty());
  EXPECT_FALSE(*Mesh::make_empty() == *mesh_of(world_of(1), {}, {}));
}

TEST(Mesh, IsOneObjectForEqualMeshes) {
  const ClientRef client = world_of(8);
  const int64_t before = Mesh::live_count();
  {
    const MeshRef a = mesh_of(client, {2, 4}, {"x", "y"});
    const MeshRef b = mesh_of(client, {2, 4}, {"x", "y"});
    EXPECT_EQ(a, b);
    EXPECT_EQ(Mesh::live_count(), before + 1);
    EXPECT_NE(a, mesh_of(client, {4, 2}, {"x", "y"}));
    EXPECT_NE(a, mesh_of(client, {2, 4}, {"y", "x"}));
    EXPECT_NE(
        a, make_mesh({2, 4}, names({"x", "y"}), {AxisType::kExplicit, AxisType::kExplicit}, all_devices(client), "t"));
    std::vector<Device*> reversed = all_devices(client);
    std::ranges::reverse(reversed);
    const MeshRef other = make_mesh({2, 4}, names({"x", "y"}), {}, reversed, "make_mesh");
    EXPECT_NE(a, other);
    EXPECT_FALSE(*a == *other);
    EXPECT_EQ(Mesh::live_count(), before + 2);
  }
  EXPECT_EQ(Mesh::live_count(), before);
}

TEST(Mesh, DiffersBetweenClients) {
  EXPECT_FALSE(*mesh_of(world_of(2), {2}, {"x"}) == *mesh_of(world_of(2), {2}, {"x"}));
}

TEST(Mesh, KeepsItsClientAlive) {
  ClientRef client = world_of(2);
  const std::weak_ptr<Client> watch = client;
  MeshRef mesh = mesh_of(client, {2}, {"x"});
  client.reset();
  ASSERT_FALSE(watch.expired());
  EXPECT_EQ((*mesh->devices())[Position(1)]->to_string(), "cpu:1");
  mesh.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Mesh, IsInternedAcrossThreads) {
  const ClientRef client = world_of(4);
  const int64_t before = Mesh::live_count();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const MeshRef a = mesh_of(client, {2, 2}, {"x", "y"});
        const MeshRef b = mesh_of(client, {2, 2}, {"x", "y"});
        if (a != b) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Mesh::live_count(), before);
}

TEST(Mesh, RefusesAWrongNumberOfDevices) {
  const ClientRef client = world_of(3);
  const auto list = DeviceList::make(all_devices(client), "Mesh");
  EXPECT_EQ(message_of<InvalidArgument>([&] { Mesh::make(AbstractMesh(names({"x", "y"}), {2, 2}), list, "Mesh"); }),
            "Mesh: a mesh of axes ('x': 2, 'y': 2) has 4 positions but 3 devices were given; expected one device for "
            "each position; change the axis sizes or the devices");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "0 devices were given", message_of<InvalidArgument>([&] {
                        Mesh::make(AbstractMesh(names({"x"}), {2}), nullptr, "Mesh");
                      }));
}

TEST(MakeMesh, TakesTheFirstDevices) {
  const ClientRef client = world_of(8);
  const MeshRef mesh = mesh_of(client, {3}, {"x"});
  EXPECT_EQ(mesh->size(), 3);
  EXPECT_EQ((*mesh->devices())[Position(2)]->id(), DeviceId(2));
}

TEST(MakeMesh, ReportsBothNumbersWhenDevicesAreMissing) {
  const ClientRef client = world_of(8);
  EXPECT_EQ(message_of<InvalidArgument>([&] { mesh_of(client, {16}, {"x"}); }),
            "make_mesh: Number of devices 8 must be >= the product of mesh_shape (16,); expected at least 16 devices, "
            "got 8; use a smaller mesh, simulate more devices (`with ad.simulate(16):`), or set "
            "JAX_NUM_CPU_DEVICES=16 before the program starts");
}

TEST(MakeMesh, RefusesBadAxes) {
  const ClientRef client = world_of(8);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "axis name 'x' is given more than once",
                      message_of<InvalidArgument>([&] { mesh_of(client, {2, 4}, {"x", "x"}); }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "axis 'x' has size -4",
                      message_of<InvalidArgument>([&] { mesh_of(client, {-4}, {"x"}); }));
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "1 axis names but 2 axis sizes (2, 4)",
                      message_of<InvalidArgument>([&] { mesh_of(client, {2, 4}, {"x"}); }));
}

TEST(MakeMesh, KeepsTheOrderOfTheDevices) {
  const ClientRef client = world_of(4, 2);
  std::vector<Device*> devices = all_devices(client);
  std::swap(devices[0], devices[3]);
  EXPECT_EQ(make_mesh({2, 2}, names({"x", "y"}), {}, devices, "make_mesh")->devices()->devices(), devices);
}

}  // namespace
}  // namespace artifex_devices
