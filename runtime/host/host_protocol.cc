#include "runtime/host/host_protocol.h"

#include <nlohmann/json.hpp>

#include "runtime/formats/cbor.h"

namespace cairn {
namespace {

using nlohmann::json;

// The fields of each message, named once for both directions.
template <typename Archive>
void Fields(Archive& a, CauseQuery& m) {
  a("id", m.id), a("notice_ms", m.notice_ms);
}
template <typename Archive>
void Fields(Archive& a, CauseReply& m) {
  a("id", m.id), a("cause", m.cause), a("seconds_left", m.seconds_left), a("may_requeue", m.may_requeue),
      a("batch", m.batch), a("warning_seconds", m.warning_seconds), a("why", m.why),
      a("answered", m.answered);
}
template <typename Archive>
void Fields(Archive& a, HolderQuery& m) {
  a("id", m.id), a("job", m.job), a("step", m.step), a("restart", m.restart);
}
template <typename Archive>
void Fields(Archive& a, HolderReply& m) {
  a("id", m.id), a("alive", m.alive), a("why", m.why);
}
template <typename Archive>
void Fields(Archive& a, RequeueQuery& m) {
  a("id", m.id);
}
template <typename Archive>
void Fields(Archive& a, RequeueReply& m) {
  a("id", m.id), a("requeued", m.requeued), a("text", m.text);
}
template <typename Archive>
void Fields(Archive& a, Saved& m) {
  a("dir", m.dir), a("session", m.session), a("step", m.step);
}
template <typename Archive>
void Fields(Archive& a, CopyState& m) {
  a("step", m.step), a("bytes", m.bytes), a("under_way", m.under_way), a("failure", m.failure);
}
template <typename Archive>
void Fields(Archive& a, Left& m) {
  a("session", m.session);
}
template <typename Archive>
void Fields(Archive& a, ControlRequest& m) {
  a("id", m.id), a("body", m.body);
}
template <typename Archive>
void Fields(Archive& a, ControlReply& m) {
  a("id", m.id), a("body", m.body);
}

struct Writer {
  json out = json::object();
  template <typename T>
  void operator()(const char* name, const T& value) {
    out[name] = value;
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) out[name] = *value;
  }
};

struct Reader {
  const json& in;
  template <typename T>
  void operator()(const char* name, T& value) {
    in.at(name).get_to(value);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (in.contains(name)) value = in.at(name).get<T>();
  }
  void operator()(const char* name, Cause& value) { value = Enum<Cause>(name, Cause::kCancelled); }
  void operator()(const char* name, Alive& value) { value = Enum<Alive>(name, Alive::kNo); }

 private:
  template <typename E>
  E Enum(const char* name, E last) {
    const auto number = in.at(name).get<int>();
    return number >= 0 && number <= static_cast<int>(last) ? static_cast<E>(number) : E::kUnknown;
  }
};

}  // namespace

template <typename T>
std::string EncodeHostMessage(const T& message) {
  Writer writer;
  T copy = message;  // Fields serves reading as well, and so takes no const
  Fields(writer, copy);
  std::string out;
  json::to_cbor(writer.out, nlohmann::detail::output_adapter<char>(out));
  return out;
}

template <typename T>
Result<T> DecodeHostMessage(std::string_view payload) {
  try {
    const json in = ParseCbor(payload);
    Reader reader{in};
    T message;
    Fields(reader, message);
    return message;
  } catch (const json::exception& e) {
    return Status(Code::kInvalid,
                  "a message of type " + std::to_string(T::kType) + " cannot be read: " + e.what());
  }
}

#define CAIRN_HOST_MESSAGE(T)                                  \
  template std::string EncodeHostMessage<T>(const T& message); \
  template Result<T> DecodeHostMessage<T>(std::string_view payload);
CAIRN_HOST_MESSAGE(CauseQuery)
CAIRN_HOST_MESSAGE(CauseReply)
CAIRN_HOST_MESSAGE(HolderQuery)
CAIRN_HOST_MESSAGE(HolderReply)
CAIRN_HOST_MESSAGE(RequeueQuery)
CAIRN_HOST_MESSAGE(RequeueReply)
CAIRN_HOST_MESSAGE(Saved)
CAIRN_HOST_MESSAGE(Left)
CAIRN_HOST_MESSAGE(CopyState)
CAIRN_HOST_MESSAGE(ControlRequest)
CAIRN_HOST_MESSAGE(ControlReply)
#undef CAIRN_HOST_MESSAGE

}  // namespace cairn
