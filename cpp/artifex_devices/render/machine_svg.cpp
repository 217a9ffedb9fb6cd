// SPDX-License-Identifier: Apache-2.0
#include "artifex_devices/render/machine_svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "artifex_devices/base/bytes_text.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/topology/machine_objects.h"

namespace artifex_devices {
namespace {

constexpr double kGap = 6;
constexpr double kTile = 24;
constexpr double kBoxShape = 1.7;  // preferred width / height of a box with many children

/// One box or tile and its contents.
struct Frame {
  std::vector<std::string> titles;  // outermost first
  std::string label;                // of a tile, which has no titles
  std::string tooltip;
  int64_t colour = -1;
  std::vector<Frame> memory;
  std::vector<Frame> hardware;
  std::vector<Frame> frames;
  double x = 0, y = 0, width = 0, height = 0;  // position is relative to the enclosing box

  bool is_tile() const { return titles.empty(); }
  bool is_empty() const { return memory.empty() && hardware.empty() && frames.empty(); }
};

class MachinePicture {
 public:
  MachinePicture(const Machine& machine, int max_cells)
      : machine_(machine), objects_(machine_objects(machine)), cells_left_(std::max(max_cells, 1)) {
    for (size_t device = 0; device < machine.cpu_domains().size(); ++device) {
      const CpuDomain& domain = machine.cpu_domains()[device];
      for (const int cpu : domain.cpus.cpus) device_of_cpu_.emplace(cpu, static_cast<int64_t>(device));
      device_of_node_.emplace(domain.default_node, static_cast<int64_t>(device));
    }
  }

  std::string draw() {
    size_t at = 0;
    Frame root = read(at);
    arrange(root);
    const std::string title = heading();
    SvgDocument document(title);
    document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2,
                  SvgDocument::Anchor::kStart, title);
    add(document, root, SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight + kGap);
    double end = SvgDocument::kMargin + SvgDocument::kLineHeight + 2 * kGap + root.height;
    std::vector<std::string> notes = {"colours: CPU devices with their memory; hollow: not part of a device"};
    if (left_out_ > 0) notes.push_back(fmt::format("{} PUs are left out", left_out_));
    double width = std::max(root.width, SvgDocument::label_width(text_width(title)));
    for (const std::string& note : notes) {
      document.text(SvgDocument::kMargin, end + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart, note, true);
      width = std::max(width, SvgDocument::label_width(text_width(note)));
      end += SvgDocument::kLineHeight;
    }
    return document.finish(width + 2 * SvgDocument::kMargin, end + SvgDocument::kMargin);
  }

 private:
  std::string heading() const {
    const size_t devices = machine_.cpu_domains().size();
    return fmt::format("{}: {} CPU device{}, {} PUs, {}", machine_.source(), devices, devices == 1 ? "" : "s",
                       machine_.counts().pus, bytes_text(machine_.host_memory_bytes()));
  }

  int64_t device_of(const CpuSet& cpus) const {
    const auto found = cpus.cpus.empty() ? device_of_cpu_.end() : device_of_cpu_.find(cpus.cpus.front());
    return found == device_of_cpu_.end() ? -1 : found->second;
  }

  // Reads the object at index `at` and its descendants, and advances `at` past them.
  Frame read(size_t& at) {
    const MachineObject& object = objects_[at++];
    Frame frame;
    frame.tooltip = tooltip_of(object);
    frame.titles = {title_of(object)};
    if (object.type == "PU") {
      frame.label = fmt::format("{}", object.os_index >= 0 ? object.os_index : object.logical_index);
      frame.titles.clear();
      frame.colour = device_of(object.cpus);
      skip_below(at, object.depth);
      return frame;
    }
    if (object.type == "NUMANode") {
      frame.label = title_of(object);
      frame.titles.clear();
      const auto found = device_of_node_.find(object.logical_index);
      if (found != device_of_node_.end()) frame.colour = found->second;
      skip_below(at, object.depth);
      return frame;
    }
    while (at < objects_.size() && objects_[at].depth > object.depth) {
      const MachineObject& child = objects_[at];
      if (child.type == "NUMANode") {
        frame.memory.push_back(read(at));
      } else if (child.type == "Bridge" || child.type == "PCIDev" || child.type == "OSDev" || child.type == "Misc") {
        read_hardware(at, frame.hardware);
      } else if (child.type == "PU" && cells_left_ == 0) {
        ++left_out_;
        skip_below(++at, child.depth);
      } else {
        if (child.type == "PU") --cells_left_;
        Frame below = read(at);
        if (below.is_tile() || !below.is_empty()) frame.frames.push_back(std::move(below));
      }
    }
    merge_chain(frame);
    return frame;
  }

  void skip_below(size_t& at, int depth) const {
    while (at < objects_.size() && objects_[at].depth > depth) ++at;
  }

  // Reads a bridge or PCI device and all devices behind it: one tile for each that the operating system named.
  void read_hardware(size_t& at, std::vector<Frame>& into) const {
    const int depth = objects_[at].depth;
    std::vector<std::string> names;
    std::string model;
    std::string address;
    const auto finish = [&] {
      if (!names.empty()) {
        Frame tile;
        tile.label = fmt::format("{}", fmt::join(names, " "));
        if (!model.empty()) tile.label = fmt::format("{}: {}", tile.label, model);
        tile.tooltip = address.empty() ? tile.label : fmt::format("{} at {}", tile.label, address);
        into.push_back(std::move(tile));
      }
      names.clear();
      model.clear();
      address.clear();
    };
    do {
      const MachineObject& object = objects_[at++];
      if (object.type == "PCIDev") finish();
      if (object.type == "PCIDev") address = object.pci;
      if (object.type == "OSDev") names.push_back(object.name);
      if (model.empty() && object.type != "Bridge") model = object.model;
    } while (at < objects_.size() && objects_[at].depth > depth);
    finish();
  }

  // A frame that contains only one other frame, and no memory or hardware, adds its title to that frame's box.
  static void merge_chain(Frame& frame) {
    if (!frame.memory.empty() || !frame.hardware.empty()) return;
    if (frame.frames.size() != 1 || frame.frames[0].is_tile()) return;
    Frame inner = std::move(frame.frames[0]);
    inner.titles.insert(inner.titles.begin(), frame.titles.begin(), frame.titles.end());
    inner.tooltip = frame.tooltip + "; " + inner.tooltip;
    frame = std::move(inner);
  }

  static std::string title_of(const MachineObject& object) {
    const std::string bytes = object.bytes > 0 ? fmt::format(" {}", bytes_text(object.bytes)) : "";
    if (object.type == "Machine") return "machine";
    if (object.type == "NUMANode") {
      const std::string kind = object.subtype.empty() ? "" : fmt::format(" {}", object.subtype);
      return fmt::format("memory {}{}:{}", object.logical_index, kind, bytes.empty() ? " 0 bytes" : bytes);
    }
    if (object.type.find("Cache") != std::string::npos) {
      return object.type.substr(0, object.type.find("Cache")) + bytes;
    }
    const std::string name = object.subtype.empty() ? object.type : object.subtype;
    return fmt::format("{} {}", name, object.logical_index);
  }

  std::string tooltip_of(const MachineObject& object) const {
    std::string text = title_of(object);
    if (!object.model.empty()) text += ", " + object.model;
    if (object.os_index >= 0) text += fmt::format(", number {} of the system", object.os_index);
    if (object.cpus.cpus.size() > 1) text += ", CPUs " + object.cpus.to_string();
    if (object.type == "PU" && device_of(object.cpus) >= 0) text += fmt::format(", cpu:{}", device_of(object.cpus));
    return text;
  }

  // Computes the size of a frame and the positions of its contents.
  static void arrange(Frame& frame) {
    if (frame.is_tile()) {
      frame.width = std::max(kTile, SvgDocument::label_width(text_width(frame.label)));
      frame.height = kTile;
      return;
    }
    double y = kGap;
    for (const std::string& title : frame.titles) {
      frame.width = std::max(frame.width, SvgDocument::label_width(text_width(title)) + 2 * kGap);
      y += SvgDocument::kLineHeight;
    }
    for (std::vector<Frame>* each : {&frame.memory, &frame.hardware, &frame.frames})
      place_grid(*each, y, frame.width, y);
    stretch_columns(frame);
    frame.height = y;
  }

  // Memory and hardware in a single column take the full width of their box.
  static void stretch_columns(Frame& frame) {
    for (std::vector<Frame>* each : {&frame.memory, &frame.hardware}) {
      const bool is_column = std::ranges::all_of(*each, [](const Frame& tile) { return tile.x == kGap; });
      for (Frame& tile : *each) tile.width = is_column ? frame.width - 2 * kGap : tile.width;
    }
  }

  // Arranges frames in rows below `top`. Widens `width` to hold them and sets `end` to where the next row may begin.
  static void place_grid(std::vector<Frame>& frames, double top, double& width, double& end) {
    if (frames.empty()) return;
    double widest = 0;
    double highest = 0;
    for (Frame& frame : frames) {
      arrange(frame);
      widest = std::max(widest, frame.width);
      highest = std::max(highest, frame.height);
    }
    const size_t count = frames.size();
    const double best = std::sqrt(static_cast<double>(count) * kBoxShape * (highest + kGap) / (widest + kGap));
    size_t columns = std::clamp<size_t>(static_cast<size_t>(std::lround(best)), 1, count);
    for (const size_t other : {columns + 1, columns - 1}) {  // full rows look better
      if (count % columns != 0 && other > 0 && count % other == 0) columns = other;
    }
    double y = top;
    for (size_t first = 0; first < frames.size(); first += columns) {
      double row = 0;
      for (size_t i = first; i < std::min(first + columns, frames.size()); ++i) {
        frames[i].x = kGap + static_cast<double>(i - first) * (widest + kGap);
        frames[i].y = y;
        frames[i].width = widest;
        row = std::max(row, frames[i].height);
      }
      for (size_t i = first; i < std::min(first + columns, frames.size()); ++i) {
        frames[i].height = row;
        stretch_columns(frames[i]);
      }
      y += row + kGap;
    }
    width = std::max(width, kGap + static_cast<double>(columns) * (widest + kGap));
    end = y;
  }

  static void add(SvgDocument& document, const Frame& frame, double left, double top) {
    const double x = left + frame.x;
    const double y = top + frame.y;
    if (frame.is_tile()) {
      document.tile(x, y, frame.width, frame.height, frame.colour, frame.label, frame.tooltip);
      return;
    }
    document.box(x, y, frame.width, frame.height, frame.tooltip);
    double line = y + kGap;
    for (const std::string& title : frame.titles) {
      document.text(x + kGap, line + SvgDocument::kLineHeight / 2 - kGap / 2, SvgDocument::Anchor::kStart, title, true);
      line += SvgDocument::kLineHeight;
    }
    for (const std::vector<Frame>* each : {&frame.memory, &frame.hardware, &frame.frames}) {
      for (const Frame& inner : *each) add(document, inner, x, y);
    }
  }

  const Machine& machine_;
  std::vector<MachineObject> objects_;
  std::map<int, int64_t> device_of_cpu_;
  std::map<int, int64_t> device_of_node_;
  int64_t cells_left_;
  int64_t left_out_ = 0;
};

}  // namespace

std::string machine_svg(const Machine& machine, int max_cells) { return MachinePicture(machine, max_cells).draw(); }

}  // namespace artifex_devices
