// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "artifex_devices/topology/folder_entries.h"
#include "artifex_devices/topology/kernel_files.h"
#include "artifex_devices/topology/pci_functions.h"

// The PCI bus and the KFD in Linux's sysfs. Files there are small; longer ones are truncated.
namespace artifex_devices {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 8192;

std::string text_of(const fs::path& path) {
  std::string text = read_kernel_file(path.string(), kMostBytes).text;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// "0x10de"
std::optional<uint32_t> hexadecimal(const std::string& text) {
  const char* first = text.data() + (text.starts_with("0x") ? 2 : 0);
  const char* last = text.data() + text.size();
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(first, last, value, 16);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

std::vector<fs::path> entries_of(const fs::path& folder, std::error_code& error) {
  std::vector<fs::path> found;
  for (const std::string& name : folder_entries(folder.string(), error)) found.push_back(folder / name);
  return found;
}

// Lines "name value" of a file of the KFD.
std::map<std::string, uint64_t> properties_of(const fs::path& path) {
  std::map<std::string, uint64_t> values;
  const std::string text = text_of(path);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const size_t blank = text.find(' ', start);
    if (blank < end) {
      uint64_t value = 0;
      if (std::from_chars(text.data() + blank + 1, text.data() + end, value).ec == std::errc{}) {
        values[text.substr(start, blank - start)] = value;
      }
    }
    start = end + 1;
  }
  return values;
}

std::optional<int64_t> video_memory(const fs::path& node) {
  constexpr uint64_t kPublic = 1, kPrivate = 2, kMost = uint64_t{1} << 50;  // heap types of memory on the GPU
  std::error_code error;
  uint64_t bytes = 0;
  for (const fs::path& bank : entries_of(node / "mem_banks", error)) {
    auto values = properties_of(bank / "properties");
    if (values["heap_type"] == kPublic || values["heap_type"] == kPrivate) {
      bytes = std::min(bytes + std::min(values["size_in_bytes"], kMost), kMost);
    }
  }
  if (bytes == 0) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

// 90402 is gfx942, 90010 is gfx90a.
std::string architecture(uint64_t version) {
  if (version == 0 || version > 999999) return "";
  return fmt::format("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string pci_address(uint32_t domain, uint32_t bus, uint32_t device, uint32_t function) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::vector<PciFunction> read_sysfs_pci(const std::string& root, std::vector<std::string>& problems) {
  const fs::path folder = root + "/sys/bus/pci/devices";
  std::error_code error;
  std::vector<PciFunction> found;
  for (const fs::path& entry : entries_of(folder, error)) {
    const auto vendor = hexadecimal(text_of(entry / "vendor")), device = hexadecimal(text_of(entry / "device")),
               kind = hexadecimal(text_of(entry / "class"));
    if (!vendor || !device || !kind || *vendor > 0xffff || *device > 0xffff) {
      problems.push_back(fmt::format("{} has no readable vendor, device and class", entry.string()));
      continue;
    }
    PciFunction function;
    function.pci_class = static_cast<uint16_t>(*kind >> 8 & 0xffff);
    function.facts.pci_address = entry.filename().string();
    function.facts.vendor_id = static_cast<uint16_t>(*vendor);
    function.facts.device_id = static_cast<uint16_t>(*device);
    const std::string node = text_of(entry / "numa_node");
    int index = -1;
    std::from_chars(node.data(), node.data() + node.size(), index);
    if (index >= 0) function.facts.numa_os_indexes.push_back(index);
    found.push_back(std::move(function));
  }
  if (error) problems.push_back(fmt::format("{} cannot be read ({})", folder.string(), error.message()));
  return found;
}

std::map<std::string, KfdGpu> read_kfd_gpus(const std::string& root) {
  std::map<std::string, KfdGpu> gpus;
  std::error_code error;
  for (const fs::path& node : entries_of(root + "/sys/class/kfd/kfd/topology/nodes", error)) {
    auto values = properties_of(node / "properties");
    if (values["simd_count"] == 0) continue;  // a CPU
    const uint64_t location = values["location_id"];
    const std::string address =
        pci_address(static_cast<uint32_t>(values["domain"]), static_cast<uint32_t>(location >> 8 & 0xff),
                    static_cast<uint32_t>(location >> 3 & 0x1f), static_cast<uint32_t>(location & 7));
    gpus[address] = {architecture(values["gfx_target_version"]), video_memory(node)};
  }
  return gpus;
}

}  // namespace artifex_devices
