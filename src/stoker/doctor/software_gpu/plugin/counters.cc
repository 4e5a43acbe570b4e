// What Python reads and sets, through ctypes. The structs are mirrored in native.py.

#include <algorithm>
#include <cstring>

#include "machine.h"

namespace stoker {

// One device's counters with what follows from its timeline.
struct DeviceReading {
  Counters counters;
  int64_t busy_ns;     // kernels run until now, not those still queued
  int64_t queued_ns;   // work the device still has ahead of it
  int64_t started;     // 1 once TensorFlow uses the device
};

// The whole program's counters, cheap to take before and after one call.
struct Reading {
  Counters counters;
  int64_t now_ns;       // the virtual clock
  int64_t emulated_ns;  // real time taken out of it so far
};

// What happened between two readings, for probes: fewer and flat fields, so that Python unpacks them in one go.
struct Delta {
  int64_t syncs, h2d_count, h2d_bytes, d2h_count, d2h_bytes, launches, wait_ns, copy_ns, elapsed_ns, emulated_ns;
};

namespace {

// Every field is an int64_t, so adding two of them is adding their words.
void AddTo(Counters* sum, const Counters& other) {
  static_assert(sizeof(Counters) == 15 * sizeof(int64_t), "native.py mirrors this struct");
  auto* to = reinterpret_cast<int64_t*>(sum);
  auto* from = reinterpret_cast<const int64_t*>(&other);
  for (size_t i = 0; i < sizeof(Counters) / sizeof(int64_t); i++) to[i] += from[i];
}

}  // namespace
}  // namespace stoker

extern "C" {

void stoker_gpu_configure(const stoker::Config* config) { stoker::TheMachine().Configure(*config); }

int64_t stoker_gpu_now_ns() {
  stoker::Machine& m = stoker::TheMachine();
  stoker::Lock lock(m);
  return m.clock.Now();
}

// All devices and threads together.
void stoker_gpu_read(stoker::Reading* reading) {
  stoker::Machine& m = stoker::TheMachine();
  stoker::Lock lock(m);
  reading->counters = stoker::Counters();
  for (const stoker::Device& device : m.devices) stoker::AddTo(&reading->counters, device.counters);
  reading->now_ns = m.clock.Now();
  reading->emulated_ns = m.clock.Removed();
}

// Only what the calling thread caused: exact for an eager call, whatever other threads do meanwhile.
void stoker_gpu_read_thread(stoker::Reading* reading) {
  stoker::Machine& m = stoker::TheMachine();
  stoker::Lock lock(m);
  reading->counters = stoker::Machine::ThisThread();
  reading->now_ns = m.clock.Now();
  reading->emulated_ns = m.clock.Removed();
}

// The calling thread again, against a reading it took before.
void stoker_gpu_read_thread_since(const stoker::Reading* before, stoker::Delta* delta) {
  stoker::Reading after;
  stoker_gpu_read_thread(&after);
  const stoker::Counters &a = before->counters, &b = after.counters;
  *delta = {b.syncs - a.syncs,
            b.h2d.count - a.h2d.count,
            b.h2d.bytes - a.h2d.bytes,
            b.d2h.count - a.d2h.count,
            b.d2h.bytes - a.d2h.bytes,
            b.launches - a.launches,
            b.host_wait_ns - a.host_wait_ns,
            b.host_copy_ns - a.host_copy_ns,
            after.now_ns - before->now_ns,
            after.emulated_ns - before->emulated_ns};
}

void stoker_gpu_read_device(int64_t ordinal, stoker::DeviceReading* reading) {
  stoker::Machine& m = stoker::TheMachine();
  stoker::Lock lock(m);
  const stoker::Device& device = m.devices[ordinal];
  std::memset(reading, 0, sizeof *reading);
  reading->counters = device.counters;
  if (device.streams.empty()) return;
  reading->started = 1;
  int64_t now = m.clock.Now();
  const SP_Stream_st* compute = device.streams.front();
  reading->busy_ns = compute->busy_ns - std::min(compute->busy_ns, std::max<int64_t>(0, compute->free_at - now));
  reading->queued_ns = std::max<int64_t>(0, m.AllDone(device) - now);
}

// Starts the counters anew. The host first waits for the device, so that no old work is counted as new.
void stoker_gpu_reset() {
  stoker::Machine& m = stoker::TheMachine();
  stoker::Lock lock(m);
  for (stoker::Device& device : m.devices) {
    m.clock.Advance(std::max<int64_t>(0, m.AllDone(device) - m.clock.Now()));
    for (SP_Stream_st* stream : device.streams) stream->busy_ns = 0;
    device.counters = stoker::Counters();
  }
}

// The clock stands still between the two: for real time that is neither the program's nor the device's.
void stoker_gpu_stop_clock() {
  stoker::Machine& m = stoker::TheMachine();
  stoker::Lock lock(m);
  m.clock.Stop();
}

void stoker_gpu_start_clock() {
  stoker::Machine& m = stoker::TheMachine();
  stoker::Lock lock(m);
  m.clock.Go();
}

}  // extern "C"
