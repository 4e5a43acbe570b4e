// Functions marked jit_compile=True. There is no XLA compiler for this device, so the ops of such a function run one by
// one on the CPU, but they count as XLA would have them: one launch, whose time is that of its matrix products and
// convolutions plus reading its arguments and writing its results once.

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulation.h"
#include "kernels.h"
#include "machine.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/function.h"
#include "tensorflow/core/common_runtime/step_stats_collector.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace stoker {

namespace tf = tensorflow;

namespace {

// How the ops inside find their cluster: a step's collector of statistics is the one object that every op hands on
// to the functions it calls. This one collects nothing.
class Marker : public tf::StepStatsCollectorInterface {
 public:
  Cluster cluster;
  tf::NodeExecStatsInterface* CreateNodeExecStats(const tf::NodeDef*) override { return nullptr; }
  std::string ReportAllocsOnResourceExhausted(absl::string_view) override { return ""; }
};

// The markers of the clusters that run now. Guarded by Machine's mutex.
std::map<const tf::StepStatsCollectorInterface*, Marker*>& Markers() {
  static auto* markers = new std::map<const tf::StepStatsCollectorInterface*, Marker*>;
  return *markers;
}

// The function a node calls: named by the node's attribute `f` or, when run eagerly, the node's op itself.
tf::NameAttrList CalledFunction(const tf::NodeDef& node) {
  tf::NameAttrList function;
  if (node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall") {
    auto attribute = node.attr().find("f");
    if (attribute != node.attr().end()) function = attribute->second.func();
    return function;
  }
  function.set_name(node.op());
  *function.mutable_attr() = node.attr();
  return function;
}

class ClusterKernel : public tf::AsyncOpKernel {
 public:
  explicit ClusterKernel(tf::OpKernelConstruction* c) : AsyncOpKernel(c) {}

  void ComputeAsync(tf::OpKernelContext* c, DoneCallback done) override {
    tf::FunctionLibraryRuntime* library = c->function_library();
    tf::FunctionLibraryRuntime::Handle handle;
    OP_REQUIRES_OK_ASYNC(c, Instantiate(library, &handle), done);

    std::vector<tf::Tensor> arguments;
    double bytes = 0;
    for (int i = 0; i < c->num_inputs(); i++) {
      arguments.push_back(c->input(i));
      if (c->input_dtype(i) != tf::DT_RESOURCE) bytes += c->input(i).TotalBytes();
    }
    auto* results = new std::vector<tf::Tensor>;
    // A compiled function that a compiled function calls is part of it.
    Marker* marker = ClusterOf(c) == nullptr ? new Marker : nullptr;
    int ordinal = Ordinal(c);
    int64_t launched_at = marker != nullptr ? Enter(ordinal, marker, arguments) : 0;

    tf::FunctionLibraryRuntime::Options options(c->step_id());
    options.rendezvous = c->rendezvous();
    options.cancellation_manager = c->cancellation_manager();
    options.collective_executor = c->collective_executor();
    options.step_container = c->step_container();
    options.stats_collector = marker != nullptr ? marker : c->stats_collector();
    options.runner = c->runner();
    options.run_all_kernels_inline = c->run_all_kernels_inline();
    library->Run(options, handle, arguments, results,
                 [=, done = std::move(done)](const absl::Status& status) {
                   double moved = bytes;
                   for (const tf::Tensor& result : *results) moved += result.TotalBytes();
                   if (marker != nullptr) Leave(ordinal, marker, launched_at, moved);
                   if (!status.ok()) {
                     c->SetStatus(status);
                   } else {
                     for (int i = 0; i < static_cast<int>(results->size()); i++) c->set_output(i, (*results)[i]);
                   }
                   delete results;
                   done();
                 });
  }

 private:
  absl::Status Instantiate(tf::FunctionLibraryRuntime* library, tf::FunctionLibraryRuntime::Handle* handle) {
    tf::FunctionLibraryRuntime::InstantiateOptions options;
    options.is_multi_device_function = false;
    tf::NameAttrList function = CalledFunction(def());
    return library->Instantiate(function.name(), tf::AttrSlice(&function.attr()), options, handle);
  }

  static int64_t Enter(int ordinal, Marker* marker, const std::vector<tf::Tensor>& arguments) {
    Machine& m = TheMachine();
    Lock lock(m);
    for (const tf::Tensor& argument : arguments) {
      if (!tf::DataTypeCanUseMemcpy(argument.dtype())) continue;
      m.WaitForArrival(m.devices[ordinal], argument.data(), argument.TotalBytes());
    }
    Markers()[marker] = marker;
    if (m.clock.deterministic()) m.clock.Advance(static_cast<int64_t>(m.config.host_op_ns));
    int64_t now = m.clock.Now();
    m.clock.Stop();
    return now;
  }

  static void Leave(int ordinal, Marker* marker, int64_t launched_at, double bytes) {
    Machine& m = TheMachine();
    Lock lock(m);
    m.clock.Go();
    std::unique_ptr<Marker> owned(marker);
    Markers().erase(marker);
    Work edges;
    edges.bytes = bytes;
    int64_t duration = static_cast<int64_t>(marker->cluster.device_ns) + edges.Duration(m.config);
    Device& device = m.devices[ordinal];
    m.Enqueue(device.streams.front(), launched_at, duration);
    m.clock.Advance(static_cast<int64_t>(m.config.launch_ns));
    m.Count(device, [](Counters& counters) {
      counters.launches++;
      counters.clusters++;
    });
  }
};

// TensorFlow asks this object before it runs a function on a device: the one it has compiles with XLA.
class ClusterCreator : public tf::CustomKernelCreator {
 public:
  explicit ClusterCreator(std::unique_ptr<char[]> xla) : xla_(std::move(xla)) {}

  bool CanCreateKernel(const tf::FunctionLibraryRuntime& library,
                       const std::shared_ptr<const tf::NodeProperties>& properties) const override {
    if (IsOurs(library)) return MustCompile(library, properties->node_def);
    return Xla() != nullptr && Xla()->CanCreateKernel(library, properties);
  }

  absl::Status CreateKernel(tf::FunctionLibraryRuntime* library,
                            const std::shared_ptr<const tf::NodeProperties>& properties,
                            std::unique_ptr<tf::OpKernel>* kernel) const override {
    if (!IsOurs(*library)) return Xla()->CreateKernel(library, properties, kernel);
    return CreateCluster(library, properties, kernel);
  }

 private:
  static bool IsOurs(const tf::FunctionLibraryRuntime& library) {
    return library.device() != nullptr && library.device()->device_type() == "GPU";
  }

  static bool MustCompile(const tf::FunctionLibraryRuntime& library, const tf::NodeDef& node) {
    const tf::FunctionDef* function = library.GetFunctionLibraryDefinition()->Find(CalledFunction(node).name());
    if (function == nullptr) return false;
    bool must = false;
    if (tf::TryGetNodeAttr(node, "_XlaMustCompile", &must)) return must;
    auto attribute = function->attr().find("_XlaMustCompile");
    return attribute != function->attr().end() && attribute->second.b();
  }

  // Where a function on a GPU expects its arguments: 32-bit whole numbers and handles stay in host memory.
  static tf::MemoryTypeVector Places(const tf::DataTypeVector& types) {
    tf::MemoryTypeVector memory;
    for (tf::DataType type : types) {
      bool host = type == tf::DT_INT32 || tf::DataTypeAlwaysOnHost(type);
      memory.push_back(host ? tf::HOST_MEMORY : tf::DEVICE_MEMORY);
    }
    return memory;
  }

  static absl::Status CreateCluster(tf::FunctionLibraryRuntime* library,
                                    const std::shared_ptr<const tf::NodeProperties>& properties,
                                    std::unique_ptr<tf::OpKernel>* kernel) {
    tf::MemoryTypeVector inputs = Places(properties->input_types), outputs = Places(properties->output_types);
    absl::Status status;
    tf::Device* device = library->device();
    tf::OpKernelConstruction construction(tf::DeviceType(device->device_type()), device,
                                          device->GetAllocator(tf::AllocatorAttributes()), library,
                                          device->resource_manager(), properties, inputs, outputs,
                                          library->graph_def_version(), &status);
    *kernel = std::make_unique<ClusterKernel>(&construction);
    return status;
  }

  const tf::CustomKernelCreator* Xla() const { return reinterpret_cast<const tf::CustomKernelCreator*>(xla_.get()); }

  std::unique_ptr<char[]> xla_;
};

}  // namespace

Cluster* ClusterOf(tf::OpKernelContext* c) {
  if (c->stats_collector() == nullptr) return nullptr;
  Lock lock(TheMachine());
  auto found = Markers().find(c->stats_collector());
  return found == Markers().end() ? nullptr : &found->second->cluster;
}

void TakeOverCompiledFunctions() {
  // Registering a creator deletes the one before, which still has to serve the CPU. It holds no data, so a copy of its
  // one word, the pointer to its virtual functions, is a second one.
  const tf::CustomKernelCreator* xla = tf::GetDefaultCustomKernelCreator();
  std::unique_ptr<char[]> copy;
  if (xla != nullptr) {
    copy.reset(new char[sizeof(void*)]);
    std::memcpy(copy.get(), static_cast<const void*>(xla), sizeof(void*));
  }
  tf::RegisterDefaultCustomKernelCreator(new ClusterCreator(std::move(copy)));
}

}  // namespace stoker
