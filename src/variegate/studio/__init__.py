"""The studio: a page on one's own machine where picks become a model at once."""
