// The virtual clock; see clock.h.

#include "clock.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace stoker {
namespace {

// Shorter spans are not worth asking the kernel about: the question takes a microsecond.
constexpr int64_t kLongNs = 200 * 1000;
constexpr int64_t kStaleNs = 5 * 1000 * 1000;

// How long a thread was ready to run without a core: Linux counts it per thread in /proc/.../schedstat.
class RunDelay {
 public:
  RunDelay() {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
    file_ = open(path, O_RDONLY | O_CLOEXEC);
    Since();
  }
  ~RunDelay() {
    if (file_ >= 0) close(file_);
  }

  // Nanoseconds since the last call; 0 where Linux does not tell.
  int64_t Since() {
    read_at_ = RealNs();
    char text[96];
    ssize_t length = file_ >= 0 ? pread(file_, text, sizeof text - 1, 0) : -1;
    if (length <= 0) return 0;
    text[length] = '\0';
    long long running = 0, waiting = 0;
    if (std::sscanf(text, "%lld %lld", &running, &waiting) != 2) return 0;
    int64_t since = waiting - waited_;
    waited_ = waiting;
    return since;
  }

  int64_t read_at() const { return read_at_; }

 private:
  int file_ = -1;
  int64_t waited_ = 0, read_at_ = 0;
};

RunDelay& ThisThreadsDelay() {
  static thread_local RunDelay delay;
  return delay;
}

}  // namespace

int64_t RealNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t Clock::Now() const {
  if (deterministic_) return added_;
  return (stops_ > 0 ? stopped_at_ : RealNs()) - removed_ + added_;
}

void Clock::Settle() {
  if (deterministic_ || stops_ > 0) return;
  RunDelay& delay = ThisThreadsDelay();
  int64_t real = RealNs(), gap = real - settled_at_;
  if (gap > kLongNs) {
    // Never more than has passed since the last event, so that the clock does not run backwards.
    removed_ += std::min(delay.Since(), gap);
  } else if (real - delay.read_at() > kStaleNs) {
    delay.Since();
  }
  settled_at_ = RealNs();
}

void Clock::Stop() {
  if (stops_++ == 0) stopped_at_ = RealNs();
}

void Clock::Go() {
  if (--stops_ > 0) return;
  int64_t real = RealNs();
  removed_ += real - stopped_at_;
  // What the thread waited for a core while it emulated is out already.
  if (!deterministic_ && real - stopped_at_ > kLongNs) ThisThreadsDelay().Since();
  settled_at_ = real;
}

}  // namespace stoker
