import tensorflow.compat.v1 as tf

with tf.Session() as sess:
    for i in range(1000):
        sess.run(train_op)
        if i % 100 == 0:
            print(sess.run(accuracy, feed_dict={x: test_x}))
