"""`stoker serve --grpc-port`: TensorFlow Serving's PredictionService, for its unmodified clients.

| module | subject |
|---|---|
| messages | the protocol's messages, made here: its own package would bring a second TensorFlow |
| service | Predict: from a request's tensors to the answer's |
"""
