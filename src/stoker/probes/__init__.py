"""What the run says: probes that attach to TensorFlow and Keras from outside, one file per subject.

Each probe patches a few functions, charges the time to an account of the `Recorder`, and tallies what it saw by
the user's line. `session.Session` holds them all.
"""
