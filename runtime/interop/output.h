// Output: a file or folder that appears whole, or not at all.
//
// It is made under a temporary name beside its place (".tmp-<name>-<8 hex digits>", without meaning after a crash), made durable, and renamed.
// One thread.
#ifndef CAIRN_RUNTIME_INTEROP_OUTPUT_H_
#define CAIRN_RUNTIME_INTEROP_OUTPUT_H_

#include <string>
#include <utility>

#include "planner/base/status.h"

namespace cairn {

class Output {
 public:
  // kExists when `path` is there already, save for an empty folder. The folder that it lies in is made.
  static Result<Output> File(const std::string& path);
  static Result<Output> Folder(const std::string& path);

  Output(Output&& other) noexcept
      : temporary_(std::exchange(other.temporary_, {})),
        path_(std::move(other.path_)),
        folder_(other.folder_) {}
  Output& operator=(Output&&) = delete;
  ~Output();  // removes what was not published

  // Where to write: a file that the caller creates, or a folder that is there. The caller fsyncs each file that it makes.
  const std::string& temporary() const { return temporary_; }
  const std::string& path() const { return path_; }

  // Gives it its name, durably.
  Status Publish();

 private:
  Output(std::string temporary, std::string path, bool folder)
      : temporary_(std::move(temporary)), path_(std::move(path)), folder_(folder) {}
  static Result<Output> Make(const std::string& path, bool folder);

  std::string temporary_;  // "" once published or moved from
  std::string path_;       // absolute
  bool folder_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_OUTPUT_H_
