"""The engines that compute a bundle's answers. Each is a function from arrays to arrays, for any number of rows.

| module | subject |
|---|---|
| tensorflow | the SavedModel: in a session, as its function, or compiled by XLA |
| padding | running engines that take only fixed numbers of rows |
| converted | models in another engine's file, with labels made from their scores |
| litert | `model.tflite` |
| onnx | `model.onnx` |
| choosing | choosing the fastest engine that gives the recorded answers, and remembering the choice |
"""
