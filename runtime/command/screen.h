// Screen: lines that fit a terminal, and pages that are drawn over each other. One thread.
#ifndef CAIRN_RUNTIME_COMMAND_SCREEN_H_
#define CAIRN_RUNTIME_COMMAND_SCREEN_H_

#include <string>
#include <string_view>

namespace cairn {

// Columns of the terminal that stdout is; 0 = it is none, and lines may be of any length.
int TerminalWidth();

// "name        text": a text that is too long goes on in the next lines, under its begin. `width`: as of TerminalWidth.
std::string NamedLine(std::string_view name, std::string_view text, int width);

// Prints a page in the place of the last one; where stdout is no terminal, after it.
void DrawPage(const std::string& page);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_SCREEN_H_
