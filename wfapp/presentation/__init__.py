"""What people are shown of runs, in words: values, histories, and why a run is not moving."""
