"""Jobs: the work of tasks on datasets. Each writes tables and returns the commit that publishes them."""
