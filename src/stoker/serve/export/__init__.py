"""`stoker.export`: a model becomes a bundle, which proves itself in a process of its own before it is there.

| module | subject |
|---|---|
| writing | `export`: the order of things |
| names | stable names for what a model takes and gives |
| intake | what goes in: the model's own inputs, or raw rows with features in front |
| answers | what comes out: the model's outputs, and labels with scores |
| example_rows | example rows where none are given |
| graph | the traced function, and the SavedModel that has each weight once |
| faults | which layer it is, when something is wrong |
| converting | the function in another engine's file |
| quantizing, quantized_files | a LiteRT file of 8 or 16 bits, as long as a bound on its answers holds |
| statistics | what the training rows were like |
| lineage | the run that trained the model, and the export in the store |
| child | the proof in a new process |
"""
