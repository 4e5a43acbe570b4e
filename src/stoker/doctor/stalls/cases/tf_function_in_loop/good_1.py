import tensorflow as tf

@tf.function
def train_step(x):
    return model(x)

for epoch in range(10):
    for batch in dataset:
        train_step(batch)
