"""Token mixers and other parts of a layer beside plain attention by heads, each module by what it keeps."""
