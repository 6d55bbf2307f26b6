// Crew: threads, made beforehand, that do the parts of one job together with the thread that asks for it.
//
// For work during the stall: Run allocates nothing and takes no lock. Without helpers it is a plain loop that
// calls the system for nothing; with helpers, which sleep between jobs, it makes one system call to wake them
// (5 µs to 50 µs) and perhaps one to wait for the last part. A helper that wakes too late to find a part left
// is not waited for.
//
// Threads: one thread at a time calls Run. The helpers take no signals.
#ifndef CAIRN_RUNTIME_STAGING_CREW_H_
#define CAIRN_RUNTIME_STAGING_CREW_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace cairn {

class Crew {
 public:
  // `size` threads, the caller of Run among them; fewer when the system gives no more. `name`: of the helpers, 15
  // characters at most.
  Crew(int size, const char* name);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // Calls fn(part, member) once for each part in [0, parts), in about that order, on any thread of the crew;
  // `member`, from 0 (the caller) to size() − 1, tells the threads apart. Returns when all parts are done, and
  // what they did is visible.
  template <typename Fn>
  void Run(uint32_t parts, const Fn& fn) {
    RunParts(
        parts, [](const void* f, uint32_t part, int member) { (*static_cast<const Fn*>(f))(part, member); },
        &fn);
  }

 private:
  using Call = void (*)(const void* fn, uint32_t part, int member);
  void RunParts(uint32_t parts, Call call, const void* fn);
  void DoParts(int member);
  void Help(int member);

  // The job. Written only while untaken_ is 0; read by whoever has taken a part.
  Call call_ = nullptr;
  const void* fn_ = nullptr;
  uint32_t parts_ = 0;

  std::atomic<uint32_t> untaken_{0};
  std::atomic<uint32_t> unfinished_{0};
  std::atomic<uint32_t> jobs_{0};  // counts up; the helpers sleep on it
  std::atomic<bool> stop_{false};
  std::vector<std::thread> helpers_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_STAGING_CREW_H_
