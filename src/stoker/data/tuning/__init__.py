"""The tuner: any tf.data pipeline as fast as the machine allows, without changing one value.

    train = stoker.tune(train)
    print(train.tuning.before, train.tuning.after)

The Python objects of the pipeline are walked and built again with changes, one after the other. A change stays only if
it was timed faster and all that was compared is equal.

| module | subject |
|---|---|
| tuner | `tune`: trying the changes in turn |
| stages | the stages of a pipeline, and their words |
| rebuilding | a pipeline built again, whole or with one stage exchanged |
| effects | what functions do besides computing |
| rates, stage_costs | timing pipelines, and the stages of one |
| comparing | whether two pipelines give the same |
| batching, emitting, batching_rules, value_rules | a function of an element as one of a batch, with proof |
| generators | `from_generator` in chunks |
| changes | one module per change |
| figures | the report |
"""
