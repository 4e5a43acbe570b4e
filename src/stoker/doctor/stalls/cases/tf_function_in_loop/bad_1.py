import tensorflow as tf

for epoch in range(10):
    @tf.function  #!
    def train_step(x):
        return model(x)

    for batch in dataset:
        train_step(batch)
