// ProgressBar: a bar on stderr while a command reads or writes much. Drawn only on a terminal; gone when the object is. One thread at a time.
#ifndef CAIRN_RUNTIME_COMMAND_PROGRESS_BAR_H_
#define CAIRN_RUNTIME_COMMAND_PROGRESS_BAR_H_

#include <chrono>
#include <cstdint>

namespace cairn {

class ProgressBar {
 public:
  ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  // In bytes. Redrawn ten times a second at most.
  void Draw(uint64_t done, uint64_t total);

 private:
  const bool shown_;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_COMMAND_PROGRESS_BAR_H_
