"""The HTTP service of ``nasrlm serve``; needs the extra ``serve``."""
