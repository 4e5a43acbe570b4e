// Device memory and copies.
//
// Device memory is host memory that TensorFlow believes to be elsewhere: it never reads it without asking for a
// copy, so every transfer a real GPU would make passes here and is counted with its bytes.

#include "memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "machine.h"
#include "tensorflow/c/tf_status.h"

namespace stoker {
namespace {

// TensorFlow keeps some of a GPU's memory back for libraries: 255 MiB of a device under 2 GiB, else 300 MiB or 5 %. The
// software GPU has no libraries, so it reports that much more, and a program gets what was asked for.
int64_t WithHeldBack(int64_t memory) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  if (memory + 255 * kMiB < 2048 * kMiB) return memory + 255 * kMiB;
  return std::max(memory + 300 * kMiB, memory * 20 / 19 + kMiB);
}

size_t RoundedUp(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

void Allocate(const SP_Device* d, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = nullptr;  // null is how the API says "out of memory"
  memory->size = 0;
  Machine& m = TheMachine();
  Lock lock(m);
  Device& device = m.devices[d->ordinal];
  if (device.memory_used + static_cast<int64_t>(size) > m.config.memory_bytes) return;
  memory->opaque = std::aligned_alloc(256, RoundedUp(size, 256));
  if (memory->opaque == nullptr) return;
  memory->size = size;
  device.memory_used += size;
}

void Deallocate(const SP_Device* d, SP_DeviceMemoryBase* memory) {
  Machine& m = TheMachine();
  Lock lock(m);
  m.devices[d->ordinal].memory_used -= memory->size;
  std::free(memory->opaque);
  memory->opaque = nullptr;
  memory->size = 0;
}

void* HostAllocate(const SP_Device*, uint64_t size) { return std::aligned_alloc(64, RoundedUp(size, 64)); }

void HostDeallocate(const SP_Device*, void* memory) { std::free(memory); }

TF_Bool AllocatorStats(const SP_Device* d, SP_AllocatorStats* stats) {
  Machine& m = TheMachine();
  Lock lock(m);
  stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  stats->bytes_in_use = m.devices[d->ordinal].memory_used;
  return true;
}

TF_Bool MemoryUsage(const SP_Device* d, int64_t* free, int64_t* total) {
  Machine& m = TheMachine();
  Lock lock(m);
  *total = WithHeldBack(m.config.memory_bytes);
  *free = *total - m.devices[d->ordinal].memory_used;
  return true;
}

// Moving the bytes is emulation: the clock stands still meanwhile, and the modelled duration is queued instead.
void Move(void* to, const void* from, uint64_t size) {
  Machine& m = TheMachine();
  {
    Lock lock(m);
    m.clock.Stop();
  }
  std::memmove(to, from, size);
  Lock lock(m);
  m.clock.Go();
}

int64_t BusNs(const Config& config, uint64_t size) {
  return static_cast<int64_t>(config.copy_ns + size / config.bus_rate);
}

// The synchronous calls name no stream; they use the device's compute stream, as a CUDA copy on the default one.
SP_Stream_st* DefaultStream(int ordinal) { return TheMachine().devices[ordinal].streams.front(); }

void DeviceToHost(int ordinal, SP_Stream stream, void* to, const void* from, uint64_t size) {
  Move(to, from, size);
  Machine& m = TheMachine();
  Lock lock(m);
  Device& device = m.devices[ordinal];
  int64_t duration = BusNs(m.config, size);
  int64_t end = m.Enqueue(stream, m.clock.Now(), duration);
  m.Count(device, [&](Counters& c) {
    c.d2h.count++;
    c.d2h.bytes += size;
    c.d2h.time_ns += duration;
  });
  m.HostWaits(device, end, duration);  // somebody on the host waits for these bytes
}

void HostToDevice(int ordinal, SP_Stream stream, void* to, const void* from, uint64_t size) {
  Move(to, from, size);
  Machine& m = TheMachine();
  Lock lock(m);
  Device& device = m.devices[ordinal];
  int64_t duration = BusNs(m.config, size);
  m.Count(device, [&](Counters& c) {
    c.h2d.count++;
    c.h2d.bytes += size;
    c.h2d.time_ns += duration;
  });
  device.arrivals.erase(to);
  if (IsPythonThread()) {
    // An eager op's argument: TensorFlow waits for the copy, which itself waits for the compute stream.
    m.HostWaits(device, m.Enqueue(stream, m.clock.Now(), duration), duration);
    return;
  }
  Arrival arrival;
  arrival.stream = stream;
  arrival.issued = m.clock.Now();
  arrival.duration = duration;
  arrival.size = size;
  if (device.fetches_running > 0) {
    arrival.fetch = device.fetches_started;
  } else if (!m.clock.deterministic()) {
    arrival.end = m.Enqueue(stream, arrival.issued, duration);
  }
  device.arrivals[to] = arrival;
}

void DeviceToDevice(int ordinal, SP_Stream stream, void* to, const void* from, uint64_t size) {
  Move(to, from, size);
  Machine& m = TheMachine();
  Lock lock(m);
  // Both within a device and between two: the peer's memory is reached at memory speed, as over NVLink.
  int64_t duration = static_cast<int64_t>(m.config.kernel_ns + 2 * size / m.config.memory_rate);
  m.Count(m.devices[ordinal], [&](Counters& c) {
    c.d2d.count++;
    c.d2d.bytes += size;
    c.d2d.time_ns += duration;
  });
  bool with_kernels = stream == m.devices[ordinal].streams.front();
  Arrival arrival;
  arrival.stream = stream;
  if (with_kernels || !m.clock.deterministic()) arrival.end = m.Enqueue(stream, m.clock.Now(), duration);
  if (with_kernels) return;  // in order with them, so nobody has to wait
  arrival.duration = duration;
  arrival.size = size;
  // The reader may be any of the devices: only its kernels look this address up.
  for (Device& device : m.devices) device.arrivals[to] = arrival;
}

void Fill(void* to, const void* pattern, size_t width, uint64_t size) {
  auto* bytes = static_cast<char*>(to);
  for (uint64_t at = 0; at + width <= size; at += width) std::memcpy(bytes + at, pattern, width);
}

}  // namespace

void AddMemoryCallbacks(SP_StreamExecutor* executor) {
  executor->allocate = Allocate;
  executor->deallocate = Deallocate;
  executor->host_memory_allocate = HostAllocate;
  executor->host_memory_deallocate = HostDeallocate;
  executor->get_allocator_stats = AllocatorStats;
  executor->device_memory_usage = MemoryUsage;
  executor->memcpy_dtoh = [](const SP_Device* d, SP_Stream s, void* to, const SP_DeviceMemoryBase* from,
                             uint64_t size, TF_Status* status) {
    DeviceToHost(d->ordinal, s, to, from->opaque, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->memcpy_htod = [](const SP_Device* d, SP_Stream s, SP_DeviceMemoryBase* to, const void* from,
                             uint64_t size, TF_Status* status) {
    HostToDevice(d->ordinal, s, to->opaque, from, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->memcpy_dtod = [](const SP_Device* d, SP_Stream s, SP_DeviceMemoryBase* to,
                             const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
    DeviceToDevice(d->ordinal, s, to->opaque, from->opaque, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->sync_memcpy_dtoh = [](const SP_Device* d, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                                  TF_Status* status) {
    DeviceToHost(d->ordinal, DefaultStream(d->ordinal), to, from->opaque, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->sync_memcpy_htod = [](const SP_Device* d, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                                  TF_Status* status) {
    HostToDevice(d->ordinal, DefaultStream(d->ordinal), to->opaque, from, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->sync_memcpy_dtod = [](const SP_Device* d, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from,
                                  uint64_t size, TF_Status* status) {
    DeviceToDevice(d->ordinal, DefaultStream(d->ordinal), to->opaque, from->opaque, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->mem_zero = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, uint64_t size,
                          TF_Status* status) {
    std::memset(to->opaque, 0, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->memset = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, uint8_t pattern, uint64_t size,
                        TF_Status* status) {
    std::memset(to->opaque, pattern, size);
    TF_SetStatus(status, TF_OK, "");
  };
  executor->memset32 = [](const SP_Device*, SP_Stream, SP_DeviceMemoryBase* to, uint32_t pattern, uint64_t size,
                          TF_Status* status) {
    Fill(to->opaque, &pattern, sizeof pattern, size);
    TF_SetStatus(status, TF_OK, "");
  };
}

}  // namespace stoker
