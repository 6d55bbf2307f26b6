// Random names.
#ifndef CAIRN_RUNTIME_IO_RANDOM_H_
#define CAIRN_RUNTIME_IO_RANDOM_H_

#include <string>

namespace cairn {

// Lower-case hex digits from the kernel's generator; different in every process, also after a fork.
std::string RandomHex(int digits);

}  // namespace cairn

#endif  // CAIRN_RUNTIME_IO_RANDOM_H_
