"""Pictures of results, drawn once for the page, the HTML report and files.

``charts_of`` lays out each picture as plain marks; ``svg`` writes them as SVG, the page draws the same marks itself.
Pure: knows domain values only.
"""
