"""Saves a training run and resumes it, bit for bit.

| module | subject |
|---|---|
| options | `stoker.Checkpoint`: where, how often, how many; its error and its warning |
| resume | what a run reads at its start, restores, and saves |
| saved | the newest good checkpoint, read and checked once |
| job | the checkpoint of a job: the chief's file, and a part from each other worker |
| saver | copying the variables into memory that is allocated once; writing them in a thread |
| directory | names in order of saving, one process at a time (a POSIX lock, which dies with its process), pruning |
| bucket | the same checkpoints behind a URL: uploaded, counted by their manifests, fetched |
| files, packing | the format: arrays, index, tail, checksums; plain values and arrays in one tree |
| callback_state | the state of callbacks |
| saved_model | `model.keras` beside the checkpoints, for `stoker export` |

A file gets its name only once it is complete and on the disk: temporary name, fsync, rename, fsync of the directory.
Checkpoints are ordered by when they were saved, not by step: after a run rewinds behind a spike, later saves have lower
steps.
"""
