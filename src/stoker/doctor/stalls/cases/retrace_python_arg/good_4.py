import tensorflow as tf

@tf.function
def run(x, mode):
    return x if mode == "train" else -x

for mode in ("train", "eval"):
    run(batch, mode)
