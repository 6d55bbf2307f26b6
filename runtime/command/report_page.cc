#include "runtime/command/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/command/markup.h"
#include "runtime/command/report_charts.h"
#include "runtime/command/text.h"
#include "runtime/settings.h"
#include "runtime/staging/memory_room.h"

namespace cairn {
namespace {

constexpr size_t kMostRows = 200;  // of a table

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2430;--dim:#5d6b7a;--line:#e3e7ec;--course:#2459c9;--saved:#0f8a6d;
--good:#0f8a6d;--told:#c98a12;--bad:#c9372c;--open:#2459c9;--wait:#8fb1f0;--write:#2459c9}
@media (prefers-color-scheme:dark){:root{--page:#11151b;--card:#1a2029;--ink:#e6eaf0;--dim:#96a3b3;--line:#2c3541;--course:#7aa5ff;--saved:#3ccba6;
--good:#3ccba6;--told:#e8b04b;--bad:#ff7b70;--open:#7aa5ff;--wait:#3f5f9f;--write:#7aa5ff}.reshard{filter:invert(1) hue-rotate(180deg)}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1160px;margin:0 auto;padding:36px 20px 48px}h1{margin:0;font-size:27px;line-height:1.2;overflow-wrap:anywhere}
h2{margin:0 0 4px;font-size:17px}h3{margin:0;font-size:14px;font-weight:600}.dim,p{color:var(--dim)}p{margin:2px 0 12px;max-width:78ch;font-size:14px}
header p{max-width:none;overflow-wrap:anywhere}.badge{display:inline-block;margin-left:12px;padding:2px 11px;border-radius:99px;font-size:13px;font-weight:600;vertical-align:4px;
color:var(--card);background:var(--c)}section{margin-top:18px;padding:18px 20px;background:var(--card);border:1px solid var(--line);border-radius:12px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:12px;margin-top:20px}.tile{padding:13px 16px;background:var(--card);
border:1px solid var(--line);border-radius:12px}.tile b{display:block;font-size:25px;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums}
.tile span{display:block;color:var(--dim);font-size:13px}.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:18px 28px}
svg{display:block;width:100%;height:auto;overflow:visible}figure{margin:0;min-width:0}.reshard{width:100%;border-radius:8px}
.legend{display:flex;flex-wrap:wrap;gap:4px 20px;margin-top:8px;font-size:13px;color:var(--dim)}.legend i{display:inline-block;width:12px;height:12px;margin-right:6px;
border-radius:3px;vertical-align:-1px;background:var(--c)}.legend i.ring{border-radius:50%}
.good{--c:var(--good)}.told{--c:var(--told)}.bad{--c:var(--bad)}.open{--c:var(--open)}
text{font-size:12px;fill:var(--ink)}.tick{fill:var(--dim)}.life{font-weight:600}.grid{stroke:var(--line)}.band{fill:var(--c);fill-opacity:.09}.head{fill:var(--c)}
.course{fill:none;stroke:var(--course);stroke-width:2;stroke-linejoin:round}.lost{stroke:var(--bad);stroke-width:2;stroke-dasharray:4 2}.losses{fill:var(--bad);font-weight:600}
rect.saved{fill:var(--saved)}rect.last{fill:var(--told)}circle.saved{fill:var(--card);stroke:var(--saved);stroke-width:1.6}
.dropped,.underway{fill:none;stroke:var(--bad);stroke-width:2}.underway{stroke:var(--open)}.border{stroke:var(--dim);stroke-dasharray:2 3}
.most{fill:var(--dim);fill-opacity:.25}.wait{fill:var(--wait)}.write{fill:var(--write)}.stall{fill:var(--told)}.size{fill:var(--saved)}
.tier{display:grid;grid-template-columns:minmax(140px,290px) 1fr 70px;gap:14px;align-items:center;padding:3px 0;font-size:13.5px}.tier b{text-align:right;
font-variant-numeric:tabular-nums}.track{height:14px;border-radius:4px;background:var(--page)}.track i{display:block;height:14px;min-width:2px;border-radius:4px;background:var(--c)}
.scroll{overflow-x:auto}table{width:100%;border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums}th{text-align:left;font-weight:600;color:var(--dim)}
th,td{padding:6px 14px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}tr:last-child td{border-bottom:0}.n{text-align:right}.n,.t{white-space:nowrap}
td.wide{min-width:15em;overflow-wrap:anywhere}.end{color:var(--c);font-weight:600}code{font:12.5px ui-monospace,"DejaVu Sans Mono",monospace}
@media print{body{background:#fff}section,.tile{break-inside:avoid}}
)";

std::string Duration(int64_t ns) {
  if (ns > 0 && ns < 1'000'000) return std::to_string((ns + 500) / 1000) + " µs";
  return FormatDuration(Nanoseconds(ns));
}

std::string Percent(double share) {
  char text[32];
  const double percent = 100 * share;
  std::snprintf(text, sizeof text,
                percent >= 10    ? "%.0f %%"
                : percent >= 0.1 ? "%.1f %%"
                                 : "%.2g %%",
                percent);
  return text;
}

struct Totals {
  int64_t steps = 0, lost_steps = 0;
  bool lost_at_least = false;
  size_t durable = 0, given_up = 0, staged = 0, partner = 0, rescued = 0, on_disk = 0;
  uint64_t bytes = 0;
  int64_t stall_ns = 0, alive_ms = 0, began_ms = 0, ended_ms = 0;

  double stall_share() const {
    return alive_ms == 0 ? 0 : 1e-6 * static_cast<double>(stall_ns) / static_cast<double>(alive_ms);
  }
};

Totals Sum(const Report& report) {
  Totals sum;
  for (const LifeCourse& life : report.chronicle.lives) {
    if (sum.began_ms == 0) sum.began_ms = life.began_ms;
    sum.ended_ms = std::max(sum.ended_ms, life.last_ms);
    sum.alive_ms += life.last_ms - life.began_ms;
    sum.lost_steps += life.lost_steps;
    sum.lost_at_least |= life.lost_steps > 0 && !life.last_is_known;
    if (life.restored) sum.steps = life.last_step;
  }
  for (const SaveCourse& save : report.chronicle.saves) {
    sum.durable += save.durable() ? 1 : 0;
    sum.given_up += save.why.empty() ? 0 : 1;
    sum.staged += save.staged_ms != 0 || save.rescued ? 1 : 0;
    sum.partner += save.partner_ms != 0 ? 1 : 0;
    sum.rescued += save.rescued ? 1 : 0;
    sum.bytes += save.bytes;
    sum.stall_ns += save.stall_ns;
  }
  sum.on_disk = report.on_disk.size();
  return sum;
}

class Page {
 public:
  explicit Page(const Report& report) : report_(report), sum_(Sum(report)) {
    for (const SaveCourse& save : report.chronicle.saves) {
      if (save.durable()) durable_.push_back(&save);
    }
  }

  std::string Write() {
    page_.Open("html", {{"lang", "en"}}).Open("head");
    page_.Empty("meta", {{"charset", "utf-8"}});
    page_.Empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
    page_.Element("title", report_.run.name + " – Cairn");
    page_.Open("style").Verbatim(kStyle).Close().Close();
    page_.Open("body").Open("main");
    Head();
    Tiles();
    if (!report_.chronicle.lives.empty()) TimelineSection();
    if (!durable_.empty()) Charts();
    Tiers();
    Reshard();
    Lives();
    Saves();
    page_.Close().Close().Close();
    return "<!DOCTYPE html>\n" + page_.text();
  }

 private:
  void Badge(const char* kind, const std::string& text) {
    page_.Element("span", text, {{"class", std::string("badge ") + kind}});
  }

  void Head() {
    page_.Open("header").Open("h1").Text(report_.run.name);
    const auto& lives = report_.chronicle.lives;
    if (report_.finished) {
      Badge("good", "finished");
    } else if (!lives.empty() && lives.back().story.end == "open") {
      Badge("open", "open");
    } else {
      Badge("told", "unfinished");
    }
    page_.Close();
    page_.Element("p", report_.dir + " · run " + report_.run.id + " · begun " + report_.run.created +
                           " · this page made " + report_.made);
    page_.Close();
  }

  void Tile(const std::string& number, const std::string& what) {
    page_.Open("div", {{"class", "tile"}}).Element("b", number).Element("span", what).Close();
  }

  void Tiles() {
    page_.Open("div", {{"class", "tiles"}});
    const size_t lives = report_.chronicle.lives.size();
    Tile(Grouped(sum_.steps), report_.finished ? "steps, to the end" : "steps so far");
    Tile(Grouped(static_cast<int64_t>(lives)), (lives == 1 ? "life, " : "lives, ") +
                                                   Duration(1'000'000 * (sum_.ended_ms - sum_.began_ms)) +
                                                   " from begin to end");
    Tile(Grouped(static_cast<int64_t>(sum_.durable)),
         std::string(sum_.durable == 1 ? "save" : "saves") + ", " + FormatBytes(sum_.bytes) +
             (sum_.given_up > 0 ? "; " + std::to_string(sum_.given_up) + " given up" : ""));
    Tile((sum_.lost_at_least ? "≥ " : "") + Grouped(sum_.lost_steps),
         sum_.lost_steps == 1 ? "step lost and made again" : "steps lost and made again");
    Tile(Percent(sum_.stall_share()), "of the time stood still for saves");
    page_.Close();
  }

  void OpenSection(const std::string& title, const std::string& text) {
    page_.Open("section").Element("h2", title);
    if (!text.empty()) page_.Element("p", text);
  }

  void Legend(const std::vector<std::pair<std::string, std::string>>& entries) {
    page_.Open("div", {{"class", "legend"}});
    for (const auto& [colour, text] : entries)
      page_.Open("span").Open("i", {{"style", "--c:var(--" + colour + ")"}}).Close().Text(text).Close();
    page_.Close();
  }

  void TimelineSection() {
    OpenSection("Lives and saves",
                "How far the program was, and when. A coloured band is a life; between two, the job waited "
                "for nodes. A ring is a "
                "checkpoint. Point at anything to read more.");
    page_.Append(DrawTimeline(report_.chronicle));
    Legend({{"course", "steps"},
            {"saved", "durable save"},
            {"told", "life told to end (preemption, time limit, resize, …), and its last save"},
            {"bad", "life lost or killed; steps lost; save given up"},
            {"good", "life that finished"},
            {"open", "life without an end so far"}});
    page_.Close();
  }

  void Figure(const std::string& title, const std::string& text, BarChart chart) {
    chart.title = title;
    uint32_t epoch = durable_.front()->epoch;
    for (size_t i = 0; i < durable_.size(); ++i) {
      if (durable_[i]->epoch != epoch) chart.life_begins.push_back(i);
      epoch = durable_[i]->epoch;
    }
    page_.Open("figure").Element("h3", title).Element("p", text);
    page_.Append(DrawBars(chart)).Close();
  }

  std::vector<double> Of(const std::function<int64_t(const SaveCourse&)>& value) const {
    std::vector<double> out;
    for (const SaveCourse* save : durable_) out.push_back(static_cast<double>(value(*save)));
    return out;
  }

  static double Median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }

  void Charts() {
    OpenSection(
        "What saves cost",
        "Each bar is a save, in their order; a dotted line begins another life." +
            std::string(durable_.size() > 150 ? " Neighbours share a bar: their median, and pale above it "
                                                "the greatest."
                                              : ""));
    page_.Open("div", {{"class", "charts"}});
    const auto time = [](double ns) { return Duration(std::llround(ns)); };
    const auto stall = Of([](const SaveCourse& s) { return s.stall_ns; });
    Figure("Stall",
           "The program stood still: " + time(Median(stall)) + " in the median, " +
               time(*std::max_element(stall.begin(), stall.end())) + " at most.",
           {.title = {}, .parts = {{"stall", stall}}, .life_begins = {}, .format = time});
    const auto wait = Of([](const SaveCourse& s) { return std::min(s.wait_ns, s.durable_ns); });
    const auto write =
        Of([](const SaveCourse& s) { return s.durable_ns - std::min(s.wait_ns, s.durable_ns); });
    const auto durable = Of([](const SaveCourse& s) { return s.durable_ns; });
    Figure("Staged, then durable",
           "From the request: staged after " + time(Median(wait)) + " (pale), durable after " +
               time(Median(durable)) + " in the median.",
           {.title = {}, .parts = {{"wait", wait}, {"write", write}}, .life_begins = {}, .format = time});
    const auto size = Of([](const SaveCourse& s) { return static_cast<int64_t>(s.bytes); });
    const auto bytes = [](double value) { return FormatBytes(static_cast<uint64_t>(value)); };
    Figure("Size", bytes(Median(size)) + " in the median.",
           {.title = {}, .parts = {{"size", size}}, .life_begins = {}, .format = bytes});
    const auto speed = Of([](const SaveCourse& s) {
      return s.drain_ns == 0
                 ? 0
                 : std::llround(1e9 * static_cast<double>(s.bytes) / static_cast<double>(s.drain_ns));
    });
    Figure("Writing speed", bytes(Median(speed)) + " a second in the median, while the program computed.",
           {.title = {}, .parts = {{"write", speed}}, .life_begins = {}, .format = [bytes](double v) {
              return bytes(v) + "/s";
            }});
    page_.Close().Close();
  }

  void Tiers() {
    OpenSection("Tiers",
                "How far snapshots came: in the memory of their own nodes first, in that of others where "
                "CAIRN_PARTNER asks for "
                "it, then durable in the run's directory, where older ones are pruned.");
    const auto bar = [&](const char* css, const char* where, size_t number) {
      const double share = static_cast<double>(number) /
                           static_cast<double>(std::max<size_t>(1, std::max(sum_.staged, sum_.durable)));
      page_.Open("div", {{"class", "tier"}}).Element("span", where).Open("span", {{"class", "track"}});
      page_
          .Open("i", {{"style", "--c:var(--" + std::string(css) +
                                    ");width:" + Coordinate(100 * std::min(1.0, share)) + "%"}})
          .Close()
          .Close();
      page_.Element("b", Grouped(static_cast<int64_t>(number))).Close();
    };
    bar("wait", "in the memory of their nodes", sum_.staged);
    if (sum_.partner > 0) bar("course", "of other nodes too", sum_.partner);
    bar("saved", "durable", sum_.durable);
    if (sum_.rescued > 0) bar("told", "rescued from memory by a later life", sum_.rescued);
    bar("saved", "on disk now", sum_.on_disk);
    page_.Close();
  }

  void Reshard() {
    if (report_.reshard_svg.empty()) return;
    OpenSection("Another number of ranks", report_.reshard_text);
    static constexpr char kDigits[] = "0123456789ABCDEF";
    std::string url = "data:image/svg+xml,";
    for (const char c : report_.reshard_svg) {
      const auto byte = static_cast<unsigned char>(c);
      const bool plain = (byte < 0x80 && std::isalnum(byte) != 0) ||
                         std::string_view(" -_.!~*'(),/:;=@").find(c) != std::string_view::npos;
      url += plain ? std::string(1, c) : std::string{'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    page_.Empty("img", {{"class", "reshard"},
                        {"alt", "files, the ranks that read them, and those that keep what was read"},
                        {"src", url}});
    page_.Close();
  }

  void Titles(const std::vector<std::pair<const char*, bool>>& titles) {
    page_.Open("tr");
    for (const auto& [title, number] : titles)
      page_.Element("th", title, number ? Markup::Attributes{{"class", "n"}} : Markup::Attributes{});
    page_.Close();
  }
  void NumberCell(const std::string& text) { page_.Element("td", text, {{"class", "n"}}); }

  std::string Shown(size_t all) const {
    return all > kMostRows ? "The last " + std::to_string(kMostRows) + " of " + std::to_string(all) + "."
                           : "";
  }

  void Lives() {
    const auto& lives = report_.chronicle.lives;
    OpenSection("Table of lives",
                lives.empty() ? "No life has written its journal here." : Shown(lives.size()));
    page_.Open("div", {{"class", "scroll"}}).Open("table", {{"id", "lives"}});
    Titles({{"life", true},
            {"job", false},
            {"began", false},
            {"ran", true},
            {"ranks", true},
            {"from step", true},
            {"to step", true},
            {"saves", true},
            {"lost", true},
            {"end", false}});
    for (size_t i = lives.size() > kMostRows ? lives.size() - kMostRows : 0; i < lives.size(); ++i) {
      const LifeCourse& life = lives[i];
      const LifeStory& story = life.story;
      page_.Open("tr");
      NumberCell(std::to_string(story.epoch));
      page_.Element("td",
                    story.job.empty() ? "–" : story.job + (story.step_id.empty() ? "" : "." + story.step_id));
      page_.Element(
          "td",
          story.began.substr(0, 10) + " " + story.began.substr(std::min<size_t>(11, story.began.size()), 8),
          {{"class", "t"}});
      NumberCell(Duration(1'000'000 * (life.last_ms - life.began_ms)));
      NumberCell(Grouped(story.ranks));
      NumberCell(Grouped(life.first_step));
      NumberCell(Grouped(life.last_step));
      NumberCell(Grouped(story.saves));
      NumberCell(life.lost_steps == 0 ? "–" : (life.last_is_known ? "" : "≥ ") + Grouped(life.lost_steps));
      page_.Open("td", {{"class", "wide"}});
      page_.Element("span", story.end, {{"class", "end " + ClassOfEnd(story.end)}});
      std::vector<std::string> more;
      if (!story.why.empty()) more.push_back(story.why);
      if (life.read_bytes > 0) {
        std::string restore =
            "restored in " + Duration(life.restore_ns) + ", " + FormatBytes(life.read_bytes) + " from ";
        restore += life.near_bytes == 0 ? "the directory"
                   : life.near_bytes == life.read_bytes
                       ? "the memory of the nodes"
                       : "the directory and the memory of the nodes (" + FormatBytes(life.near_bytes) + ")";
        if (life.saved_ranks > 0 && life.saved_ranks != story.ranks)
          restore += ", saved by " + Count(static_cast<size_t>(life.saved_ranks), "rank");
        more.push_back(restore);
      }
      for (const std::string& damaged : story.damaged) more.push_back("passed over as damaged: " + damaged);
      for (const std::string& line : more) page_.Element("div", line, {{"class", "dim"}});
      page_.Close().Close();
    }
    page_.Close().Close().Close();
  }

  // What became of it.
  std::string Fate(const SaveCourse& save) const {
    if (!save.why.empty()) return "given up: " + save.why;
    if (!save.durable()) return "under way, or cut short";
    const auto there = report_.on_disk.find(save.checkpoint);
    if (there == report_.on_disk.end()) return save.pruned ? "pruned" : "not there any more";
    return there->second.empty() ? "on disk" : Join(there->second);
  }

  void Saves() {
    const auto& saves = report_.chronicle.saves;
    OpenSection("Table of saves", saves.empty() ? "None yet." : Shown(saves.size()));
    page_.Open("div", {{"class", "scroll"}}).Open("table", {{"id", "saves"}});
    Titles({{"life", true},
            {"why", false},
            {"step", true},
            {"label", true},
            {"size", true},
            {"stall", true},
            {"staged", true},
            {"durable", true},
            {"now", false}});
    for (size_t i = saves.size() > kMostRows ? saves.size() - kMostRows : 0; i < saves.size(); ++i) {
      const SaveCourse& save = saves[i];
      const auto if_durable = [&](const std::string& text) { return save.durable() ? text : "–"; };
      page_.Open("tr");
      NumberCell(std::to_string(save.epoch));
      page_.Element("td", save.trigger);
      NumberCell(save.step > 0 || save.durable() ? Grouped(save.step) : "–");
      NumberCell(if_durable(Grouped(save.label)));
      NumberCell(if_durable(FormatBytes(save.bytes)));
      NumberCell(if_durable(Duration(save.stall_ns)));
      NumberCell(save.wait_ns > 0 ? Duration(save.wait_ns) : "–");
      NumberCell(save.durable_ns > 0 ? Duration(save.durable_ns) : "–");
      page_.Open("td", {{"class", "wide"}}).Text(Fate(save));
      if (save.durable()) page_.Text(" ").Element("code", save.checkpoint, {{"class", "dim"}});
      page_.Close().Close();
    }
    page_.Close().Close().Close();
  }

  const Report& report_;
  const Totals sum_;
  std::vector<const SaveCourse*> durable_;
  Markup page_;
};

}  // namespace

std::string WriteReport(const Report& report) { return Page(report).Write(); }

}  // namespace cairn
