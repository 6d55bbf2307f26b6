#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/catalog/beat.h"
#include "runtime/catalog/checkpoints.h"
#include "runtime/catalog/journal.h"
#include "runtime/catalog/target.h"
#include "runtime/command/life_story.h"
#include "runtime/command/rank_forecasts.h"
#include "runtime/command/report_page.h"
#include "runtime/command/subcommands.h"
#include "runtime/command/summary.h"
#include "runtime/command/text.h"
#include "runtime/formats/names.h"
#include "runtime/io/file.h"

namespace cairn {
namespace {

// A picture of more ranks says nothing that one of so many does not, and planning them takes long.
constexpr int64_t kMostRanks = 1024;

// Of the newest life that had another number of ranks than what it went on from. Where that was pruned meanwhile, the newest checkpoint shows
// the same change the other way round.
void DrawReshard(const RunDirectory& dir, const std::string& newest, Report* report) {
  const auto& lives = report->chronicle.lives;
  const auto life = std::find_if(lives.rbegin(), lives.rend(), [](const LifeCourse& l) {
    return l.saved_ranks != 0 && l.saved_ranks != l.story.ranks &&
           std::max(l.saved_ranks, l.story.ranks) <= kMostRanks;
  });
  if (life == lives.rend()) return;
  const bool there = report->on_disk.contains(life->story.restored);
  const auto loaded = LoadCheckpoint(dir, there ? life->story.restored : newest);
  if (!loaded.ok()) return;
  const bool back = loaded->manifest.world_size == life->story.ranks;
  const int64_t ranks = back ? life->saved_ranks : life->story.ranks;
  const auto forecasts = ForecastRanks(
      loaded->index, LayoutAsSaved(loaded->index.saved, static_cast<uint32_t>(ranks)), [](uint32_t) {});
  if (!forecasts.ok()) return;
  report->reshard_svg = DrawRestore(*loaded, *forecasts);
  report->reshard_text = "Life " + std::to_string(life->story.epoch) + " went on with " +
                         Count(static_cast<size_t>(life->story.ranks), "rank") + " from what " +
                         Count(static_cast<size_t>(life->saved_ranks), "rank") + " had saved. ";
  report->reshard_text +=
      there ? "Which rank reads what, and hands it where, as `cairn plan` works it out:"
            : "That has been pruned; this is the newest checkpoint, as it would be restored on " +
                  Count(static_cast<size_t>(ranks), "rank") + ":";
}

Result<int> WriteReportOf(const std::string& path, std::string out, bool json) {
  CAIRN_ASSIGN_OR_RETURN(const RunDirectory dir, OpenRun(path));
  // The journal first: what is in the directory afterwards is at least as new.
  CAIRN_ASSIGN_OR_RETURN(const std::string journal, ReadJournal(dir));
  CAIRN_ASSIGN_OR_RETURN(const Listing listing, ListCheckpoints(dir));
  CAIRN_ASSIGN_OR_RETURN(const Pointers pointers, ReadPointers(dir, listing));
  Report report{.dir = dir.path(),
                .run = dir.info(),
                .finished = pointers.finished,
                .made = UtcNow(),
                .chronicle = TellChronicle(journal),
                .on_disk = {},
                .reshard_svg = {},
                .reshard_text = {}};
  auto& lives = report.chronicle.lives;
  for (LifeCourse& life : lives) {
    const auto beat = ReadBeat(dir.PathOf(names::AliveFile(life.story.epoch)));
    GuessEnd(&life.story, beat.ok() && *beat && (*beat)->left, &life == &lives.back());
  }
  for (const Checkpoint& checkpoint : listing.checkpoints)
    report.on_disk[checkpoint.name] = Flags(checkpoint, pointers);
  DrawReshard(dir, pointers.newest, &report);
  if (out.empty()) out = "cairn-report.html";
  const std::string page = WriteReport(report);
  CAIRN_RETURN_IF_ERROR(PublishFile(out, page));
  if (json) {
    PrintJson({{"dir", dir.path()}, {"report", out}, {"bytes", page.size()}});
  } else {
    std::printf("wrote %s: open it in a browser\n", out.c_str());
  }
  return kExitGood;
}

}  // namespace

void AddReport(CLI::App* app, Invocation* invocation) {
  auto path = std::make_shared<std::string>(), out = std::make_shared<std::string>();
  Subcommand report = AddSubcommand(
      app, invocation, "report",
      "Write one HTML page that tells a run's story in pictures: its lives and saves over time, what saves "
      "cost,\n"
      "steps that were lost, what lies where, and who read what when the number of ranks changed. The page\n"
      "needs nothing else, not even a network, and can be made while the job runs.",
      "cairn report /scratch/me/run7 -o run7.html",
      [=] { return WriteReportOf(*path, *out, invocation->json); });
  report.Positional("DIR", path.get(), "the run's directory");
  report.Option("-o,--output", "FILE", out.get(), "the page; cairn-report.html in this folder by default");
}

}  // namespace cairn
