import tensorflow as tf

def make_step(model, optimizer):
    @tf.function
    def step(x):
        return model(x)
    return step

step = make_step(model, optimizer)
for batch in dataset:
    step(batch)
