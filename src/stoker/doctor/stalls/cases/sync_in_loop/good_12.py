import tensorflow as tf
from model import Net, run_epoch
net = Net()
best = 1e9
for epoch in range(20):
    train_loss = run_epoch(net, "train")
    val = tf.reduce_mean(run_epoch(net, "val"))
    if val.numpy() < best:
        best = val.numpy()
        net.save_weights("w")
