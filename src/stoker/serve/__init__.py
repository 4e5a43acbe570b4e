"""From a trained model to answers: export into a bundle, query it, serve it.

    stoker.export(model, "bundle/")
    stoker.Predictor("bundle/").predict(rows)
    $ stoker serve bundle/

| module | subject |
|---|---|
| signature | what goes in and what comes out: names, types, shapes of one row |
| bundle | a bundle on the disk: its files, `bundle.json`, hashes |
| examples | the recorded examples: arrays in one file, strings among them |
| rows | rows as callers give them (dicts, lists, arrays, frames), made into one array for each input |
| table_cells | rows of a table as they appear in its file: texts for numbers, missing keys, other columns |
| images, image_sizes | image files among the rows, decoded to the pixels that training would have used |
| placing | directories that are written beside their final place and then renamed into it |
| safety | the checks made before any part of a bundle or a saved model is loaded |
| proof | the check that a bundle gives its recorded answers |
| export | turning a model into a bundle |
| saved_models | the model that a run in the store made |
| engines | what computes the answers, chosen by measuring |
| batching | the queue in front of an engine; rows that wait in it are answered together |
| predictor | `Predictor`: answers rows with a bundle |
| row_files, bulk, answer_files | whole files: rows read from one, answers written to another |
| drift | whether requests still look like the rows the model was trained on |
| packaging | `stoker package`: images of bundles and of training programs |
| foreign | models that Stoker did not export: SavedModels and LiteRT files |
| rollout | a new version beside the old one: what changed, and whether there is enough data to tell |
| telemetry | OpenTelemetry: requests as spans, counts as metrics |
| plane | the way from a question to its answer, the same for every protocol |
| http | TensorFlow Serving's REST API and the Open Inference Protocol over HTTP |
| grpc | TensorFlow Serving's PredictionService and the Open Inference Protocol over gRPC |
| server | the processes of `stoker serve` |
"""
