# SPDX-License-Identifier: MIT
project = "Spyre virtual card"
author = "The Spyre developers"
copyright = "The Spyre developers"
extensions = []
# Included by other pages.
exclude_patterns = ["*-generated.rst"]
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "sidebar_width": "260px"}
highlight_language = "none"
nitpicky = True
