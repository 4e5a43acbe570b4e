"""HTTP before the data plane (`serve.plane`), in the protocols that clients already speak.

| module | subject |
|---|---|
| messages | a request, a response, and JSON between them |
| admission | who may send a request, before its body is read |
| tensorflow_rest | TensorFlow Serving's REST API |
| open_inference | the Open Inference Protocol, version 2, with its binary tensors |
| page | where a person can try a model |
| operators | health, metrics, the ledger, the page's data |
| routing | the table of paths, which finds the route of a request |
| schemas, tensorflow_asking, inference_asking | what a model takes and gives, as JSON schemas |
| tensorflow_metadata | versions and signatures as TensorFlow Serving describes them |
| openapi | the OpenAPI document, made from the table of paths, the models and the errors |
| app | one exchange of a request for a response, and ASGI |
| direct | a plain request, without ASGI between |
| transport | which way a request goes; refusals without parsing; clients that are too slow |
"""
