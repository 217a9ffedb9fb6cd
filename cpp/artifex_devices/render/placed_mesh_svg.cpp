// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "artifex_devices/base/throw_error.h"
#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/placed_mesh.h"
#include "artifex_devices/render/svg_document.h"

namespace artifex_devices {
namespace {

constexpr double kStub = 8;              // pixels of a wrap-around link at each end
constexpr double kMeshAcross = 1040;     // approximate width of a picture in pixels
constexpr int64_t kMaxSide = 32;         // devices drawn along x or y
constexpr int64_t kMaxPanels = 4;        // axes of the mesh drawn
constexpr int64_t kMaxPlaces = 1 << 24;  // chips along an axis, or cores of a chip
constexpr int64_t kMaxLabelled = 320;    // tiles have labels up to this number of devices

/// Number of items, and how many of them are drawn.
struct Count {
  int64_t all = 1;
  int64_t drawn = 1;
  bool is_complete() const { return all == drawn; }
};

class PlacedMeshPicture {
 public:
  PlacedMeshPicture(const PlacedMesh& mesh, int max_cells) : mesh_(mesh) {
    for (size_t axis = 0; axis < mesh.axes.size(); ++axis) {
      if (mesh.axes[axis].size > 1) drawn_axes_.push_back(axis);
    }
    axes_left_out_ = std::max<int64_t>(static_cast<int64_t>(drawn_axes_.size()) - kMaxPanels, 0);
    if (axes_left_out_ > 0) drawn_axes_.resize(kMaxPanels);
    if (drawn_axes_.empty()) drawn_axes_.push_back(mesh.axes.size());  // no axis: draw the devices only
    check();
    find_frame(std::max<int64_t>(max_cells / static_cast<int64_t>(drawn_axes_.size()), 1));
    find_positions();
    find_sizes();
  }

  std::string draw() const {
    SvgDocument document(mesh_.title);
    document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2,
                  SvgDocument::Anchor::kStart, mesh_.title);
    double panel_width = width_;
    for (const size_t axis : drawn_axes_) {
      panel_width = std::max(panel_width, SvgDocument::label_width(text_width(caption(axis))));
    }
    const auto panels = static_cast<int64_t>(drawn_axes_.size());
    const auto fitting = static_cast<int64_t>((kMeshAcross + 2 * SvgDocument::kLineHeight) /
                                              (panel_width + 2 * SvgDocument::kLineHeight));
    const int64_t columns = std::clamp<int64_t>(fitting, 1, panels);
    const double panel_height = height_ + 2 * SvgDocument::kLineHeight;
    for (int64_t panel = 0; panel < panels; ++panel) {
      const double x =
          SvgDocument::kMargin + static_cast<double>(panel % columns) * (panel_width + 2 * SvgDocument::kLineHeight);
      const double y =
          SvgDocument::kMargin + 1.5 * SvgDocument::kLineHeight + static_cast<double>(panel / columns) * panel_height;
      document.text(x, y + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart,
                    caption(drawn_axes_[static_cast<size_t>(panel)]));
      draw_panel(document, drawn_axes_[static_cast<size_t>(panel)], x, y + SvgDocument::kLineHeight);
    }
    const int64_t down = (panels + columns - 1) / columns;
    double end = SvgDocument::kMargin + 1.5 * SvgDocument::kLineHeight + static_cast<double>(down) * panel_height;
    double width = std::max(
        SvgDocument::label_width(text_width(mesh_.title)),
        static_cast<double>(columns) * panel_width + 2 * SvgDocument::kLineHeight * static_cast<double>(columns - 1));
    for (const std::string& note : notes()) {
      document.text(SvgDocument::kMargin, end + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart, note, true);
      width = std::max(width, SvgDocument::label_width(text_width(note)));
      end += SvgDocument::kLineHeight;
    }
    return document.finish(width + 2 * SvgDocument::kMargin, end + SvgDocument::kMargin);
  }

 private:
  void check() const {
    int64_t wanted = 1;
    for (const PlacedAxis& axis : mesh_.axes) {
      if (axis.size < 1 || wanted > (int64_t{1} << 40) / axis.size) {
        throw_error("placed_mesh_svg: axis {} has size {}; expected sizes that multiply to the number of devices",
                    axis.name, axis.size);
      }
      wanted *= axis.size;
    }
    if (wanted != static_cast<int64_t>(mesh_.devices.size())) {
      throw_error("placed_mesh_svg: there are {} devices; expected {}, the product of the sizes", mesh_.devices.size(),
                  wanted);
    }
    for (const PlacedDevice& device : mesh_.devices) {
      const auto is_far = [](int64_t place) { return place < 0 || place >= kMaxPlaces; };
      if (is_far(device.core) || std::ranges::any_of(device.at, is_far)) {
        throw_error("placed_mesh_svg: device {} is at ({}), core {}; expected places of 0 to {}", device.id,
                    fmt::join(device.at, ","), device.core, kMaxPlaces - 1);
      }
    }
  }

  bool is_torus() const { return mesh_.network == NetworkKind::kTorus; }

  // Finds the bounding box of the devices and the part of it that is drawn.
  void find_frame(int64_t cells) {
    std::map<int64_t, std::array<int64_t, 3>> first;
    std::map<int64_t, std::array<int64_t, 3>> last;
    int64_t least_core = mesh_.devices[0].core;
    int64_t most_core = least_core;
    for (const PlacedDevice& device : mesh_.devices) {
      const auto [low, is_new] = first.emplace(device.slice, device.at);
      std::array<int64_t, 3>& high = last.emplace(device.slice, device.at).first->second;
      for (size_t axis = 0; axis < 3; ++axis) {
        low->second[axis] = std::min(low->second[axis], device.at[axis]);
        high[axis] = std::max(high[axis], device.at[axis]);
      }
      least_core = std::min(least_core, device.core);
      most_core = std::max(most_core, device.core);
    }
    std::array<int64_t, 3> dims{1, 1, 1};
    for (const auto& [slice, low] : first) {
      slices_.push_back(slice);
      for (size_t axis = 0; axis < 3; ++axis) dims[axis] = std::max(dims[axis], last[slice][axis] - low[axis] + 1);
    }
    first_ = std::move(first);
    first_core_ = least_core;
    cores_ = most_core - least_core + 1;
    if (!is_torus()) {
      const int64_t chips = dims[0];
      columns_.all = chips_in_a_row(chips);
      rows_.all = (chips + columns_.all - 1) / columns_.all;
    } else {
      columns_.all = dims[0];
      rows_.all = dims[1];
      layers_.all = dims[2];
    }
    slice_count_.all = static_cast<int64_t>(slices_.size());
    columns_.drawn = std::min(columns_.all, std::max<int64_t>(kMaxSide / cores_, 1));
    rows_.drawn = std::min(rows_.all, kMaxSide);
    const int64_t blocks = std::max<int64_t>(cells / (columns_.drawn * rows_.drawn * cores_), 1);
    layers_.drawn = std::min(layers_.all, blocks);
    slice_count_.drawn = std::clamp<int64_t>(blocks / layers_.drawn, 1, slice_count_.all);
  }

  // A rectangle about twice as wide as high.
  static int64_t chips_in_a_row(int64_t chips) {
    const auto best = static_cast<int64_t>(std::sqrt(2.0 * static_cast<double>(chips)));
    for (int64_t columns = best; columns > 1; --columns) {
      if (chips % columns == 0) return columns;
    }
    return std::min<int64_t>(chips, 8);
  }

  int64_t cell(int64_t slice, int64_t layer, int64_t row, int64_t column, int64_t core) const {
    return (((slice * layers_.drawn + layer) * rows_.drawn + row) * columns_.drawn + column) * cores_ + core;
  }

  void find_positions() {
    const int64_t cells = slice_count_.drawn * layers_.drawn * rows_.drawn * columns_.drawn * cores_;
    position_of_.assign(static_cast<size_t>(cells), -1);
    for (size_t position = 0; position < mesh_.devices.size(); ++position) {
      const PlacedDevice& device = mesh_.devices[position];
      const auto slice = std::ranges::lower_bound(slices_, device.slice) - slices_.begin();
      const std::array<int64_t, 3>& first = first_.at(device.slice);
      std::array<int64_t, 3> at{};
      for (size_t axis = 0; axis < 3; ++axis) at[axis] = device.at[axis] - first[axis];
      if (!is_torus()) at = {at[0] % columns_.all, at[0] / columns_.all, 0};
      if (slice >= slice_count_.drawn || at[0] >= columns_.drawn || at[1] >= rows_.drawn || at[2] >= layers_.drawn) {
        continue;
      }
      int64_t& here = position_of_[static_cast<size_t>(cell(slice, at[2], at[1], at[0], device.core - first_core_))];
      if (here >= 0) {
        throw_error("placed_mesh_svg: devices {} and {} are at the same place; expected a different place for each",
                    mesh_.devices[static_cast<size_t>(here)].id, device.id);
      }
      here = static_cast<int64_t>(position);
      ++drawn_;
    }
  }

  void find_sizes() {
    int64_t characters = 1;
    for (const size_t axis : drawn_axes_) {
      if (axis < mesh_.axes.size()) {
        characters = std::max(characters, text_width(fmt::format("{}", mesh_.axes[axis].size - 1)));
      }
    }
    has_labels_ = drawn_ <= kMaxLabelled;
    tile_width_ = has_labels_ ? std::max(22.0, 7.0 * static_cast<double>(characters) + 6) : 9;
    tile_height_ = has_labels_ ? 22 : 9;
    gap_ = !has_labels_ ? 2 : is_torus() ? 7 : 3;
    const double frame = is_torus() ? kStub : 0;
    block_width_ = static_cast<double>(columns_.drawn) * pitch_x() - gap_ + 2 * frame;
    block_height_ = static_cast<double>(rows_.drawn) * (tile_height_ + gap_) - gap_ + 2 * frame;
    if (layers_.all > 1) {
      block_height_ += SvgDocument::kLineHeight;
      block_width_ = std::max(block_width_, SvgDocument::label_width(text_width(fmt::format("z = {}", layers_.all))));
    }
    layers_across_ = SvgDocument::boxes_across(layers_.drawn, block_width_ + SvgDocument::kLineHeight / 2,
                                               block_height_, kMeshAcross);
    slice_width_ = static_cast<double>(layers_across_) * (block_width_ + SvgDocument::kLineHeight / 2) -
                   SvgDocument::kLineHeight / 2;
    slice_height_ = static_cast<double>((layers_.drawn + layers_across_ - 1) / layers_across_) *
                        (block_height_ + SvgDocument::kLineHeight / 2) -
                    SvgDocument::kLineHeight / 2;
    if (slice_count_.all > 1) {
      slice_width_ = std::max(slice_width_, SvgDocument::label_width(text_width(slice_title(slice_count_.all)))) + 12;
      slice_height_ += SvgDocument::kLineHeight + 10;
    }
    slices_across_ = SvgDocument::boxes_across(slice_count_.drawn, slice_width_ + SvgDocument::kLineHeight / 2,
                                               slice_height_, kMeshAcross);
    width_ = static_cast<double>(slices_across_) * (slice_width_ + SvgDocument::kLineHeight / 2) -
             SvgDocument::kLineHeight / 2;
    height_ = static_cast<double>((slice_count_.drawn + slices_across_ - 1) / slices_across_) *
              (slice_height_ + SvgDocument::kLineHeight / 2);
  }

  double pitch_x() const { return tile_width_ * static_cast<double>(cores_) + gap_; }

  std::string slice_title(int64_t slice) const {
    return fmt::format("{} {}", mesh_.platform == "tpu" ? "slice" : "node", slice);
  }

  int64_t group_size(size_t axis) const { return axis < mesh_.axes.size() ? mesh_.axes[axis].size : 1; }

  // Distance between positions that are adjacent along the axis.
  int64_t stride(size_t axis) const {
    int64_t stride = 1;
    for (size_t later = axis + 1; later < mesh_.axes.size(); ++later) stride *= mesh_.axes[later].size;
    return stride;
  }

  std::string caption(size_t axis) const {
    if (axis >= mesh_.axes.size()) return "no axis of more than one device";
    const PlacedAxis& about = mesh_.axes[axis];
    const auto groups = static_cast<int64_t>(mesh_.devices.size()) / about.size;
    std::string text = fmt::format("{}: {} group{} of {}", about.name, groups, groups == 1 ? "" : "s", about.size);
    return about.placement.empty() ? text : text + ", " + about.placement;
  }

  void draw_panel(SvgDocument& document, size_t axis, double x, double y) const {
    for (int64_t slice = 0; slice < slice_count_.drawn; ++slice) {
      double left = x + static_cast<double>(slice % slices_across_) * (slice_width_ + SvgDocument::kLineHeight / 2);
      double top = y + static_cast<double>(slice / slices_across_) * (slice_height_ + SvgDocument::kLineHeight / 2);
      if (slice_count_.all > 1) {
        const std::string title = slice_title(slices_[static_cast<size_t>(slice)]);
        document.box(left, top, slice_width_, slice_height_, title);
        document.text(left + 6, top + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart, title, true);
        left += 6;
        top += SvgDocument::kLineHeight;
      }
      for (int64_t layer = 0; layer < layers_.drawn; ++layer) {
        draw_block(document, axis, slice, layer,
                   left + static_cast<double>(layer % layers_across_) * (block_width_ + SvgDocument::kLineHeight / 2),
                   top + static_cast<double>(layer / layers_across_) * (block_height_ + SvgDocument::kLineHeight / 2));
      }
    }
  }

  void draw_block(SvgDocument& document, size_t axis, int64_t slice, int64_t layer, double x, double y) const {
    if (layers_.all > 1) {
      document.text(x + (is_torus() ? kStub : 0), y + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart,
                    fmt::format("z = {}", first_.at(slices_[static_cast<size_t>(slice)])[2] + layer), true);
      y += SvgDocument::kLineHeight;
    }
    if (is_torus()) {
      x += kStub;
      y += kStub;
      if (has_labels_) draw_links(document, x, y);
    }
    std::vector<SvgDocument::SmallTile> tiles;
    const int64_t apart = stride(axis);
    const int64_t size = group_size(axis);
    for (int64_t row = 0; row < rows_.drawn; ++row) {
      for (int64_t column = 0; column < columns_.drawn; ++column) {
        for (int64_t core = 0; core < cores_; ++core) {
          const int64_t position = position_of_[static_cast<size_t>(cell(slice, layer, row, column, core))];
          if (position < 0) continue;
          SvgDocument::SmallTile tile;
          tile.x = x + static_cast<double>(column) * pitch_x() + static_cast<double>(core) * tile_width_;
          tile.y = y + static_cast<double>(row) * (tile_height_ + gap_);
          tile.number = position / (apart * size) * apart + position % apart;
          if (has_labels_) {
            if (axis < mesh_.axes.size()) tile.label = fmt::format("{}", position / apart % size);
            tile.tooltip = tooltip(position);
          }
          tiles.push_back(std::move(tile));
        }
      }
    }
    document.tiles(tiles, tile_width_, tile_height_);
  }

  // Draws a line for each row and column of links, behind the tiles. Wrap-around links extend beyond the tiles.
  void draw_links(SvgDocument& document, double x, double y) const {
    const double right = x + static_cast<double>(columns_.drawn) * pitch_x() - gap_;
    const double bottom = y + static_cast<double>(rows_.drawn) * (tile_height_ + gap_) - gap_;
    std::string inside;
    std::string wrapping;
    for (int64_t row = 0; row < rows_.drawn && columns_.all > 1; ++row) {
      const double middle = y + static_cast<double>(row) * (tile_height_ + gap_) + tile_height_ / 2;
      inside += fmt::format("M{:g} {:g}H{:g}", x, middle, right);
      if (mesh_.wraps[0])
        wrapping += fmt::format("M{:g} {:g}h{:g}M{:g} {:g}h{:g}", x, middle, -kStub, right, middle, kStub);
    }
    for (int64_t column = 0; column < columns_.drawn && rows_.all > 1; ++column) {
      const double middle = x + static_cast<double>(column) * pitch_x() + tile_width_ * static_cast<double>(cores_) / 2;
      inside += fmt::format("M{:g} {:g}V{:g}", middle, y, bottom);
      if (mesh_.wraps[1])
        wrapping += fmt::format("M{:g} {:g}v{:g}M{:g} {:g}v{:g}", middle, y, -kStub, middle, bottom, kStub);
    }
    if (!inside.empty()) document.lines(inside, {.width = 1.5, .opacity = 0.6});
    if (!wrapping.empty()) document.lines(wrapping, {.width = 1.5, .opacity = 0.6});
  }

  std::string tooltip(int64_t position) const {
    const PlacedDevice& device = mesh_.devices[static_cast<size_t>(position)];
    std::string text = fmt::format("{}:{}", mesh_.platform, device.id);
    if (is_torus()) text += fmt::format(" at ({},{},{})", device.at[0], device.at[1], device.at[2]);
    if (cores_ > 1) text += fmt::format(" core {}", device.core);
    if (slice_count_.all > 1) text += fmt::format(" of {}", slice_title(device.slice));
    for (size_t axis = 0; axis < mesh_.axes.size(); ++axis) {
      text += fmt::format("{}{} {}", axis == 0 ? ": " : ", ", mesh_.axes[axis].name,
                          position / stride(axis) % mesh_.axes[axis].size);
    }
    return text;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes = {
        has_labels_ ? "one colour: devices that work together along the axis; number: place along it"
                    : "one colour: devices that work together along the axis"};
    if (is_torus()) {
      std::string text = fmt::format("x to the right{}", mesh_.wraps[0] ? " (ends joined)" : "");
      if (rows_.all > 1) text += fmt::format(", y down{}", mesh_.wraps[1] ? " (ends joined)" : "");
      if (layers_.all > 1) text += fmt::format(", a block for each z{}", mesh_.wraps[2] ? " (ends joined)" : "");
      if (cores_ > 1) text += fmt::format("; {} cores of a chip side by side", cores_);
      notes.push_back(text);
    }
    std::string left_out;
    const auto add = [&](const Count& count, std::string_view what) {
      if (count.is_complete()) return;
      left_out += fmt::format("{}{} of {} {}", left_out.empty() ? "shown: " : ", ", count.drawn, count.all, what);
    };
    add(slice_count_, mesh_.platform == "tpu" ? "slices" : "nodes");
    add(layers_, "layers along z");
    add(rows_, is_torus() ? "chips along y" : "rows of chips");
    add(columns_, is_torus() ? "chips along x" : "chips of a row");
    if (!left_out.empty()) {
      notes.push_back(fmt::format("{}: {} of {} devices", left_out, drawn_, mesh_.devices.size()));
    }
    if (axes_left_out_ > 0) {
      notes.push_back(fmt::format("{} more ax{} of the mesh {} not drawn", axes_left_out_,
                                  axes_left_out_ == 1 ? "is" : "es", axes_left_out_ == 1 ? "is" : "are"));
    }
    return notes;
  }

  const PlacedMesh& mesh_;
  std::vector<size_t> drawn_axes_;
  int64_t axes_left_out_ = 0;
  std::vector<int64_t> slices_;                      // ascending
  std::map<int64_t, std::array<int64_t, 3>> first_;  // smallest coordinates in each slice
  int64_t first_core_ = 0;
  int64_t cores_ = 1;
  Count slice_count_, layers_, rows_, columns_;
  std::vector<int64_t> position_of_;  // by cell; -1: no device
  int64_t drawn_ = 0;                 // devices drawn for each axis
  bool has_labels_ = true;
  double tile_width_ = 0, tile_height_ = 0, gap_ = 0;
  double block_width_ = 0, block_height_ = 0;
  double slice_width_ = 0, slice_height_ = 0;
  double width_ = 0, height_ = 0;  // of one panel
  int64_t layers_across_ = 1, slices_across_ = 1;
};

}  // namespace

std::string placed_mesh_svg(const PlacedMesh& mesh, int max_cells) {
  if (mesh.devices.empty()) throw_error("placed_mesh_svg: the mesh has no devices; expected one at least");
  return PlacedMeshPicture(mesh, max_cells).draw();
}

}  // namespace artifex_devices
