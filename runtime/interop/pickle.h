// Pickle: reads Python's pickles as data. Nothing is ever run: a call stays a description of a call. Pure; any thread.
//
// Only the operations are known that checkpoints of PyTorch need (protocols 2 to 5), and only the classes and functions that the caller admits: any
// other one is refused by name, so that a file which would run something in Python never passes for a checkpoint.
//
// PickleWriter writes the same subset.
#ifndef CAIRN_RUNTIME_INTEROP_PICKLE_H_
#define CAIRN_RUNTIME_INTEROP_PICKLE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/status.h"

namespace cairn {

// A value of a Pickle. Values refer to each other by number, and may do so in circles: a reader looks a fixed number of levels deep.
struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,        // integer
    kInt,         // integer
    kFloat,       // number
    kString,      // text: UTF-8 that was not checked
    kBytes,       // text
    kTuple,       // items
    kList,        // items
    kDict,        // items: key, value, key, value, …
    kGlobal,      // text: "module name"
    kObject,      // items: class or function, its arguments (a tuple), and a state where one was set
    kPersistent,  // items: the one value that stands for something outside
  };
  Kind kind = Kind::kNone;
  union {
    int64_t integer = 0;
    double number;
  };
  std::string_view text;  // in the Pickle's bytes, or one of the admitted names
  std::vector<uint32_t> items;
};

class Pickle {
 public:
  // The pickle that `bytes` begin with. `admitted`: "module name" of each class and function; it outlives the result. kMismatch for one that is not admitted, and for an
  // operation that is not known; kDamage for what is malformed or cut off. The message has the offset. Uses no more memory than a small
  // multiple of the bytes.
  static Result<Pickle> Parse(std::string bytes, std::span<const std::string_view> admitted);

  const PickleValue& root() const { return values_[root_]; }
  const PickleValue& operator[](uint32_t value) const { return values_[value]; }

  // The value of a string key in a dict; null where there is none, or `dict` is none.
  const PickleValue* Find(const PickleValue& dict, std::string_view key) const;

  // The state or call of an object of this class: "module name" of items[0].
  bool IsObject(const PickleValue& value, std::string_view global) const;
  // A member of an object whose state is a dict.
  const PickleValue* Member(const PickleValue& object, std::string_view name) const;

  // A tuple or list of integers; also inside a call with one such argument, as torch.Size is written.
  Result<std::vector<int64_t>> Integers(const PickleValue& value) const;

 private:
  friend class PickleParser;

  std::unique_ptr<const std::string> bytes_;
  std::vector<PickleValue> values_;
  uint32_t root_ = 0;
};

// Appends operations; the caller knows the stack. Protocol 2.
class PickleWriter {
 public:
  PickleWriter() : bytes_("\x80\x02") {}

  void None() { bytes_ += 'N'; }
  void Bool(bool value) { bytes_ += value ? '\x88' : '\x89'; }
  void Int(int64_t value);
  void String(std::string_view utf8);
  void Bytes(
      std::string_view bytes);  // as Python itself writes them in this protocol, by a call of _codecs.encode
  void Global(std::string_view module, std::string_view name);
  void Mark() { bytes_ += '('; }
  void Tuple() { bytes_ += 't'; }  // of all since the mark
  void EmptyTuple() { bytes_ += ')'; }
  void EmptyList() { bytes_ += ']'; }
  void Appends() { bytes_ += 'e'; }  // all since the mark to the list before it
  void EmptyDict() { bytes_ += '}'; }
  void SetItems() { bytes_ += 'u'; }  // all pairs since the mark to the dict before it
  void Reduce() { bytes_ += 'R'; }    // a function and its tuple of arguments
  void New() { bytes_ += '\x81'; }    // a class and its tuple of arguments
  void Build() { bytes_ += 'b'; }     // an object and its state
  void Persistent() { bytes_ += 'Q'; }
  void Integers(std::span<const int64_t> values);  // a tuple

  std::string Finish() && { return std::move(bytes_ += '.'); }

 private:
  std::string bytes_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_INTEROP_PICKLE_H_
