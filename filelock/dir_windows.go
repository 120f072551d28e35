package filelock

// writable leaves the question to the first file, since only the system can
// work out who may do what here.
func writable(string) error { return nil }
