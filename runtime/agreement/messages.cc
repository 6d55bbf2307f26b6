// Wire form: u8 position of the message in its variant, then its fields in the order of the struct. Integers are little-endian and 8 bytes
// long (enumerators and bool: 1), durations are nanoseconds, a string is its u32 length and its bytes.
#include "runtime/agreement/messages.h"

#include <limits>
#include <type_traits>
#include <utility>

namespace cairn::agreement {
namespace {

class Writer {
 public:
  static constexpr bool kReads = false;

  template <typename T>
  void operator()(const T& v) {
    if constexpr (std::is_same_v<T, std::string>) {
      Put(v.size(), 4);
      out_ += v;
    } else if constexpr (std::is_same_v<T, Nanoseconds>) {
      Put(static_cast<uint64_t>(v.count()), 8);
    } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      Put(static_cast<uint64_t>(v), 1);
    } else {
      Put(static_cast<uint64_t>(v), 8);
    }
  }
  void CountOf(int64_t v) { (*this)(v); }
  void Put(uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(v >> (8 * i) & 0xff);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// After the first fault every value reads as 0 and ok() is false.
class Reader {
 public:
  static constexpr bool kReads = true;

  explicit Reader(std::string_view in) : in_(in) {}

  void operator()(std::string& v) { v = Bytes(Get(4)); }
  void operator()(uint64_t& v) { v = Get(8); }
  void operator()(int64_t& v) { v = static_cast<int64_t>(Get(8)); }
  void operator()(Nanoseconds& v) {
    v = Nanoseconds(static_cast<int64_t>(Get(8)));
    Require(v >= Nanoseconds(0));
  }
  void operator()(bool& v) { v = Below(2) != 0; }
  void operator()(Mode& v) { v = static_cast<Mode>(Below(static_cast<uint64_t>(Mode::kFinal) + 1)); }
  void operator()(Trigger& v) {
    const uint64_t bits = Below(kTriggerAll + 1);
    Require(bits != 0 && (bits & (bits - 1)) == 0);  // one reason
    v = static_cast<Trigger>(bits);
  }
  // A count of steps. Sums of counts and margins must not overflow.
  void CountOf(int64_t& v) {
    (*this)(v);
    Require(v >= 0 && v <= std::numeric_limits<int64_t>::max() / 4);
  }
  uint64_t Get(int bytes) {
    const std::string_view raw = Bytes(static_cast<uint64_t>(bytes));
    uint64_t v = 0;
    for (size_t i = 0; i < raw.size(); ++i) v |= uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    return v;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return in_.empty(); }

 private:
  void Require(bool condition) { ok_ = ok_ && condition; }
  uint64_t Below(uint64_t limit) {
    const uint64_t v = Get(1);
    Require(v < limit);
    return v < limit ? v : 0;
  }
  std::string_view Bytes(uint64_t n) {
    Require(n <= in_.size());
    if (!ok_) return {};
    const std::string_view out = in_.substr(0, n);
    in_.remove_prefix(n);
    return out;
  }

  std::string_view in_;
  bool ok_ = true;
};

// One definition serves both directions.
template <typename A, typename T>
using Ref = std::conditional_t<A::kReads, T, const T>&;

// clang-format off
template <typename A> void Fields(A& a, Ref<A, Request> m) { a(m.reason); a(m.time_left); a(m.tag); }
template <typename A> void Fields(A& a, Ref<A, Count> m) { a(m.id); a.CountOf(m.count); a(m.period); a(m.mode); }
template <typename A> void Fields(A& a, Ref<A, Ack> m) { a(m.id); }
template <typename A> void Fields(A& a, Ref<A, Nack> m) { a(m.id); a.CountOf(m.count); }
template <typename A> void Fields(A& a, Ref<A, Abort> m) { a(m.id); }
template <typename A> void Fields(A& a, Ref<A, Staged> m) { a(m.id); a.CountOf(m.boundary); a(m.label); a(m.final); }
template <typename A> void Fields(A& a, Ref<A, Record> m) { a(m.id); a(m.record); }
template <typename A> void Fields(A& a, Ref<A, Failed> m) { a(m.id); a(m.why); }
template <typename A> void Fields(A& a, Ref<A, Finalized> m) { a.CountOf(m.count); a(m.stateless); }
template <typename A> void Fields(A&, Ref<A, Sync>) {}
template <typename A> void Fields(A& a, Ref<A, Poll> m) { a(m.id); }
template <typename A> void Fields(A& a, Ref<A, ArmAt> m) { a(m.id); a.CountOf(m.boundary); a(m.time_left); }
template <typename A> void Fields(A& a, Ref<A, Go> m) { a(m.id); }
template <typename A> void Fields(A& a, Ref<A, Drain> m) { a(m.id); a(m.attempt); }
template <typename A> void Fields(A& a, Ref<A, Committed> m) { a(m.id); }
template <typename A> void Fields(A& a, Ref<A, Drop> m) { a(m.id); a(m.all_staged); a(m.why); }
template <typename A> void Fields(A& a, Ref<A, Answer> m) { a(m.saved); a(m.why); }
template <typename A> void Fields(A& a, Ref<A, Close> m) { a(m.finished); a(m.why); }
template <typename A> void Fields(A&, Ref<A, Synced>) {}
// clang-format on

template <typename V>
std::string EncodeAny(const V& message) {
  Writer out;
  out.Put(message.index(), 1);
  std::visit([&](const auto& m) { Fields(out, m); }, message);
  return out.Take();
}

template <typename V, size_t... kIndex>
Result<V> DecodeAny(std::string_view bytes, std::index_sequence<kIndex...>) {
  Reader in(bytes);
  const uint64_t type = in.Get(1);
  V message;
  const bool known = ((type == kIndex ? (message.template emplace<kIndex>(), true) : false) || ...);
  if (known) std::visit([&](auto& m) { Fields(in, m); }, message);
  if (!known || !in.ok() || !in.at_end()) {
    return Status(Code::kInvalid, "agreement message of " + std::to_string(bytes.size()) + " bytes, type " +
                                      std::to_string(type) +
                                      ", is malformed: is every rank running the same Cairn?");
  }
  return message;
}

template <typename V>
Result<V> DecodeAny(std::string_view bytes) {
  return DecodeAny<V>(bytes, std::make_index_sequence<std::variant_size_v<V>>());
}

}  // namespace

std::string Encode(const ToLeader& message) { return EncodeAny(message); }
std::string Encode(const ToMember& message) { return EncodeAny(message); }
Result<ToLeader> DecodeToLeader(std::string_view bytes) { return DecodeAny<ToLeader>(bytes); }
Result<ToMember> DecodeToMember(std::string_view bytes) { return DecodeAny<ToMember>(bytes); }

}  // namespace cairn::agreement
