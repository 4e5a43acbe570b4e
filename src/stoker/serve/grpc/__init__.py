"""`stoker serve --grpc-port`: gRPC services in front of the data plane, for their unmodified clients.

| module | subject |
|---|---|
| protos | the messages and services as .proto files, and `services.binpb`, which `make protos` compiles from them |
| messages | the messages as classes, in a pool of their own |
| calls | from a call to the data plane, for all services |
| tensors | conversion between TensorFlow's messages and arrays |
| prediction | TensorFlow Serving's PredictionService and ModelService |
| open_inference | the Open Inference Protocol (KServe, Triton) |
| system | gRPC's health and reflection services |
| server | all of them on one port |
"""
