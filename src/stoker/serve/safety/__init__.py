"""Checks of a bundle, or of a saved Keras model, before any part of it is loaded.

| module | subject |
|---|---|
| opening | `open_bundle`: the only way to open a bundle for loading; what its user trusts |
| operations | which of TensorFlow's operations stay inside the model |
| saved_model | the operations of a SavedModel, and the files it names |
| converted_files | LiteRT and ONNX files: operations that are not their own, and other files |
| keras_files | `.keras` and `.h5` files: layers and functions that run code or read files |
"""
