// The cost of an op, from its name and its shapes alone: the same for every run.

#include "cost.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

namespace stoker {

namespace tf = tensorflow;

int64_t Work::Duration(const Config& config) const {
  double rate = config.float_rate;
  if (type == tf::DT_HALF) rate = config.half_rate;
  if (type == tf::DT_BFLOAT16) rate = config.bfloat16_rate;
  if (type == tf::DT_DOUBLE || type == tf::DT_COMPLEX128) rate = config.double_rate;
  return static_cast<int64_t>(config.kernel_ns + std::max(flops / rate, bytes / config.memory_rate));
}

CostModel::Kind CostModel::KindOf(const std::string& op) {
  static const auto* kinds = new std::map<std::string, Kind>{
      {"MatMul", Kind::kMatMul},
      {"_FusedMatMul", Kind::kMatMul},
      {"BatchMatMul", Kind::kBatchMatMul},
      {"BatchMatMulV2", Kind::kBatchMatMul},
      {"BatchMatMulV3", Kind::kBatchMatMul},
      {"Einsum", Kind::kEinsum},
      {"Conv2D", Kind::kConv},
      {"Conv3D", Kind::kConv},
      {"_FusedConv2D", Kind::kConv},
      {"Conv2DBackpropInput", Kind::kConvGradInput},
      {"Conv3DBackpropInputV2", Kind::kConvGradInput},
      {"Conv2DBackpropFilter", Kind::kConvGradFilter},
      {"Conv3DBackpropFilterV2", Kind::kConvGradFilter},
      {"DepthwiseConv2dNative", Kind::kDepthwise},
      {"DepthwiseConv2dNativeBackpropInput", Kind::kDepthwise},
      {"DepthwiseConv2dNativeBackpropFilter", Kind::kDepthwiseGradFilter},
      {"Gather", Kind::kGather},
      {"GatherV2", Kind::kGather},
      {"GatherNd", Kind::kGather},
      {"Slice", Kind::kGather},
      {"StridedSlice", Kind::kGather}};
  static const auto* metadata = new std::set<std::string>{
      "Reshape", "Identity", "IdentityN", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient", "EnsureShape",
      "Bitcast", "ReadVariableOp", "AssignVariableOp", "VarHandleOp", "Const", "Shape", "ShapeN", "Size", "Rank",
      "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "PlaceholderWithDefault", "_Arg", "_Retval",
      "EmptyTensorList", "TensorListReserve", "TensorListSetItem", "TensorListGetItem", "TensorListLength",
      "TensorListElementShape", "TensorListPushBack", "TensorListPopBack"};
  auto found = kinds->find(op);
  if (found != kinds->end()) return found->second;
  if (metadata->count(op)) return Kind::kMetadata;
  // Updates of variables name them by handle, so their size shows only in the gradient.
  bool update = op.rfind("ResourceApply", 0) == 0 || op.rfind("ResourceScatter", 0) == 0 ||
                op == "AssignAddVariableOp" || op == "AssignSubVariableOp";
  return update ? Kind::kUpdate : Kind::kElementwise;
}

CostModel::CostModel(tf::OpKernelConstruction* c)
    : kind_(KindOf(c->def().op())),
      input_memory_(c->input_memory_types().begin(), c->input_memory_types().end()),
      output_memory_(c->output_memory_types().begin(), c->output_memory_types().end()) {
  for (int i = 0; i < c->num_inputs(); i++) {
    if (input_memory_[i] == tf::DEVICE_MEMORY && c->input_type(i) != tf::DT_RESOURCE) host_only_ = false;
  }
  for (int i = 0; i < c->num_outputs(); i++) {
    if (output_memory_[i] == tf::DEVICE_MEMORY && c->output_type(i) != tf::DT_RESOURCE) host_only_ = false;
  }
  const std::string& op = c->def().op();
  if (kind_ == Kind::kUpdate) {
    // Reads and writes per element besides the gradient: the variable, and what the optimizer keeps beside it.
    bool two_slots = op.find("Adam") != std::string::npos || op.find("RMSProp") != std::string::npos;
    bool no_slot = op.find("GradientDescent") != std::string::npos || op.find("Scatter") != std::string::npos ||
                   op.rfind("Assign", 0) == 0;
    update_factor_ = two_slots ? 7 : no_slot ? 3 : 5;
  }
  if (kind_ == Kind::kEinsum) c->GetAttr("equation", &equation_).IgnoreError();
}

Work CostModel::Inputs(tf::OpKernelContext* c) const {
  Work work;
  bool first = true;
  ForEachDeviceInput(c, [&](int i, const tf::Tensor& tensor) {
    if (first && tf::DataTypeIsFloating(tensor.dtype())) {
      work.type = tensor.dtype();
      first = false;
    }
    // A lookup reads what it returns, not the whole table.
    if (kind_ == Kind::kGather && i == 0) return;
    work.bytes += tensor.TotalBytes();
  });
  if (kind_ == Kind::kUpdate) work.bytes *= update_factor_;
  return work;
}

void CostModel::AddOutputs(tf::OpKernelContext* c, Work* work) const {
  if (!c->status().ok()) return;
  for (int i = 0; i < c->num_outputs(); i++) {
    if (output_memory_[i] != tf::DEVICE_MEMORY || tf::IsRefType(c->expected_output_dtype(i))) continue;
    const tf::Tensor* output = c->mutable_output(i);
    if (output == nullptr || !output->IsInitialized()) continue;
    work->bytes += output->TotalBytes() * (kind_ == Kind::kGather ? 2.0 : 1.0);
    if (i == 0) work->flops += Flops(c, *output);
  }
}

double CostModel::Flops(tf::OpKernelContext* c, const tf::Tensor& output) const {
  double out = output.NumElements();
  if (out == 0) return 0;
  switch (kind_) {
    case Kind::kMatMul: {
      // m*k, k*n and m*n multiplied are (m*n*k) squared, whichever side is transposed.
      double a = c->input(0).NumElements(), b = c->input(1).NumElements();
      return 2 * std::sqrt(a * b * out);
    }
    case Kind::kBatchMatMul: {
      const tf::TensorShape& a = c->input(0).shape();
      const tf::TensorShape& b = c->input(1).shape();
      if (a.dims() < 2 || b.dims() < 2 || output.dims() < 2) return 0;
      double rows = output.dim_size(output.dims() - 2), columns = output.dim_size(output.dims() - 1);
      double one_a = double(a.dim_size(a.dims() - 2)) * a.dim_size(a.dims() - 1);
      double one_b = double(b.dim_size(b.dims() - 2)) * b.dim_size(b.dims() - 1);
      return 2 * (out / (rows * columns)) * std::sqrt(one_a * one_b * rows * columns);
    }
    case Kind::kEinsum:
      return EinsumFlops(c);
    case Kind::kConv: {
      // Every output element is a dot product over the filter's window and its input channels.
      const tf::TensorShape& filter = c->input(1).shape();
      return 2 * out * filter.num_elements() / filter.dim_size(filter.dims() - 1);
    }
    case Kind::kConvGradInput: {
      const tf::TensorShape& filter = c->input(1).shape();
      return 2.0 * c->input(2).NumElements() * filter.num_elements() / filter.dim_size(filter.dims() - 1);
    }
    case Kind::kConvGradFilter:
      return 2.0 * c->input(2).NumElements() * out / output.dim_size(output.dims() - 1);
    case Kind::kDepthwise: {
      // Each channel has its own window: height times width of the filter.
      const tf::TensorShape& filter = c->input(1).shape();
      return filter.dims() == 4 ? 2 * out * filter.dim_size(0) * filter.dim_size(1) : 0;
    }
    case Kind::kDepthwiseGradFilter:
      return 2.0 * c->input(2).NumElements() * output.dim_size(0) * output.dim_size(1);
    default:
      return 0;
  }
}

double CostModel::EinsumFlops(tf::OpKernelContext* c) const {
  if (c->num_inputs() != 2) return 0;
  // The product of the sizes of all letters in the equation; dots ("...") stand for the dimensions no letter names.
  std::map<char, double> sizes;
  double batch = 1;
  std::string left = equation_.substr(0, equation_.find("->"));
  size_t comma = left.find(',');
  const std::string terms[2] = {left.substr(0, comma), comma == std::string::npos ? "" : left.substr(comma + 1)};
  for (int i = 0; i < 2; i++) {
    const tf::TensorShape& shape = c->input(i).shape();
    int letters = std::count_if(terms[i].begin(), terms[i].end(), [](char x) { return std::isalpha(x); });
    int dimension = 0;
    double dots = 1;
    for (char x : terms[i]) {
      if (std::isalpha(x) && dimension < shape.dims()) sizes[x] = shape.dim_size(dimension++);
      if (x == '.' && dots == 1) {
        for (int skipped = shape.dims() - letters; skipped > 0 && dimension < shape.dims(); skipped--) {
          dots *= shape.dim_size(dimension++);
        }
        letters = shape.dims();  // the dots are used up
      }
    }
    batch = std::max(batch, dots);
  }
  double product = 2 * batch;
  for (const auto& size : sizes) product *= size.second;
  return product;
}

}  // namespace stoker
