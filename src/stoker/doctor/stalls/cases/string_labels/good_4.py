from sklearn.linear_model import LogisticRegression
import tensorflow as tf

LogisticRegression().fit(x, ["a", "b"])
