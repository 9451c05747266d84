"""What the studio shows and learns from: tables, documents, videos and images."""
