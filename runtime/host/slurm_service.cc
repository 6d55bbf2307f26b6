#include "runtime/host/slurm_service.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>
#include <vector>

#include "runtime/slurm/batch_script.h"
#include "runtime/slurm/cause.h"
#include "runtime/slurm/requeue.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswerBound{2000};
constexpr milliseconds kRequeueCommandBound{5000};
constexpr int kRequeuesWhatEnds =
    2405;  // the release from which a job that ends in its grace time is requeued
constexpr int kJitterMs = 100;

milliseconds Jitter() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<int>(0, kJitterMs)(random));
}

std::vector<std::string> ShowJob(uint32_t job) {
  return {"scontrol", "show", "job", "-o", std::to_string(job)};
}

std::string StepId(uint32_t job, uint32_t step) { return std::to_string(job) + "." + std::to_string(step); }

}  // namespace

SlurmService::SlurmService(Loop* loop, const StepIdentity& step, bool script_may_end)
    : loop_(loop), step_(step), script_may_end_(script_may_end), runner_(loop), end_script_(loop, [this] {
        runner_.Run(EndScript(stopped_script_), kRequeueCommandBound, [](const Result<std::string>&) {});
      }) {}
SlurmService::~SlurmService() = default;

void SlurmService::AskCause(const CauseQuery& query, std::function<void(CauseReply)> done) {
  const uint64_t number = next_question_++;
  Question& q = questions_[number];
  q.query = query;
  q.done = std::move(done);
  if (step_.job == 0) {
    CauseReply reply;
    reply.why = "this is no Slurm job";
    return Finish(number, std::move(reply));
  }
  q.jitter = std::make_unique<Timer>(loop_, [this, number] { ReadJob(number); });
  q.jitter->Once(Jitter());
  q.bound = std::make_unique<Timer>(loop_, [this, number] {
    // The job's record tells the cause; what else was asked only refines it.
    if (questions_.at(number).record) return Classify(number);
    CauseReply reply;
    reply.why = "Slurm did not answer within 2 s";
    reply.answered = false;
    Finish(number, std::move(reply));
  });
  q.bound->Once(kAnswerBound);
}

void SlurmService::ReadJob(uint64_t question) {
  runner_.Run(ShowJob(step_.job), kAnswerBound, [this, question](const Result<std::string>& text) {
    auto record = text.ok() ? ParseJobRecord(*text, step_.job) : Result<JobRecord>(text.status());
    const auto q = questions_.find(question);
    if (q == questions_.end()) return;
    if (!record.ok()) {
      CauseReply reply;
      reply.why = record.status().message();
      reply.answered = false;
      return Finish(question, std::move(reply));
    }
    q->second.record = *std::move(record);
    ReadPartition(question);
  });
}

void SlurmService::ReadPartition(uint64_t question) {
  const auto q = questions_.find(question);
  if (q == questions_.end()) return;
  if (partition_) return ReadConfig(question);
  runner_.Run({"scontrol", "show", "partition", "-o", q->second.record->partition}, kAnswerBound,
              [this, question](const Result<std::string>& text) {
                if (text.ok()) {
                  if (auto partition = ParsePartitionRecord(*text); partition.ok())
                    partition_ = *std::move(partition);
                }
                ReadConfig(question);
              });
}

void SlurmService::ReadConfig(uint64_t question) {
  if (kill_wait_) return Classify(question);
  runner_.Run({"scontrol", "show", "config"}, kAnswerBound,
              [this, question](const Result<std::string>& text) {
                if (text.ok()) {
                  kill_wait_ = ParseKillWait(*text);
                  release_ = ParseSlurmRelease(*text);
                }
                Classify(question);
              });
}

void SlurmService::Classify(uint64_t question) {
  const auto q = questions_.find(question);
  if (q == questions_.end()) return;
  const JobRecord& record = *q->second.record;
  CauseContext context;
  context.our_restart = step_.restart;
  context.now = std::time(nullptr);
  context.notice = std::chrono::ceil<std::chrono::seconds>(milliseconds(q->second.query.notice_ms));
  context.partition = partition_;
  if (kill_wait_) context.kill_wait = *kill_wait_;
  CauseReport report = ClassifyCause(&record, context);

  CauseReply reply;
  reply.cause = report.cause;
  if (report.deadline) reply.seconds_left = std::max<int64_t>(*report.deadline - context.now, 0);
  reply.may_requeue = report.may_requeue;
  reply.batch = record.batch;
  if (partition_ && partition_->grace_time.count() > 0) {
    reply.warning_seconds = partition_->grace_time.count();
  } else if (partition_ && kill_wait_) {
    reply.warning_seconds = kill_wait_->count();
  }
  reply.why = std::move(report.why);
  Finish(question, std::move(reply));
}

void SlurmService::Finish(uint64_t question, CauseReply reply) {
  auto q = questions_.extract(question);
  if (q.empty()) return;
  reply.id = q.mapped().query.id;
  q.mapped().done(std::move(reply));
}

void SlurmService::AskHolder(const HolderQuery& query, std::function<void(HolderReply)> done) {
  if (step_.job == 0) return done({query.id, Alive::kUnknown, "this is no Slurm job"});
  constexpr milliseconds kEach = kAnswerBound / 2;
  runner_.Run(ShowJob(query.job), kEach,
              [this, query, done = std::move(done), kEach](const Result<std::string>& job) {
                HolderReply reply = JudgeHolder(query, job, nullptr);
                if (reply.alive != Alive::kYes) return done(std::move(reply));
                runner_.Run({"scontrol", "show", "step", "-o", StepId(query.job, query.step)}, kEach,
                            [query, job, done](const Result<std::string>& step) {
                              done(JudgeHolder(query, job, &step));
                            });
              });
}

void SlurmService::AskRequeue(const RequeueQuery& query, std::function<void(RequeueReply)> done) {
  if (step_.job == 0) return done({query.id, false, "this is no Slurm job: there is nothing to requeue"});
  const RequeueOrder order{step_.job, step_.step, step_.restart,
                           script_may_end_ && release_ >= kRequeuesWhatEnds && BelowShellScript(getpid())};
  Requeue(&runner_, order, kRequeueCommandBound, [this, query, done = std::move(done)](RequeueResult result) {
    stopped_script_ = std::move(result.stopped_script);
    if (!stopped_script_.empty()) end_script_.Once(*kill_wait_);  // read with the release
    done({query.id, result.requeued, std::move(result.text)});
  });
}

HolderReply JudgeHolder(const HolderQuery& query, const Result<std::string>& job,
                        const Result<std::string>* step) {
  const std::string name = "job " + std::to_string(query.job);
  if (!job.ok()) {
    const bool forgotten = job.status().message().find("Invalid job id") != std::string::npos;
    return {query.id, forgotten ? Alive::kNo : Alive::kUnknown,
            forgotten ? name + " is not known any more" : job.status().message()};
  }
  const auto record = ParseJobRecord(*job, query.job);
  if (!record.ok()) return {query.id, Alive::kUnknown, record.status().message()};
  if (record->restarts > query.restart) {
    return {query.id, Alive::kNo,
            name + " has been requeued since (Restarts=" + std::to_string(record->restarts) + ")"};
  }
  const bool running =
      record->state == "RUNNING" || record->state == "SUSPENDED" || record->state == "COMPLETING";
  if (!running) return {query.id, Alive::kNo, name + " is " + record->state};
  if (step != nullptr && !step->ok() && step->status().message().find("not found") != std::string::npos) {
    return {query.id, Alive::kNo, "step " + StepId(query.job, query.step) + " has ended"};
  }
  return {query.id, Alive::kYes, name + " is " + record->state};
}

std::string StepName(std::string_view answer) {
  constexpr std::string_view kKey = " Name=";
  size_t at = answer.find(kKey);
  if (at == std::string_view::npos) return "";
  at += kKey.size();
  // What follows the name in a step's record; a name may hold blanks.
  size_t end = answer.find(" Network=", at);
  if (end == std::string_view::npos) end = answer.find_first_of(" \n", at);
  return std::string(answer.substr(at, end == std::string_view::npos ? end : end - at));
}

}  // namespace cairn
