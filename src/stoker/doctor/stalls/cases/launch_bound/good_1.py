@tf.function
def train_steps(iterator, count):
    for _ in tf.range(count):
        train_step(next(iterator))

train_steps(iter(dataset), tf.constant(100))
