#include "pending.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "caller.h"
#include "core.h"
#include "thread.h"

namespace bridle::fuse {
namespace {

void on_interrupt(fuse_req_t request, void* data) {
  static_cast<Core*>(fuse_req_userdata(request))->pending.interrupt(reinterpret_cast<std::uintptr_t>(data));
}

}  // namespace

Pending::Pending(std::size_t limit, std::chrono::milliseconds deadline, std::function<void()> wake)
    : limit_(limit),
      deadline_(deadline),
      wake_(std::move(wake)),
      sweeper_(start_thread("bridle-sweeper", [this] { sweep(); })) {}

Pending::~Pending() { close(); }

void Pending::ask(fuse_req_t request, Question question, const Completion& completion) {
  const fuse_ctx& context = *fuse_req_ctx(request);
  question.uid = context.uid;
  question.gid = context.gid;
  question.pid = process_of_thread(context.pid);
  if (question.pid == getpid()) {
    completion(request, EDEADLK);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    question.token = ++last_token_;
  }
  const std::uint64_t token = question.token;
  // An interrupt that comes before the entry stands finds nothing here; it is noticed under the lock below.
  fuse_req_interrupt_func(request, on_interrupt, reinterpret_cast<void*>(static_cast<std::uintptr_t>(token)));
  int refused = 0;
  bool wake = false;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {
      refused = ESHUTDOWN;
    } else if (entries_.size() >= limit_) {
      refused = EAGAIN;
    } else if (fuse_req_interrupted(request) != 0) {
      refused = EINTR;
    } else {
      first = entries_.empty();
      entries_.emplace(token,
                       Entry{.request = request, .deadline = Clock::now() + deadline_, .completion = completion});
      ++asked_;
      push({.what = Event::What::Request, .token = token, .question = std::move(question)}, wake);
    }
  }
  if (refused != 0) completion(request, refused);
  if (first) changed_.notify_one();
  if (wake) wake_();
}

bool Pending::answer(std::uint64_t token, int error) {
  std::map<std::uint64_t, Entry>::node_type taken;
  {
    const std::lock_guard lock(mutex_);
    taken = entries_.extract(token);
  }
  if (taken.empty()) return false;
  taken.mapped().completion(taken.mapped().request, error);
  return true;
}

void Pending::abort(std::uint64_t token, int error) {
  std::map<std::uint64_t, Entry>::node_type taken;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    taken = entries_.extract(token);
    if (taken.empty()) return;
    if (taken.mapped().delivered) push({.what = Event::What::Abort, .token = token}, wake);
  }
  taken.mapped().completion(taken.mapped().request, error);
  if (wake) wake_();
}

void Pending::announce_end() {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) push({.what = Event::What::End}, wake);
  }
  if (wake) wake_();
}

void Pending::push(Event event, bool& wake) {
  events_.push_back(std::move(event));
  wake = !std::exchange(woken_, true);
}

std::vector<Event> Pending::take_events() {
  std::vector<Event> taken;
  const std::lock_guard lock(mutex_);
  woken_ = false;
  taken.reserve(events_.size());
  for (Event& event : events_) {
    if (event.what == Event::What::Request) {
      auto entry = entries_.find(event.token);
      if (entry == entries_.end()) continue;  // ended before anybody heard of it
      entry->second.delivered = true;
    }
    taken.push_back(std::move(event));
  }
  events_.clear();
  return taken;
}

void Pending::sweep() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    if (entries_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto [token, deadline] = std::pair(entries_.begin()->first, entries_.begin()->second.deadline);
    if (Clock::now() < deadline) {
      changed_.wait_until(lock, deadline);
      continue;
    }
    lock.unlock();
    abort(token, ETIMEDOUT);
    lock.lock();
  }
}

void Pending::close() {
  std::map<std::uint64_t, Entry> left;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    left.swap(entries_);
    events_.clear();
  }
  changed_.notify_one();
  if (sweeper_.joinable()) sweeper_.join();
  for (auto& [token, entry] : left) entry.completion(entry.request, ESHUTDOWN);
}

std::uint64_t Pending::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

}  // namespace bridle::fuse
