"""`stoker ui`: a page over the store, made of one document and JSON answers, with nothing loaded from elsewhere.

| module | subject |
|---|---|
| app | the routes |
| safety | who may send requests: the token, Host and Origin |
| document | the HTML document; its scripts and styles are allowed by their hashes |
| answers | the JSON for each view |
| jobs | the jobs of `stoker launch` below this directory: where their time went |
| live | changes, as server-sent events |
| assets/ | scripts and styles, on top of those of the report's page |
"""
