"""The paper's section 4.3: key frames of videos."""
