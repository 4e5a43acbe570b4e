// Running something on the CPU as if it were one kernel of the device.

#ifndef STOKER_EMULATION_H_
#define STOKER_EMULATION_H_

#include "cost.h"
#include "machine.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace stoker {

// A function that XLA would compile, while it runs: its ops add up to one launch. See clusters.cc.
struct Cluster {
  double device_ns = 0;
};

// The cluster a running op belongs to; null for none.
Cluster* ClusterOf(tensorflow::OpKernelContext* context);

// The number of the device an op runs on.
int Ordinal(tensorflow::OpKernelContext* context);

// Between its making and `Finish` the clock stands still; `Finish` queues the modelled duration on the compute
// stream. Inside a cluster it only adds to the cluster.
class KernelRun {
 public:
  KernelRun(tensorflow::OpKernelContext* context, const CostModel& cost);
  void Finish(const Work& work);

 private:
  Cluster* cluster_;
  int ordinal_;
  int64_t launched_at_ = 0;
};

// Runs `body` as one kernel whose cost follows from its arguments.
template <class Body>
void RunAsKernel(tensorflow::OpKernelContext* context, const CostModel& cost, Body body) {
  KernelRun run(context, cost);
  Work work = cost.Inputs(context);
  body();
  cost.AddOutputs(context, &work);
  run.Finish(work);
}

// An op that is no device work.
void CountHostOp(tensorflow::OpKernelContext* context);

}  // namespace stoker

#endif  // STOKER_EMULATION_H_
