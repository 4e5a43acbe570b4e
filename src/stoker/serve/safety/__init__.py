"""Checks of a bundle, or of a saved Keras model, before anything of it is loaded.

| module | subject |
|---|---|
| opening | `open_bundle`: the only way to a bundle that will be loaded; what its user trusts |
| operations | which of TensorFlow's operations stay inside the model |
| saved_model | the operations of a SavedModel, and the files it names |
| converted_files | LiteRT and ONNX files: operations and files of others |
| keras_files | `.keras` and `.h5` files: layers and functions that run code or read files |
"""
