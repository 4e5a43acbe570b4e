"""The pieces of one update, each a module: from the losses of a step to new weights.

    losses --balancing--> total --scaling--> gradients --replicas--> one gradient --accumulation--> clipping
           --freezing, rates--> the optimizer --averaging--> the weights' moving average
                                                            (watching: is the loss still sane?)

Every piece keeps its state in variables, works inside a compiled loop, and never reads a value on the host.
"""
