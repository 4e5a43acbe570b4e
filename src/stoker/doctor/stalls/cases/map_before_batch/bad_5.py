import tensorflow as tf
import tensorflow_datasets as tfds

def convert(row):
    image = tf.image.convert_image_dtype(row["image"], tf.float32)
    label = tf.expand_dims(tf.cast(row["label"], tf.float32), axis=-1)
    return image, label

dataset = tfds.load("fashion_mnist", split="train")
dataset = dataset.map(convert, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(1)  #!
