"""What text, video and tables share: models over omega, files, descriptions."""
