import pandas as pd
import tensorflow as tf

frame = pd.read_csv("rows.csv")
frame["label"] = frame["label"].map(names)
dataset = tf.data.Dataset.from_tensor_slices(dict(frame)).map(lambda row: row["x"])
