// The engine over io_uring: blocks are handed to the kernel, which works on all of them at once; no threads of ours. runtime/io/write_engine.h
// is the manual.
#ifndef CAIRN_RUNTIME_IO_URING_ENGINE_H_
#define CAIRN_RUNTIME_IO_URING_ENGINE_H_

#include <memory>

#include "runtime/io/write_engine.h"

namespace cairn {

// The code of what the kernel says against it: kPermission, kUnsupported, kOutOfMemory, …
Result<std::unique_ptr<WriteEngine>> MakeUringEngine(int depth = 8);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_URING_ENGINE_H_
