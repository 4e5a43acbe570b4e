"""Tests of the page over the store."""
