// The machine: everything the plug-in keeps about the modelled devices, behind one mutex.
//
// Python configures it before TensorFlow loads the plug-in, TensorFlow drives it through the StreamExecutor
// callbacks (device.cc, memory.cc) and through the kernels (kernels.cc), and Python reads it back (counters.cc).
// The two structs that cross to Python, `Config` and `Counters`, are mirrored field by field in native.py.

#ifndef STOKER_MACHINE_H_
#define STOKER_MACHINE_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "clock.h"

// StreamExecutor hands these out as opaque pointers and leaves their content to the plug-in.
struct SP_Stream_st {
  int device = 0;
  int64_t free_at = 0;  // modelled time at which the last thing queued here ends
  int64_t busy_ns = 0;  // sum of the durations queued here
};

namespace stoker {

// What the profile says of the hardware, already multiplied by the efficiencies it assumes. Rates are per
// nanosecond (so GFLOP/s and GB/s), times in nanoseconds.
struct Config {
  int64_t device_count;
  int64_t memory_bytes;
  int64_t deterministic;  // 1: only modelled events move the host's clock
  double half_rate;
  double bfloat16_rate;
  double float_rate;
  double double_rate;
  double memory_rate;
  double bus_rate;
  double launch_ns;    // host: handing one kernel to the device
  double kernel_ns;    // device: the least a kernel takes
  double copy_ns;      // device: the least a copy takes
  double sync_ns;      // host: returning from a wait, even when the device was idle
  double host_op_ns;   // host, deterministic clock only: TensorFlow's own work per launch
};

struct Copies {
  int64_t count = 0;
  int64_t bytes = 0;
  int64_t time_ns = 0;
};

// What happened, since the start or the last reset. One per device, one per thread for attribution.
struct Counters {
  Copies h2d, d2h, d2d;
  int64_t syncs = 0;         // waits for the device that TensorFlow asked for
  int64_t launches = 0;      // kernels; a compiled cluster is one
  int64_t clusters = 0;      // how many of the launches were compiled clusters
  int64_t host_ops = 0;      // ops of the device whose arguments are all in host memory: no device work
  int64_t host_wait_ns = 0;  // the host stood still until queued work was done
  int64_t host_copy_ns = 0;  // the host stood still while bytes moved
};

// A copy to a device whose copying thread did not wait for it: the first kernel that reads it does.
struct Arrival {
  SP_Stream_st* stream = nullptr;  // what the copy is queued on
  int64_t issued = 0;
  int64_t end = 0;       // with the real clock; the deterministic one works it out when the data is read
  int64_t duration = 0;
  uint64_t size = 0;     // with the address, tells the tensor from a later one in the same place
  int64_t fetch = 0;     // number of the prefetch it belongs to, 0 for none
};

struct Device {
  std::vector<SP_Stream_st*> streams;  // the first is the compute stream, the others move data
  Counters counters;
  int64_t memory_used = 0;             // handed to TensorFlow's allocator, which cuts it up
  std::unordered_map<const void*, Arrival> arrivals;
  // Prefetches to this device: the bus they share, and when the newest two were first read.
  int64_t fetches_started = 0, fetches_running = 0, fetch_bus_free_at = 0;
  int64_t newest_fetch = 0, newest_taken_at = 0, previous_taken_at = 0;
};

class Machine {
 public:
  std::mutex mutex;
  Config config{};
  Clock clock;
  std::vector<Device> devices;

  void Configure(const Config& config);

  // All below: the mutex is held.

  // Queues `duration` on a stream, not before `earliest`; returns when it ends.
  int64_t Enqueue(SP_Stream_st* stream, int64_t earliest, int64_t duration);
  // The host stands still until the modelled time `until`; the last `copying` nanoseconds of it move bytes.
  void HostWaits(Device& device, int64_t until, int64_t copying);
  // A kernel reads this data: the host waits until it is there, and the arrival is forgotten.
  void WaitForArrival(Device& device, const void* data, uint64_t size);
  // When everything queued on the device is done.
  int64_t AllDone(const Device& device) const;
  // Adds one event to the device's counters and to those of the calling thread.
  template <class Change>
  void Count(Device& device, Change change) {
    change(device.counters);
    change(ThisThread());
  }
  // What the calling thread itself caused: lets a probe attribute an event to the call it wraps.
  static Counters& ThisThread();

 private:
  int64_t EndOf(Device& device, const Arrival& arrival);
  int64_t EndOfFetch(Device& device, const Arrival& arrival);
};

Machine& TheMachine();

// Holds the mutex for one event, with the clock settled.
class Lock {
 public:
  explicit Lock(Machine& machine) : guard_(machine.mutex) { machine.clock.Settle(); }

 private:
  std::lock_guard<std::mutex> guard_;
};

// True when the calling thread runs Python: its waits stall the program. TensorFlow's pool threads do not.
bool IsPythonThread();

}  // namespace stoker

#endif  // STOKER_MACHINE_H_
