// CTCLossV2, which only GPUs have: cuDNN's form of CTCLoss, with the blank as the first class instead of the last.
// Computed by the CPU's CTCLoss on rotated classes.

#include <memory>
#include <string>
#include <vector>

#include "cpu_kernel.h"
#include "emulation.h"
#include "kernels.h"
#include "tensorflow/core/framework/tensor.h"

namespace stoker {

namespace tf = tensorflow;

namespace {

// Class 0 goes to the end (`by` = 1) or the last class to the front (`by` = classes - 1).
void RotateClasses(const tf::Tensor& from, int64_t by, tf::Tensor* to) {
  int64_t classes = from.dim_size(from.dims() - 1);
  const float* in = from.flat<float>().data();
  float* out = to->flat<float>().data();
  for (int64_t row = 0; row < from.NumElements() / classes; row++) {
    for (int64_t k = 0; k < classes; k++) out[row * classes + k] = in[row * classes + (k + by) % classes];
  }
}

class CtcLossV2Kernel : public tf::OpKernel {
 public:
  explicit CtcLossV2Kernel(tf::OpKernelConstruction* c) : OpKernel(c), cost_(c) {
    tf::NodeDef node = c->def();
    node.set_op("CTCLoss");
    (*node.mutable_attr())["T"].set_type(tf::DT_FLOAT);
    OP_REQUIRES_OK(c, CreateCpuKernel(c, node, &cpu_));
  }

  void Compute(tf::OpKernelContext* c) override {
    RunAsKernel(c, cost_, [&] { OP_REQUIRES_OK(c, Run(c)); });
  }

 private:
  absl::Status Run(tf::OpKernelContext* c) {
    const tf::Tensor& logits = c->input(0);
    if (logits.dims() != 3 || logits.NumElements() == 0) {
      return absl::InvalidArgumentError("CTCLossV2 needs inputs of shape [time, batch, classes]");
    }
    int64_t classes = logits.dim_size(2);
    tf::Tensor rotated;
    TF_RETURN_IF_ERROR(c->allocate_temp(tf::DT_FLOAT, logits.shape(), &rotated));
    RotateClasses(logits, 1, &rotated);
    tf::Tensor labels(tf::DT_INT32, c->input(2).shape());
    for (int64_t i = 0; i < labels.NumElements(); i++) {
      labels.flat<int32_t>()(i) = c->input(2).flat<int32_t>()(i) - 1;
    }
    std::vector<tf::Tensor> outputs;
    TF_RETURN_IF_ERROR(RunOn(c, cpu_.get(), {rotated, c->input(1), labels, c->input(3)}, &outputs));
    tf::Tensor* gradient = nullptr;
    TF_RETURN_IF_ERROR(c->allocate_output(1, logits.shape(), &gradient));
    RotateClasses(outputs[1], classes - 1, gradient);
    c->set_output(0, outputs[0]);
    return absl::OkStatus();
  }

  std::unique_ptr<tf::OpKernel> cpu_;
  CostModel cost_;
};

REGISTER_KERNEL_BUILDER(Name("CTCLossV2")
                            .Device("GPU")
                            .HostMemory("labels_indices")
                            .HostMemory("labels_values")
                            .HostMemory("sequence_length")
                            .Priority(kPriority),
                        CtcLossV2Kernel);

}  // namespace
}  // namespace stoker
