// Thrown: what a handler has caught, as a Status. Of use in `catch (...)` alone.
#ifndef CAIRN_RUNTIME_THROWN_H_
#define CAIRN_RUNTIME_THROWN_H_

#include <exception>
#include <new>

#include "planner/base/status.h"

namespace cairn {

inline Status Thrown() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {Code::kOutOfMemory, "out of memory"};
  } catch (const std::exception& e) {
    return {Code::kInternal, e.what()};
  } catch (...) {
    return {Code::kInternal, "an unknown exception"};
  }
}

}  // namespace cairn

#endif  // CAIRN_RUNTIME_THROWN_H_
