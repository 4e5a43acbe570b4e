from tensorflow.data import Dataset
import tensorflow as tf

def as_dataset(reader):
    return Dataset.from_generator(  #!
        lambda: iter(reader), output_signature=tf.TensorSpec([None])
    )
