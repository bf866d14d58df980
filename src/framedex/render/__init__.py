"""For eyes: HTML with small pictures in it, and progress bars."""
