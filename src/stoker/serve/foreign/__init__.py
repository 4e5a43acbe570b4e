"""Models that Stoker did not export: SavedModels and LiteRT files from anywhere, as TensorFlow Serving takes them.

Nothing in them is checked before it runs (SECURITY.md), and nothing describes their rows. So a request's tensors go to
the model unchanged if their sizes are those of the signature, and requests are answered together only if a trial showed
that this makes no difference.

| module | subject |
|---|---|
| places | where such a model is stored, and whether it was replaced |
| signatures | a signature's inputs and outputs; whether it changes anything |
| loading | a SavedModel in a session, a LiteRT file in an interpreter |
| warming | requests that came with the model; the trial of answering together |
| examples | serializing examples that came as JSON |
| serving | a signature, as protocols see it |
"""
