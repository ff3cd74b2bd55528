"""The untrusted side of the pipe: launcher, init, worker and the built-in tools.

Standard library only, and nothing here imports toolcell: these modules run in
processes that hold as little as possible. `wire` is the one module that the
trusted side shares.
"""
