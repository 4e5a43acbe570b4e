import cv2
import numpy as np
import tensorflow as tf

model = tf.keras.models.load_model("faces.h5")

def classify(frame):
    small = cv2.resize(frame, (64, 64))
    return model.predict(np.expand_dims(small, 0))[0]  #!

capture = cv2.VideoCapture(0)
while True:
    ok, frame = capture.read()
    print(classify(frame))
