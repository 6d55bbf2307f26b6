#include "runtime/session/table_load.h"

#include <cstring>

#include "runtime/restore/row_shuffle.h"

namespace cairn {

Result<TableLoad> TableLoad::Make(Items& items, size_t table, const std::vector<std::string>& marks,
                                  const ArraySpec& saved, uint32_t rank, uint32_t world_size) {
  TableLoad load(items, table);
  auto runs = DecodeTableMarks(marks, saved.shape[0]);
  if (!runs.ok()) return runs.status().Annotate("table \"" + saved.name + "\"");
  load.world_size_ = world_size;
  load.shares_ = DealEvenly(*runs, world_size);
  for (const RowRun& run : load.shares_[rank]) load.rows_ += run.count;
  if (load.table().owner != nullptr) {
    load.share_.resize(static_cast<size_t>(load.rows_ * load.table().row_bytes));
  } else {
    CAIRN_RETURN_IF_ERROR(items.MakeRoom(table, load.rows_));
  }
  return load;
}

std::vector<Piece> TableLoad::PiecesOfAll(uint32_t array) const {
  std::vector<Piece> pieces;
  for (uint32_t rank = 0; rank < shares_.size(); ++rank) {
    for (uint32_t i = 0; i < shares_[rank].size(); ++i) {
      const RowRun& run = shares_[rank][i];
      pieces.push_back({array, rank, i, {{run.first, 0}, {run.count, table().row_bytes}}});
    }
  }
  return pieces;
}

Destination TableLoad::Place(const Piece& piece) {
  std::byte* const base = table().owner != nullptr ? share_.data() : memory();
  const int64_t at = placed_ * table().row_bytes;
  placed_ += piece.box.extent[0];
  return {base + at, piece.box, {table().row_bytes, 1}, 1};
}

Status TableLoad::Finish(const ExchangeLinks& links, const CarriedRound* carried) {
  const RegisteredTable& known = table();
  if (known.owner != nullptr) {
    const auto row_bytes = static_cast<size_t>(known.row_bytes);
    std::vector<uint32_t> owners;
    for (int64_t row = 0; row < rows_; ++row) {
      const int owner = known.owner(share_.data() + static_cast<size_t>(row) * row_bytes,
                                    static_cast<int>(world_size_), known.user);
      if (owner < 0 || static_cast<uint32_t>(owner) >= world_size_) {
        return {Code::kInvalid, "table \"" + known.name + "\": the program gives a row to member " +
                                    std::to_string(owner) + " of " + std::to_string(world_size_)};
      }
      owners.push_back(static_cast<uint32_t>(owner));
    }
    CAIRN_ASSIGN_OR_RETURN(const std::vector<std::byte> own,
                           ShuffleRows(known.name, share_, row_bytes, owners, world_size_, links, carried));
    rows_ = static_cast<int64_t>(own.size() / row_bytes);
    CAIRN_RETURN_IF_ERROR(items_->MakeRoom(table_, rows_));
    if (!own.empty()) std::memcpy(memory(), own.data(), own.size());
  }
  *known.rows = rows_;
  return OkStatus();
}

}  // namespace cairn
