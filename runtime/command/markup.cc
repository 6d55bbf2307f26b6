#include "runtime/command/markup.h"

#include <cmath>
#include <cstdio>

#include "runtime/formats/utf8.h"

namespace cairn {
namespace {

// Names come from users: control characters, which XML forbids even as references, and what is no UTF-8 become "?".
std::string Escaped(std::string_view text) {
  const bool utf8 = IsUtf8(std::string(text));
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\n' || c == '\t') {
      out += ' ';
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !utf8)) {
      out += '?';
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void Markup::Tag(std::string_view tag, const Attributes& attributes, std::string_view end) {
  text_.append("<").append(tag);
  for (const auto& [name, value] : attributes)
    text_.append(" ").append(name) += "=\"" + Escaped(value) + "\"";
  text_ += end;
}

Markup& Markup::Open(std::string_view tag, const Attributes& attributes) {
  Tag(tag, attributes, ">");
  open_.emplace_back(tag);
  return *this;
}

Markup& Markup::Close() {
  text_ += "</" + open_.back() + ">\n";
  open_.pop_back();
  return *this;
}

Markup& Markup::Text(std::string_view text) {
  text_ += Escaped(text);
  return *this;
}

Markup& Markup::Element(std::string_view tag, std::string_view text, const Attributes& attributes) {
  return Open(tag, attributes).Text(text).Close();
}

Markup& Markup::Empty(std::string_view tag, const Attributes& attributes) {
  Tag(tag, attributes, "/>\n");
  return *this;
}

Markup& Markup::Shape(std::string_view tag, std::string_view tip, const Attributes& attributes) {
  return Open(tag, attributes).Element("title", tip).Close();
}

Markup& Markup::Append(const Markup& part) { return Verbatim(part.text_); }

Markup& Markup::Verbatim(std::string_view text) {
  text_ += text;
  return *this;
}

std::string Coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", std::isfinite(value) ? value : 0);
  std::string out = text;
  if (out.size() > 2 && out.substr(out.size() - 2) == ".0") out.resize(out.size() - 2);
  return out == "-0" ? "0" : out;
}

}  // namespace cairn
