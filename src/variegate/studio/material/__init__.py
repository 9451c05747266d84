"""Material to be shown and learned from: tables, documents, videos and images."""
