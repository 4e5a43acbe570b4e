// The kernels: every op the CUDA build runs on a GPU, computed by the CPU kernel of the same op.
//
// TensorFlow places an op on a device if a kernel is registered for the device's type. The table (kernel_table.txt)
// repeats the CUDA build's registrations, and all of them make one of the wrappers below.

#include "kernels.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "cpu_kernel.h"
#include "emulation.h"
#include "machine.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/logging.h"

namespace stoker {

namespace tf = tensorflow;

namespace {

class SyncKernel : public tf::OpKernel {
 public:
  SyncKernel(tf::OpKernelConstruction* c, std::unique_ptr<tf::OpKernel> cpu)
      : OpKernel(c), cpu_(std::move(cpu)), cost_(c) {}

  bool IsExpensive() override { return cpu_->IsExpensive(); }
  const tf::Tensor* const_tensor() const override { return cpu_->const_tensor(); }

  void Compute(tf::OpKernelContext* c) override {
    if (cost_.is_host_only() || cost_.is_metadata()) {
      cpu_->Compute(c);
      CountHostOp(c);
      return;
    }
    RunAsKernel(c, cost_, [&] { cpu_->Compute(c); });
  }

 private:
  std::unique_ptr<tf::OpKernel> cpu_;
  CostModel cost_;
};

// Ops that finish later on another thread (collectives, calls of functions): no device work of their own.
class AsyncKernel : public tf::AsyncOpKernel {
 public:
  AsyncKernel(tf::OpKernelConstruction* c, std::unique_ptr<tf::OpKernel> cpu)
      : AsyncOpKernel(c), cpu_(std::move(cpu)) {}

  void ComputeAsync(tf::OpKernelContext* c, DoneCallback done) override {
    CountHostOp(c);
    cpu_->AsAsync()->ComputeAsync(c, std::move(done));
  }

 private:
  std::unique_ptr<tf::OpKernel> cpu_;
};

// RemoteCall on the device is how tf.data's prefetch_to_device and MultiDeviceIterator fetch the next element from
// the host, in the background. The copies made while it runs are marked as a prefetch.
class FetchKernel : public tf::AsyncOpKernel {
 public:
  FetchKernel(tf::OpKernelConstruction* c, std::unique_ptr<tf::OpKernel> cpu)
      : AsyncOpKernel(c), cpu_(std::move(cpu)) {}

  void ComputeAsync(tf::OpKernelContext* c, DoneCallback done) override {
    int ordinal = Ordinal(c);
    Machine& m = TheMachine();
    {
      Lock lock(m);
      m.devices[ordinal].fetches_started++;
      m.devices[ordinal].fetches_running++;
    }
    cpu_->AsAsync()->ComputeAsync(c, [ordinal, done = std::move(done)] {
      {
        Machine& m = TheMachine();
        Lock lock(m);
        m.devices[ordinal].fetches_running--;
      }
      done();
    });
  }

 private:
  std::unique_ptr<tf::OpKernel> cpu_;
};

tf::OpKernel* CreateKernel(tf::OpKernelConstruction* c) {
  if (tf::OpKernel* kernel = CreateChannelsFirstKernel(c)) return kernel;
  std::unique_ptr<tf::OpKernel> cpu;
  absl::Status status = CreateCpuKernel(c, c->def(), &cpu);
  if (!status.ok()) return new RefusedKernel(c, status);
  if (c->def().op() == "RemoteCall") return new FetchKernel(c, std::move(cpu));
  if (cpu->AsAsync() != nullptr) return new AsyncKernel(c, std::move(cpu));
  return new SyncKernel(c, std::move(cpu));
}

std::atomic<int64_t> registered_kernels{0};

std::string& TablePath() {
  static auto* path = new std::string;
  return *path;
}

tf::KernelDef RemoteCallKernel() {
  tf::KernelDef kernel;
  kernel.set_op("RemoteCall");
  kernel.set_device_type("GPU");
  kernel.add_host_memory_arg("target");
  return kernel;
}

void RegisterKernels() {
  std::vector<tf::KernelDef> kernels;
  absl::Status status = ReadKernelTable(TablePath(), &kernels);
  if (!status.ok()) {
    LOG(ERROR) << "stoker: " << status;
    return;
  }
  kernels.push_back(RemoteCallKernel());
  std::set<std::string> on_cpu;
  const tf::KernelList registered = tf::GetAllRegisteredKernels();
  for (const tf::KernelDef& kernel : registered.kernel()) {
    if (kernel.device_type() == "CPU" || kernel.device_type() == "DEFAULT") on_cpu.insert(kernel.op());
  }
  for (tf::KernelDef& kernel : kernels) {
    // An op of another TensorFlow version, or one that only a GPU computes.
    if (on_cpu.count(kernel.op()) == 0 || tf::OpRegistry::Global()->LookUp(kernel.op()) == nullptr) continue;
    kernel.set_priority(kernel.priority() + kPriority);
    tf::kernel_factory::OpKernelRegistrar(new tf::KernelDef(kernel), "StokerKernel", CreateKernel);
    registered_kernels++;
  }
}

}  // namespace
}  // namespace stoker

// Called from Python before TensorFlow loads the plug-in.
extern "C" void stoker_gpu_set_kernel_table(const char* path) { stoker::TablePath() = path; }

// How many it registered, once TensorFlow has loaded it: Python checks that it is not none.
extern "C" int64_t stoker_gpu_registered_kernels() { return stoker::registered_kernels; }

// Called by TensorFlow when it loads the plug-in.
extern "C" void TF_InitKernel() {
  stoker::TakeOverCompiledFunctions();
  stoker::RegisterKernels();
}
