// Device memory and copies, as callbacks of the StreamExecutor C API.

#ifndef STOKER_MEMORY_H_
#define STOKER_MEMORY_H_

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

namespace stoker {

void AddMemoryCallbacks(SP_StreamExecutor* executor);

}  // namespace stoker

#endif  // STOKER_MEMORY_H_
