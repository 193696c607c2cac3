"""What every chart shares: colours, theme, SVG. The page and the study draw with it."""
