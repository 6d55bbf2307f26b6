// Program: what a life of a run was started as, so that the next one can tell what has changed.
#ifndef CAIRN_RUNTIME_CATALOG_PROGRAM_H_
#define CAIRN_RUNTIME_CATALOG_PROGRAM_H_

#include <string>
#include <vector>

namespace cairn {

struct Program {
  std::string
      path;  // its file; of a Python that was given one (`python3 train.py`), the script. "" = not known
  // Of the file's size and its first MiB, where linkers put the build ID: 32 hexadecimal digits, "" = the file cannot be read. The same
  // program copied elsewhere has the same.
  std::string hash;
  std::vector<std::string> arguments;  // without the program itself; of more than 4 KiB the first, and "…"

  friend bool operator==(const Program&, const Program&) = default;
};

// Of a process, from its folder in /proc (an argument for tests alone). What cannot be read is left empty.
Program ReadProgram(const std::string& process = "/proc/self");

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CATALOG_PROGRAM_H_
