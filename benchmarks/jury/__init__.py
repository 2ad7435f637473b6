"""A jury of random models: valid by construction, exported, proved with defaults; whatever does not ship is somebody's bug."""
