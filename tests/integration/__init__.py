"""Through a real cell, or the real command line; every denial has its control."""
