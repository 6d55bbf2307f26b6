// Program: the real `cairn`, run once.
#ifndef CAIRN_TESTS_RUNTIME_COMMAND_PROGRAM_H_
#define CAIRN_TESTS_RUNTIME_COMMAND_PROGRAM_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cairn {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
  nlohmann::json Json() const { return nlohmann::json::parse(out); }  // throws, and so fails the test
};

// With stdin on /dev/null, and `environment` added to ours.
Outcome RunCairn(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment = {});

// A new empty folder, removed when the test's process ends.
std::string NewFolder();

void WriteText(const std::string& path, const std::string& text);
std::string ReadText(const std::string& path);

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_COMMAND_PROGRAM_H_
