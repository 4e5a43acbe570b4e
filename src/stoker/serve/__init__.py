"""From a trained model to answers: export into a bundle, ask the bundle, serve it.

    stoker.export(model, "bundle/")
    stoker.Predictor("bundle/").predict(rows)
    $ stoker serve bundle/

| module | subject |
|---|---|
| signature | what goes in and what comes out: names, types, shapes of one row |
| bundle | a bundle on the disk: its files, `bundle.json`, hashes |
| examples | the recorded examples: arrays in one file, strings among them |
| rows | what people call rows (dicts, lists, arrays, frames) as one array for each input |
| table_cells | rows of a table as its file has them: texts for numbers, missing keys, other columns |
| images, image_sizes | image files among the rows, as the pixels that training would have had |
| placing | directories made beside their place and renamed into it |
| safety | what is looked at before anything of a bundle or a saved model is loaded |
| proof | a bundle gives its recorded answers |
| export | a model becomes a bundle |
| saved_models | the model that a run of the store has made |
| engines | what computes the answers, chosen by measuring |
| batching | the queue before an engine, whose rows are answered together |
| predictor | `Predictor`: a bundle that answers |
| row_files, bulk | whole files of rows in, files of answers out |
| drift | whether what is asked is still what the model was trained on |
| packaging | `stoker package`: images of bundles and of training programs |
| foreign | models that Stoker did not export: SavedModels and LiteRT files |
| rollout | a new version beside the old one: what changed, and whether that is enough to tell |
| telemetry | OpenTelemetry: requests as spans, counts as metrics |
| plane | from a question to its answer, whatever protocol it came in |
| http | TensorFlow Serving's REST API and the Open Inference Protocol over HTTP |
| grpc | TensorFlow Serving's PredictionService and the Open Inference Protocol over gRPC |
| server | the processes of `stoker serve` |
"""
