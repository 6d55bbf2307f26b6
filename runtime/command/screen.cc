#include "runtime/command/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace cairn {
namespace {

constexpr size_t kIndent = 12;  // where texts begin

// The bytes of at most `columns` characters; a byte that goes on with a character of UTF-8 takes none.
size_t BytesOf(std::string_view text, size_t columns) {
  size_t at = 0;
  for (size_t seen = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && seen++ == columns) break;
  }
  return at;
}

}  // namespace

int TerminalWidth() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0) return 0;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string NamedLine(std::string_view name, std::string_view text, int width) {
  std::string out(name);
  out.resize(std::max(kIndent, name.size() + 2), ' ');
  if (width == 0) return out.append(text) + "\n";
  const size_t room = static_cast<size_t>(std::max<int>(width - static_cast<int>(kIndent), 20));
  for (;;) {
    size_t end = BytesOf(text, room);
    if (end == text.size()) return out.append(text) + "\n";
    // At the last space, or before the last part of a path; else in the middle.
    if (const size_t space = text.rfind(' ', end); space != std::string_view::npos && space > 0) {
      out.append(text.substr(0, space));
      text.remove_prefix(space + 1);
    } else {
      if (const size_t slash = text.substr(0, end).rfind('/'); slash != std::string_view::npos && slash > 0)
        end = slash;
      out.append(text.substr(0, end));
      text.remove_prefix(end);
    }
    out.append("\n").append(kIndent, ' ');
  }
}

void DrawPage(const std::string& page) {
  if (isatty(STDOUT_FILENO) == 0) {
    std::printf("%s\n", page.c_str());
  } else {
    std::string out =
        "\033[H";  // to the top; each line wipes what was behind it, and the last all below: nothing flickers
    for (const char c : page) out += c == '\n' ? std::string("\033[K\n") : std::string(1, c);
    std::printf("%s\033[J", out.c_str());
  }
  std::fflush(stdout);
}

}  // namespace cairn
