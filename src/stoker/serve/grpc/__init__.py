"""`stoker serve --grpc-port`: TensorFlow Serving's PredictionService and ModelService, for its unmodified clients.

| module | subject |
|---|---|
| messages | the protocol's messages, made here: its own package would bring a second TensorFlow |
| tensors | between the protocol's values and arrays |
| service | the calls |
"""
