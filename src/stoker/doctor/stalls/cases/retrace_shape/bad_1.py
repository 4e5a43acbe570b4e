dataset = sentences.padded_batch(32)

@tf.function
def train_step(tokens):
    ...
