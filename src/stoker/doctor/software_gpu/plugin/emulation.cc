// Kernels on the timeline: launch, modelled duration, and what the host pays for it.

#include "emulation.h"

#include <algorithm>

#include "tensorflow/core/framework/device_base.h"

namespace stoker {

namespace tf = tensorflow;

int Ordinal(tf::OpKernelContext* c) {
  const auto* info = c->device()->tensorflow_accelerator_device_info();
  return info != nullptr ? info->gpu_id : 0;
}

KernelRun::KernelRun(tf::OpKernelContext* c, const CostModel& cost)
    : cluster_(ClusterOf(c)), ordinal_(Ordinal(c)) {
  if (cluster_ != nullptr) return;
  Machine& m = TheMachine();
  Lock lock(m);
  Device& device = m.devices[ordinal_];
  if (!device.arrivals.empty()) {
    cost.ForEachDeviceInput(
        c, [&](int, const tf::Tensor& tensor) { m.WaitForArrival(device, tensor.data(), tensor.TotalBytes()); });
  }
  if (m.clock.deterministic()) m.clock.Advance(static_cast<int64_t>(m.config.host_op_ns));
  launched_at_ = m.clock.Now();
  m.clock.Stop();
}

void KernelRun::Finish(const Work& work) {
  Machine& m = TheMachine();
  Lock lock(m);
  if (cluster_ != nullptr) {
    // XLA fuses what only moves data; what computes still reads and writes its operands.
    if (work.flops > 0) cluster_->device_ns += work.Duration(m.config);
    return;
  }
  m.clock.Go();
  Device& device = m.devices[ordinal_];
  m.Enqueue(device.streams.front(), launched_at_, work.Duration(m.config));
  m.clock.Advance(static_cast<int64_t>(m.config.launch_ns));
  m.Count(device, [](Counters& c) { c.launches++; });
}

void CountHostOp(tf::OpKernelContext* c) {
  if (ClusterOf(c) != nullptr) return;
  Machine& m = TheMachine();
  Lock lock(m);
  m.Count(m.devices[Ordinal(c)], [](Counters& counters) { counters.host_ops++; });
}

}  // namespace stoker
