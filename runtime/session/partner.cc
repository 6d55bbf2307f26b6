#include "runtime/session/partner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/bulk/sender.h"
#include "runtime/formats/names.h"

namespace cairn {

std::vector<int> PartnersOf(const std::vector<std::string>& nodes) {
  std::vector<std::string> ring;  // nodes, by their lowest rank
  std::map<std::string, std::vector<int>> ranks_of;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    std::vector<int>& ranks = ranks_of[nodes[rank]];
    if (ranks.empty()) ring.push_back(nodes[rank]);
    ranks.push_back(static_cast<int>(rank));
  }
  std::vector<int> partners(nodes.size(), -1);
  if (ring.size() < 2) return partners;
  for (size_t n = 0; n < ring.size(); ++n) {
    const std::vector<int>& own = ranks_of[ring[n]];
    const std::vector<int>& next = ranks_of[ring[(n + 1) % ring.size()]];
    for (size_t i = 0; i < own.size(); ++i) partners[static_cast<size_t>(own[i])] = next[i % next.size()];
  }
  return partners;
}

Result<PartnerSlots> PartnerSlots::Make(const LocalTier& tier, const Layout& layout, const SavePlan& plan,
                                        const std::vector<uint32_t>& wards, const MayTakeFunction& may_take,
                                        std::function<void(uint32_t ward, uint64_t save_id)> held) {
  PartnerSlots slots(tier);
  slots.held_ = std::move(held);
  for (const uint32_t ward : wards) {
    Copy copy;
    CAIRN_ASSIGN_OR_RETURN(copy.plan, PlanImages(layout, plan, ward));
    const std::string name = std::string(kPartnerSlot) + std::to_string(ward) + ".";
    CAIRN_ASSIGN_OR_RETURN(copy.sidecar, tier.Map(name + "sidecar", kSidecarBytes, may_take));
    for (const Image& image : copy.plan.images) {
      CAIRN_ASSIGN_OR_RETURN(Mapping mapping,
                             tier.Map(name + names::Shard(image.number), image.size_bytes, may_take));
      copy.images.push_back(std::move(mapping));
    }
    slots.copies_.emplace(ward, std::move(copy));
  }
  return slots;
}

Result<PartnerSlots::Copy*> PartnerSlots::Receiving(int from, const BulkSubject& subject) {
  const auto found = copies_.find(static_cast<uint32_t>(from));
  if (found == copies_.end())
    return Status(Code::kInvalid, "no copy of rank " + std::to_string(from) + " is kept here");
  if (subject.type != kPartnerBegin && found->second.save_id != subject.ids[0])
    return Status(Code::kInvalid, "a part of a copy that was not begun");
  return &found->second;
}

Result<std::span<std::byte>> PartnerSlots::Place(int from, const BulkSubject& subject, uint32_t bytes) {
  CAIRN_ASSIGN_OR_RETURN(Copy* const copy, Receiving(from, subject));
  if (subject.type != kPartnerImage) {
    buffer_.resize(bytes);
    return std::span<std::byte>(buffer_);
  }
  const uint64_t image = subject.ids[1], offset = subject.ids[2];
  if (image >= copy->images.size() || offset > copy->plan.images[image].size_bytes ||
      bytes > copy->plan.images[image].size_bytes - offset) {
    return Status(Code::kInvalid, "a part that lies in no image of rank " + std::to_string(from));
  }
  return std::span<std::byte>(copy->images[image].data() + offset, bytes);
}

Status PartnerSlots::Take(int from, const BulkSubject& subject, std::span<const std::byte> payload) {
  CAIRN_ASSIGN_OR_RETURN(Copy* const copy, Receiving(from, subject));
  const std::string record = std::string(kPartnerSlot) + std::to_string(from) + ".record";
  Sidecar sidecar(copy->sidecar.data());
  switch (subject.type) {
    case kPartnerBegin: {
      CAIRN_ASSIGN_OR_RETURN(const SidecarContent content, DecodeSidecar(payload.data(), payload.size()));
      if (content.state != SlotState::kStaged || content.id.rank != static_cast<uint32_t>(from) ||
          content.id.save_id != subject.ids[0])
        return {Code::kInvalid, "a sidecar of something else"};
      sidecar.Begin(content.id);
      copy->record.clear();
      copy->save_id = content.id.save_id;
      return OkStatus();
    }
    case kPartnerImage:
      return OkStatus();
    case kPartnerRecord:
      copy->record.append(reinterpret_cast<const char*>(payload.data()), payload.size());
      return OkStatus();
    case kPartnerEnd:
      tier_->Remove(record);
      CAIRN_RETURN_IF_ERROR(tier_->Write(record, copy->record));
      sidecar.MarkStaged();
      held_(static_cast<uint32_t>(from), std::exchange(copy->save_id, 0));
      return OkStatus();
    default:
      return {Code::kInvalid, "a message of unknown type " + std::to_string(subject.type)};
  }
}

namespace {

Status SendCopy(BulkSender& sender, int partner, const OutgoingCopy& copy) {
  std::array<std::byte, kSidecarBytes> bytes{};
  Sidecar sidecar(bytes.data());
  sidecar.Begin(copy.id);
  sidecar.MarkStaged();
  const uint64_t save = copy.id.save_id;
  const auto send = [&](uint16_t type, uint64_t image, std::span<const std::byte> content) -> Status {
    for (size_t at = 0; at < content.size(); at += kPartnerPartBytes) {
      const auto part = content.subspan(at, std::min<size_t>(kPartnerPartBytes, content.size() - at));
      CAIRN_RETURN_IF_ERROR(sender.Send(partner, {type, {save, image, at}}, part));
    }
    return OkStatus();
  };
  CAIRN_RETURN_IF_ERROR(send(kPartnerBegin, 0, bytes));
  for (size_t i = 0; i < copy.images.size(); ++i)
    CAIRN_RETURN_IF_ERROR(send(kPartnerImage, i, copy.images[i]));
  CAIRN_RETURN_IF_ERROR(send(kPartnerRecord, 0, copy.record));
  return sender.Send(partner, {kPartnerEnd, {save, 0, 0}}, {});
}

}  // namespace

PartnerLink::PartnerLink(const BulkIdentity& self, AddressBook* book, int partner, PartnerSlots wards,
                         std::shared_ptr<Breaker> breaker, const std::function<void(const std::string&)>& say)
    : self_(self),
      book_(book),
      partner_(partner),
      breaker_(std::move(breaker)),
      wards_(std::move(wards)),
      worker_([say](const Status& thrown) { say("a copy has failed: " + thrown.message()); }) {}

Result<std::unique_ptr<PartnerLink>> PartnerLink::Make(const BulkIdentity& self, AddressBook* book,
                                                       int partner, PartnerSlots wards,
                                                       const std::function<void(const std::string&)>& say) {
  CAIRN_ASSIGN_OR_RETURN(std::shared_ptr<Breaker> breaker, Breaker::Make());
  std::unique_ptr<PartnerLink> link(new PartnerLink(self, book, partner, std::move(wards), breaker, say));
  BulkEvents events;
  PartnerSlots* const slots = &link->wards_;
  events.place = [slots](int from, const BulkSubject& subject, uint32_t bytes) {
    return slots->Place(from, subject, bytes);
  };
  events.lost = [say](int from, const Status& why) {
    say("the copy of rank " + std::to_string(from) + " has ended early: " + why.message());
  };
  events.refused = say;
  events.take = [slots](int from, const BulkSubject& subject, std::span<const std::byte> payload,
                        const Hash128&) { return slots->Take(from, subject, payload); };
  CAIRN_ASSIGN_OR_RETURN(link->receiver_,
                         BulkReceiver::Open(self, kPartnerPartBytes, breaker, std::move(events)));
  book->Publish(kPartnerPurpose, link->receiver_->addresses());
  return link;
}

PartnerLink::~PartnerLink() {
  breaker_->Break({Code::kCancelled, "the session ends"});
  worker_.Join();
}

void PartnerLink::Send(const OutgoingCopy& copy, std::function<void(const Status& status)> done) {
  auto made = Breaker::MakePart(breaker_);
  copy_ = made.ok() ? *made : nullptr;
  worker_.Run([this, copy, made = std::move(made), done = std::move(done)] {
    if (!made.ok()) return done(made.status());
    const auto locate = [&](int rank) {
      return book_->Find(rank, kPartnerPurpose, **made, BulkSender::kConnectBound);
    };
    BulkSender sender(self_, locate, *made);
    done(SendCopy(sender, partner_, copy));
  });
}

void PartnerLink::GiveUp() {
  if (copy_) copy_->Break({Code::kCancelled, "the copy was given up"});
}

}  // namespace cairn
