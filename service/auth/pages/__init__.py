"""Pages by which people sign in and out, and the frame of all pages."""
