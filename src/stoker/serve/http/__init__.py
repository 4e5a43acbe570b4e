"""HTTP in front of the data plane (`serve.plane`), in the protocols that clients already speak.

| module | subject |
|---|---|
| messages | a request, a response, and conversion from and to JSON |
| admission | who may send a request, before its body is read |
| tensorflow_rest | TensorFlow Serving's REST API |
| open_inference | the Open Inference Protocol, version 2, with its binary tensors |
| page | the page on which a person can try a model |
| operators | health, metrics, the ledger, the page's data |
| routing | the table of paths, which finds a request's route |
| schemas, tensorflow_asking, inference_asking | JSON schemas of a model's inputs and outputs |
| tensorflow_metadata | versions and signatures, described as TensorFlow Serving does |
| openapi | the OpenAPI document, made from the table of paths, the models and the errors |
| app | one exchange of request and response, and ASGI |
| direct | plain requests, without ASGI in between |
| transport | which way a request takes; refusals without parsing; clients that are too slow |
"""
