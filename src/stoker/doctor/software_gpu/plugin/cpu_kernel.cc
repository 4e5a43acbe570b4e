// CPU kernels on the software GPU. TensorFlow's pluggable device derives from LocalDevice, as the CPU device does, so
// CPU kernels find their thread pool there; device memory is host memory, so they can read it.

#include "cpu_kernel.h"

#include <set>
#include <string>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op.h"

namespace stoker {

namespace tf = tensorflow;

namespace {

const tf::OpRegistryInterface* Ops(tf::OpKernelConstruction* c) {
  if (c->function_library() == nullptr) return tf::OpRegistry::Global();
  return c->function_library()->GetFunctionLibraryDefinition();
}

absl::Status Create(tf::OpKernelConstruction* c, const tf::NodeDef& node, std::unique_ptr<tf::OpKernel>* kernel) {
  std::shared_ptr<const tf::NodeProperties> properties;
  absl::Status status = tf::NodeProperties::CreateFromNodeDef(node, Ops(c), &properties);
  if (!status.ok()) return status;
  tf::OpKernel* made = nullptr;
  status = tf::CreateOpKernel(tf::DeviceType("CPU"), c->device(), c->device()->GetAllocator(tf::AllocatorAttributes()),
                              c->function_library(), c->resource_manager(), properties, c->graph_def_version(), &made);
  kernel->reset(made);
  return status;
}

// Ops that TensorFlow's CPU build rewrites to oneDNN. MaxPool is not here: its oneDNN form has one more output.
bool HasOneDnnForm(const std::string& op) {
  static const auto* ops = new std::set<std::string>{
      "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3D", "Conv3DBackpropInputV2",
      "Conv3DBackpropFilterV2", "DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
      "DepthwiseConv2dNativeBackpropFilter", "AvgPool", "AvgPoolGrad", "AvgPool3D", "AvgPool3DGrad",
      "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "FusedBatchNormGrad", "FusedBatchNormGradV2",
      "FusedBatchNormGradV3", "_FusedConv2D", "_FusedMatMul", "MatMul", "BatchMatMulV2", "Einsum"};
  return ops->count(op) > 0;
}

std::string OneDnnName(const std::string& op) {
  if (op == "MatMul" || op == "BatchMatMulV2" || op == "Einsum") return "_Mkl" + op;
  return "_MklNative" + (op[0] == '_' ? op.substr(1) : op);
}

}  // namespace

std::unique_ptr<tf::OpKernel> CreateOneDnnKernel(tf::OpKernelConstruction* c, const tf::NodeDef& node) {
  auto type = node.attr().find("T");
  // Half types may crash in oneDNN on CPUs without the instructions; the plain kernels are safe.
  if (!HasOneDnnForm(node.op()) || type == node.attr().end() || type->second.type() != tf::DT_FLOAT) return nullptr;
  tf::NodeDef renamed = node;
  renamed.set_op(OneDnnName(node.op()));
  (*renamed.mutable_attr())["_kernel"].set_s("MklNameChangeOp");
  const tf::OpDef* definition = nullptr;
  if (!Ops(c)->LookUpOpDef(renamed.op(), &definition).ok()) return nullptr;
  tf::AddDefaultsToNodeDef(*definition, &renamed);
  std::unique_ptr<tf::OpKernel> kernel;
  // A refusal is an answer: oneDNN is switched off or lacks this case, and the plain kernel is used.
  if (!Create(c, renamed, &kernel).ok()) return nullptr;
  return kernel;
}

absl::Status CreateCpuKernel(tf::OpKernelConstruction* c, tf::NodeDef node, std::unique_ptr<tf::OpKernel>* kernel) {
  node.mutable_attr()->erase("_kernel");  // a label chosen for the GPU's kernels
  *kernel = CreateOneDnnKernel(c, node);
  if (*kernel != nullptr) return absl::OkStatus();
  return Create(c, node, kernel);
}

absl::Status RunOn(tf::OpKernelContext* c, tf::OpKernel* kernel, const std::vector<tf::Tensor>& inputs,
                   std::vector<tf::Tensor>* outputs) {
  std::vector<tf::Tensor> held = inputs;
  std::vector<tf::TensorValue> values;
  for (tf::Tensor& tensor : held) values.emplace_back(&tensor);
  std::vector<tf::AllocatorAttributes> input_places(held.size()), output_places(kernel->num_outputs());
  std::vector<int> forwarding(kernel->num_outputs(), tf::OpKernelContext::Params::kNeverForward);

  tf::OpKernelContext::Params params;
  params.step_id = c->step_id();
  params.op_kernel = kernel;
  params.device = c->device();
  params.resource_manager = c->resource_manager();
  params.step_container = c->step_container();
  params.cancellation_manager = c->cancellation_manager();
  params.function_library = c->function_library();
  params.runner = c->runner();
  params.inputs = values;
  params.input_alloc_attrs = input_places;
  params.output_attr_array = output_places.data();
  params.forward_from_array = forwarding.data();
  params.op_device_context = c->op_device_context();
  tf::OpKernelContext inner(&params);
  kernel->Compute(&inner);
  if (!inner.status().ok()) return inner.status();
  outputs->clear();
  for (int i = 0; i < inner.num_outputs(); i++) {
    tf::TensorValue value = inner.release_output(i);
    outputs->push_back(value.tensor != nullptr ? *value.tensor : tf::Tensor());
    delete value.tensor;
  }
  return absl::OkStatus();
}

}  // namespace stoker
