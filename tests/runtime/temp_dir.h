// TempDir: a folder of one test, removed at its end.
#ifndef CAIRN_TESTS_RUNTIME_TEMP_DIR_H_
#define CAIRN_TESTS_RUNTIME_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace cairn {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "cairn-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_TEMP_DIR_H_
