// Parcels: what a rank that has read a block hands on of it, and where a rank puts what it is handed. What all ways of handing on have in common.
// Any thread.
#ifndef CAIRN_RUNTIME_RESTORE_PARCELS_H_
#define CAIRN_RUNTIME_RESTORE_PARCELS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/exchange_plan.h"
#include "runtime/restore/placement.h"
#include "runtime/restore/reader.h"

namespace cairn {

class Parcels {
 public:
  // Both outlive it.
  Parcels(const ExchangePlan& plan, const Placement& place) : plan_(plan), place_(place) {}

  // kInternal: the plan reads what is not in the files.
  Status Check(const std::vector<SourceFile>& files) const;

  // `block`: the bytes of the read's block, each where it lies in it, but for those that went straight to their place.
  // Puts there what this rank wants of it besides.
  Status FillOwn(const ExchangePlan::Read& read, const Placement::Direct& direct,
                 std::span<const std::byte> block) const;
  // The parcel of a handover: where it lies in one stretch, else in `room`, which grows.
  std::span<const std::byte> Pack(const ExchangePlan::Handover& handover, uint64_t number,
                                  const Placement::Direct& direct, std::span<const std::byte> block,
                                  std::vector<std::byte>* room) const;
  // The parcel in the block, when all its bytes lie there one after the other.
  std::optional<std::span<const std::byte>> WhereItLies(const ExchangePlan::Handover& handover,
                                                        uint64_t number,
                                                        std::span<const std::byte> block) const;

  // Puts what was handed to this rank where it belongs.
  Status Fill(const ExchangePlan::Receipt& receipt, std::span<const std::byte> parcel) const;

 private:
  const ExchangePlan& plan_;
  const Placement& place_;
};

}  // namespace cairn

#endif  // CAIRN_RUNTIME_RESTORE_PARCELS_H_
