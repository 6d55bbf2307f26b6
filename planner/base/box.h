// Dims and Box: shapes and n-dimensional boxes of array elements, with inline storage (no allocation).
#ifndef CAIRN_PLANNER_BASE_BOX_H_
#define CAIRN_PLANNER_BASE_BOX_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace cairn {

inline constexpr int kMaxRank = 8;  // dimensions of an array, not a process's rank

// A short vector of element counts or coordinates. Size 0 is the shape of a scalar.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) {
    for (int64_t v : values) push_back(v);
  }
  static Dims Filled(int size, int64_t value) {
    Dims d;
    for (int i = 0; i < size; ++i) d.push_back(value);
    return d;
  }

  int size() const { return size_; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  void push_back(int64_t v) { values_[static_cast<size_t>(size_++)] = v; }  // at most kMaxRank
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + size_; }

  friend bool operator==(const Dims& a, const Dims& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator<(const Dims& a, const Dims& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

  int64_t Product() const {  // 1 for a scalar
    int64_t p = 1;
    for (int64_t v : *this) p *= v;
    return p;
  }
  std::string ToString() const;  // "[4, 8]"

 private:
  std::array<int64_t, kMaxRank> values_{};
  int size_ = 0;
};

// Elements [offset, offset + extent) in every dimension. offset.size() == extent.size(); ends fit 63 bits.
struct Box {
  Dims offset;
  Dims extent;

  static Box Whole(const Dims& shape) { return {Dims::Filled(shape.size(), 0), shape}; }

  int rank() const { return extent.size(); }
  int64_t elements() const { return extent.Product(); }
  bool empty() const { return elements() == 0; }
  bool Contains(const Box& other) const;
  std::string ToString() const;  // "[0:4, 8:16]"

  friend bool operator==(const Box& a, const Box& b) { return a.offset == b.offset && a.extent == b.extent; }
  friend bool operator<(const Box& a, const Box& b) {
    return a.offset == b.offset ? a.extent < b.extent : a.offset < b.offset;
  }
};

// The common part, or nothing when it is empty. Both have the same rank; two scalars intersect in the scalar.
std::optional<Box> Intersect(const Box& a, const Box& b);

// Appends to `rest` disjoint boxes: `from` without `cut`, which is not empty and lies inside `from`.
void Subtract(const Box& from, const Box& cut, std::vector<Box>* rest);

}  // namespace cairn

#endif  // CAIRN_PLANNER_BASE_BOX_H_
