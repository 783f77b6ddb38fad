"""Rules recorded once and performed as straight lists of calls, or written out as plain Python."""
