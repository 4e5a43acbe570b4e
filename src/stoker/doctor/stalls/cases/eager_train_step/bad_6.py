import tensorflow as tf

def penalty(critic, real, fake):
    mixed = 0.5 * real + 0.5 * fake
    with tf.GradientTape() as inner:
        inner.watch(mixed)
        scores = critic(mixed)
    slopes = inner.gradient(scores, mixed)
    return tf.reduce_mean(tf.square(tf.norm(slopes, axis=1) - 1.0))

def critic_step(generator, critic, real, noise, optimizer):
    with tf.GradientTape() as tape:  #!
        fake = generator(noise)
        loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + penalty(critic, real, fake)
    gradients = tape.gradient(loss, critic.trainable_variables)
    optimizer.apply_gradients(zip(gradients, critic.trainable_variables))

def generator_step(generator, critic, noise, optimizer):
    with tf.GradientTape() as tape:  #!
        loss = -tf.reduce_mean(critic(generator(noise)))
    gradients = tape.gradient(loss, generator.trainable_variables)
    optimizer.apply_gradients(zip(gradients, generator.trainable_variables))

def train(dataset, generator, critic, optimizer):
    for i, real in enumerate(dataset):
        noise = tf.random.normal([32, 16])
        critic_step(generator, critic, real, noise, optimizer)
        if i % 5 == 0:
            generator_step(generator, critic, noise, optimizer)
