// The virtual clock; see clock.h.

#include "clock.h"

#include <chrono>

namespace stoker {

int64_t RealNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t Clock::Now() const {
  if (deterministic_) return added_;
  return (stops_ > 0 ? stopped_at_ : RealNs()) - removed_ + added_;
}

void Clock::Stop() {
  if (stops_++ == 0) stopped_at_ = RealNs();
}

void Clock::Go() {
  if (--stops_ == 0) removed_ += RealNs() - stopped_at_;
}

}  // namespace stoker
