"""Readers that are fast by construction: files in, a `tf.data.Dataset` ready for training out.

    train, held_out = stoker.data.csv("sales/*.csv", label="price", batch_size=1024, shuffle=True, seed=7,
                                      validation_split=0.1)
    inputs = train.features.inputs()
    model = keras.Model(inputs, keras.layers.Dense(1)(train.features.encode(inputs)))
    stoker.fit(model, train, validation_data=held_out, epochs=10, checkpoint="run")

A table is parsed once, in Arrow blocks, into a binary cache. Every epoch gathers its batches from the mapped files, in
TensorFlow's graph, in an order that is a function of the seed and the epoch.

| module | subject |
|---|---|
| readers, text_reader, image_reader, tar_reader, record_files, array_reader | the functions that callers use |
| csv_files, csv_layout, csv_rows, csv_totals, csv_returns, csv_repair | CSV files, as people write them |
| json_files, json_texts, arrow_sources, frames, table_files | the other sources of tables |
| text_files, encodings, image_files, image_bytes, tar_files | the contents of other files |
| paths, class_folders | which files to read |
| columns, misfits, odd_cells, labels | the kind of each column, and values that do not fit it |
| cells, cell_dates, cell_times, cell_guesses, lenient | cells as people write them, and their conversion to values |
| category_words, category_columns | categories whose words are written in several ways |
| ingest, store, cache | one pass over a source, into arrays that are mapped and cached |
| order, permutation, splits | which rows a batch holds, and which rows are held out |
| tables, word_ids, augmenting | making a batch from rows of the store |
| features, layer_names, statistics | what a model needs to know about the columns |
| survey, other_surveys | what `stoker data` prints |
| tuning | `stoker.tune`: a faster pipeline, proven equal |
| array_types | names for the types of NumPy arrays |

Importing this package imports neither TensorFlow nor pyarrow: names are resolved when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.lazy import import_when_used

if TYPE_CHECKING:
    from stoker.data.array_reader import arrays
    from stoker.data.columns import DataWarning
    from stoker.data.image_reader import images
    from stoker.data.readers import csv, frame, jsonl, parquet, sql
    from stoker.data.record_files import tfrecord
    from stoker.data.tar_reader import tar
    from stoker.data.text_reader import text

_HOMES = {
    "DataWarning": "stoker.data.columns",
    "arrays": "stoker.data.array_reader",
    "csv": "stoker.data.readers",
    "frame": "stoker.data.readers",
    "images": "stoker.data.image_reader",
    "jsonl": "stoker.data.readers",
    "parquet": "stoker.data.readers",
    "sql": "stoker.data.readers",
    "tar": "stoker.data.tar_reader",
    "text": "stoker.data.text_reader",
    "tfrecord": "stoker.data.record_files",
}

__all__ = [
    "DataWarning",
    "arrays",
    "csv",
    "frame",
    "images",
    "jsonl",
    "parquet",
    "sql",
    "tar",
    "text",
    "tfrecord",
]

__getattr__ = import_when_used(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
