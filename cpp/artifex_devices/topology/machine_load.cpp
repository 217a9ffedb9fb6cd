// SPDX-License-Identifier: Apache-2.0
#include <hwloc.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "artifex_devices/base/file.h"
#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/topology/loaded_machine.h"

// Machines from XML files and synthetic strings.
namespace artifex_devices {
namespace {

constexpr int64_t kMostXmlBytes = int64_t{64} << 20;

OwnTopology new_topology(const std::string& operation) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) < 0) throw_error<OutOfMemory>("{}: hwloc cannot start", operation);
  return OwnTopology(topology);
}

std::string read_file(const std::string& path) {
  if (path.find('\0') != std::string::npos) throw_error("from_xml: the path {:?} contains a zero byte", path);
  try {
    const File file = File::open(path, "from_xml");
    if (file.bytes() > kMostXmlBytes) {
      throw_error("from_xml: {:?} has {} bytes; expected hwloc XML of at most {} (64 MiB)", path, file.bytes(),
                  kMostXmlBytes);
    }
    std::string text(static_cast<size_t>(file.bytes()), '\0');
    file.read(text.data(), static_cast<int64_t>(text.size()), 0);
    return text;
  } catch (const FileError& error) {
    if (error.code() == ENOENT || error.code() == ENOTDIR) {
      throw_error<FileNotFound>(
          "from_xml: there is no file {:?}; expected an hwloc XML file (lstopo --of xml makes one); correct the path",
          path);
    }
    throw_error("{}; expected an hwloc XML file that can be read; correct the path", error.what());
  }
}

std::shared_ptr<const Machine> load_xml(const std::string& text, const std::string& source, const std::string& name) {
  check_xml(text, name);
  OwnTopology topology = new_topology("from_xml");
  const bool loaded =
      hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
      hwloc_topology_set_xmlbuffer(topology.get(), text.c_str(), static_cast<int>(text.size() + 1)) == 0 &&
      hwloc_topology_load(topology.get()) == 0;
  if (!loaded) {
    throw_error(
        "from_xml: hwloc cannot import {}; expected a whole file as written by `lstopo --of xml` (format 1 or 2)",
        name);
  }
  return std::make_shared<LoadedMachine>(std::move(topology), source, false, fmt::format("from_xml: {}", name));
}

}  // namespace

std::shared_ptr<const Machine> Machine::from_xml(const std::string& path) {
  return load_xml(read_file(path), path, fmt::format("{:?}", path));
}

std::shared_ptr<const Machine> Machine::from_xml_text(std::string_view text) {
  if (text.size() > static_cast<size_t>(kMostXmlBytes)) {
    throw_error("from_xml: the text has {} bytes; expected hwloc XML of at most {} (64 MiB)", text.size(),
                kMostXmlBytes);
  }
  return load_xml(std::string(text), "xml text", "the text");
}

std::shared_ptr<const Machine> Machine::from_synthetic(const std::string& description) {
  check_synthetic(description);
  OwnTopology topology = new_topology("from_synthetic");
  if (hwloc_topology_set_synthetic(topology.get(), description.c_str()) < 0 ||
      hwloc_topology_load(topology.get()) < 0) {
    throw_error(
        "from_synthetic: {:?} is not a synthetic machine of hwloc; expected levels from the outside in that end in pu, "
        "such as \"pack:2 numa:2 core:4 pu:2\"",
        description);
  }
  return std::make_shared<LoadedMachine>(std::move(topology), description, false,
                                         fmt::format("from_synthetic: {:?}", description));
}

}  // namespace artifex_devices
