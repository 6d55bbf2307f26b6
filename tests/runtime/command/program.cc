#include "tests/runtime/command/program.h"

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace cairn {
namespace {

namespace fs = std::filesystem;

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

struct Folders {
  std::vector<fs::path> made;
  ~Folders() {
    std::error_code ignored;
    for (const fs::path& path : made) fs::remove_all(path, ignored);
  }
};

}  // namespace

std::string NewFolder() {
  static Folders folders;
  std::string path = (fs::temp_directory_path() / "cairn-command-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp " + path);
  folders.made.emplace_back(path);
  return path;
}

void WriteText(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

Outcome RunCairn(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment) {
  const std::string folder = NewFolder();
  std::string line = "env";
  for (const auto& [name, value] : environment) line += " " + Quoted(name + "=" + value);
  line += " " CAIRN_COMMAND;
  for (const std::string& argument : arguments) line += " " + Quoted(argument);
  const int status = std::system((line +
                                  " <"
                                  "/dev/null >" +
                                  folder + "/out 2>" + folder + "/err")
                                     .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadText(folder + "/out"), ReadText(folder + "/err")};
}

}  // namespace cairn
