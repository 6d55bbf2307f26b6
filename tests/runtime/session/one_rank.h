// OneRank: a program of one rank with one array, and if it is told so a table of three rows, and what it can be saved and committed with.
#ifndef CAIRN_TESTS_RUNTIME_SESSION_ONE_RANK_H_
#define CAIRN_TESTS_RUNTIME_SESSION_ONE_RANK_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session/items.h"
#include "runtime/session/saver.h"
#include "runtime/session/state.h"
#include "tests/runtime/temp_dir.h"

namespace cairn {

struct OneRank {
  explicit OneRank(size_t bytes, bool has_table = false) : memory(bytes) {
    const auto count = static_cast<int64_t>(bytes);
    cairn_piece piece{.offset = {0}, .extent = {count}, .stride = {}, .data = memory.data()};
    cairn_array array{};
    array.struct_size = sizeof array;
    array.dtype = CAIRN_U8;
    array.ndim = 1;
    array.shape[0] = count;
    array.piece_count = 1;
    array.pieces = &piece;
    EXPECT_TRUE(items.AddArray("u", array).ok());
    if (has_table) {
      cairn_table table{};
      table.struct_size = sizeof table;
      table.row_bytes = 16;
      table.capacity = 3;
      table.rows = &rows;
      table.data = table_memory;
      table.grow = [](int64_t*, void* grown) { return grown; };
      table.user = table_memory;
      EXPECT_TRUE(items.AddTable("p", table).ok());
    }
    ShareMerger merger;
    EXPECT_TRUE(merger.Add(EncodeShare(items)).ok());
    state = *std::move(merger).Finish();
  }
  std::unique_ptr<Saver> MakeSaver(uint64_t drain_limit) {
    Saver::Options options;
    options.epoch = 1;
    options.claim = "00112233445566aa";
    options.run_directory = dir.path();
    options.run_id = "0123456789abcdef";
    options.tier.setting = "none";
    options.drain_limit = drain_limit;
    auto saver = Saver::Make(options, state, items);
    EXPECT_TRUE(saver.ok()) << saver.status().message();
    return *std::move(saver);
  }

  TempDir dir;
  std::vector<std::byte> memory;
  std::byte table_memory[256] = {};
  int64_t rows = 2;
  Items items;
  State state;
};

// Up to the drain, which is the test's.
inline void Stage(Saver& saver, uint64_t save_id) {
  ASSERT_TRUE(saver.Acquire(save_id, 10).ok());
  ASSERT_TRUE(saver.Copy({7, 10, false}, "").ok());
  saver.BeginDrain();
}

inline Result<MemberRecord> Drain(Saver& saver, uint64_t save_id, const std::string& directory) {
  Saver::Save* const save = saver.EnterDrain(save_id);
  if (save == nullptr) return Status(Code::kInternal, "nothing is to be drained");
  Result<MemberRecord> record = saver.Drain(*save, directory);
  saver.DrainEnded(*save);
  return record;
}

}  // namespace cairn

#endif  // CAIRN_TESTS_RUNTIME_SESSION_ONE_RANK_H_
