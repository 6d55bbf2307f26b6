// Markup: HTML and SVG, written tag by tag. What it makes is also well-formed XML, and no text or attribute can be anything else than that.
// Pure; one thread.
#ifndef CAIRN_RUNTIME_COMMAND_MARKUP_H_
#define CAIRN_RUNTIME_COMMAND_MARKUP_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn {

class Markup {
 public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  // <tag …>, until Close.
  Markup& Open(std::string_view tag, const Attributes& attributes = {});
  Markup& Close();  // the innermost one
  Markup& Text(std::string_view text);
  // <tag …>text</tag>
  Markup& Element(std::string_view tag, std::string_view text, const Attributes& attributes = {});
  // <tag …/>: a shape of SVG, or an element of HTML that has no end.
  Markup& Empty(std::string_view tag, const Attributes& attributes = {});
  // A shape that shows `tip` under the pointer.
  Markup& Shape(std::string_view tag, std::string_view tip, const Attributes& attributes);
  Markup& Append(const Markup& part);
  // As it stands: what is no user's text (a style sheet).
  Markup& Verbatim(std::string_view text);

  const std::string& text() const { return text_; }

 private:
  void Tag(std::string_view tag, const Attributes& attributes, std::string_view end);

  std::string text_;
  std::vector<std::string> open_;
};

// "12.5", without needless digits: for coordinates.
std::string Coordinate(double value);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_MARKUP_H_
