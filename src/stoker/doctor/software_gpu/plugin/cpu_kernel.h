// Finding the CPU kernel that computes what a GPU kernel would, and running it.

#ifndef STOKER_CPU_KERNEL_H_
#define STOKER_CPU_KERNEL_H_

#include <memory>
#include <vector>

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace stoker {

// The CPU kernel for this node: oneDNN's where TensorFlow on a CPU would use it, else the plain one.
absl::Status CreateCpuKernel(tensorflow::OpKernelConstruction* construction, tensorflow::NodeDef node,
                             std::unique_ptr<tensorflow::OpKernel>* kernel);

// The same, but only if oneDNN has it; null if not.
std::unique_ptr<tensorflow::OpKernel> CreateOneDnnKernel(tensorflow::OpKernelConstruction* construction,
                                                         const tensorflow::NodeDef& node);

// Runs `kernel` on other inputs than the op's own, in the op's environment. Its outputs are in device memory.
absl::Status RunOn(tensorflow::OpKernelContext* context, tensorflow::OpKernel* kernel,
                   const std::vector<tensorflow::Tensor>& inputs, std::vector<tensorflow::Tensor>* outputs);

}  // namespace stoker

#endif  // STOKER_CPU_KERNEL_H_
