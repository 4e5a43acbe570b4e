import tensorflow as tf
from training import train_one_epoch, evaluate
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
loss_metric = tf.keras.metrics.Mean()
for epoch in range(10):
    train_one_epoch(model, loss_metric)
    print(epoch, loss_metric.result().numpy())
    loss_metric.reset_state()
