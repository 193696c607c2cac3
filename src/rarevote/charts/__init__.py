"""The common parts of all charts: colours, theme, SVG. The page and the study use them."""
