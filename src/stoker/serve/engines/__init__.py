"""What computes a bundle's answers. Each engine is one function from arrays to arrays, for any number of rows.

| module | subject |
|---|---|
| tensorflow | the SavedModel: in a session, as its function, or compiled by XLA |
| padding | engines that are made for one number of rows |
| converted | the model in another engine's file: what the bundle's description says of it, labels made of scores |
| litert | `model.tflite` |
| onnx | `model.onnx` |
| choosing | which one: the quickest of those that give the recorded answers, remembered |
"""
