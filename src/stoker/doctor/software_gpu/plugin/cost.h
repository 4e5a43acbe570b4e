// What one op costs a device: floating-point operations and bytes of device memory read and written.

#ifndef STOKER_COST_H_
#define STOKER_COST_H_

#include <string>

#include "machine.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace stoker {

struct Work {
  double flops = 0;
  double bytes = 0;
  tensorflow::DataType type = tensorflow::DT_FLOAT;

  // Roofline: whichever of arithmetic and memory takes longer.
  int64_t Duration(const Config& config) const;
};

class CostModel {
 public:
  explicit CostModel(tensorflow::OpKernelConstruction* construction);

  // True for ops that only rename or describe a buffer (Reshape, Identity): a GPU launches nothing for them.
  bool is_metadata() const { return kind_ == Kind::kMetadata; }
  // True when every argument is in host memory or a handle: the CUDA build runs such an op on the host too.
  bool is_host_only() const { return host_only_; }

  // Before the kernel ran: what it reads. Inputs may be gone afterwards (their buffers are reused for outputs).
  Work Inputs(tensorflow::OpKernelContext* context) const;
  // After it ran: adds what it wrote, and the arithmetic.
  void AddOutputs(tensorflow::OpKernelContext* context, Work* work) const;
  // Calls `visit` with the data of each input in device memory.
  template <class Visit>
  void ForEachDeviceInput(tensorflow::OpKernelContext* context, Visit visit) const {
    for (int i = 0; i < context->num_inputs(); i++) {
      if (input_memory_[i] != tensorflow::DEVICE_MEMORY || context->input_is_ref(i) || !context->has_input(i)) continue;
      const tensorflow::Tensor& tensor = context->input(i);
      if (tensor.IsInitialized() && tensor.dtype() != tensorflow::DT_RESOURCE) visit(i, tensor);
    }
  }

 private:
  enum class Kind {
    kElementwise, kMetadata, kMatMul, kBatchMatMul, kEinsum, kConv, kConvGradInput, kConvGradFilter, kDepthwise,
    kDepthwiseGradFilter, kGather, kUpdate
  };
  static Kind KindOf(const std::string& op);
  double Flops(tensorflow::OpKernelContext* context, const tensorflow::Tensor& output) const;
  double EinsumFlops(tensorflow::OpKernelContext* context) const;

  Kind kind_;
  bool host_only_ = true;
  double update_factor_ = 1;
  std::string equation_;
  tensorflow::MemoryTypeVector input_memory_, output_memory_;
};

}  // namespace stoker

#endif  // STOKER_COST_H_
