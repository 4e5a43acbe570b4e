dataset = sentences.padded_batch(32, padded_shapes=[128])

@tf.function(input_signature=[tf.TensorSpec([None, 128], tf.int32)])
def train_step(tokens):
    ...
