import tensorflow_datasets as tfds
import tensorflow as tf

train, info = tfds.load("mnist", split="train", as_supervised=True, with_info=True)
train = (
    train.map(scale, num_parallel_calls=tf.data.AUTOTUNE)
    .cache()
    .batch(128)  #!
)
it = iter(train)
for step in range(1000):
    x, y = next(it)
    train_step(x, y)
