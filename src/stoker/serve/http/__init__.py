"""HTTP before the data plane (`serve.plane`), in the protocols that clients already speak.

| module | subject |
|---|---|
| messages | a request, a response, and JSON between them |
| admission | who may send a request, before its body is read |
| tensorflow_rest | TensorFlow Serving's REST API |
| open_inference | the Open Inference Protocol, version 2, with its binary tensors |
| page | where a person can try a model |
| app | the paths, one exchange of a request for a response, and ASGI |
| direct | a plain request, without ASGI between |
| transport | which way a request goes; refusals without parsing; clients that are too slow |
"""
