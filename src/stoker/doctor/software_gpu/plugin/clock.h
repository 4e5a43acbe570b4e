// The virtual clock: what time it would be for the program if the device were real.
//
// Real clock (the default): the machine's monotonic clock, minus the time in which the plug-in emulated device
// work (a kernel computed on the CPU, bytes moved), plus the waits and launches the profile says a device costs. So
// the program's own Python and TensorFlow's own dispatch count as they are.
// Time in which a thread was ready to run but another program had the core is left out too, where Linux tells it.
// Deterministic clock: nothing but modelled events moves it. Two runs print the same times; Python costs nothing.
//
// It never runs backwards. Not thread-safe by itself: Machine's mutex guards it.

#ifndef STOKER_CLOCK_H_
#define STOKER_CLOCK_H_

#include <cstdint>

namespace stoker {

int64_t RealNs();

class Clock {
 public:
  void SetDeterministic(bool on) { deterministic_ = on; }
  bool deterministic() const { return deterministic_; }

  int64_t Now() const;
  // The calling thread is about to read or move the clock: leaves out what it waited for a core since the last event.
  void Settle();
  void Advance(int64_t ns) { added_ += ns; }

  // Between Stop and Go the clock stands still. They nest, and overlap between threads: it goes on when all are out.
  void Stop();
  void Go();

  // Real time taken out so far.
  int64_t Removed() const { return removed_ + (stops_ > 0 ? RealNs() - stopped_at_ : 0); }

 private:
  bool deterministic_ = false;
  int stops_ = 0;
  int64_t stopped_at_ = 0;
  int64_t removed_ = 0;
  int64_t added_ = 0;
  int64_t settled_at_ = 0;  // real time of the last event
};

}  // namespace stoker

#endif  // STOKER_CLOCK_H_
