package filelock

// writable leaves the check to the first file: only the system can evaluate permissions
// here.
func writable(string) error { return nil }
