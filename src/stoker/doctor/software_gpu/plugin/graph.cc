// Graph rewriting: keeps Grappler from turning channels-last convolutions into channels-first ones, which pays on cuDNN
// and only costs here. A plug-in that wants to switch a pass off has to bring a pass of its own: one that changes
// nothing.

#include <cstdlib>
#include <cstring>

#include "tensorflow/c/experimental/grappler/grappler.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_status.h"

namespace {

void CopyGraph(void*, const TF_Buffer* graph, const TF_GrapplerItem*, TF_Buffer* result, TF_Status* status) {
  void* copy = std::malloc(graph->length);
  std::memcpy(copy, graph->data, graph->length);
  result->data = copy;
  result->length = graph->length;
  result->data_deallocator = [](void* data, size_t) { std::free(data); };
  TF_SetStatus(status, TF_OK, "");
}

}  // namespace

extern "C" void TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status) {
  params->struct_size = TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->device_type = "GPU";
  params->optimizer_configs->struct_size = TP_OPTIMIZER_CONFIGS_STRUCT_SIZE;
  params->optimizer_configs->layout_optimizer = TF_TriState_Off;
  params->optimizer->struct_size = TP_OPTIMIZER_STRUCT_SIZE;
  params->optimizer->create_func = []() -> void* { return new char; };
  params->optimizer->optimize_func = CopyGraph;
  params->optimizer->destroy_func = [](void* optimizer) { delete static_cast<char*>(optimizer); };
  TF_SetStatus(status, TF_OK, "");
}
