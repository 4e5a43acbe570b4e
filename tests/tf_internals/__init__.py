"""What Stoker relies on in TensorFlow and Keras, shown on the real ones: run these on a new version first."""
