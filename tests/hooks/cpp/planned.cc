// planned: a rank whose arrays change between two lives, and load planners that bring the old ones into the new ones; one a mode. Driven by
// load_planner_test.py.
//
// Prints "restore CODE TEXT", then "NAME INDEX… VALUE" for each element of this rank, and "difference KIND NAME SAVED_NAME".
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "cairn/load_planner.hpp"

namespace {

using cairn::LoadSetup;

int64_t FromEnvironment(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::atoll(text);
}

const int64_t rank = FromEnvironment("SLURM_PROCID", 0), ranks = FromEnvironment("SLURM_NTASKS", 1);

// A rank's part of `all` rows.
struct Part {
  explicit Part(int64_t all, int64_t of_rank = rank)
      : first(all * of_rank / ranks), count(all * (of_rank + 1) / ranks - first) {}
  int64_t first, count;
};

// Rows of one number each, as many as the rank has room for.
struct Table {
  void Add(cairn::Session& session) {
    cairn_table table{};
    table.struct_size = sizeof table;
    table.row_bytes = sizeof(int64_t);
    table.capacity = static_cast<int64_t>(memory.size());
    table.rows = &rows;
    table.data = memory.data();
    cairn::Check(cairn_add_table(session.get(), "table", &table));
  }
  std::vector<int64_t> memory = std::vector<int64_t>(20);
  int64_t rows = 0;
};

// "a": rows of [6, 4], 100 + 10 i + j. "f": columns of [5, 3] in Fortran order, 200 + 10 i + j. "flat": ranges of [2, 5] with padding, 300 + k.
// "same": [4] on all ranks, 400 + k. "table": on rank r the row 500 + r.
void Save() {
  const Part rows(6), columns(3), range(12);
  std::vector<double> a, f;
  std::vector<int64_t> flat, same;
  for (int64_t i = rows.first; i < rows.first + rows.count; ++i)
    for (int64_t j = 0; j < 4; ++j) a.push_back(static_cast<double>(100 + 10 * i + j));
  for (int64_t j = columns.first; j < columns.first + columns.count; ++j)
    for (int64_t i = 0; i < 5; ++i) f.push_back(static_cast<double>(200 + 10 * i + j));
  for (int64_t k = range.first; k < range.first + range.count; ++k) flat.push_back(300 + k);
  for (int64_t k = 0; k < 4; ++k) same.push_back(400 + k);
  cairn::Session session;
  session.Add<double>("a", {6, 4}, {{{rows.first, 0}, {rows.count, 4}, a.data()}});
  session.Add<double>("f", {5, 3}, {{{0, columns.first}, {5, columns.count}, f.data()}},
                      {CAIRN_ORDER_FORTRAN});
  session.AddFlat<int64_t>("flat", {2, 5}, {{range.first, range.count, flat.data()}});
  session.Add<int64_t>("same", {4}, {{{0}, {4}, same.data()}});
  Table table;
  table.memory[0] = 500 + rank;
  table.rows = 1;
  table.Add(session);
  session.Restore();
  if (rank == 0) session.Save();  // requests of several might make two
  session.Step(1);
  session.Wait();
}

// The state of the next version: all of it -1 where nothing is loaded.
struct State {
  explicit State(bool fortran) : both(static_cast<size_t>(rows.count * 7), -1), fortran_both(fortran) {}

  void Add(cairn::Session& session) {
    session.Add<double>("both", {6, 7}, {{{rows.first, 0}, {rows.count, 7}, both.data()}},
                        {fortran_both ? CAIRN_ORDER_FORTRAN : CAIRN_ORDER_C});
    session.AddFlat<int64_t>("part", {2, 4}, {{range.first, range.count, part.data()}});
    session.Add<int64_t>("same", {2}, {{{0}, {2}, same.data()}});
    table.Add(session);
  }
  void Print() const {
    for (int64_t i = 0; i < rows.count; ++i) {
      for (int64_t j = 0; j < 7; ++j) {
        const int64_t at = fortran_both ? j * rows.count + i : i * 7 + j;
        std::printf("both %" PRId64 " %" PRId64 " %g\n", rows.first + i, j, both[static_cast<size_t>(at)]);
      }
    }
    for (int64_t k = 0; k < range.count; ++k)
      std::printf("part %" PRId64 " %" PRId64 "\n", range.first + k, part[static_cast<size_t>(k)]);
    for (int64_t k = 0; k < 2; ++k)
      std::printf("same %" PRId64 " %" PRId64 "\n", k, same[static_cast<size_t>(k)]);
    for (int64_t k = 0; k < table.rows; ++k)
      std::printf("table %" PRId64 " here\n", table.memory[static_cast<size_t>(k)]);
  }

  const Part rows{6}, range{8};
  std::vector<double> both;
  std::vector<int64_t> part = std::vector<int64_t>(static_cast<size_t>(range.count), -1);
  std::vector<int64_t> same = {-1, -1};
  Table table;
  const bool fortran_both;
};

// "both" is "a", and "f" to the right of it, which has a row less; "part" the last four of each row of "flat"; "same" the middle of "same".
void AddItems(const LoadSetup& setup, int64_t of_rank, cairn::LoadPlanner::Plan* plan) {
  const Part rows(6, of_rank);
  plan->push_back(setup.Read("a", {rows.first, 0}, {rows.count, 4}, "both", {rows.first, 0}));
  const int64_t of_f = std::min<int64_t>(rows.count, 5 - rows.first);
  if (of_f > 0) plan->push_back(setup.Read("f", {rows.first, 0}, {of_f, 3}, "both", {rows.first, 4}));
  plan->push_back(setup.Read("same", {1}, {2}, "same", {0}));
  const Part range(8, of_rank);  // an item for each row, of what this rank holds of it
  for (int64_t row = 0; row < 2; ++row) {
    const int64_t begin = std::max<int64_t>(range.first, 4 * row);
    const int64_t end = std::min<int64_t>(range.first + range.count, 4 * row + 4);
    if (begin >= end) continue;
    plan->push_back(
        setup.Read("flat", {row, begin - 4 * row + 1}, {1, end - begin}, "part", {row, begin - 4 * row}));
  }
}

cairn_read_item* ItemOfSame(const LoadSetup& setup, cairn::LoadPlanner::Plan* plan) {
  return &*std::find_if(
      plan->begin(), plan->end(),
      [to = setup.Registered("same")](const cairn_read_item& item) { return item.to == to; });
}

class Planner : public cairn::LoadPlanner {
 public:
  Planner(std::string mode, const cairn::Session& session, State* state)
      : mode_(std::move(mode)), session_(session.get()), state_(*state) {}

  void Print() const {
    if (mode_ == "resolved") std::printf("resolved %d committed %d\n", resolved_, committed_);
  }

 private:
  void PlanLocally(const LoadSetup& setup, Plan* plan) override {
    if (!plan->empty()) throw std::logic_error("the default plan has what does not fit");
    if (mode_ == "global") return;
    if (mode_ == "boxes" && rank == 0) {
      int64_t elements = 0;
      for (const cairn_box& box : setup.Boxes(setup.Saved("f"))) elements += box.extent[0] * box.extent[1];
      std::printf("boxes %" PRId64 " step %" PRId64 " then %d\n", elements, setup->step,
                  setup->world_size_saved);
    }
    AddItems(setup, rank, plan);
    if (mode_ == "nested") CallSession();
    if (mode_ == "resolved") ItemOfSame(setup, plan)->resolve = 1;
    if (mode_ == "overlaps" && rank == 1) plan->push_back(setup.Read("same", {0}, {1}, "same", {1}));
    if (mode_ == "lacks" && rank == 1) plan->push_back(setup.Read("nothing", {}, {}, "same", {0}));
    if (mode_ == "outside" && rank == 1) plan->push_back(setup.Read("same", {1}, {4}, "same", {0}));
    if (mode_ == "unresolved" && rank == 1)
      plan->push_back(setup.Read("same", {0}, {2}, "same", {0}, /*resolve=*/true));
    if (mode_ == "without_f") plan->erase(plan->begin() + 1);
  }

  void PlanForAll(const LoadSetup& setup, std::vector<Plan>* plans) override {
    if (rank != 0) std::abort();
    if (mode_ == "throws_int") throw 17;
    if (mode_ == "throws_memory") throw std::bad_alloc();
    if (mode_ != "global") return;
    for (size_t r = 0; r < plans->size(); ++r) AddItems(setup, static_cast<int64_t>(r), &(*plans)[r]);
  }

  void Finish(const LoadSetup& /*setup*/, const Plan& plan) override {
    if (mode_ == "throws" && rank == 1) throw std::runtime_error("it did not like the plan");
    if (mode_ == "boxes") std::printf("items %zu\n", plan.size());
  }

  // Other memory each time, as a planner may give.
  cairn_load_memory Resolve(const cairn_read_item& item) override {
    if (mode_ != "resolved") return LoadPlanner::Resolve(item);
    ++resolved_;
    memory_.emplace_back(2);
    return {memory_.back().data(), {}};
  }

  void Commit(const cairn_read_item& /*item*/, const cairn_load_memory& memory) override {
    ++committed_;
    if (memory.data != memory_.back().data()) std::abort();
    state_.same = memory_.back();
  }

  // None of these works on what the restore is at.
  void CallSession() {
    const auto say = [](int code) { std::printf("nested %d %s\n", code, cairn_last_error()); };
    cairn_load_options options{};
    options.struct_size = sizeof options;
    cairn_load_planner planner{};
    planner.struct_size = sizeof planner;
    planner.set_up = [](const cairn_load_setup*, void*) { return 0; };
    say(cairn_add_blob(session_, "more", &resolved_, sizeof resolved_, CAIRN_BLOB_RESEED));
    say(cairn_set_load(session_, &options));
    say(cairn_set_load_planner(session_, &planner));
    say(cairn_restore(session_, nullptr));
  }

  const std::string mode_;
  cairn_session* const session_;
  State& state_;
  int resolved_ = 0, committed_ = 0;
  std::vector<std::vector<int64_t>> memory_;
};

int Load(const std::string& mode, int match) {
  State state(mode == "fortran");
  cairn::Session session;
  state.Add(session);
  Planner planner(mode, session, &state);
  if (mode != "lonely" || rank == 0) planner.Attach(session);
  cairn::Report report;
  try {
    report = session.Restore({match, {}, {}});
    std::printf("restore 0\n");
    for (const cairn::Difference& difference : report.differences)
      std::printf("difference %d %s %s\n", difference.kind, difference.name.c_str(),
                  difference.saved_name.c_str());
  } catch (const cairn::Error& error) {
    std::printf("restore %d %s\n", error.code(), error.what());
    return 0;
  }
  state.Print();
  planner.Print();
  session.Step(report.step + 1);
  session.Wait();  // all are here; and then it ends as if it were killed
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string mode = argv[1];
  if (mode != "save") return Load(mode, argc > 2 ? std::atoi(argv[2]) : CAIRN_MATCH_STRICT);
  Save();
  return 0;
}
