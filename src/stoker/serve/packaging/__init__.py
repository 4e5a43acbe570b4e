"""`stoker package`: everything needed to build and run an image of a bundle or of a training program.

| module | subject |
|---|---|
| wheelhouse | the wheels the image installs, each pinned by its hash |
| templates | the Dockerfile, the compose file, the manifests; `$name` is filled in |
| writing | `package_bundle`, `package_program`: the steps, in order |
"""
