"""What random models are made of: shapes, and names of Keras'."""

from __future__ import annotations

# What goes into a model, by the number of dimensions with the rows.
SHAPES = {2: (5,), 3: (6, 4), 4: (6, 6, 3), 5: (4, 4, 4, 2)}
CHANNELS = 4
WORDS = 11
CLASSES = 3

ACTIVATIONS = [
    "celu",
    "elu",
    "exponential",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
]
MERGES = ("Add", "Average", "Concatenate", "Maximum", "Minimum", "Multiply", "Subtract")
POLICIES = ("float32",) * 6 + ("float64", "mixed_bfloat16", "mixed_float16", "bfloat16")
LOSSES = {
    "numbers": [
        "cosine_similarity",
        "huber",
        "log_cosh",
        "mean_absolute_error",
        "mean_absolute_percentage_error",
        "mean_squared_error",
        "mean_squared_logarithmic_error",
        "poisson",
    ],
    "two": ["binary_crossentropy", "binary_focal_crossentropy", "dice", "hinge", "squared_hinge", "tversky"],
    "one-hot": [
        "categorical_crossentropy",
        "categorical_focal_crossentropy",
        "categorical_hinge",
        "kl_divergence",
    ],
    "classes": ["sparse_categorical_crossentropy"],
}
METRICS = {
    "numbers": [
        "mae",
        "mse",
        "mape",
        "RootMeanSquaredError",
        "R2Score",
        "CosineSimilarity",
        "LogCoshError",
        "MeanSquaredLogarithmicError",
    ],
    "two": [
        "accuracy",
        "AUC",
        "Precision",
        "Recall",
        "BinaryIoU",
        "F1Score",
        "TruePositives",
        "FalseNegatives",
        "BinaryCrossentropy",
    ],
    "one-hot": [
        "accuracy",
        "AUC",
        "TopKCategoricalAccuracy",
        "CategoricalCrossentropy",
        "KLDivergence",
        "OneHotMeanIoU",
        "F1Score",
    ],
    "classes": ["accuracy", "SparseTopKCategoricalAccuracy", "SparseCategoricalCrossentropy"],
}
NEEDED = {
    "OneHotMeanIoU": {"num_classes": CLASSES},
    "TopKCategoricalAccuracy": {"k": 2},
    "SparseTopKCategoricalAccuracy": {"k": 2},
}
