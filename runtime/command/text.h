// Text for people: aligned tables and ages. Pure; any thread.
#ifndef CAIRN_RUNTIME_COMMAND_TEXT_H_
#define CAIRN_RUNTIME_COMMAND_TEXT_H_

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {

struct Column {
  std::string title;
  bool right = false;  // numbers are aligned to the right
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  // One line for the titles and for each row, two spaces between columns, no spaces at the ends of lines.
  std::string ToString() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// How long ago a time of Manifest::time's form was: "just now" (within a minute, or in the future, since two
// hosts' clocks differ), "4 m 10 s ago". What is no such time is given back as it is.
std::string FormatAge(const std::string& utc, std::time_t now);

// "1 rank", "8 ranks".
std::string Count(size_t n, std::string_view noun);

// "a, b, c".
std::string Join(const std::vector<std::string>& parts, std::string_view by = ", ");

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_TEXT_H_
