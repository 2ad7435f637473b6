"""Models whose export, load or run fails, each with the code it must get and a remedy that must work."""
