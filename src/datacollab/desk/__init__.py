"""The desk: a party's or the analyst's own pages, on its own machine, for the steps that the commands take.

``datacollab desk`` opens it on loopback.  Pages call the folders that the commands call, and compute nothing besides.
"""
