"""`stoker.export`: turn a model into a bundle, which proves itself in a new process before it is moved into place.

| module | subject |
|---|---|
| writing | `export`: the steps, in order |
| names | stable names for a model's inputs and outputs |
| intake | what goes in: the model's own inputs, or raw rows with features in front |
| answers | what comes out: the model's outputs, and labels with scores |
| example_rows | example rows where none are given |
| graph | the traced function, and the SavedModel, which has each weight once |
| faults | finding the layer that is at fault |
| converting | converting the function into another engine's file |
| quantizing, quantized_files | a LiteRT file of 8 or 16 bits, as long as a bound on its answers holds |
| statistics | what the training rows were like |
| lineage | the run that trained the model, and the export in the store |
| child | the proof in a new process |
"""
