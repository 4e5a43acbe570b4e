"""The way from a question to its answer, the same for every protocol.

A protocol turns a request into a `Question`, which says which model it asks, how its bytes become rows, and how the
answers become bytes again. The data plane (`DataPlane`) does the rest, the same for all protocols: it parses, checks
the limits, queues the rows, records a sample and explains what went wrong.

| module | subject |
|---|---|
| settings | what the server may do: limits, token, timeouts |
| errors | why a request is not answered: a status and one line |
| limits | how much one request may ask for, before anything is allocated for it |
| ledger | every second of a request belongs to one account; what to change |
| metrics | counts for Prometheus, shared by all workers |
| deployment | the server as a run of the store: the bundles it uses, what it answered |
| served | one signature of a model: its inputs, its outputs, its queue |
| versions | a loaded version: a bundle, or a model from elsewhere |
| model_config | TensorFlow Serving's list of models |
| inference_tensors | tensors of the Open Inference Protocol, for HTTP and gRPC |
| models | the models by name and version, and their replacement while they answer |
| answering | `Question`, and `DataPlane`, which answers it |
"""
