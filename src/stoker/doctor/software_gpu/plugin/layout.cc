// Channels-first ops ("NCHW", "NCDHW"): a GPU computes them, most CPU kernels do not. Such an op becomes its
// channels-last form between two transpositions; all of it counts as the one kernel it is on a GPU.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu_kernel.h"
#include "emulation.h"
#include "kernels.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace stoker {

namespace tf = tensorflow;

namespace {

// Which arguments of an op are images, and which are vectors with one number per dimension of an image.
struct Arguments {
  std::vector<int> images;
  std::vector<int> vectors;
  bool result_is_image;
};

const Arguments* ArgumentsOf(const std::string& op) {
  static const auto* table = new std::map<std::string, Arguments>{
      {"MaxPool", {{0}, {}, true}},
      {"MaxPoolV2", {{0}, {1, 2}, true}},
      {"MaxPoolGrad", {{0, 1, 2}, {}, true}},
      {"MaxPoolGradV2", {{0, 1, 2}, {3, 4}, true}},
      {"MaxPoolGradGrad", {{0, 1, 2}, {}, true}},
      {"MaxPool3D", {{0}, {}, true}},
      {"MaxPool3DGrad", {{0, 1, 2}, {}, true}},
      {"MaxPool3DGradGrad", {{0, 1, 2}, {}, true}},
      {"AvgPool", {{0}, {}, true}},
      {"AvgPoolGrad", {{1}, {0}, true}},
      {"AvgPool3D", {{0}, {}, true}},
      {"AvgPool3DGrad", {{1}, {0}, true}},
      {"Conv2D", {{0}, {}, true}},
      {"Conv2DBackpropInput", {{2}, {0}, true}},
      {"Conv2DBackpropFilter", {{0, 2}, {}, false}},
      {"Conv3D", {{0}, {}, true}},
      {"Conv3DBackpropInputV2", {{2}, {0}, true}},
      {"Conv3DBackpropFilterV2", {{0, 2}, {}, false}},
      {"DepthwiseConv2dNative", {{0}, {}, true}},
      {"DepthwiseConv2dNativeBackpropInput", {{2}, {0}, true}},
      {"DepthwiseConv2dNativeBackpropFilter", {{0, 2}, {}, false}},
      {"FusedBatchNorm", {{0}, {}, true}},
      {"FusedBatchNormV2", {{0}, {}, true}},
      {"FusedBatchNormV3", {{0}, {}, true}},
      {"FusedBatchNormGrad", {{0, 1}, {}, true}},
      {"FusedBatchNormGradV2", {{0, 1}, {}, true}},
      {"FusedBatchNormGradV3", {{0, 1}, {}, true}},
      {"DepthToSpace", {{0}, {}, true}},
      {"SpaceToDepth", {{0}, {}, true}}};
  auto found = table->find(op);
  return found == table->end() ? nullptr : &found->second;
}

// N C D H W -> N D H W C, for anything with one entry (or `width` of them) per dimension.
template <class List>
void MoveChannelsLast(List* list, int width = 1) {
  int size = list->size();
  if (size < 3 * width) return;
  std::vector<std::decay_t<decltype((*list)[0])>> old(list->begin(), list->end());
  for (int i = 2 * width; i < size; i++) (*list)[i - width] = old[i];
  for (int i = 0; i < width; i++) (*list)[size - width + i] = old[width + i];
}

tf::NodeDef ChannelsLast(tf::NodeDef node) {
  auto& attributes = *node.mutable_attr();
  const std::string format = attributes["data_format"].s();
  attributes["data_format"].set_s(format == "NCDHW" ? "NDHWC" : "NHWC");
  for (const char* name : {"ksize", "strides", "dilations"}) {
    auto found = attributes.find(name);
    if (found != attributes.end()) MoveChannelsLast(found->second.mutable_list()->mutable_i());
  }
  auto paddings = attributes.find("explicit_paddings");
  if (paddings != attributes.end()) MoveChannelsLast(paddings->second.mutable_list()->mutable_i(), 2);
  return node;
}

// Swaps the channels with the pixels of every image: [batch, rows, columns] to [batch, columns, rows].
void Transpose(const tf::Tensor& from, int64_t batch, int64_t rows, int64_t columns, tf::Tensor* to) {
  size_t width = tf::DataTypeSize(from.dtype());
  const char* in = static_cast<const char*>(from.data());
  char* out = static_cast<char*>(to->data());
  for (int64_t n = 0; n < batch; n++) {
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t c = 0; c < columns; c++) {
        std::memcpy(out + ((n * columns + c) * rows + r) * width, in + ((n * rows + r) * columns + c) * width, width);
      }
    }
  }
}

class ChannelsFirstKernel : public tf::OpKernel {
 public:
  ChannelsFirstKernel(tf::OpKernelConstruction* c, std::unique_ptr<tf::OpKernel> last, const Arguments& arguments)
      : OpKernel(c), last_(std::move(last)), arguments_(arguments), cost_(c) {}

  void Compute(tf::OpKernelContext* c) override {
    RunAsKernel(c, cost_, [&] { OP_REQUIRES_OK(c, Run(c)); });
  }

 private:
  absl::Status Run(tf::OpKernelContext* c) {
    std::vector<tf::Tensor> inputs, outputs;
    for (int i = 0; i < c->num_inputs(); i++) inputs.push_back(c->input(i));
    for (int i : arguments_.images) TF_RETURN_IF_ERROR(ToLast(c, &inputs[i]));
    for (int i : arguments_.vectors) inputs[i] = ReorderedVector(inputs[i]);
    TF_RETURN_IF_ERROR(RunOn(c, last_.get(), inputs, &outputs));
    for (int i = 0; i < static_cast<int>(outputs.size()); i++) {
      if (i == 0 && arguments_.result_is_image) TF_RETURN_IF_ERROR(ToFirst(c, &outputs[i]));
      c->set_output(i, outputs[i]);
    }
    return absl::OkStatus();
  }

  // In host memory, int32 or int64; a copy, since inputs are not ours to change.
  static tf::Tensor ReorderedVector(const tf::Tensor& vector) {
    tf::Tensor copy(vector.dtype(), vector.shape());
    int count = vector.NumElements();
    if (vector.dtype() == tf::DT_INT32) {
      std::vector<int32_t> values(vector.flat<int32_t>().data(), vector.flat<int32_t>().data() + count);
      MoveChannelsLast(&values);
      std::copy(values.begin(), values.end(), copy.flat<int32_t>().data());
    } else {
      std::vector<int64_t> values(vector.flat<int64_t>().data(), vector.flat<int64_t>().data() + count);
      MoveChannelsLast(&values);
      std::copy(values.begin(), values.end(), copy.flat<int64_t>().data());
    }
    return copy;
  }

  absl::Status ToLast(tf::OpKernelContext* c, tf::Tensor* image) {
    if (image->dims() < 4) return absl::InvalidArgumentError("a channels-first image has at least 4 dimensions");
    tf::TensorShape shape({image->dim_size(0)});
    int64_t pixels = 1;
    for (int i = 2; i < image->dims(); i++) {
      shape.AddDim(image->dim_size(i));
      pixels *= image->dim_size(i);
    }
    shape.AddDim(image->dim_size(1));
    tf::Tensor result;
    TF_RETURN_IF_ERROR(c->allocate_temp(image->dtype(), shape, &result));
    Transpose(*image, image->dim_size(0), image->dim_size(1), pixels, &result);
    *image = result;
    return absl::OkStatus();
  }

  absl::Status ToFirst(tf::OpKernelContext* c, tf::Tensor* image) {
    int channels = image->dims() - 1;
    tf::TensorShape shape({image->dim_size(0), image->dim_size(channels)});
    int64_t pixels = 1;
    for (int i = 1; i < channels; i++) {
      shape.AddDim(image->dim_size(i));
      pixels *= image->dim_size(i);
    }
    tf::Tensor result;
    TF_RETURN_IF_ERROR(c->allocate_temp(image->dtype(), shape, &result));
    Transpose(*image, image->dim_size(0), pixels, image->dim_size(channels), &result);
    *image = result;
    return absl::OkStatus();
  }

  std::unique_ptr<tf::OpKernel> last_;
  const Arguments& arguments_;
  CostModel cost_;
};

}  // namespace

tf::OpKernel* CreateChannelsFirstKernel(tf::OpKernelConstruction* c) {
  const Arguments* arguments = ArgumentsOf(c->def().op());
  std::string format;
  if (arguments == nullptr || !tf::TryGetNodeAttr(c->def(), "data_format", &format)) return nullptr;
  if (format != "NCHW" && format != "NCDHW") return nullptr;
  if (CreateOneDnnKernel(c, c->def()) != nullptr) return nullptr;  // oneDNN computes it as it is
  std::unique_ptr<tf::OpKernel> last;
  absl::Status status = CreateCpuKernel(c, ChannelsLast(c->def()), &last);
  if (!status.ok()) return new RefusedKernel(c, status);
  return new ChannelsFirstKernel(c, std::move(last), *arguments);
}

}  // namespace stoker
