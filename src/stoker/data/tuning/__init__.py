"""The tuner: make a tf.data pipeline as fast as the machine allows, without changing a value.

    train = stoker.tune(train)
    print(train.tuning.before, train.tuning.after)

The tuner walks the Python objects of the pipeline and rebuilds it with one change after the other. It keeps a change
only if it was measured to be faster and every compared element was equal.

| module | subject |
|---|---|
| tuner | `tune`: trying the changes in turn |
| stages | the stages of a pipeline, and their names |
| rebuilding | a pipeline rebuilt, whole or with one stage replaced |
| effects | the side effects of functions |
| rates, stage_costs | timing pipelines, and the stages of one |
| comparing | whether two pipelines give the same elements |
| batching, emitting, batching_rules, value_rules | making a function of a batch from one of an element, with proof |
| generators | `from_generator` in chunks |
| changes | one module for each change |
| figures | the report |
"""
