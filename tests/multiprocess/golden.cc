// golden: a rank, without MPI, whose state has one item of each kind that a checkpoint can hold. Each byte follows from the item's name and the
// element's place, so what is restored can be told from anything else, on any number of ranks.
//
//     golden save     takes one checkpoint, tagged "best", with the metrics "loss" and "odd", and ends
//     golden check    restores it. Prints "restored STEP of WORLD", "same NAME BYTES" or "wrong NAME at ELEMENT" for each item of this rank's,
//                     "row ID X" for each row of its table, and "note MEMBER TEXT" for what each saved rank noted
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/include/cairn/cairn.h"

namespace {

int64_t rank = 0, world = 1;

unsigned char ByteAt(const std::string& name, int64_t element, int64_t byte) {
  uint64_t x = 1469598103934665603ULL;  // FNV-1a
  for (const char c : name) x = (x ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  for (const int64_t n : {element, byte}) x = (x ^ static_cast<uint64_t>(n)) * 1099511628211ULL;
  return static_cast<unsigned char>(x >> 32);
}

// One stretch of elements at `data`, of which element i is the array's `places[i]`, counted row by row.
struct Part {
  std::vector<int64_t> places;
  std::vector<unsigned char> data;
};

struct Item {
  std::string name;
  int dtype = 0;
  int64_t width = 0;
  std::vector<int64_t> shape;
  bool fortran = false;
  std::vector<cairn_piece> pieces;
  std::vector<cairn_flat_range> ranges;  // in the place of pieces
  std::vector<Part> parts;               // of each piece or range

  int64_t Columns() const { return shape.size() == 2 ? shape[1] : 1; }
  unsigned char Expected(int64_t place, int64_t byte) const {
    const unsigned char value = ByteAt(name, place, byte);
    return dtype == CAIRN_BOOL ? value & 1 : value;
  }

  // Rows (or elements) and columns from .. to.
  void Hold(int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
    cairn_piece piece{};
    Part part;
    if (!shape.empty()) piece.offset[0] = row, piece.extent[0] = row_end - row;
    if (shape.size() == 2) piece.offset[1] = column, piece.extent[1] = column_end - column;
    const int64_t rows = row_end - row, columns = column_end - column;
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int64_t r = fortran ? i % rows : i / columns, c = fortran ? i / rows : i % columns;
      part.places.push_back((row + r) * Columns() + column + c);
    }
    pieces.push_back(piece);
    parts.push_back(std::move(part));
  }
  void HoldAll() { Hold(0, shape.empty() ? 1 : shape[0], 0, Columns()); }
  void HoldRows() { Hold(shape[0] * rank / world, shape[0] * (rank + 1) / world, 0, Columns()); }
  void HoldColumns() { Hold(0, shape[0], Columns() * rank / world, Columns() * (rank + 1) / world); }
  void HoldTurns(int64_t block) {
    for (int64_t at = block * rank; at < shape[0]; at += block * world) Hold(at, at + block, 0, 1);
  }
  void HoldFlat() {
    const int64_t all = shape[0] * Columns(), first = all * rank / world;
    cairn_flat_range range{};
    range.offset = first;
    range.count = all * (rank + 1) / world - first;
    Part part;
    for (int64_t i = 0; i < range.count; ++i) part.places.push_back(first + i);
    ranges.push_back(range);
    parts.push_back(std::move(part));
  }

  int Add(cairn_session* session, bool filled) {
    for (size_t p = 0; p < parts.size(); ++p) {
      std::vector<unsigned char>& data = parts[p].data;
      data.assign(parts[p].places.size() * static_cast<size_t>(width), 0xEE);
      for (size_t i = 0; filled && i < data.size(); ++i)
        data[i] = Expected(parts[p].places[i / static_cast<size_t>(width)], static_cast<int64_t>(i) % width);
      (ranges.empty() ? pieces[p].data : ranges[p].data) = data.data();
    }
    if (!ranges.empty()) {
      cairn_flat flat{};
      flat.struct_size = sizeof flat;
      flat.dtype = dtype;
      flat.ndim = static_cast<int>(shape.size());
      std::copy(shape.begin(), shape.end(), flat.shape);
      flat.range_count = static_cast<int>(ranges.size());
      flat.ranges = ranges.data();
      return cairn_add_flat(session, name.c_str(), &flat);
    }
    cairn_array array{};
    array.struct_size = sizeof array;
    array.dtype = dtype;
    array.order = fortran ? CAIRN_ORDER_FORTRAN : CAIRN_ORDER_C;
    array.ndim = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), array.shape);
    array.piece_count = static_cast<int>(pieces.size());
    array.pieces = pieces.data();
    return cairn_add_array(session, name.c_str(), &array);
  }

  void Check() const {
    size_t bytes = 0;
    for (const Part& part : parts) {
      for (size_t i = 0; i < part.data.size(); ++i) {
        const int64_t place = part.places[i / static_cast<size_t>(width)];
        if (part.data[i] != Expected(place, static_cast<int64_t>(i) % width)) {
          std::printf("wrong %s at %lld\n", name.c_str(), static_cast<long long>(place));
          return;
        }
      }
      bytes += part.data.size();
    }
    std::printf("same %s %zu\n", name.c_str(), bytes);
  }
};

std::vector<Item> Items() {
  std::vector<Item> items;
  const auto add = [&](const char* name, int dtype, int64_t width, std::vector<int64_t> shape) -> Item& {
    return items.emplace_back(Item{name, dtype, width, std::move(shape), false, {}, {}, {}});
  };
  add("model.rows", CAIRN_F32, 4, {10, 6}).HoldRows();
  add("model.columns", CAIRN_BF16, 2, {7, 9}).HoldColumns();
  add("model.fp8", CAIRN_F8_E4M3, 1, {24}).HoldRows();
  add("model.amax", CAIRN_F8_E5M2, 1, {3, 3}).HoldAll();
  add("model.mask", CAIRN_BOOL, 1, {5, 8}).HoldRows();
  add("model.turns", CAIRN_I64, 8, {16}).HoldTurns(2);
  add("model.none", CAIRN_F32, 4, {0, 4});
  add("model.phase", CAIRN_C64, 8, {4, 5}).HoldAll();
  Item& field = add("field", CAIRN_F64, 8, {4, 6});
  field.fortran = true;
  field.HoldColumns();
  add("optim.step", CAIRN_I64, 8, {}).HoldAll();
  add("optim.scale", CAIRN_F16, 2, {}).HoldAll();
  add("optim.flat", CAIRN_F32, 4, {5, 7}).HoldFlat();
  add("optim.order", CAIRN_U16, 2, {11}).HoldRows();
  return items;
}

struct Row {
  int64_t id;
  double x;
};

}  // namespace

int main(int argc, char** argv) {
  const bool saves = argc == 2 && std::strcmp(argv[1], "save") == 0;
  const char* rank_text = std::getenv("SLURM_PROCID");
  const char* world_text = std::getenv("SLURM_NTASKS");
  if (argc != 2 || rank_text == nullptr || world_text == nullptr) return 2;
  rank = std::atoll(rank_text);
  world = std::atoll(world_text);
  setvbuf(stdout, nullptr, _IOLBF, 0);

  cairn_session* session = nullptr;
  if (cairn_open(nullptr, &session) != CAIRN_OK) return 3;
  std::vector<Item> items = Items();
  for (Item& item : items) {
    if (item.Add(session, saves) != CAIRN_OK) return 3;
  }
  // Of four ranks 1, 4, 7 and 10 rows.
  std::vector<Row> rows(30);
  int64_t count = saves ? 3 * rank + 1 : 0;
  for (int64_t i = 0, id = rank * (3 * rank - 1) / 2; i < count; ++i, ++id)
    rows[static_cast<size_t>(i)] = {id, 1.5 * static_cast<double>(id)};
  cairn_table table{};
  table.struct_size = sizeof table;
  table.row_bytes = sizeof(Row);
  table.capacity = static_cast<int64_t>(rows.size());
  table.rows = &count;
  table.data = rows.data();
  if (cairn_add_table(session, "particles", &table) != CAIRN_OK) return 3;
  uint64_t seed = saves ? 1000 + static_cast<uint64_t>(rank) : 0;
  char note[64] = "";
  size_t note_bytes = static_cast<size_t>(std::snprintf(
      note, sizeof note, "rank %lld of %lld", static_cast<long long>(rank), static_cast<long long>(world)));
  if (cairn_add_blob(session, "rng", &seed, sizeof seed, CAIRN_BLOB_RESEED) != CAIRN_OK ||
      cairn_add_sized_blob(session, "notes", note, sizeof note, &note_bytes, CAIRN_BLOB_MERGE) != CAIRN_OK)
    return 3;

  cairn_report report{};
  report.struct_size = sizeof report;
  if (cairn_restore(session, &report) != CAIRN_OK) {
    std::printf("restore: %s\n", cairn_last_error());
    return 4;
  }
  if (saves) {
    for (int64_t step = 1; step <= 12; ++step) {
      cairn_metric(session, "loss", 1.0 / static_cast<double>(step));
      cairn_metric(session, "odd", std::numeric_limits<double>::infinity());
      if (step == 12 && rank == 0) cairn_save(session, "best");
      cairn_step(session, 100 * step);
    }
    return cairn_finalize(&session) == CAIRN_OK ? 0 : 5;
  }
  std::printf("restored %lld of %d\n", static_cast<long long>(report.step), report.world_size_saved);
  for (const Item& item : items) item.Check();
  for (int64_t i = 0; i < count; ++i)
    std::printf("row %lld %.17g\n", static_cast<long long>(rows[static_cast<size_t>(i)].id),
                rows[static_cast<size_t>(i)].x);
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (int member = 0; member < report.world_size_saved; ++member) {
    const void* text = nullptr;
    size_t size = 0;
    if (cairn_saved_blob(session, "notes", member, &text, &size) != CAIRN_OK) return 5;
    std::printf("note %d %.*s\n", member, static_cast<int>(size), static_cast<const char*>(text));
  }
  return cairn_finalize(&session) == CAIRN_OK ? 0 : 5;
}
