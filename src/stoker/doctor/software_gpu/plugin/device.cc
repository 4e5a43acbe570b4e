// The device as TensorFlow's StreamExecutor C API sees it: platform, streams, events, timers, waits.
//
// TensorFlow calls SE_InitPlugin once and then drives each device through the table of callbacks made here. Work is
// done at the moment it is queued (the "device" is this process), so every event is complete as soon as it is asked
// for; what a real device would still be doing exists only as modelled time on the streams.

#include <algorithm>

#include "machine.h"
#include "memory.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"

struct SP_Event_st {
  int64_t at = 0;  // modelled time of what it was recorded after
};

struct SP_Timer_st {
  int64_t started = 0, stopped = 0;
};

namespace stoker {
namespace {

void Ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

// Streams. TensorFlow makes four per device: compute, host to device, device to host, device to device.

void CreateStream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  Machine& m = TheMachine();
  Lock lock(m);
  *stream = new SP_Stream_st;
  (*stream)->device = device->ordinal;
  (*stream)->free_at = m.clock.Now();
  m.devices[device->ordinal].streams.push_back(*stream);
  Ok(status);
}

void DestroyStream(const SP_Device* device, SP_Stream stream) {
  Machine& m = TheMachine();
  Lock lock(m);
  auto& streams = m.devices[device->ordinal].streams;
  streams.erase(std::remove(streams.begin(), streams.end(), stream), streams.end());
  delete stream;
}

void StreamWaitsForStream(const SP_Device*, SP_Stream dependent, SP_Stream other, TF_Status* status) {
  Lock lock(TheMachine());
  dependent->free_at = std::max(dependent->free_at, other->free_at);
  Ok(status);
}

void StreamStatus(const SP_Device*, SP_Stream, TF_Status* status) { Ok(status); }

// Events and timers.

void CreateEvent(const SP_Device*, SP_Event* event, TF_Status* status) {
  *event = new SP_Event_st;
  Ok(status);
}

void DestroyEvent(const SP_Device*, SP_Event event) { delete event; }

SE_EventStatus EventStatus(const SP_Device*, SP_Event) { return SE_EVENT_COMPLETE; }

void RecordEvent(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status* status) {
  Lock lock(TheMachine());
  event->at = stream->free_at;
  Ok(status);
}

void StreamWaitsForEvent(const SP_Device* const, SP_Stream stream, SP_Event event, TF_Status* const status) {
  Lock lock(TheMachine());
  stream->free_at = std::max(stream->free_at, event->at);
  Ok(status);
}

void CreateTimer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  *timer = new SP_Timer_st;
  Ok(status);
}

void DestroyTimer(const SP_Device*, SP_Timer timer) { delete timer; }

void StartTimer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  Lock lock(TheMachine());
  timer->started = stream->free_at;
  Ok(status);
}

void StopTimer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  Lock lock(TheMachine());
  timer->stopped = stream->free_at;
  Ok(status);
}

uint64_t TimerNs(SP_Timer timer) { return timer->stopped - timer->started; }

// Waits of the host. `.numpy()` comes here first (SynchronizeAll), then copies.

void WaitFor(int ordinal, int64_t until) {
  Machine& m = TheMachine();
  Device& device = m.devices[ordinal];
  m.Count(device, [](Counters& c) { c.syncs++; });
  m.HostWaits(device, std::max(until, m.clock.Now()) + static_cast<int64_t>(m.config.sync_ns), 0);
}

void HostWaitsForEvent(const SP_Device* device, SP_Event event, TF_Status* status) {
  Lock lock(TheMachine());
  WaitFor(device->ordinal, event->at);
  Ok(status);
}

void HostWaitsForStream(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  Lock lock(TheMachine());
  WaitFor(device->ordinal, stream->free_at);
  Ok(status);
}

void SynchronizeAll(const SP_Device* device, TF_Status* status) {
  Machine& m = TheMachine();
  Lock lock(m);
  WaitFor(device->ordinal, m.AllDone(m.devices[device->ordinal]));
  Ok(status);
}

TF_Bool HostCallback(const SP_Device*, SP_Stream, SE_StatusCallbackFn callback, void* argument) {
  TF_Status* status = TF_NewStatus();
  callback(argument, status);
  bool ok = TF_GetCode(status) == TF_OK;
  TF_DeleteStatus(status);
  return ok;
}

// The platform: how many devices, and the tables of callbacks for one of them.

void DeviceCount(const SP_Platform*, int* count, TF_Status* status) {
  *count = static_cast<int>(TheMachine().devices.size());
  Ok(status);
}

void CreateDevice(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
  params->device->hardware_name = "Stoker software GPU";
  params->device->device_vendor = "Stoker";
  params->device->pci_bus_id = "0000:00:00.0";
  Ok(status);
}

void CreateDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  *params->device_fns = {SP_DEVICE_FNS_STRUCT_SIZE};
  Ok(status);
}

void CreateStreamExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status* status) {
  SP_StreamExecutor* executor = params->stream_executor;
  *executor = {SP_STREAMEXECUTOR_STRUCT_SIZE};
  executor->create_stream = CreateStream;
  executor->destroy_stream = DestroyStream;
  executor->create_stream_dependency = StreamWaitsForStream;
  executor->get_stream_status = StreamStatus;
  executor->create_event = CreateEvent;
  executor->destroy_event = DestroyEvent;
  executor->get_event_status = EventStatus;
  executor->record_event = RecordEvent;
  executor->wait_for_event = StreamWaitsForEvent;
  executor->create_timer = CreateTimer;
  executor->destroy_timer = DestroyTimer;
  executor->start_timer = StartTimer;
  executor->stop_timer = StopTimer;
  executor->block_host_for_event = HostWaitsForEvent;
  executor->block_host_until_done = HostWaitsForStream;
  executor->synchronize_all_activity = SynchronizeAll;
  executor->host_callback = HostCallback;
  AddMemoryCallbacks(executor);
  Ok(status);
}

void CreateTimerFns(const SP_Platform*, SP_TimerFns* functions, TF_Status* status) {
  functions->nanoseconds = TimerNs;
  Ok(status);
}

}  // namespace
}  // namespace stoker

extern "C" void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  using namespace stoker;  // NOLINT: the callbacks above
  SP_Platform* platform = params->platform;
  platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  platform->name = "STOKER";
  platform->type = "GPU";  // what makes programs see it as /GPU:0
  platform->supports_unified_memory = false;
  platform->use_bfc_allocator = true;  // TensorFlow's own GPU allocator: its sizes, its out-of-memory errors
  platform->force_memory_growth = true;

  SP_PlatformFns* functions = params->platform_fns;
  functions->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  functions->get_device_count = DeviceCount;
  functions->create_device = CreateDevice;
  functions->destroy_device = [](const SP_Platform*, SP_Device*) {};
  functions->create_device_fns = CreateDeviceFns;
  functions->destroy_device_fns = [](const SP_Platform*, SP_DeviceFns*) {};
  functions->create_stream_executor = CreateStreamExecutor;
  functions->destroy_stream_executor = [](const SP_Platform*, SP_StreamExecutor*) {};
  functions->create_timer_fns = CreateTimerFns;
  functions->destroy_timer_fns = [](const SP_Platform*, SP_TimerFns*) {};
  params->destroy_platform = [](SP_Platform*) {};
  params->destroy_platform_fns = [](SP_PlatformFns*) {};
  TF_SetStatus(status, TF_OK, "");
}
