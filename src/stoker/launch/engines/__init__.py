"""Schedulers: what would be submitted to each, and how a job is reached inside one.

| module | subject |
|---|---|
| request | what is to be submitted, whoever takes it |
| slurm | a batch script; the nodes of an allocation |
| kubernetes | a JobSet, or a TFJob for old clusters |
| ray | agents as actors of a Ray cluster |
| schema | a strict check of what is written: a misspelt field is refused |
| fields | the fields of a JobSet, a TFJob and a pod |
| yaml_text | plain values as YAML |
"""
