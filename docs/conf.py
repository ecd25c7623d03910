# Sphinx, for `make site`.
project = "mlx-vulkan"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "mlx-vulkan"
myst_heading_anchors = 3
exclude_patterns = ["lab"]
# Links to files outside docs/ are for readers of the repository.
suppress_warnings = ["myst.xref_missing", "myst.header"]
