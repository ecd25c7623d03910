# Sphinx, for `make site`.
project = "mlx-vulkan"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "mlx-vulkan"
myst_heading_anchors = 3
# Links to files of the tree are for readers of the repository.
suppress_warnings = ["myst.xref_missing", "myst.header"]
