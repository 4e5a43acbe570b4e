import tensorflow.compat.v1 as tf

with tf.Session() as sess:
    print(sess.run(accuracy, feed_dict={x: test_x, y: test_y}))
