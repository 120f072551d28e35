package bounded

import "context"

// Within returns what f returns. Once ctx has ended, Within returns nil, and f goes on in
// the background.
func Within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return nil
	}
}
