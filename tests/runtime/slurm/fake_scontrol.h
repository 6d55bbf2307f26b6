// FakeScontrol: an `scontrol`, and an `scancel`, on PATH that answer by a shell script, for what a real Slurm does only at a rare moment.
#ifndef CAIRN_TESTS_RUNTIME_SLURM_FAKE_SCONTROL_H_
#define CAIRN_TESTS_RUNTIME_SLURM_FAKE_SCONTROL_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cairn {

class FakeScontrol {
 public:
  // `script`: the body, with the arguments in "$*", the command's name in $command and this folder in $here.
  explicit FakeScontrol(const std::string& script) : old_path_(getenv("PATH")) {
    std::string name = std::filesystem::temp_directory_path() / "cairn-scontrol-XXXXXX";
    dir_ = mkdtemp(name.data());
    std::ofstream(dir_ / "scontrol") << "#!/bin/sh\ncommand=${0##*/}\nhere=" << dir_.string() << "\n"
                                     << script << "\n";
    std::filesystem::permissions(dir_ / "scontrol", std::filesystem::perms::owner_all);
    std::filesystem::create_symlink("scontrol", dir_ / "scancel");
    setenv("PATH", (dir_.string() + ":" + old_path_).c_str(), 1);
  }
  ~FakeScontrol() {
    setenv("PATH", old_path_.c_str(), 1);
    std::filesystem::remove_all(dir_);
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(dir_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  const std::string old_path_;
  std::filesystem::path dir_;
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_SLURM_FAKE_SCONTROL_H_
