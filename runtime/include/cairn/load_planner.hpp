// load_planner.hpp: a program's own load planner, over cairn_load_planner of cairn.h, which says what each call means. For C++17; all inline.
//
// It has the steps of PyTorch's planners: set up, local plan, global plan, finish plan, resolve, commit. What is not overridden does what a restore
// without a planner does. An exception that leaves one of them stops the restore on all members, with its text. In the report an array into which
// several saved ones went, or one of another name, is CAIRN_ITEM_RENAMED, from the first of them.
//
//     class FirstHalf : public cairn::LoadPlanner {          // the upper half of "wide" into "narrow"
//       void PlanLocally(const cairn::LoadSetup& setup, Plan* plan) override {
//         plan->push_back(setup.Read("wide", {0, 0}, {rows / 2, columns}, "narrow", {0, 0}));
//       }
//     };
//
//     FirstHalf planner;
//     planner.Attach(session);
//     session.Restore();
#ifndef CAIRN_LOAD_PLANNER_HPP_
#define CAIRN_LOAD_PLANNER_HPP_

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "cairn/cairn.hpp"

namespace cairn {
inline namespace v1 {

// cairn_load_setup with look-up by name.
class LoadSetup {
 public:
  explicit LoadSetup(const cairn_load_setup& setup) : setup_(&setup) {}
  const cairn_load_setup* operator->() const noexcept { return setup_; }

  // Positions; throw CAIRN_E_MISMATCH where there is no such array.
  int Saved(const std::string& name) const {
    for (int i = 0; i < setup_->saved_count; ++i) {
      if (setup_->saved[i].name == name) return i;
    }
    throw Error(CAIRN_E_MISMATCH, ("the checkpoint has no array \"" + name + "\"").c_str());
  }
  int Registered(const std::string& name) const {
    for (int i = 0; i < setup_->registered_count; ++i) {
      if (setup_->registered[i].array.name == name) return i;
    }
    throw Error(CAIRN_E_MISMATCH, ("the program has added no array \"" + name + "\"").c_str());
  }

  // How a saved array was cut. One thread at a time.
  std::vector<cairn_box> Boxes(int saved) const {
    std::vector<cairn_box> boxes;
    for (;;) {
      const int count = setup_->boxes(setup_, saved, static_cast<int>(boxes.size()), boxes.data());
      if (count < 0) throw Error(count, "the checkpoint does not say how this array was cut");
      if (static_cast<size_t>(count) <= boxes.size()) return boxes;
      boxes.resize(static_cast<size_t>(count));
    }
  }

  // An item of a plan.
  cairn_read_item Read(const std::string& from, const Index& from_offset, const Index& extent,
                       const std::string& to, const Index& to_offset, bool resolve = false) const {
    cairn_read_item item{};
    item.from = Saved(from);
    item.to = Registered(to);
    Copy(from, setup_->saved[item.from].ndim, from_offset, item.from_offset);
    Copy(from, setup_->saved[item.from].ndim, extent, item.extent);
    Copy(to, setup_->registered[item.to].array.ndim, to_offset, item.to_offset);
    item.resolve = resolve ? 1 : 0;
    return item;
  }

 private:
  static void Copy(const std::string& name, int dims, const Index& from, int64_t (&to)[CAIRN_MAX_DIMS]) {
    if (from.size() != static_cast<size_t>(dims))
      throw Error(CAIRN_E_INVALID,
                  ("array \"" + name + "\" has " + std::to_string(dims) + " dimensions, and " +
                   std::to_string(from.size()) + " numbers are given for them")
                      .c_str());
    std::copy(from.begin(), from.end(), to);
  }

  const cairn_load_setup* setup_;
};

class LoadPlanner {
 public:
  using Plan = std::vector<cairn_read_item>;

  LoadPlanner() = default;
  LoadPlanner(const LoadPlanner&) = delete;
  LoadPlanner& operator=(const LoadPlanner&) = delete;
  virtual ~LoadPlanner() = default;

  // Before session.Restore(), which it must outlive.
  void Attach(const Session& session) {
    cairn_load_planner calls{};
    calls.struct_size = sizeof calls;
    calls.user = this;
    calls.why = [](void* user) { return Self(user)->why_.c_str(); };
    calls.set_up = [](const cairn_load_setup* setup, void* user) {
      return Guard(user, [&](LoadPlanner& self) { self.SetUp(LoadSetup(*(self.setup_ = setup))); });
    };
    calls.local_plan = [](cairn_load_plan* plan, void* user) {
      return Guard(user, [&](LoadPlanner& self) {
        self.plans_.assign(1, Plan(plan->items, plan->items + plan->item_count));
        self.PlanLocally(LoadSetup(*self.setup_), &self.plans_[0]);
        self.Give(plan);
      });
    };
    calls.global_plan = [](cairn_load_plan* plans, int members, void* user) {
      return Guard(user, [&](LoadPlanner& self) {
        self.plans_.clear();
        for (int i = 0; i < members; ++i)
          self.plans_.emplace_back(plans[i].items, plans[i].items + plans[i].item_count);
        self.PlanForAll(LoadSetup(*self.setup_), &self.plans_);
        if (self.plans_.size() != static_cast<size_t>(members))
          throw Error(CAIRN_E_INVALID, "PlanForAll gives another number of plans than there are members");
        self.Give(plans);
      });
    };
    calls.finish_plan = [](const cairn_load_plan* plan, void* user) {
      return Guard(user, [&](LoadPlanner& self) {
        self.Finish(LoadSetup(*self.setup_), Plan(plan->items, plan->items + plan->item_count));
      });
    };
    calls.resolve = [](const cairn_read_item* item, cairn_load_memory* memory, void* user) {
      return Guard(user, [&](LoadPlanner& self) { *memory = self.Resolve(*item); });
    };
    calls.commit = [](const cairn_read_item* item, const cairn_load_memory* memory, void* user) {
      return Guard(user, [&](LoadPlanner& self) { self.Commit(*item, *memory); });
    };
    Check(cairn_set_load_planner(session.get(), &calls));
  }

 protected:
  virtual void SetUp(const LoadSetup& /*setup*/) {}
  // `plan` is the default one.
  virtual void PlanLocally(const LoadSetup& /*setup*/, Plan* /*plan*/) {}
  // On member 0; by member.
  virtual void PlanForAll(const LoadSetup& /*setup*/, std::vector<Plan>* /*plans*/) {}
  virtual void Finish(const LoadSetup& /*setup*/, const Plan& /*plan*/) {}
  // Of items that have `resolve`.
  virtual cairn_load_memory Resolve(const cairn_read_item& /*item*/) {
    throw Error(CAIRN_E_INVALID, "an item is to be resolved, and the planner does not say where");
  }
  virtual void Commit(const cairn_read_item& /*item*/, const cairn_load_memory& /*memory*/) {}

 private:
  static LoadPlanner* Self(void* user) { return static_cast<LoadPlanner*>(user); }

  template <typename Body>
  static int Guard(void* user, Body&& body) noexcept {
    LoadPlanner& self = *Self(user);
    try {
      body(self);
      return CAIRN_OK;
    } catch (const Error& error) {
      return self.Fail(error.code(), error.what());
    } catch (const std::bad_alloc&) {
      return self.Fail(CAIRN_E_NO_MEMORY, "out of memory");
    } catch (const std::exception& error) {
      return self.Fail(CAIRN_E_MISMATCH, error.what());
    } catch (...) {
      return self.Fail(CAIRN_E_MISMATCH, "an exception");
    }
  }

  int Fail(int code, const char* why) noexcept {
    try {
      why_ = why;
      return code;
    } catch (...) {
      why_.assign("out of memory");  // fits a string without allocation
      return CAIRN_E_NO_MEMORY;
    }
  }

  void Give(cairn_load_plan* plans) const {
    for (size_t i = 0; i < plans_.size(); ++i)
      plans[i] = {static_cast<int>(plans_[i].size()), plans_[i].data()};
  }

  const cairn_load_setup* setup_ = nullptr;
  std::vector<Plan> plans_;  // what Cairn was given last
  std::string why_;
};

}  // namespace v1
}  // namespace cairn

#endif  // CAIRN_LOAD_PLANNER_HPP_
