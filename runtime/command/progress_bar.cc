#include "runtime/command/progress_bar.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "runtime/staging/memory_room.h"

namespace cairn {

ProgressBar::ProgressBar() : shown_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void ProgressBar::Draw(uint64_t done, uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || (now - drawn_ < std::chrono::milliseconds(100) && done < total)) return;
  drawn_ = now;
  constexpr size_t kCells = 40;
  const double part = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
  const auto full = static_cast<size_t>(part * kCells);
  std::fprintf(stderr, "\r[%s%s] %3.0f %%  %s of %s\033[K", std::string(full, '#').c_str(),
               std::string(kCells - full, '.').c_str(), 100 * part, FormatBytes(done).c_str(),
               FormatBytes(total).c_str());
}

}  // namespace cairn
