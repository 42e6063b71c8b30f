"""Conformance: one program, run on the real CUDA Runtime and on the simulator, gives one trace."""
