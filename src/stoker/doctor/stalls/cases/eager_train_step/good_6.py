import tensorflow as tf

def saliency(model, image):
    with tf.GradientTape() as tape:
        tape.watch(image)
        score = model(image)[0, 0]
    return tape.gradient(score, image)

maps = [saliency(model, image) for image in images]
