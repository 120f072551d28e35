package servers

import (
	"fmt"
	"testing"
)

// TestReserve keeps a port from everybody else until the test has ended.
func TestReserve(t *testing.T) {
	t.Parallel()
	var port int
	t.Run("reserved", func(t *testing.T) {
		port = reserve(t)
		if l, err := occupyAt(t, port); err == nil {
			l.Close()
			t.Errorf("port %d is reserved, and another got it", port)
		}
	})
	// A process that another test is just starting has the mark, too, until it runs.
	Await(t, fmt.Sprintf("port %d, which nobody reserves any more", port), func() error {
		l, err := occupyAt(t, port)
		if err == nil {
			l.Close()
		}
		return err
	})
}
