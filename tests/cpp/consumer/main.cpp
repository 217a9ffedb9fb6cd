// SPDX-License-Identifier: Apache-2.0
// A C++ program that places an array on eight CPU devices, reshards it, reads it back and checks every value.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "artifex_devices/array/array.h"
#include "artifex_devices/base/error.h"
#include "artifex_devices/device/client.h"
#include "artifex_devices/sharding/named_sharding.h"
#include "artifex_devices/topology/machine.h"
#include "artifex_devices/transfer/device_get.h"
#include "artifex_devices/transfer/device_put.h"
#include "artifex_devices/transfer/reshard.h"
#include "artifex_devices/transfer/transfer_recording.h"

namespace ad = artifex_devices;

namespace {

void check(bool is_right, const char* what) {
  std::printf("%s: %s\n", is_right ? "ok" : "WRONG", what);
  if (!is_right) std::exit(EXIT_FAILURE);
}

ad::SpecEntry over(const char* axis) { return ad::SpecEntry(ad::AxisName(axis)); }

bool has_values(const ad::HostView& view, const std::vector<float>& values) {
  return std::memcmp(view.data, values.data(), values.size() * sizeof(float)) == 0;
}

}  // namespace

int main() {
  const auto machine = ad::Machine::from_synthetic("pack:2 numa:1 core:4 pu:1");
  const ad::ClientRef client = ad::Client::make(machine, {.num_devices = 8});
  std::vector<ad::Device*> devices;
  for (const ad::DeviceId id : client->device_ids()) devices.push_back(client->device(id));
  const ad::MeshRef mesh =
      ad::make_mesh({4, 2}, {ad::AxisName("data"), ad::AxisName("model")}, {}, devices, "consumer");
  const auto blocks = ad::NamedSharding::make(mesh, ad::PartitionSpec({over("data"), over("model")}));
  const auto columns = ad::NamedSharding::make(mesh, ad::PartitionSpec({ad::SpecEntry(), over("data")}));

  std::vector<float> values(8 * 12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const ad::HostView host{.data = values.data(), .shape = {8, 12}, .byte_strides = {48, 4}};

  const ad::ArrayRef array = ad::device_put(host, blocks, true);
  const ad::IndexDomain shard =
      array->sharding()->shards(array->shape(), "consumer")[ad::BufferId(3)].box;  // row 1, column 1
  check(shard.origin == ad::Dims{2, 6} && shard.shape == ad::Dims{2, 6}, "the shard of device 3 begins at (2, 6)");
  check(has_values(*ad::device_get(array), values), "device_get returns what device_put placed");

  ad::TransferRecording recording;
  const ad::ArrayRef moved = ad::reshard(array, columns, {});
  recording.stop();
  check(has_values(*ad::device_get(moved), values), "device_get returns the same values after reshard");
  check(columns->shards(moved->shape(), "consumer").shard_shape() == ad::Dims{8, 3},
        "the shards of the new sharding are columns");
  int64_t copied = 0;
  for (const auto& [route, count] : recording.routes()) copied += count.bytes;
  check(copied == ad::plan_of_reshard(*array, *columns).bytes_copied(), "reshard copied the bytes of its plan");

  std::string message;
  try {
    ad::device_put({.data = values.data(), .shape = {6, 16}, .byte_strides = {64, 4}}, blocks, true);
  } catch (const ad::IndivisibleError& error) {
    message = error.what();
  }
  std::printf("%s\n", message.c_str());
  check(message.find("dimension 0") != std::string::npos && message.find('6') != std::string::npos,
        "six rows over four devices raise IndivisibleError, which names the dimension and its size");
  return EXIT_SUCCESS;
}
