// LineWriter: writes lines to a descriptor from a thread of its own, for callers who must never stand still with it: a terminal that somebody
// has stopped, a pipe that nobody reads, a hung file system.
//
// Write returns when the line is out, so that lines and what the program prints stay in order. A line that is not out in 100 ms makes the
// writer a slow one: until it has caught up nobody waits for it. Beyond 1,000 lines that wait, lines are lost; their number is written in their place.
// Any thread; in a forked child it does nothing.
#ifndef CAIRN_RUNTIME_LOG_LINE_WRITER_H_
#define CAIRN_RUNTIME_LOG_LINE_WRITER_H_

#include <memory>
#include <string>

#include "runtime/io/fd.h"

namespace cairn {

class LineWriter {
 public:
  explicit LineWriter(int fd);  // which is open as long as the process
  explicit LineWriter(UniqueFd fd);
  ~LineWriter();  // gives what still waits a second
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void Write(std::string line);  // which ends in '\n'

 private:
  struct State;
  static void Main(State* state);

  const std::shared_ptr<State> state_;  // the thread's, too: it may outlive this
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_LOG_LINE_WRITER_H_
