"""Transport: supervised children and what they say. Nothing here knows what the work is about."""
