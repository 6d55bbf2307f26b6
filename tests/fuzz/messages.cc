#include "runtime/agreement/messages.h"

#include "runtime/control/rendezvous.h"
#include "runtime/host/host_protocol.h"
#include "runtime/session/protocol.h"
#include "runtime/session/state.h"
#include "tests/fuzz/fuzz.h"

namespace cairn {
namespace {

// The first byte says what the others are. What the agreement accepts is exactly what it could have sent.
void Parse(uint8_t kind, std::string_view bytes) {
  const fuzz::MemoryBound bound(bytes.size());
  switch (kind % 23) {
    case 0:
      if (const auto message = agreement::DecodeToLeader(bytes); message.ok())
        FUZZ_CHECK(agreement::Encode(*message) == bytes);
      break;
    case 1:
      if (const auto message = agreement::DecodeToMember(bytes); message.ok())
        FUZZ_CHECK(agreement::Encode(*message) == bytes);
      break;
    case 2:
      static_cast<void>(DecodeSessionMessage<Opened>(bytes));
      break;
    case 3:
      static_cast<void>(DecodeSessionMessage<Order>(bytes));
      break;
    case 4:
      static_cast<void>(DecodeSessionMessage<Outcome>(bytes));
      break;
    case 5:
      static_cast<void>(DecodeSessionMessage<SignalSeen>(bytes));
      break;
    case 6:
      static_cast<void>(DecodeSessionMessage<LeaveOrder>(bytes));
      break;
    case 7:
      static_cast<void>(DecodeSessionMessage<MemberRecord>(bytes));
      break;
    case 8:
      static_cast<void>(DecodeState(bytes));
      break;
    case 9: {
      ShareMerger merger;
      if (merger.Add(bytes).ok()) static_cast<void>(std::move(merger).Finish());
      break;
    }
    case 10:
      static_cast<void>(DecodeRegistration(bytes));
      break;
    case 11:
      static_cast<void>(DecodeAssignment(bytes));
      break;
    case 12:
      static_cast<void>(DecodeHostMessage<CauseQuery>(bytes));
      break;
    case 13:
      static_cast<void>(DecodeHostMessage<CauseReply>(bytes));
      break;
    case 14:
      static_cast<void>(DecodeHostMessage<HolderQuery>(bytes));
      break;
    case 15:
      static_cast<void>(DecodeHostMessage<HolderReply>(bytes));
      break;
    case 16:
      static_cast<void>(DecodeHostMessage<RequeueReply>(bytes));
      break;
    case 17:
      static_cast<void>(DecodeHostMessage<Saved>(bytes));
      break;
    case 18:
      static_cast<void>(DecodeHostMessage<Left>(bytes));
      break;
    case 19:
      static_cast<void>(DecodeHostMessage<ControlRequest>(bytes));
      break;
    case 20:
      static_cast<void>(DecodeHostMessage<ControlReply>(bytes));
      break;
    case 21:
      static_cast<void>(DecodeSessionMessage<Inventory>(bytes));
      break;
    case 22:
      static_cast<void>(DecodeSessionMessage<TableRoom>(bytes));
      break;
  }
}

}  // namespace
}  // namespace cairn

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) cairn::Parse(data[0], cairn::fuzz::View(data + 1, size - 1));
  return 0;
}
