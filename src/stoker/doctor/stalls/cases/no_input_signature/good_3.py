import tensorflow as tf

@tf.function(reduce_retracing=True)
def next_logits(tokens):
    return model(tokens)[:, -1]

for length in range(1, 512):
    logits = next_logits(tokens[:, :length])
