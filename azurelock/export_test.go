package azurelock

import "github.com/holdfast-go/holdfast/caslock"

// Register returns the register of the Store.
func (s *Store) Register() caslock.Register { return s.register }
