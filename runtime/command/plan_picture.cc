#include "runtime/command/plan_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <utility>

#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

constexpr size_t kMostNodes = 32;  // in one column
constexpr double kTop = 128, kGap = 8, kLabelHeight = 16, kNodeWidth = 14, kWidth = 1200, kLeastHeight = 3;
constexpr double kFilesX = 190, kReadersX = 590, kKeepersX = 990;

std::string Print(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Print(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return out;
}

// Neighbours of one column, drawn as one.
struct Node {
  std::string name;
  uint64_t in = 0, out = 0;  // bytes
  double y = 0, height = 0;
  double in_at = 0, out_at = 0;  // where the next band begins
};

struct Column {
  size_t per_node = 1;
  std::vector<Node> nodes;

  Column(const char* noun, const std::vector<uint32_t>& numbers) {
    per_node = (numbers.size() + kMostNodes - 1) / kMostNodes;
    for (size_t first = 0; first < numbers.size(); first += per_node) {
      const size_t last = std::min(first + per_node, numbers.size()) - 1;
      nodes.push_back({first == last ? Print("%s %u", noun, numbers[first])
                                     : Print("%ss %u to %u", noun, numbers[first], numbers[last])});
    }
  }
  size_t Of(size_t position) const { return position / per_node; }
};

using Flows = std::map<std::pair<size_t, size_t>, uint64_t>;  // from node to node

// From `top` down; returns where the column ends.
double Place(Column* column, double top, double pixels_per_byte) {
  double y = top;
  for (Node& node : column->nodes) {
    node.y = node.in_at = node.out_at = y;
    node.height = std::max(kLeastHeight, static_cast<double>(std::max(node.in, node.out)) * pixels_per_byte);
    y += std::max(node.height + kGap, kLabelHeight);
  }
  return y;
}

// Colours far apart for neighbours.
std::string Colour(size_t node, bool pale) {
  const double hue = std::fmod(210 + static_cast<double>(node) * 137.5, 360);
  return Print("hsl(%.0f,%d%%,%d%%)", hue, pale ? 30 : 55, pale ? 72 : 48);
}

void Bands(Column* from, double from_x, Column* to, double to_x, const Flows& flows, double pixels_per_byte,
           bool coloured_by_source, std::string* svg) {
  const double middle = (from_x + kNodeWidth + to_x) / 2;
  for (const auto& [ends, bytes] : flows) {
    Node &a = from->nodes[ends.first], &b = to->nodes[ends.second];
    const double height = static_cast<double>(bytes) * pixels_per_byte, shown = std::max(0.6, height);
    const bool stays = coloured_by_source && ends.first == ends.second && from->per_node == 1;
    *svg += Print(
        "<path d=\"M%.1f %.2fC%.1f %.2f %.1f %.2f %.1f %.2fv%.2fC%.1f %.2f %.1f %.2f %.1f %.2fz\" "
        "fill=\"%s\" "
        "fill-opacity=\"%s\"><title>%s → %s: %s</title></path>\n",
        from_x + kNodeWidth, a.out_at, middle, a.out_at, middle, b.in_at, to_x, b.in_at, shown, middle,
        b.in_at + shown, middle, a.out_at + shown, from_x + kNodeWidth, a.out_at + shown,
        Colour(coloured_by_source ? ends.first : ends.second, stays).c_str(), stays ? "0.35" : "0.55",
        a.name.c_str(), b.name.c_str(), FormatBytes(bytes).c_str());
    a.out_at += height;
    b.in_at += height;
  }
}

void Nodes(const Column& column, double x, bool label_left, const char* verb, bool coloured,
           std::string* svg) {
  for (size_t i = 0; i < column.nodes.size(); ++i) {
    const Node& node = column.nodes[i];
    *svg += Print("<rect x=\"%.1f\" y=\"%.2f\" width=\"%.0f\" height=\"%.2f\" rx=\"2\" fill=\"%s\"/>\n", x,
                  node.y, kNodeWidth, node.height, coloured ? Colour(i, false).c_str() : "#57606a");
    *svg += Print(
        "<text x=\"%.1f\" y=\"%.2f\" class=\"label\"%s>%s<tspan class=\"dim\" dx=\"6\">%s%s</tspan></text>\n",
        label_left ? x - 8 : x + kNodeWidth + 8, node.y + node.height / 2 + 4,
        label_left ? " text-anchor=\"end\"" : "", node.name.c_str(), verb,
        FormatBytes(label_left ? node.out : node.in).c_str());
  }
}

}  // namespace

std::string DrawPlan(const PlanPicture& picture) {
  std::vector<uint32_t> numbers;
  for (uint32_t rank = 0; rank < picture.ranks->size(); ++rank) numbers.push_back(rank);
  Column files("file", picture.file_numbers), readers("rank", numbers), keepers("rank", numbers);
  Flows read, kept;
  for (uint32_t rank = 0; rank < picture.ranks->size(); ++rank) {
    for (const auto& [file, bytes] : (*picture.ranks)[rank].read_of_file)
      read[{files.Of(file), readers.Of(rank)}] += bytes;
    for (const auto& [reader, bytes] : (*picture.ranks)[rank].kept_from)
      kept[{readers.Of(reader), keepers.Of(rank)}] += bytes;
  }
  for (const auto& [ends, bytes] : read) {
    files.nodes[ends.first].out += bytes;
    readers.nodes[ends.second].in += bytes;
  }
  for (const auto& [ends, bytes] : kept) {
    readers.nodes[ends.first].out += bytes;
    keepers.nodes[ends.second].in += bytes;
  }

  size_t most_nodes = 1;
  uint64_t most_bytes = 1;
  for (const Column* column : {&files, &readers, &keepers}) {
    uint64_t bytes = 0;
    for (const Node& node : column->nodes) bytes += std::max(node.in, node.out);
    most_bytes = std::max(most_bytes, bytes);
    most_nodes = std::max(most_nodes, column->nodes.size());
  }
  const double pixels_per_byte =
      std::max(300.0, 18.0 * static_cast<double>(most_nodes)) / static_cast<double>(most_bytes);
  double end = 0;
  for (Column* column : {&files, &readers, &keepers})
    end = std::max(end, Place(column, kTop, pixels_per_byte));
  for (Column* column : {&files, &readers, &keepers}) {
    const double space = end - Place(column, kTop, pixels_per_byte);
    Place(column, kTop + space / 2, pixels_per_byte);
  }

  std::string svg = Print(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n"
      "<style>text{font-family:system-ui,'DejaVu "
      "Sans',sans-serif;fill:#1f2328}.title{font-size:20px;font-weight:600}"
      ".sub{font-size:13px;fill:#57606a}.head{font-size:14px;font-weight:600}.label{font-size:12px;paint-"
      "order:stroke;"
      "stroke:#fff;stroke-width:3px;stroke-linejoin:round}.dim{fill:#57606a}</style>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
      kWidth, end + 40, kWidth, end + 40);
  svg += "<text x=\"24\" y=\"38\" class=\"title\">" + Escaped(picture.title) + "</text>\n";
  svg += "<text x=\"24\" y=\"62\" class=\"sub\">" + Escaped(picture.subtitle) + "</text>\n";
  const auto head = [&](double x, const char* text) {
    svg += Print("<text x=\"%.1f\" y=\"%.0f\" class=\"head\" text-anchor=\"middle\">%s</text>\n",
                 x + kNodeWidth / 2, kTop - 18, text);
  };
  head(kFilesX, "files");
  head(kReadersX, "read by");
  head(kKeepersX, "kept by");
  Bands(&files, kFilesX, &readers, kReadersX, read, pixels_per_byte, false, &svg);
  Bands(&readers, kReadersX, &keepers, kKeepersX, kept, pixels_per_byte, true, &svg);
  Nodes(files, kFilesX, true, "", false, &svg);
  Nodes(readers, kReadersX, false, "reads ", true, &svg);
  Nodes(keepers, kKeepersX, false, "", false, &svg);
  svg += Print(
      "<text x=\"24\" y=\"%.0f\" class=\"sub\">As wide as there are bytes, coloured by the rank that reads "
      "them; "
      "pale: stays on that rank.</text>\n</svg>\n",
      end + 20);
  return svg;
}

}  // namespace cairn
