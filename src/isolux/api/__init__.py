"""What isolux does for its user: one file or folder per public function, named as the function."""
