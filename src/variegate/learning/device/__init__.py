"""Learning on a device, by PyTorch: imported only where one is asked for."""
