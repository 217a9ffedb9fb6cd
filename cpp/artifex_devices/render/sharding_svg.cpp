// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "artifex_devices/render/labels.h"
#include "artifex_devices/render/sharding_panel.h"
#include "artifex_devices/render/svg.h"
#include "artifex_devices/render/svg_document.h"
#include "artifex_devices/sharding/named_sharding.h"

namespace artifex_devices {
namespace {

constexpr ShardingPanel::Limits kOneSlice = {};
constexpr ShardingPanel::Limits kInSlices = {.width = 260, .height = 200};

std::string title_of(const Sharding& sharding, const Dims& shape) {
  if (const auto* named = dynamic_cast<const NamedSharding*>(&sharding)) {
    return fmt::format("{} as {} on Mesh({})", to_string(shape), named->spec().to_string(),
                       named->mesh()->abstract_mesh().axes_text());
  }
  return fmt::format("{} on {}", to_string(shape), sharding.devices()->front()->to_string());
}

/// Whether more than two dimensions are sharded.
bool has_slices(const Sharding& sharding) {
  const Dims& parts = sharding.grid().parts();
  return std::count_if(parts.begin(), parts.end(), [](int64_t count) { return count > 1; }) > 2;
}

}  // namespace

std::string sharding_svg(const Sharding& sharding, const Dims& shape) {
  const ShardingPanel panel(sharding, shape, has_slices(sharding) ? kInSlices : kOneSlice, "sharding_svg");
  const std::string title = title_of(sharding, shape);
  SvgDocument document(title);
  panel.draw(document, SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight);
  document.text(SvgDocument::kMargin, SvgDocument::kMargin + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart,
                title);
  double end = SvgDocument::kMargin + SvgDocument::kLineHeight + panel.height() + SvgDocument::kMargin;
  double widest = std::max(panel.width(), SvgDocument::label_width(text_width(title)));
  for (const std::string& note : panel.grid().notes()) {
    document.text(SvgDocument::kMargin, end + SvgDocument::kLineHeight / 2, SvgDocument::Anchor::kStart, note, true);
    widest = std::max(widest, SvgDocument::label_width(text_width(note)));
    end += SvgDocument::kLineHeight;
  }
  return document.finish(2 * SvgDocument::kMargin + widest, end);
}

}  // namespace artifex_devices
