import tensorflow.compat.v1 as tf

next_batch = tf.data.make_one_shot_iterator(dataset).get_next()
train_op = build(next_batch)
with tf.Session() as sess:
    for i in range(1000):
        sess.run(train_op)
