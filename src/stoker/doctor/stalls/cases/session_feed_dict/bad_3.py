import tensorflow as tf

def fit(sess, steps):
    for step in range(steps):
        sess.run(train_op, feed_dict=feed(step))  #!
