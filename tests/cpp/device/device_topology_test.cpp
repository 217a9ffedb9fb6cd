// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/device/device_topology.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>
#include <iterator>

#include "artifex_devices/base/error.h"
#include "artifex_devices/base/wire.h"

namespace artifex_devices {
namespace {

using namespace std::string_literals;

ClientRef client_on(const std::string& machine, std::optional<int64_t> devices = std::nullopt) {
  return Client::make(Machine::from_synthetic(machine), {.num_devices = devices});
}

std::string topology_fault(const std::string& bytes) {
  try {
    DeviceTopology::deserialize(bytes);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "(no error)";
}

// A topology of two devices on one domain, of which single fields can be changed.
struct Parts {
  int64_t major = 1;
  int64_t device_count = 2;
  WireWriter node;
  WireWriter domain;
  WireWriter machine;
  std::vector<WireWriter> runs;

  Parts() {
    node.add_number(3, 1 << 30);
    node.add_packed(4, std::array<int64_t, 2>{0, 3});
    domain.add_packed(1, std::array<int64_t, 2>{0, 3});
    domain.add_packed(2, std::array<int64_t, 1>{0});
    domain.add_number(5, 4);
    machine.add_number(4, 4);
    runs.push_back(run(0, 2, 0));
  }
  static WireWriter run(int64_t first, int64_t count, int64_t domain, int64_t memory = 1 << 20) {
    WireWriter writer;
    writer.add_number(1, first);
    writer.add_number(2, count);
    writer.add_text(3, "cpu");
    writer.add_number(5, domain);
    writer.add_number(6, memory);
    for (const char* kind : {"device", "pinned_host", "unpinned_host"}) writer.add_item(7, kind);
    return writer;
  }
  std::string bytes() const {
    WireWriter all_of_machine;
    all_of_machine.add_item(2, node);
    all_of_machine.add_item(3, domain);
    WireWriter whole;
    whole.add_number(1, major);
    whole.add_text(2, "cpu");
    whole.add_item(4, all_of_machine.bytes() + machine.bytes());
    for (const WireWriter& each : runs) whole.add_item(5, each);
    whole.add_number(6, device_count);
    return whole.take();
  }
};

std::string fault_with(const std::function<void(Parts&)>& change) {
  Parts parts;
  change(parts);
  return topology_fault(parts.bytes());
}

#define EXPECT_FAULT(change, text)                             \
  {                                                            \
    const std::string fault = fault_with([](Parts& p) change); \
    EXPECT_NE(fault.find(text), std::string::npos) << fault;   \
  }

TEST(DeviceTopology, DescribesAllDevicesOfTheClient) {
  const auto client = client_on("numa:2(memory=4GB) core:2 pu:2", 8);
  const auto topology = DeviceTopology::of(*client, "version");
  EXPECT_EQ(topology.platform(), "cpu");
  EXPECT_EQ(topology.platform_version(), "version");
  EXPECT_EQ(topology.device_count(), 8);
  ASSERT_EQ(topology.devices().size(), 2U);
  const TopologyDevices& second = topology.devices()[1];
  EXPECT_EQ(second.first_id, 4);
  EXPECT_EQ(second.count, 4);
  EXPECT_EQ(second.memory_bytes, 1'000'000'000);
  EXPECT_EQ(topology.machine()->cpu_domains()[static_cast<size_t>(second.cpu_domain)].cpus.to_string(), "4-7");
  EXPECT_EQ(topology.machine()->counts().pus, 8);
  EXPECT_FALSE(topology.machine()->is_live());
  EXPECT_THROW(topology.machine()->to_xml(), Unavailable);
}

TEST(DeviceTopology, RoundTripsThroughBytes) {
  for (const std::string machine :
       {"pu:1", "numa:2 core:4 pu:2", "pack:2 [numa(memory=1GB)] [numa(memory=4GB)] core:4 pu:2", "numa:16 pu:1",
        "pack:3 numa:2 core:5 pu:6"}) {
    for (const int64_t devices : {1, 3, 8, 1000}) {
      const auto client = client_on(machine, devices);
      const auto topology = DeviceTopology::of(*client, "v");
      const auto back = DeviceTopology::deserialize(topology.serialize());
      EXPECT_EQ(back, topology);
      EXPECT_EQ(back.serialize(), topology.serialize());
      EXPECT_EQ(back.fingerprint(), topology.fingerprint());
      EXPECT_EQ(back.machine()->cpu_domains().size(), client->machine().cpu_domains().size());

      const ClientRef planned = back.make_compile_only_client();
      EXPECT_TRUE(planned->is_compile_only());
      ASSERT_EQ(planned->device_count(), devices);
      for (const DeviceId id : planned->device_ids()) {
        const Device& ours = *planned->device(id);
        const Device& theirs = *client->device(id);
        EXPECT_EQ(ours.domain().cpus, theirs.domain().cpus);
        EXPECT_EQ(ours.domain().nodes, theirs.domain().nodes);
        EXPECT_EQ(ours.memory_bytes(), theirs.memory_bytes());
      }
      EXPECT_EQ(DeviceTopology::of(*planned, "other"), topology);
    }
  }
}

TEST(DeviceTopology, SerializesCompactly) {
  EXPECT_LT(DeviceTopology::of(*client_on("numa:2 core:4 pu:2", 100000), "v").serialize().size(), 256U);
}

TEST(DeviceTopology, DiffersWhenMachineOrDevicesDiffer) {
  const auto topology = DeviceTopology::of(*client_on("numa:2 core:4 pu:2", 8), "v");
  for (const auto& other : {DeviceTopology::of(*client_on("numa:2 core:4 pu:2", 9), "v"),
                            DeviceTopology::of(*client_on("numa:2 core:4 pu:2", 8), "w"),
                            DeviceTopology::of(*client_on("numa:2 core:8 pu:1", 8), "v")}) {
    EXPECT_FALSE(other == topology);
    EXPECT_NE(other.fingerprint(), topology.fingerprint());
  }
}

TEST(DeviceTopology, ReadsTheFirstVersion) {
  std::ifstream file(std::string(ARTIFEX_TEST_DATA) + "/serialized/device_topology_v1.bin", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto topology = DeviceTopology::deserialize(bytes);
  EXPECT_EQ(topology.serialize(), bytes);
  EXPECT_EQ(topology.device_count(), 8);
  EXPECT_EQ(topology.platform_version(), "first version");
  EXPECT_EQ(topology.machine()->source(), "pack:2 [numa(memory=1GB)] [numa(memory=4GB)] core:4 pu:2");
  EXPECT_EQ(topology.machine()->numa_nodes()[1].memory_bytes, 4'000'000'000);
}

TEST(DeviceTopology, SkipsFieldsOfNewerVersions) {
  Parts parts;
  const auto plain = DeviceTopology::deserialize(parts.bytes());
  parts.node.add_text(1000, "from the future");
  parts.domain.add_number(1001, 7);
  parts.machine.add_packed(1002, std::array<int64_t, 2>{1, 2});
  parts.runs[0].add_item(1003, parts.node);
  EXPECT_EQ(DeviceTopology::deserialize(parts.bytes() + "\xfa\x3e\x02hi"), plain);
}

TEST(DeviceTopology, RefusesOtherVersions) {
  EXPECT_FAULT(
      { p.major = 2; },
      "DeviceTopology.deserialize: the bytes have major version 2; expected 1, which this version of artifex_devices "
      "can read; use a newer version of it");
  EXPECT_FAULT({ p.major = 0; }, "DeviceTopology: there is no major_version");
  EXPECT_NE(topology_fault("").find("there is no major_version"), std::string::npos);
}

TEST(DeviceTopology, RefusesInconsistentNumbers) {
  EXPECT_FAULT({ p.runs.push_back(Parts::run(1, 2, 0)); }, "device 1 is there twice");
  EXPECT_FAULT({ p.runs.push_back(Parts::run(3, 2, 0)); }, "device 2 is missing");
  EXPECT_FAULT({ p.runs.push_back(Parts::run(2, 0, 0)); }, "0 devices follow device 2");
  EXPECT_FAULT(
      { p.runs[0] = Parts::run(0, INT64_MAX, 0); }, "9223372036854775807 devices follow device 0; the total is 1");
  EXPECT_FAULT({ p.runs.push_back(Parts::run(2, 1, 1)); }, "device 2 is on CPU domain 1 of 1");
  EXPECT_FAULT({ p.runs[0] = Parts::run(0, 2, 0, -1); }, "DeviceRun: field 6 is -1, below 0");
  EXPECT_FAULT({ p.device_count = 3; }, "the bytes have 2 devices, and device_count says 3");
  EXPECT_FAULT({ p.runs.clear(); }, "there are 0 runs of devices");
  EXPECT_FAULT({ p.domain.add_number(4, 3); }, "CPU domain 0 names NUMA node 3, which is not there");
  EXPECT_FAULT({ p.machine.add_item(2, p.node); }, "NUMA node 0 is there twice");
  EXPECT_FAULT({ p.domain = WireWriter(); }, "CPU domain 0 has no CPU; CPU domain 0 has 0 cores");
  EXPECT_FAULT({ p.node.add_packed(4, (std::array<int64_t, 1>{9})); }, "NumaNode: a range of CPUs has no end");
  EXPECT_FAULT(
      { p.node.add_packed(4, (std::array<int64_t, 2>{9, 8})); }, "the CPUs 9-8 are not a separate, ascending range");
  EXPECT_FAULT(
      { p.node.add_packed(4, (std::array<int64_t, 2>{4, 8})); }, "the CPUs 4-8 are not a separate, ascending range");
  EXPECT_FAULT({ p.node.add_packed(4, (std::array<int64_t, 2>{9, INT64_MAX})); }, "the maximum is 1048575");
  EXPECT_NE(topology_fault(Parts().bytes() + "\x22\x00"s).find("there are two machines"), std::string::npos);
}

TEST(DeviceTopology, AllocatesNoMemoryForHostileCounts) {
  EXPECT_FAULT(
      {
        for (int i = 0; i < 5; ++i) {
          WireWriter node;
          node.add_number(1, i + 1);
          node.add_packed(4, std::array<int64_t, 2>{0, 1048575});
          p.machine.add_item(2, node);
        }
      },
      "the sets name more than 4194304 CPUs in all");
  EXPECT_FAULT(
      {
        for (int i = 0; i < 16385; ++i) p.machine.add_item(2, WireWriter());
      },
      "there are more than 16384 NUMA nodes");
  EXPECT_FAULT({ p.runs.assign((1 << 18) + 1, WireWriter()); }, "there are more than 262144 runs of devices");
  EXPECT_EQ(topology_fault(std::string((16 << 20) + 1, '\0')),
            "DeviceTopology.deserialize: there are 16777217 bytes; expected 16777216 at most; give what serialize() "
            "returned");
}

TEST(DeviceTopology, RefusesEveryTruncation) {
  const std::string bytes = DeviceTopology::of(*client_on("numa:2 core:4 pu:2", 8), "v").serialize();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(topology_fault(bytes.substr(0, size)), "(no error)") << size;
  }
}

TEST(DeviceTopology, ReadsOtherPlatformsWithoutCreatingClients) {
  std::string bytes = Parts().bytes();
  bytes.replace(bytes.find("cpu"), 3, "tpu");
  const auto topology = DeviceTopology::deserialize(bytes);
  EXPECT_EQ(topology.platform(), "tpu");
  try {
    topology.make_compile_only_client();
    ADD_FAILURE() << "no error";
  } catch (const Unavailable& error) {
    EXPECT_NE(std::string(error.what()).find("device 0 is of platform \"tpu\" and kind \"cpu\""), std::string::npos)
        << error.what();
  }
}

TEST(DeviceTopology, ReadsOtherDevicePlacementsWithoutCreatingClients) {
  Parts parts;
  parts.machine.add_number(5, 1 << 30);
  parts.runs[0] = Parts::run(0, 2, 0, 1 << 29);
  EXPECT_EQ(DeviceTopology::deserialize(parts.bytes()).make_compile_only_client()->device(DeviceId(1))->memory_bytes(),
            1 << 29);
  parts.runs[0] = Parts::run(0, 2, 0, 5);
  try {
    DeviceTopology::deserialize(parts.bytes()).make_compile_only_client();
    ADD_FAILURE() << "no error";
  } catch (const Unavailable& error) {
    EXPECT_STREQ(error.what(),
                 "_make_compile_only_devices: device 0 is on CPU domain 0 with 5 bytes in process 0 and has memory "
                 "kinds [device, pinned_host, unpinned_host]; expected CPU domain 0, 536870912 bytes, process 0 and "
                 "[device, pinned_host, unpinned_host], as this version spreads devices over such a machine; use the "
                 "version that made the topology");
  }
}

}  // namespace
}  // namespace artifex_devices
