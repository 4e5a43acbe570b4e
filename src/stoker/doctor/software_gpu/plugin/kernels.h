// Kernels of the software GPU, and how the files that hold them are put together.

#ifndef STOKER_KERNELS_H_
#define STOKER_KERNELS_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/kernel_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace stoker {

// Outranks the CUDA build's own kernels, which are there too when the full wheel is installed.
constexpr int kPriority = 10;

// kernel_table.cc: the registrations the table lists. Lines it cannot read are an error.
absl::Status ReadKernelTable(const std::string& path, std::vector<tensorflow::KernelDef>* kernels);

// layout.cc: a kernel for a channels-first op that no CPU kernel computes, or null if this op needs none.
tensorflow::OpKernel* CreateChannelsFirstKernel(tensorflow::OpKernelConstruction* construction);

// clusters.cc: takes over functions that XLA would compile for the device.
void TakeOverCompiledFunctions();

// A kernel that was refused at its making; TensorFlow shows the status and never runs it.
class RefusedKernel : public tensorflow::OpKernel {
 public:
  RefusedKernel(tensorflow::OpKernelConstruction* construction, const absl::Status& why) : OpKernel(construction) {
    construction->SetStatus(why);
  }
  void Compute(tensorflow::OpKernelContext*) override {}
};

}  // namespace stoker

#endif  // STOKER_KERNELS_H_
