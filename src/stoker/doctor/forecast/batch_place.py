"""The calls that set the batch of a program's training: found when the training begins, and changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from stoker.doctor.attach.patching import Patches
from stoker.doctor.attach.sites import Sites, shown_path
from stoker.doctor.forecast.child_request import BatchPlace
from stoker.tf_internals import datasets, eager, keras_data
from stoker.tf_internals.types import Dataset, DatasetIterator, GradientTape, Model, Nest

_METHODS = ("batch", "padded_batch", "ragged_batch")
# The batch size of `fit` by default.
_KERAS_ROWS = 32
Found = Callable[[BatchPlace | None], NoReturn]


class BatchSearch(Patches):
    """Watches a program until its training begins, and then calls `found` with the place, or None."""

    def __init__(self, sites: Sites, found: Found) -> None:
        super().__init__()
        self._sites, self._found = sites, found
        # The batchings in the order of their calls, which is the same in every run.
        self._batched: list[tuple[Dataset, BatchPlace]] = []
        self._iterated: list[Dataset] = []

    def attach(self) -> None:
        """Put the patches in."""
        import keras
        import tensorflow as tf

        for name in _METHODS:
            self.replace(tf.data.Dataset, name, self._note_batched)
        self.replace(tf.data.Dataset, "__iter__", self._note_iterated)
        self.replace(tf.distribute.Strategy, "experimental_distribute_dataset", self._note_distributed)
        self.replace(keras.Model, "fit", self._begin_fit)
        self.replace(keras.Model, "train_on_batch", self._begin_training)
        self.replace(tf.GradientTape, "__enter__", self._begin_training)

    def _note_batched(self, original: Callable[..., Dataset]) -> Callable[..., Dataset]:
        def batch(source: Dataset, batch_size: Any, *args: Any, **kwds: Any) -> Dataset:
            made = original(source, batch_size, *args, **kwds)
            if eager.is_eager():
                file, line, _ = self._sites.caller()[0] or ("", 0, "")
                place = BatchPlace(
                    "dataset", int(batch_size), (len(self._batched),), file=shown_path(file), line=line
                )
                self._batched.append((made, place))
            return made

        return batch

    def _note_iterated(self, original: Callable[..., DatasetIterator]) -> Callable[..., DatasetIterator]:
        def iterate(dataset: Dataset) -> DatasetIterator:
            self._iterated.append(dataset)
            return original(dataset)

        return iterate

    def _note_distributed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def distribute(strategy: Any, dataset: Dataset, *args: Any, **kwds: Any) -> Any:
            self._iterated.append(dataset)
            return original(strategy, dataset, *args, **kwds)

        return distribute

    def _begin_fit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def fit(model: Model, x: Nest = None, y: Nest = None, *args: Any, **kwds: Any) -> NoReturn:
            import tensorflow as tf

            if isinstance(x, tf.data.Dataset):
                self._found(self._place_behind(x))
            file, line, _ = self._sites.caller()[0] or ("", 0, "")
            given = args[0] if args else kwds.get("batch_size")
            rows = int(given or _KERAS_ROWS)
            is_arrays = keras_data.is_arrays(x)
            self._found(BatchPlace("fit", rows, file=shown_path(file), line=line) if is_arrays else None)

        return fit

    def _begin_training(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def begin(thing: Model | GradientTape, *args: Any, **kwds: Any) -> NoReturn:
            read = [*reversed(self._iterated), *(made for made, _ in reversed(self._batched))]
            self._found(next(filter(None, map(self._place_behind, read)), None))

        return begin

    def _place_behind(self, dataset: Dataset) -> BatchPlace | None:
        """Return the last batching before a dataset; for a dataset that joins several branches, one for each branch."""
        places = {id(made): place for made, place in self._batched}
        found: list[BatchPlace] = []
        pending = [dataset]
        while pending:
            stage = pending.pop()
            if id(stage) in places:
                found.append(places[id(stage)])
            else:
                pending += datasets.inputs(stage)
        if not found:
            return None
        numbers = sorted({number for place in found for number in place.numbers})
        first = min(found, key=lambda place: place.numbers)
        return BatchPlace("dataset", first.rows, tuple(numbers), file=first.file, line=first.line)


class BatchChange(Patches):
    """Makes a program train with another batch, wherever it sets the batch: in its pipeline or in `fit`."""

    def __init__(self, place: BatchPlace, rows: int) -> None:
        super().__init__()
        self._place, self._rows = place, rows
        self._seen = 0

    def attach(self) -> None:
        """Put the patches in."""
        import keras
        import tensorflow as tf

        if self._place.kind == "dataset":
            for name in _METHODS:
                self.replace(tf.data.Dataset, name, self._change_batched)
        elif self._place.kind == "fit":
            self.replace(keras.Model, "fit", self._change_fit)

    def _change_batched(self, original: Callable[..., Dataset]) -> Callable[..., Dataset]:
        def batch(source: Dataset, batch_size: Any, *args: Any, **kwds: Any) -> Dataset:
            if not eager.is_eager():
                return original(source, batch_size, *args, **kwds)
            ours = self._seen in self._place.numbers
            self._seen += 1
            return original(source, self._rows if ours else batch_size, *args, **kwds)

        return batch

    def _change_fit(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def fit(
            model: Model, x: Nest = None, y: Nest = None, batch_size: Any = None, *args: Any, **kwds: Any
        ) -> Any:
            return original(model, x, y, self._rows, *args, **kwds)

        return fit
