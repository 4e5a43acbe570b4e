// cuDNN's recurrent networks (CudnnRNN, V2, V3 and their gradients), which only GPUs have and which Keras picks for
// LSTM and GRU as soon as it sees a GPU. Any number of layers, one or both directions, LSTM, GRU and plain cells.
//
// One direction of one layer is a Pass: a cell that walks over the steps of a sequence. cuDNN keeps all parameters in
// one vector: for each pass the input weights, then the recurrent ones; after all of those, the two biases of each
// pass. The gradient repeats the forward walk, so nothing is kept in the reserve space (it has the size cuDNN's would
// have).

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "emulation.h"
#include "kernels.h"
#include "tensorflow/core/framework/tensor.h"
#include "unsupported/Eigen/CXX11/Tensor"

namespace stoker {

namespace tf = tensorflow;

namespace {

enum class Cell { kLstm, kGru, kRelu, kTanh };

struct Sizes {
  int steps, batch, inputs, units, layers, directions, gates;
  int passes() const { return layers * directions; }
  int width(int layer) const { return layer == 0 ? inputs : units * directions; }
  int64_t weights(int layer) const { return int64_t{1} * gates * units * (width(layer) + units); }
  int64_t parameters() const {
    int64_t total = 0;
    for (int layer = 0; layer < layers; layer++) total += directions * (weights(layer) + 2 * gates * units);
    return total;
  }
  double flops() const {
    double total = 0;
    for (int layer = 0; layer < layers; layer++) total += 2.0 * steps * batch * directions * weights(layer);
    return total;
  }
};

template <class Real>
struct Types {
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Array = Eigen::Array<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Sequence = std::vector<Matrix>;  // one [batch, features] per step
};

template <class Array>
Array Sigmoid(const Array& x) {
  return (1 + (-x).exp()).inverse();
}

// One direction of one layer.
template <class Real>
class Pass {
 public:
  using Matrix = typename Types<Real>::Matrix;
  using Array = typename Types<Real>::Array;
  using Sequence = typename Types<Real>::Sequence;

  Cell cell;
  Matrix input_weights, recurrent_weights, input_bias, recurrent_bias;
  Matrix input_weights_grad, recurrent_weights_grad, input_bias_grad, recurrent_bias_grad;
  Sequence x;         // what it reads, already reversed for the second direction
  Sequence hidden;    // steps + 1, the first is the initial state
  Sequence memory;    // LSTM's cell state, the same way
  std::vector<Array> gates, recurrent_part;

  int units() const { return recurrent_weights.cols(); }

  void Forward(const Matrix& h0, const Matrix& c0, const std::vector<int>& lengths) {
    int steps = x.size();
    hidden.assign(1, h0);
    memory.assign(1, c0);
    gates.clear();
    recurrent_part.clear();
    for (int t = 0; t < steps; t++) {
      Array from_input = ((x[t] * input_weights.transpose()).rowwise() + input_bias.row(0)).array();
      Array from_state = ((hidden[t] * recurrent_weights.transpose()).rowwise() + recurrent_bias.row(0)).array();
      Step(t, from_input, from_state);
      KeepEnded(t, lengths);
    }
  }

  // From the gradient of each step's output and of the last state to those of the inputs, the first state and the
  // parameters.
  void Backward(const Sequence& dy, Matrix* dh, Matrix* dc, const std::vector<int>& lengths, Sequence* dx) {
    int steps = x.size();
    input_weights_grad = Matrix::Zero(input_weights.rows(), input_weights.cols());
    recurrent_weights_grad = Matrix::Zero(recurrent_weights.rows(), recurrent_weights.cols());
    input_bias_grad = recurrent_bias_grad = Matrix::Zero(1, input_bias.cols());
    dx->resize(steps);
    for (int t = steps - 1; t >= 0; t--) {
      Matrix dh_ended = *dh, dc_ended = *dc;
      for (int b = 0; b < dh->rows(); b++) {
        if (t < lengths[b]) dh->row(b) += dy[t].row(b);
      }
      Array d_input, d_state;
      Matrix dh_before = StepBackward(t, dh->array(), dc, &d_input, &d_state);
      for (int b = 0; b < dh->rows(); b++) {
        if (t < lengths[b]) continue;
        d_input.row(b).setZero();
        d_state.row(b).setZero();
        dh_before.row(b).setZero();
      }
      dh_before += d_state.matrix() * recurrent_weights;
      (*dx)[t] = d_input.matrix() * input_weights;
      input_weights_grad += d_input.matrix().transpose() * x[t];
      recurrent_weights_grad += d_state.matrix().transpose() * hidden[t];
      input_bias_grad += d_input.matrix().colwise().sum();
      recurrent_bias_grad += d_state.matrix().colwise().sum();
      *dh = dh_before;
      for (int b = 0; b < dh->rows(); b++) {
        if (t < lengths[b]) continue;
        dh->row(b) = dh_ended.row(b);
        if (cell == Cell::kLstm) dc->row(b) = dc_ended.row(b);
      }
    }
  }

 private:
  // Gate k of the concatenated gates.
  template <class A>
  static auto Gate(const A& all, int k, int units) {
    return all.middleCols(k * units, units);
  }

  void Step(int t, const Array& from_input, const Array& from_state) {
    int u = units();
    Array sum = from_input + from_state, gate(sum.rows(), sum.cols());
    Array h, c;
    switch (cell) {
      case Cell::kLstm: {  // input, forget, candidate, output
        gate << Sigmoid<Array>(Gate(sum, 0, u)), Sigmoid<Array>(Gate(sum, 1, u)), Gate(sum, 2, u).tanh(),
            Sigmoid<Array>(Gate(sum, 3, u));
        c = Gate(gate, 1, u) * memory[t].array() + Gate(gate, 0, u) * Gate(gate, 2, u);
        h = Gate(gate, 3, u) * c.tanh();
        break;
      }
      case Cell::kGru: {  // reset, update, candidate; the reset acts after the recurrent product
        Array reset = Sigmoid<Array>(Gate(sum, 0, u)), update = Sigmoid<Array>(Gate(sum, 1, u));
        Array candidate = (Gate(from_input, 2, u) + reset * Gate(from_state, 2, u)).tanh();
        gate << reset, update, candidate;
        h = (1 - update) * candidate + update * hidden[t].array();
        break;
      }
      case Cell::kRelu:
        gate = h = sum.max(Real(0));
        break;
      case Cell::kTanh:
        gate = h = sum.tanh();
        break;
    }
    gates.push_back(gate);
    recurrent_part.push_back(from_state);
    hidden.push_back(h.matrix());
    memory.push_back(cell == Cell::kLstm ? Matrix(c.matrix()) : Matrix());
  }

  // A sequence that ended before this step keeps its state.
  void KeepEnded(int t, const std::vector<int>& lengths) {
    for (int b = 0; b < hidden[t].rows(); b++) {
      if (t < lengths[b]) continue;
      hidden[t + 1].row(b) = hidden[t].row(b);
      if (cell == Cell::kLstm) memory[t + 1].row(b) = memory[t].row(b);
    }
  }

  // Gradients before the activations, for the input's and the state's share; returns what reaches the state directly.
  Matrix StepBackward(int t, const Array& dh, Matrix* dc, Array* d_input, Array* d_state) {
    int u = units();
    const Array& gate = gates[t];
    d_input->resize(gate.rows(), gate.cols());
    Matrix direct = Matrix::Zero(dh.rows(), u);
    switch (cell) {
      case Cell::kLstm: {
        Array i = Gate(gate, 0, u), f = Gate(gate, 1, u), n = Gate(gate, 2, u), o = Gate(gate, 3, u);
        Array tanh_c = memory[t + 1].array().tanh();
        Array d_memory = dc->array() + dh * o * (1 - tanh_c * tanh_c);
        *d_input << d_memory * n * i * (1 - i), d_memory * memory[t].array() * f * (1 - f), d_memory * i * (1 - n * n),
            dh * tanh_c * o * (1 - o);
        *d_state = *d_input;
        *dc = (d_memory * f).matrix();
        break;
      }
      case Cell::kGru: {
        Array r = Gate(gate, 0, u), z = Gate(gate, 1, u), n = Gate(gate, 2, u);
        Array dn = dh * (1 - z) * (1 - n * n), dz = dh * (hidden[t].array() - n) * z * (1 - z);
        Array dr = dn * Gate(recurrent_part[t], 2, u) * r * (1 - r);
        d_state->resize(gate.rows(), gate.cols());
        *d_input << dr, dz, dn;
        *d_state << dr, dz, dn * r;
        direct = (dh * z).matrix();
        break;
      }
      case Cell::kRelu:
        *d_input = dh * (gate > 0).template cast<Real>();
        *d_state = *d_input;
        break;
      case Cell::kTanh:
        *d_input = dh * (1 - gate * gate);
        *d_state = *d_input;
        break;
    }
    return direct;
  }
};

// Element access for whatever type the op has: half types are computed in float.
template <class Real>
Real ElementOf(const tf::Tensor& tensor, int64_t at) {
  switch (tensor.dtype()) {
    case tf::DT_DOUBLE:
      return static_cast<Real>(static_cast<const double*>(tensor.data())[at]);
    case tf::DT_HALF:
      return static_cast<Real>(static_cast<const Eigen::half*>(tensor.data())[at]);
    case tf::DT_BFLOAT16:
      return static_cast<Real>(static_cast<const Eigen::bfloat16*>(tensor.data())[at]);
    default:
      return static_cast<Real>(static_cast<const float*>(tensor.data())[at]);
  }
}

template <class Real>
void SetElement(tf::Tensor* tensor, int64_t at, Real value) {
  switch (tensor->dtype()) {
    case tf::DT_DOUBLE:
      static_cast<double*>(tensor->data())[at] = value;
      break;
    case tf::DT_HALF:
      static_cast<Eigen::half*>(tensor->data())[at] = static_cast<Eigen::half>(value);
      break;
    case tf::DT_BFLOAT16:
      static_cast<Eigen::bfloat16*>(tensor->data())[at] = static_cast<Eigen::bfloat16>(value);
      break;
    default:
      static_cast<float*>(tensor->data())[at] = value;
  }
}

// The op around the passes: reads and writes TensorFlow's tensors. Real is the type it computes in.
template <class Real>
class RecurrentKernel : public tf::OpKernel {
 public:
  using Matrix = typename Types<Real>::Matrix;
  using Sequence = typename Types<Real>::Sequence;

  explicit RecurrentKernel(tf::OpKernelConstruction* c) : OpKernel(c), cost_(c) {
    std::string mode, direction;
    float dropout = 0;
    int projection = 0;
    OP_REQUIRES_OK(c, c->GetAttr("rnn_mode", &mode));
    OP_REQUIRES_OK(c, c->GetAttr("direction", &direction));
    OP_REQUIRES_OK(c, c->GetAttr("dropout", &dropout));
    if (c->HasAttr("time_major")) OP_REQUIRES_OK(c, c->GetAttr("time_major", &time_major_));
    if (c->HasAttr("num_proj")) OP_REQUIRES_OK(c, c->GetAttr("num_proj", &projection));
    OP_REQUIRES(c, dropout == 0 && projection == 0,
                absl::UnimplementedError("the software GPU's cuDNN layers have no dropout and no projection"));
    cell_ = mode == "lstm" ? Cell::kLstm : mode == "gru" ? Cell::kGru : mode == "rnn_relu" ? Cell::kRelu : Cell::kTanh;
    directions_ = direction == "bidirectional" ? 2 : 1;
    backward_ = type_string().find("Backprop") != std::string::npos;
    has_lengths_ = type_string().find("V3") != std::string::npos;
    has_host_reserved_ = has_lengths_ || type_string().find("V2") != std::string::npos;
  }

  void Compute(tf::OpKernelContext* c) override {
    KernelRun run(c, cost_);
    Work work = cost_.Inputs(c);
    absl::Status status = Run(c, &work);
    if (!status.ok()) c->SetStatus(status);
    cost_.AddOutputs(c, &work);
    run.Finish(work);
  }

 private:
  absl::Status Run(tf::OpKernelContext* c, Work* work) {
    Sizes sizes;
    TF_RETURN_IF_ERROR(ReadSizes(c, &sizes));
    work->flops += sizes.flops() * (backward_ ? 3 : 1);
    std::vector<int> lengths(sizes.batch, sizes.steps);
    if (has_lengths_) std::copy_n(c->input(4).flat<int32_t>().data(), sizes.batch, lengths.begin());
    std::vector<Pass<Real>> passes(sizes.passes());
    ReadParameters(c->input(3), sizes, &passes);
    Sequence output = Forward(c, sizes, lengths, &passes);
    if (backward_) return WriteGradients(c, sizes, lengths, &passes);
    return WriteResults(c, sizes, lengths, passes, output);
  }

  absl::Status ReadSizes(tf::OpKernelContext* c, Sizes* sizes) const {
    const tf::TensorShape &x = c->input(0).shape(), &h = c->input(1).shape();
    if (x.dims() != 3 || h.dims() != 3) return absl::InvalidArgumentError("input and input_h must be 3-D");
    sizes->steps = x.dim_size(time_major_ ? 0 : 1);
    sizes->batch = x.dim_size(time_major_ ? 1 : 0);
    sizes->inputs = x.dim_size(2);
    sizes->units = h.dim_size(2);
    sizes->directions = directions_;
    sizes->layers = h.dim_size(time_major_ ? 0 : 1) / directions_;
    sizes->gates = cell_ == Cell::kLstm ? 4 : cell_ == Cell::kGru ? 3 : 1;
    if (c->input(3).NumElements() != sizes->parameters()) {
      return absl::InvalidArgumentError("params has " + std::to_string(c->input(3).NumElements()) +
                                        " elements, this network has " + std::to_string(sizes->parameters()));
    }
    return absl::OkStatus();
  }

  // Calls visit(pass, matrix, offset, rows, columns) for each block of the parameter vector.
  template <class Visit>
  static void ForEachBlock(const Sizes& sizes, Visit visit) {
    int rows = sizes.gates * sizes.units;
    int64_t at = 0;
    for (int p = 0; p < sizes.passes(); p++) {
      int width = sizes.width(p / sizes.directions);
      visit(p, 0, at, rows, width);
      visit(p, 1, at + int64_t{1} * rows * width, rows, sizes.units);
      at += sizes.weights(p / sizes.directions);
    }
    for (int p = 0; p < sizes.passes(); p++) {
      visit(p, 2, at, 1, rows);
      visit(p, 3, at + rows, 1, rows);
      at += 2 * rows;
    }
  }

  void ReadParameters(const tf::Tensor& tensor, const Sizes& sizes, std::vector<Pass<Real>>* passes) const {
    ForEachBlock(sizes, [&](int p, int block, int64_t at, int rows, int columns) {
      Pass<Real>& pass = (*passes)[p];
      pass.cell = cell_;
      Matrix* blocks[] = {&pass.input_weights, &pass.recurrent_weights, &pass.input_bias, &pass.recurrent_bias};
      blocks[block]->resize(rows, columns);
      for (int64_t i = 0; i < blocks[block]->size(); i++) blocks[block]->data()[i] = ElementOf<Real>(tensor, at + i);
    });
  }

  void WriteParameterGradients(const Sizes& sizes, const std::vector<Pass<Real>>& passes, tf::Tensor* tensor) const {
    ForEachBlock(sizes, [&](int p, int block, int64_t at, int rows, int columns) {
      const Pass<Real>& pass = passes[p];
      const Matrix* blocks[] = {&pass.input_weights_grad, &pass.recurrent_weights_grad, &pass.input_bias_grad,
                                &pass.recurrent_bias_grad};
      for (int64_t i = 0; i < blocks[block]->size(); i++) SetElement(tensor, at + i, blocks[block]->data()[i]);
    });
  }

  // The place of one row in a [time, batch, features] or [batch, time, features] tensor; states are laid out alike.
  int64_t RowAt(int major, int minor, int majors, int minors, int width) const {
    return int64_t{1} * (time_major_ ? major * minors + minor : minor * majors + major) * width;
  }

  Sequence ReadSequence(const tf::Tensor& tensor, int majors, int batch) const {
    int width = tensor.dim_size(2);
    Sequence sequence(majors, Matrix(batch, width));
    for (int t = 0; t < majors; t++) {
      for (int b = 0; b < batch; b++) {
        int64_t row = RowAt(t, b, majors, batch, width);
        for (int k = 0; k < width; k++) sequence[t](b, k) = ElementOf<Real>(tensor, row + k);
      }
    }
    return sequence;
  }

  void WriteSequence(const Sequence& sequence, tf::Tensor* tensor) const {
    int majors = sequence.size();
    for (int t = 0; t < majors; t++) {
      const Matrix& step = sequence[t];
      for (int b = 0; b < step.rows(); b++) {
        int64_t row = RowAt(t, b, majors, step.rows(), step.cols());
        for (int k = 0; k < step.cols(); k++) SetElement(tensor, row + k, step(b, k));
      }
    }
  }

  // Backwards in time within each sequence's own length.
  static Sequence Reversed(const Sequence& sequence, const std::vector<int>& lengths) {
    Sequence reversed = sequence;
    for (int b = 0; b < static_cast<int>(lengths.size()); b++) {
      for (int t = 0; t < lengths[b]; t++) reversed[t].row(b) = sequence[lengths[b] - 1 - t].row(b);
    }
    return reversed;
  }

  Sequence Forward(tf::OpKernelContext* c, const Sizes& sizes, const std::vector<int>& lengths,
                   std::vector<Pass<Real>>* passes) const {
    Sequence h0 = ReadSequence(c->input(1), sizes.passes(), sizes.batch), c0(sizes.passes());
    if (cell_ == Cell::kLstm) c0 = ReadSequence(c->input(2), sizes.passes(), sizes.batch);
    Sequence x = ReadSequence(c->input(0), sizes.steps, sizes.batch);
    for (int layer = 0; layer < sizes.layers; layer++) {
      Sequence y(sizes.steps, Matrix::Zero(sizes.batch, sizes.units * sizes.directions));
      for (int direction = 0; direction < sizes.directions; direction++) {
        int p = layer * sizes.directions + direction;
        Pass<Real>& pass = (*passes)[p];
        pass.x = direction == 1 ? Reversed(x, lengths) : x;
        pass.Forward(h0[p], c0[p], lengths);
        Sequence states(pass.hidden.begin() + 1, pass.hidden.end());
        if (direction == 1) states = Reversed(states, lengths);
        for (int t = 0; t < sizes.steps; t++) {
          for (int b = 0; b < sizes.batch; b++) {
            if (t < lengths[b]) y[t].row(b).segment(direction * sizes.units, sizes.units) = states[t].row(b);
          }
        }
      }
      x = y;
    }
    return x;
  }

  absl::Status WriteResults(tf::OpKernelContext* c, const Sizes& sizes, const std::vector<int>& lengths,
                            const std::vector<Pass<Real>>& passes, const Sequence& output) const {
    tf::TensorShape shape = c->input(0).shape();
    shape.set_dim(2, sizes.units * sizes.directions);
    tf::Tensor *y, *h, *memory, *reserve;
    TF_RETURN_IF_ERROR(c->allocate_output(0, shape, &y));
    TF_RETURN_IF_ERROR(c->allocate_output(1, c->input(1).shape(), &h));
    bool lstm = cell_ == Cell::kLstm;
    TF_RETURN_IF_ERROR(c->allocate_output(2, lstm ? c->input(2).shape() : tf::TensorShape({0}), &memory));
    int64_t kept = int64_t{1} * sizes.steps * sizes.batch * sizes.gates * sizes.units * sizes.passes();
    TF_RETURN_IF_ERROR(c->allocate_output(3, tf::TensorShape({kept}), &reserve));
    std::memset(reserve->data(), 0, reserve->TotalBytes());
    if (has_host_reserved_) {
      tf::Tensor* unused;
      TF_RETURN_IF_ERROR(c->allocate_output(4, tf::TensorShape({0}), &unused));
    }
    Sequence last_h, last_memory;
    for (const Pass<Real>& pass : passes) {
      last_h.push_back(pass.hidden.back());
      last_memory.push_back(pass.memory.back());
    }
    WriteSequence(output, y);
    WriteSequence(last_h, h);
    if (lstm) WriteSequence(last_memory, memory);
    return absl::OkStatus();
  }

  absl::Status WriteGradients(tf::OpKernelContext* c, const Sizes& sizes, const std::vector<int>& lengths,
                              std::vector<Pass<Real>>* passes) const {
    int first = has_lengths_ ? 8 : 7;  // output_backprop, output_h_backprop, output_c_backprop
    bool lstm = cell_ == Cell::kLstm;
    Sequence dy = ReadSequence(c->input(first), sizes.steps, sizes.batch);
    Sequence dh = ReadSequence(c->input(first + 1), sizes.passes(), sizes.batch), dc(sizes.passes());
    if (lstm) dc = ReadSequence(c->input(first + 2), sizes.passes(), sizes.batch);
    for (int layer = sizes.layers - 1; layer >= 0; layer--) {
      Sequence dx_sum(sizes.steps, Matrix::Zero(sizes.batch, sizes.width(layer)));
      for (int direction = 0; direction < sizes.directions; direction++) {
        int p = layer * sizes.directions + direction;
        Sequence part(sizes.steps), dx;
        for (int t = 0; t < sizes.steps; t++) part[t] = dy[t].middleCols(direction * sizes.units, sizes.units);
        if (direction == 1) part = Reversed(part, lengths);
        (*passes)[p].Backward(part, &dh[p], &dc[p], lengths, &dx);
        if (direction == 1) dx = Reversed(dx, lengths);
        for (int t = 0; t < sizes.steps; t++) dx_sum[t] += dx[t];
      }
      dy = dx_sum;
    }
    tf::Tensor *dx, *dh0, *dc0, *parameters;
    TF_RETURN_IF_ERROR(c->allocate_output(0, c->input(0).shape(), &dx));
    TF_RETURN_IF_ERROR(c->allocate_output(1, c->input(1).shape(), &dh0));
    TF_RETURN_IF_ERROR(c->allocate_output(2, c->input(2).shape(), &dc0));
    TF_RETURN_IF_ERROR(c->allocate_output(3, c->input(3).shape(), &parameters));
    WriteSequence(dy, dx);
    WriteSequence(dh, dh0);
    if (lstm) WriteSequence(dc, dc0);
    WriteParameterGradients(sizes, *passes, parameters);
    return absl::OkStatus();
  }

  CostModel cost_;
  Cell cell_ = Cell::kTanh;
  int directions_ = 1;
  bool time_major_ = true, backward_ = false, has_lengths_ = false, has_host_reserved_ = false;
};

#define STOKER_REGISTER_RECURRENT(T, Real)                                                                       \
  REGISTER_KERNEL_BUILDER(Name("CudnnRNN").Device("GPU").TypeConstraint<T>("T").Priority(kPriority),             \
                          RecurrentKernel<Real>);                                                             \
  REGISTER_KERNEL_BUILDER(Name("CudnnRNNBackprop").Device("GPU").TypeConstraint<T>("T").Priority(kPriority),     \
                          RecurrentKernel<Real>);                                                             \
  REGISTER_KERNEL_BUILDER(                                                                                       \
      Name("CudnnRNNV2").Device("GPU").HostMemory("host_reserved").TypeConstraint<T>("T").Priority(kPriority),   \
      RecurrentKernel<Real>);                                                                                 \
  REGISTER_KERNEL_BUILDER(Name("CudnnRNNBackpropV2")                                                             \
                              .Device("GPU")                                                                     \
                              .HostMemory("host_reserved")                                                       \
                              .TypeConstraint<T>("T")                                                            \
                              .Priority(kPriority),                                                              \
                          RecurrentKernel<Real>);                                                             \
  REGISTER_KERNEL_BUILDER(Name("CudnnRNNV3")                                                                     \
                              .Device("GPU")                                                                     \
                              .HostMemory("sequence_lengths")                                                    \
                              .HostMemory("host_reserved")                                                       \
                              .TypeConstraint<T>("T")                                                            \
                              .Priority(kPriority),                                                              \
                          RecurrentKernel<Real>);                                                             \
  REGISTER_KERNEL_BUILDER(Name("CudnnRNNBackpropV3")                                                             \
                              .Device("GPU")                                                                     \
                              .HostMemory("sequence_lengths")                                                    \
                              .HostMemory("host_reserved")                                                       \
                              .TypeConstraint<T>("T")                                                            \
                              .Priority(kPriority),                                                              \
                          RecurrentKernel<Real>);

STOKER_REGISTER_RECURRENT(float, float)
STOKER_REGISTER_RECURRENT(double, double)
STOKER_REGISTER_RECURRENT(Eigen::half, float)
STOKER_REGISTER_RECURRENT(Eigen::bfloat16, float)

#undef STOKER_REGISTER_RECURRENT

}  // namespace
}  // namespace stoker
