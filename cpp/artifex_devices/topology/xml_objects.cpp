// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/topology/xml_objects.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace artifex_devices {
namespace {

constexpr int kMostXmlIndex = 65535;           // of a CPU or node
constexpr size_t kMostSetCharacters = 32'768;  // 65,536 bits as hwloc writes them
constexpr size_t kMostXmlPus = 16'384;         // hwloc's time grows with their square
constexpr int64_t kMostDistances = 4096;       // objects in one matrix

// "0x00000003,,0x1": words of 32 bits, highest first, zero ones may be omitted. hwloc's own parser asserts instead of
// checking.
bool is_set_text(std::string_view text) {
  bool first = true;
  for (;;) {
    const size_t end = text.find(',');
    std::string_view word = text.substr(0, end);
    if (word.starts_with("0x")) word.remove_prefix(2);
    if ((first && word.empty()) || word.size() > 8) return false;
    if (word.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
    first = false;
  }
}

// A bitmap from the file, or null.
class Bits {
 public:
  Bits() = default;
  Bits(Bits&& other) noexcept : set_(std::exchange(other.set_, nullptr)) {}
  Bits& operator=(Bits&& other) noexcept {
    std::swap(set_, other.set_);
    return *this;
  }
  ~Bits() { hwloc_bitmap_free(set_); }

  // Returns false if it is not a finite set of small numbers.
  bool parse(std::string_view text) {
    if (text.size() > kMostSetCharacters || !is_set_text(text)) return false;
    set_ = hwloc_bitmap_alloc();
    return set_ && hwloc_bitmap_sscanf(set_, std::string(text).c_str()) == 0 && hwloc_bitmap_weight(set_) >= 0 &&
           hwloc_bitmap_last(set_) <= kMostXmlIndex;
  }
  explicit operator bool() const noexcept { return set_ != nullptr; }
  bool is_within(const Bits& other) const { return !set_ || !other.set_ || hwloc_bitmap_isincluded(set_, other.set_); }
  bool is_just(int64_t index) const { return hwloc_bitmap_weight(set_) == 1 && hwloc_bitmap_first(set_) == index; }
  bool intersects(const Bits& other) const { return set_ && other.set_ && hwloc_bitmap_intersects(set_, other.set_); }
  bool is_empty() const { return !set_ || hwloc_bitmap_iszero(set_); }
  int first() const { return hwloc_bitmap_first(set_); }
  void add(const Bits& other) {
    if (!set_) set_ = hwloc_bitmap_alloc();
    if (set_ && other.set_) hwloc_bitmap_or(set_, set_, other.set_);
  }

 private:
  hwloc_bitmap_t set_ = nullptr;
};

std::string_view value_of(const XmlAttributes& attributes, std::string_view name) {
  for (const auto& [key, value] : attributes) {
    if (key == name) return value;
  }
  return {};
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

struct XmlObjects::Frame {
  Kind kind = Kind::kOther;
  std::string name;  // for messages: "PU 3", "info"
  bool has_objects = false;
  Bits cpus, complete_cpus, allowed_cpus, nodes, complete_nodes, allowed_nodes;
  Bits taken;           // by the normal children so far
  int last_first = -1;  // the first CPU of the last normal child
};

XmlObjects::XmlObjects(int format) : format_(format) {}
XmlObjects::~XmlObjects() = default;

XmlObjects::Kind XmlObjects::kind_of(std::string_view type) noexcept {
  if (type == "PU") return Kind::kPu;
  if (type == "NUMANode" || type == "Node") return Kind::kNode;
  if (type == "MemCache") return Kind::kMemory;
  if (type == "Misc") return Kind::kMisc;
  if (type == "Bridge" || type == "PCIDev" || type == "OSDev") return Kind::kIo;
  constexpr std::array kNormal = {"Machine",  "System",  "Package", "Socket",  "Die",     "Group",    "Core",
                                  "L1Cache",  "L2Cache", "L3Cache", "L4Cache", "L5Cache", "L1iCache", "L2iCache",
                                  "L3iCache", "Cache",   "Tile",    "Module",  "Cluster"};
  return std::ranges::find(kNormal, type) != kNormal.end() ? Kind::kNormal : Kind::kOther;
}

XmlObjects::Frame* XmlObjects::parent_object() { return open_.empty() ? nullptr : &open_.back(); }

std::string XmlObjects::open(std::string_view element, const XmlAttributes& attributes) {
  Frame frame;
  std::string wrong;
  if (element == "object") {
    if (!open_.empty()) open_.back().has_objects = true;
    wrong = open_object(frame, attributes);
  } else {
    frame.name = std::string(element.substr(0, 40));
    wrong = check_detail(element, attributes);
    for (const std::string_view name : {"nbobjs", "length"}) {
      const std::string_view text = value_of(attributes, name);
      const std::optional<int64_t> count = number(text);
      if (wrong.empty() && text.data() &&
          (!count || *count < 0 || *count > (name == "nbobjs" ? kMostDistances : int64_t{1} << 26))) {
        wrong = fmt::format("{}=\"{}\" of <{}> is out of range", name, text.substr(0, 40), frame.name);
      }
    }
    const std::string_view cpus = value_of(attributes, "cpuset");
    if (wrong.empty() && cpus.data() && !Bits().parse(cpus)) {
      wrong = fmt::format("the cpuset of <{}> is not a set of CPUs", frame.name);
    }
  }
  open_.push_back(std::move(frame));
  return wrong;
}

void XmlObjects::close() { open_.pop_back(); }

// Attributes of an object precede its children.
std::string XmlObjects::check_detail(std::string_view element, const XmlAttributes& attributes) {
  const Frame* parent = parent_object();
  if (!parent || parent->kind == Kind::kOther) return "";
  constexpr std::array kDetails = {"info", "page_type", "distances", "userdata"};
  if (std::ranges::find(kDetails, element) == kDetails.end() || parent->has_objects) {
    return fmt::format("<{}> does not belong where it is in {}", element.substr(0, 40), parent->name);
  }
  const bool is_info = element == "info";
  if (!is_info && element != "page_type") return "";
  for (const auto& [key, value] : attributes) {
    if (key != (is_info ? "name" : "size") && key != (is_info ? "value" : "count")) {
      return fmt::format("<{}> has an attribute {:?}", element, key.substr(0, 40));
    }
  }
  return "";
}

bool XmlObjects::allows_text() const noexcept {
  return !open_.empty() && open_.back().kind == Kind::kOther && open_.back().name != "topology";
}

std::string XmlObjects::open_object(Frame& frame, const XmlAttributes& attributes) {
  if (attributes.empty() || attributes[0].first != "type") return "an object does not begin with its type";
  const std::string_view type = attributes[0].second;
  frame.kind = kind_of(type);
  frame.name = fmt::format("{} {}", type.substr(0, 40), value_of(attributes, "os_index").substr(0, 20));
  if (frame.kind == Kind::kOther) return fmt::format("{:?} is not an object type", type.substr(0, 40));
  std::string wrong = check_sets(frame, attributes);
  if (wrong.empty()) wrong = check_place(frame, attributes);
  return wrong;
}

std::string XmlObjects::check_sets(Frame& frame, const XmlAttributes& attributes) {
  const bool special = frame.kind == Kind::kIo || frame.kind == Kind::kMisc;
  for (const auto& [key, text] : attributes) {
    Bits unused;
    Bits* set = key == "cpuset"                                         ? &frame.cpus
                : key == "complete_cpuset"                              ? &frame.complete_cpus
                : key == "nodeset"                                      ? &frame.nodes
                : key == "complete_nodeset"                             ? &frame.complete_nodes
                : key == "allowed_cpuset"                               ? &frame.allowed_cpus
                : key == "allowed_nodeset"                              ? &frame.allowed_nodes
                : key.ends_with("_cpuset") || key.ends_with("_nodeset") ? &unused
                                                                        : nullptr;
    if (!set) continue;
    if (*set) return fmt::format("{} has {} twice", frame.name, key);
    if (!set->parse(text))
      return fmt::format("{} of {} is not a finite set with indexes up to {}", key, frame.name, kMostXmlIndex);
  }
  if (special) {
    const bool any = frame.cpus || frame.complete_cpus || frame.nodes || frame.complete_nodes;
    return any && (format_ >= 2 || frame.kind == Kind::kIo) ? fmt::format("{} has sets", frame.name) : "";
  }
  const bool all_nodes = frame.nodes && frame.complete_nodes;
  if (!frame.cpus || !frame.complete_cpus || (format_ >= 2 && !all_nodes) ||
      (format_ < 2 && !frame.nodes != !frame.complete_nodes)) {
    return fmt::format("{} lacks a cpuset, complete_cpuset, nodeset or complete_nodeset", frame.name);
  }
  if (!frame.cpus.is_within(frame.complete_cpus) || !frame.nodes.is_within(frame.complete_nodes)) {
    return fmt::format("the sets of {} are not within its complete sets", frame.name);
  }
  return "";
}

std::string XmlObjects::check_place(Frame& frame, const XmlAttributes& attributes) {
  const std::string_view index_text = value_of(attributes, "os_index");
  const std::optional<int64_t> index = number(index_text);
  if (index_text.data() && (!index || *index < 0 || *index > UINT32_MAX)) {
    return fmt::format("the os_index of {} is not an index", frame.name);
  }
  if (frame.kind == Kind::kPu || frame.kind == Kind::kNode) {
    if (!index || *index > kMostXmlIndex) return fmt::format("{} has no os_index up to {}", frame.name, kMostXmlIndex);
    const bool is_pu = frame.kind == Kind::kPu;
    if (!(is_pu ? pus_ : nodes_).insert(*index).second) return fmt::format("{} is there twice", frame.name);
    if (pus_.size() > kMostXmlPus) return fmt::format("it has more than {} PUs", kMostXmlPus);
    const Bits& own = is_pu ? frame.complete_cpus : frame.complete_nodes;
    if (!own || !own.is_just(*index)) return fmt::format("the complete set of {} is not its index", frame.name);
    if (!(is_pu ? frame.cpus : frame.nodes).is_empty()) (is_pu ? any_pu_ : any_node_) = true;
  }
  Frame* parent = parent_object();
  if (!parent || parent->name == "topology") {
    const bool fits = frame.kind == Kind::kNormal || (format_ < 2 && frame.kind == Kind::kNode);
    if (!fits) return fmt::format("{} is the outermost object", frame.name);
    const bool allowed = !frame.allowed_cpus || frame.allowed_cpus.intersects(frame.cpus);
    const bool allowed_nodes = !frame.allowed_nodes || !frame.nodes || frame.allowed_nodes.intersects(frame.nodes);
    return allowed && allowed_nodes ? "" : "its machine may use no CPU or no memory";
  }
  if (parent->kind == Kind::kOther) return fmt::format("{} is in <{}>", frame.name, parent->name);
  const bool normal =
      frame.kind == Kind::kNormal || frame.kind == Kind::kPu || (format_ < 2 && frame.kind == Kind::kNode);
  const bool memory = frame.kind == Kind::kMemory || frame.kind == Kind::kNode;
  const bool below_normal = parent->kind == Kind::kNormal || (format_ < 2 && parent->kind == Kind::kNode);
  const bool fits = normal                    ? below_normal
                    : memory                  ? below_normal || parent->kind == Kind::kMemory
                    : frame.kind == Kind::kIo ? below_normal || parent->kind == Kind::kIo
                                              : true;
  if (!fits) return fmt::format("{} is in {}", frame.name, parent->name);
  // Format 1 puts the objects that a node without CPUs shares below it, and includes CPUs and nodes that may not be
  // used.
  const bool holds = format_ >= 2 ? frame.cpus.is_within(parent->cpus) && frame.nodes.is_within(parent->nodes) &&
                                        frame.complete_cpus.is_within(parent->complete_cpus) &&
                                        frame.complete_nodes.is_within(parent->complete_nodes)
                                  : parent->kind == Kind::kNode || frame.complete_cpus.is_within(parent->complete_cpus);
  if (!holds) {
    return fmt::format("the sets of {} are not within the sets of {}", frame.name, parent->name);
  }
  // hwloc checks for it only after it has inserted a group between a node and its parent.
  if (frame.nodes && !parent->nodes) return fmt::format("{} has a nodeset, but {} does not", frame.name, parent->name);
  if (normal && !frame.complete_cpus.is_empty()) {
    if (frame.complete_cpus.intersects(parent->taken)) return fmt::format("{} shares CPUs with a sibling", frame.name);
    if (frame.complete_cpus.first() < parent->last_first) return fmt::format("{} is out of order", frame.name);
    parent->taken.add(frame.complete_cpus);
    parent->last_first = frame.complete_cpus.first();
  }
  return "";
}

std::string XmlObjects::finish() const {
  if (!any_pu_) return "it has no PU";
  if (!any_node_ && format_ >= 2) return "it has no NUMANode";
  return "";
}

}  // namespace artifex_devices
