import tensorflow.compat.v1 as tf

x = tf.placeholder(tf.float32, [None, 784])
with tf.Session() as sess:
    for i in range(1000):
        batch = mnist.train.next_batch(100)
        sess.run(train_op, feed_dict={x: batch[0], y: batch[1]})  #!
