# Sphinx, for `make site`.
project = "mlx-vulkan"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "mlx-vulkan"
myst_heading_anchors = 3
exclude_patterns = ["lab"]
