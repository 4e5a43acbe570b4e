"""`stoker serve`: bundles over HTTP, in the protocols that clients already speak.

| module | subject |
|---|---|
| settings | what the server may do: limits, token, time |
| admission | who may send a request and how much of it is held, before its body is read |
| limits | how much one request may ask for, before anything is allocated for it |
| messages | a request, a response, and an error as a status and one line |
| ledger | every second of a request on one account; what to change |
| deployment | the server in the store: the bundles it uses, what it answered |
| line | requests of one event loop, batched together without a timer |
| models | the models by name and version, and how they are replaced while they answer |
| question | what a request asks of a model, before and after it is parsed; how the answers are encoded |
| tensorflow_rest | TensorFlow Serving's REST API |
| inference_protocol | the Open Inference Protocol, version 2, with its binary tensors |
| metrics | counts for Prometheus, shared by all workers |
| page | where a person can try a model |
| app | the application: from a request to an answer |
| direct | a plain request, without ASGI between |
| transport | which way a request goes; an answer in one packet, a refusal without parsing |
| refusing | which model a request is for, from its bytes |
| running | one process that serves, from loading to its graceful end |
| supervising | the parent of several workers |
| sockets | listening on an address nobody else has; taking no more connections before the end |
| log | lines to stderr, which no request waits for |
"""
