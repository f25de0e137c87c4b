"""Networks on GPUs: what `gpu_models.py` exports, times in PyTorch and tunes."""
