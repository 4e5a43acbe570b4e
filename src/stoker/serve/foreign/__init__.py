"""Models that Stoker did not export: SavedModels and LiteRT files of anybody, as TensorFlow Serving takes them.

Nothing in them is checked before it runs (SECURITY.md), and nothing says what their rows are: a request's tensors go to
the model as they are, and requests are answered together only where that was tried and makes no difference.

| module | subject |
|---|---|
| places | where such a model lies, and whether it was replaced |
| signatures | what a signature takes and gives; whether it changes anything |
| loading | a SavedModel in a session, a LiteRT file in an interpreter |
| warming | requests that came with the model; the trial of answering together |
| examples | examples as JSON has them, serialized |
| serving | a signature that answers |
"""
