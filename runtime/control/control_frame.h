// Frame types on the `cairn` command's connection to the host process; the payloads are the session's and the command's business.
#ifndef CAIRN_RUNTIME_CONTROL_CONTROL_FRAME_H_
#define CAIRN_RUNTIME_CONTROL_CONTROL_FRAME_H_

#include <cstdint>

namespace cairn {

inline constexpr uint16_t kControlRequestFrame = 1;
inline constexpr uint16_t kControlReplyFrame = 2;

}  // namespace cairn

#endif  // CAIRN_RUNTIME_CONTROL_CONTROL_FRAME_H_
