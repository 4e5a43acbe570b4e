"""The trainer: whole epochs inside one compiled call, and an exact resume after a crash.

Nothing is imported here: TensorFlow comes with the module that is used.
"""
