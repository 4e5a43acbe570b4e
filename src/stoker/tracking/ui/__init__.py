"""`stoker ui`: the page over the store. One document, answers in JSON, nothing from elsewhere.

| module | subject |
|---|---|
| app | the routes |
| safety | who may ask: token, Host and Origin |
| document | the one HTML document, its scripts and styles allowed by their hashes |
| answers | the store as JSON, for each view |
| live | what is new, as server-sent events |
| assets/ | its scripts and styles, on those of the report's page |
"""
