import tensorflow as tf

@tf.function(jit_compile=False, reduce_retracing=True)
def next_logits(tokens):
    return model(tokens)[:, -1]

tokens = tf.zeros([1, 512], tf.int32)
for length in range(1, 512):
    logits = next_logits(tokens[:, :length])
