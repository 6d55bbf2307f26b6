#include "runtime/interop/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/formats/little_endian.h"

namespace cairn {

using Kind = PickleValue::Kind;

// One pass over the operations. Each makes at most one value, so that there are never more values, entries of the stack or of the memo
// than bytes.
class PickleParser {
 public:
  PickleParser(std::string bytes, std::span<const std::string_view> admitted) : admitted_(admitted) {
    out_.bytes_ = std::make_unique<const std::string>(std::move(bytes));
    bytes_ = *out_.bytes_;
  }

  Result<Pickle> Parse() {
    for (;;) {
      op_at_ = at_;
      uint8_t op = 0;
      CAIRN_RETURN_IF_ERROR(Number(&op));
      if (op == '.') break;
      CAIRN_RETURN_IF_ERROR(Step(op));
    }
    CAIRN_ASSIGN_OR_RETURN(out_.root_, Pop());
    return std::move(out_);
  }

 private:
  Status Fault(std::string_view what) const {
    return {Code::kDamage, "malformed pickle: " + std::string(what) + " at byte " + std::to_string(op_at_)};
  }

  Status Take(uint64_t size, std::string_view* out) {
    if (size > bytes_.size() - at_) return Fault("it is cut off");
    *out = bytes_.substr(at_, size);
    at_ += size;
    return OkStatus();
  }

  template <typename Unsigned>
  Status Number(Unsigned* out) {
    std::string_view bytes;
    CAIRN_RETURN_IF_ERROR(Take(sizeof(Unsigned), &bytes));
    *out = LittleEndianAt<Unsigned>(bytes, 0);
    return OkStatus();
  }

  template <typename Length>
  Status Counted(std::string_view* out) {
    Length length = 0;
    CAIRN_RETURN_IF_ERROR(Number(&length));
    return Take(length, out);
  }

  Status Line(std::string_view* out) {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return Fault("it is cut off");
    *out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return OkStatus();
  }

  Status Push(PickleValue value) {
    constexpr size_t kMaxValues = size_t{1} << 26;
    if (out_.values_.size() == kMaxValues) return Fault("more than 67 million values");
    stack_.push_back(static_cast<uint32_t>(out_.values_.size()));
    out_.values_.push_back(std::move(value));
    return OkStatus();
  }
  Status PushInt(int64_t value) { return Push({Kind::kInt, {value}, {}, {}}); }
  Status PushText(Kind kind, std::string_view text) { return Push({kind, {0}, text, {}}); }

  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Result<uint32_t> Pop() {
    if (stack_.size() <= Floor()) return Fault("nothing on the stack");
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }

  Status PopToMark(std::vector<uint32_t>* out) {
    if (marks_.empty()) return Fault("no mark");
    out->assign(stack_.begin() + static_cast<ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return OkStatus();
  }

  Status PushItems(Kind kind, size_t count) {
    if (stack_.size() - Floor() < count) return Fault("nothing on the stack");
    std::vector<uint32_t> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return Push({kind, {0}, {}, std::move(items)});
  }

  // Puts items into the list or dict on top of the stack.
  Status Extend(Kind kind, const std::vector<uint32_t>& items) {
    if (stack_.size() <= Floor()) return Fault("nothing on the stack");
    PickleValue& into = out_.values_[stack_.back()];
    if (into.kind != kind || (kind == Kind::kDict && items.size() % 2 != 0))
      return Fault("items for something else");
    into.items.insert(into.items.end(), items.begin(), items.end());
    return OkStatus();
  }

  Status PushGlobal(std::string_view module, std::string_view name) {
    const auto global =
        std::find(admitted_.begin(), admitted_.end(), std::string(module) + " " + std::string(name));
    if (global == admitted_.end()) {
      return {Code::kMismatch, "its pickle names " + std::string(module) + "." + std::string(name) +
                                   " at byte " + std::to_string(op_at_) +
                                   ", which no plain checkpoint needs; it is not read"};
    }
    return PushText(Kind::kGlobal, *global);
  }

  Status PushStackGlobal() {
    CAIRN_ASSIGN_OR_RETURN(const uint32_t name, Pop());
    CAIRN_ASSIGN_OR_RETURN(const uint32_t module, Pop());
    if (out_[name].kind != Kind::kString || out_[module].kind != Kind::kString)
      return Fault("a class without a name");
    return PushGlobal(out_[module].text, out_[name].text);
  }

  Status Call() {
    CAIRN_ASSIGN_OR_RETURN(const uint32_t arguments, Pop());
    CAIRN_ASSIGN_OR_RETURN(const uint32_t callee, Pop());
    if (out_[callee].kind != Kind::kGlobal || out_[arguments].kind != Kind::kTuple)
      return Fault("a call of no function");
    if (out_[callee].text == "collections OrderedDict" && out_[arguments].items.empty())
      return Push({Kind::kDict, {0}, {}, {}});
    return Push({Kind::kObject, {0}, {}, {callee, arguments}});
  }

  Status Build() {
    CAIRN_ASSIGN_OR_RETURN(const uint32_t state, Pop());
    if (stack_.size() <= Floor()) return Fault("nothing on the stack");
    PickleValue& object = out_.values_[stack_.back()];
    if (object.kind != Kind::kObject || object.items.size() != 2) return Fault("a state for something else");
    object.items.push_back(state);
    return OkStatus();
  }

  Status LongInteger() {
    std::string_view bytes;
    CAIRN_RETURN_IF_ERROR(Counted<uint8_t>(&bytes));
    if (bytes.size() > 8) return Fault("an integer of more than 64 bits");
    uint64_t value = bytes.empty() || static_cast<signed char>(bytes.back()) >= 0 ? 0 : ~uint64_t{0};
    for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
    return PushInt(static_cast<int64_t>(value));
  }

  Status Float() {
    std::string_view bytes;
    CAIRN_RETURN_IF_ERROR(Take(8, &bytes));
    uint64_t bits = 0;  // the one big-endian number of the format
    for (const char c : bytes) bits = bits << 8 | static_cast<unsigned char>(c);
    PickleValue value;
    value.kind = Kind::kFloat;
    value.number = std::bit_cast<double>(bits);
    return Push(std::move(value));
  }

  template <typename Index>
  Status Put() {
    Index index = 0;
    CAIRN_RETURN_IF_ERROR(Number(&index));
    return Remember(index);
  }
  Status Remember(uint64_t index) {
    if (stack_.size() <= Floor()) return Fault("nothing on the stack");
    if (index > bytes_.size()) return Fault("a memo number beyond all reason");
    if (memo_.size() <= index) memo_.resize(index + 1, UINT32_MAX);
    memo_[index] = stack_.back();
    ++remembered_;
    return OkStatus();
  }
  template <typename Index>
  Status Get() {
    Index index = 0;
    CAIRN_RETURN_IF_ERROR(Number(&index));
    if (index >= memo_.size() || memo_[index] == UINT32_MAX) return Fault("a memo number that was not set");
    stack_.push_back(memo_[index]);
    return OkStatus();
  }

  Status Step(uint8_t op) {
    std::string_view text, name;
    std::vector<uint32_t> items;
    switch (op) {
      case 0x80: {  // PROTO
        uint8_t protocol = 0;
        CAIRN_RETURN_IF_ERROR(Number(&protocol));
        return protocol <= 5 ? OkStatus() : Fault("an unknown protocol");
      }
      case 0x95:
        return Take(8, &text);  // FRAME: only its length
      case '(':
        marks_.push_back(stack_.size());
        return OkStatus();
      case 'N':
        return Push({});
      case 0x88:
      case 0x89:
        return Push({Kind::kBool, {op == 0x88 ? 1 : 0}, {}, {}});
      case 'J': {
        uint32_t value = 0;
        CAIRN_RETURN_IF_ERROR(Number(&value));
        return PushInt(static_cast<int32_t>(value));
      }
      case 'K': {
        uint8_t value = 0;
        CAIRN_RETURN_IF_ERROR(Number(&value));
        return PushInt(value);
      }
      case 'M': {
        uint16_t value = 0;
        CAIRN_RETURN_IF_ERROR(Number(&value));
        return PushInt(value);
      }
      case 0x8a:
        return LongInteger();
      case 'G':
        return Float();
      case 'X':
        CAIRN_RETURN_IF_ERROR(Counted<uint32_t>(&text));
        return PushText(Kind::kString, text);
      case 0x8c:
        CAIRN_RETURN_IF_ERROR(Counted<uint8_t>(&text));
        return PushText(Kind::kString, text);
      case 0x8d:
        CAIRN_RETURN_IF_ERROR(Counted<uint64_t>(&text));
        return PushText(Kind::kString, text);
      case 'B':
        CAIRN_RETURN_IF_ERROR(Counted<uint32_t>(&text));
        return PushText(Kind::kBytes, text);
      case 'C':
        CAIRN_RETURN_IF_ERROR(Counted<uint8_t>(&text));
        return PushText(Kind::kBytes, text);
      case ')':
        return PushItems(Kind::kTuple, 0);
      case 0x85:
      case 0x86:
      case 0x87:
        return PushItems(Kind::kTuple, op - 0x84U);
      case 't':
        CAIRN_RETURN_IF_ERROR(PopToMark(&items));
        return Push({Kind::kTuple, {0}, {}, std::move(items)});
      case ']':
        return PushItems(Kind::kList, 0);
      case 'a': {
        CAIRN_ASSIGN_OR_RETURN(const uint32_t item, Pop());
        return Extend(Kind::kList, {item});
      }
      case 'e':
        CAIRN_RETURN_IF_ERROR(PopToMark(&items));
        return Extend(Kind::kList, items);
      case '}':
        return PushItems(Kind::kDict, 0);
      case 's': {
        CAIRN_ASSIGN_OR_RETURN(const uint32_t value, Pop());
        CAIRN_ASSIGN_OR_RETURN(const uint32_t key, Pop());
        return Extend(Kind::kDict, {key, value});
      }
      case 'u':
        CAIRN_RETURN_IF_ERROR(PopToMark(&items));
        return Extend(Kind::kDict, items);
      case 'c':
        CAIRN_RETURN_IF_ERROR(Line(&text));
        CAIRN_RETURN_IF_ERROR(Line(&name));
        return PushGlobal(text, name);
      case 0x93:
        return PushStackGlobal();
      case 'R':
      case 0x81:
        return Call();
      case 'b':
        return Build();
      case 'Q':
        return PushItems(Kind::kPersistent, 1);
      case 'q':
        return Put<uint8_t>();
      case 'r':
        return Put<uint32_t>();
      case 0x94:
        return Remember(remembered_);
      case 'h':
        return Get<uint8_t>();
      case 'j':
        return Get<uint32_t>();
      default:
        break;
    }
    return {Code::kMismatch, "its pickle has operation " + std::to_string(op) + " at byte " +
                                 std::to_string(op_at_) +
                                 ", which no plain checkpoint needs; it is not read"};
  }

  std::string_view bytes_;
  const std::span<const std::string_view> admitted_;
  size_t at_ = 0, op_at_ = 0;
  std::vector<uint32_t> stack_, memo_;
  std::vector<size_t> marks_;  // sizes of the stack
  uint64_t remembered_ = 0;
  Pickle out_;
};

Result<Pickle> Pickle::Parse(std::string bytes, std::span<const std::string_view> admitted) {
  return PickleParser(std::move(bytes), admitted).Parse();
}

const PickleValue* Pickle::Find(const PickleValue& dict, std::string_view key) const {
  if (dict.kind != Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& candidate = values_[dict.items[i]];
    if (candidate.kind == Kind::kString && candidate.text == key) return &values_[dict.items[i + 1]];
  }
  return nullptr;
}

bool Pickle::IsObject(const PickleValue& value, std::string_view global) const {
  return value.kind == Kind::kObject && values_[value.items[0]].text == global;
}

const PickleValue* Pickle::Member(const PickleValue& object, std::string_view name) const {
  if (object.kind != Kind::kObject || object.items.size() < 3) return nullptr;
  return Find(values_[object.items[2]], name);
}

Result<std::vector<int64_t>> Pickle::Integers(const PickleValue& value) const {
  const PickleValue* list = &value;
  if (list->kind == Kind::kObject) {  // torch.Size((2, 3))
    const PickleValue& arguments = values_[list->items[1]];
    if (arguments.items.size() == 1) list = &values_[arguments.items[0]];
  }
  if (list->kind != Kind::kTuple && list->kind != Kind::kList)
    return Status(Code::kDamage, "no list of integers");
  std::vector<int64_t> out;
  for (const uint32_t item : list->items) {
    if (values_[item].kind != Kind::kInt) return Status(Code::kDamage, "no list of integers");
    out.push_back(values_[item].integer);
  }
  return out;
}

void PickleWriter::Int(int64_t value) {
  bytes_ += '\x8a';
  bytes_ += '\x08';
  AppendLittleEndian<uint64_t>(bytes_, static_cast<uint64_t>(value));
}

void PickleWriter::String(std::string_view utf8) {
  bytes_ += 'X';
  AppendLittleEndian<uint32_t>(bytes_, static_cast<uint32_t>(utf8.size()));
  bytes_ += utf8;
}

void PickleWriter::Bytes(std::string_view bytes) {
  std::string latin1;  // in UTF-8
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) latin1 += static_cast<char>(0xC0 | byte >> 6);
    latin1 += byte < 0x80 ? c : static_cast<char>(0x80 | (byte & 0x3F));
  }
  Global("_codecs", "encode");
  Mark();
  String(latin1);
  String("latin1");
  Tuple();
  Reduce();
}

void PickleWriter::Global(std::string_view module, std::string_view name) {
  bytes_ += 'c';
  bytes_ += module;
  bytes_ += '\n';
  bytes_ += name;
  bytes_ += '\n';
}

void PickleWriter::Integers(std::span<const int64_t> values) {
  Mark();
  for (const int64_t value : values) Int(value);
  Tuple();
}

}  // namespace cairn
