// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <hwloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

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
  struct Descriptor {
    int fd;
    ~Descriptor() {
      if (fd >= 0) close(fd);
    }
  };
  // Non-blocking, so that a named pipe does not hang before its type is checked.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      throw_error<FileNotFound>(
          "from_xml: there is no file {:?}; expected an hwloc XML file (lstopo --of xml makes one); correct the path",
          path);
    }
    throw_error("from_xml: cannot open {:?}: {}; expected an hwloc XML file that can be read; correct the path", path,
                std::strerror(error));
  }
  struct stat status = {};
  const auto unreadable = [&] {
    throw_error("from_xml: cannot read {:?}: {}; expected an hwloc XML file that can be read; correct the path", path,
                std::strerror(errno));
  };
  if (fstat(file.fd, &status) < 0) unreadable();
  if (!S_ISREG(status.st_mode)) {
    throw_error("from_xml: {:?} is {}; expected a regular file with hwloc XML", path,
                S_ISDIR(status.st_mode) ? "a directory" : "not a regular file");
  }
  if (status.st_size > kMostXmlBytes) {
    throw_error("from_xml: {:?} has {} bytes; expected hwloc XML of at most {} (64 MiB)", path, status.st_size,
                kMostXmlBytes);
  }
  std::string text;
  text.resize(static_cast<size_t>(status.st_size) + 1);  // one more, to detect a growing file
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) unreadable();
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > static_cast<size_t>(status.st_size))
    throw_error("from_xml: {:?} changed while it was read; read it again", path);
  text.resize(size);
  return text;
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
