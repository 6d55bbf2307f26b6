// The page of `cairn report`: one HTML document that refers to nothing outside, for light and dark screens and for paper, without scripts.
// Pure.
#ifndef CAIRN_RUNTIME_COMMAND_REPORT_PAGE_H_
#define CAIRN_RUNTIME_COMMAND_REPORT_PAGE_H_

#include <map>
#include <string>
#include <vector>

#include "runtime/catalog/chronicle.h"
#include "runtime/catalog/run_directory.h"

namespace cairn {

struct Report {
  std::string dir;
  RunInfo run;
  bool finished = false;
  std::string made;                                         // when, UTC
  Chronicle chronicle;                                      // with every life's end (GuessEnd)
  std::map<std::string, std::vector<std::string>> on_disk;  // checkpoint → its flags (Flags)
  std::string reshard_svg, reshard_text;                    // "" = no life had another number of ranks
};

std::string WriteReport(const Report& report);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_REPORT_PAGE_H_
