// The machine's timeline: queueing on streams, waits of the host, data that arrives in the background.

#include "machine.h"

#include <dlfcn.h>

#include <algorithm>

namespace stoker {

Machine& TheMachine() {
  static Machine* machine = new Machine;  // never destroyed: TensorFlow's threads outlive main()
  return *machine;
}

Counters& Machine::ThisThread() {
  static thread_local Counters counters;
  return counters;
}

bool IsPythonThread() {
  // Asked of the interpreter itself; the plug-in does not link against it.
  using StateOfThread = void* (*)();
  static const auto state =
      reinterpret_cast<StateOfThread>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  return state != nullptr && state() != nullptr;
}

void Machine::Configure(const Config& wanted) {
  Lock lock(*this);
  config = wanted;
  clock.SetDeterministic(wanted.deterministic != 0);
  devices.resize(wanted.device_count);
}

int64_t Machine::Enqueue(SP_Stream_st* stream, int64_t earliest, int64_t duration) {
  stream->free_at = std::max(stream->free_at, earliest) + duration;
  stream->busy_ns += duration;
  return stream->free_at;
}

void Machine::HostWaits(Device& device, int64_t until, int64_t copying) {
  int64_t stood = until - clock.Now();
  if (stood <= 0) return;
  clock.Advance(stood);
  int64_t copied = std::min(copying, stood);
  Count(device, [&](Counters& c) {
    c.host_wait_ns += stood - copied;
    c.host_copy_ns += copied;
  });
}

void Machine::WaitForArrival(Device& device, const void* data, uint64_t size) {
  auto found = device.arrivals.find(data);
  if (found == device.arrivals.end()) return;
  Arrival arrival = found->second;
  device.arrivals.erase(found);
  if (arrival.size != size) return;
  // TensorFlow launches the reader of a copy only after the copy is done, so it is the host that waits.
  HostWaits(device, EndOf(device, arrival), arrival.duration);
}

int64_t Machine::EndOf(Device& device, const Arrival& arrival) {
  if (arrival.fetch != 0) return EndOfFetch(device, arrival);
  if (!clock.deterministic()) return arrival.end;
  // Which thread copied, and when, differs from run to run; that this kernel reads the data does not.
  int64_t earliest = std::max(clock.Now(), device.streams.front()->free_at);
  return Enqueue(arrival.stream, earliest, arrival.duration);
}

int64_t Machine::EndOfFetch(Device& device, const Arrival& arrival) {
  // An element is fetched while the one before it is used. With the real clock its copy starts when it was issued;
  // that moment depends on how the threads happened to run, so the deterministic clock takes the one at which the
  // element before was first read. Either way it also waits for the bus.
  int64_t now = clock.Now();
  if (arrival.fetch != device.newest_fetch) {
    device.previous_taken_at = device.newest_fetch == 0 ? now : device.newest_taken_at;
    device.newest_taken_at = now;
    device.newest_fetch = arrival.fetch;
  }
  int64_t start = clock.deterministic() ? device.previous_taken_at : arrival.issued;
  device.fetch_bus_free_at = std::max(device.fetch_bus_free_at, start) + arrival.duration;
  return device.fetch_bus_free_at;
}

int64_t Machine::AllDone(const Device& device) const {
  int64_t done = 0;
  for (const SP_Stream_st* stream : device.streams) done = std::max(done, stream->free_at);
  return done;
}

}  // namespace stoker
